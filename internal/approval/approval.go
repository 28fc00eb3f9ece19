// Package approval says what may run, and proves that it was said.
//
// [Decide] is the policy: tier, rules, what a person has remembered, and the
// session's mode. [Digest] names exactly what an approval is for. [Signer] and
// [Verifier] tie an approval to the kernel's key and to one stream, session,
// invocation, tool, digest and deadline: whoever can write to the log by some
// other way still cannot make a worker run anything.
package approval

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"correx/pkg/events"
)

// Mode is a session's answer to tools that are not harmless.
type Mode = events.ApprovalMode

// Digest names what an approval is for: the tool, the bytes of its parameters
// as they stand in requested, the state of the files that its preview rests on,
// and the version of the policy. It is the hex SHA-256 over these fields, each
// preceded by its length as eight big-endian bytes; the base hashes are counted
// in the same way.
func Digest(tool string, params events.Raw, base []events.BaseHash, policyVersion string) string {
	h := sha256.New()
	field := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	field([]byte("correx approval 1"))
	field([]byte(tool))
	field(params)
	field([]byte(strconv.Itoa(len(base))))
	for _, b := range base {
		field([]byte(b.Path))
		field([]byte(b.SHA256))
	}
	field([]byte(policyVersion))
	return hex.EncodeToString(h.Sum(nil))
}

// ParametersHash names parameters alone; a remembered answer is for these.
func ParametersHash(params events.Raw) string {
	sum := sha256.Sum256(params)
	return hex.EncodeToString(sum[:])
}

// StreamIdentity tells two streams of one name apart.
type StreamIdentity struct {
	Stream  string
	Created time.Time
}

// A Signer signs approvals. It works its key out once, for which an NKey takes as
// long as for a signature, and does so each time.
type Signer struct {
	key ed25519.PrivateKey
	pub string
}

// NewSigner returns a signer with the kernel's key.
func NewSigner(key nkeys.KeyPair) (*Signer, error) {
	pub, err := key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("sign approvals: %w", err)
	}
	seed, err := key.Seed()
	if err != nil {
		return nil, fmt.Errorf("sign approvals: %w", err)
	}
	_, raw, err := nkeys.DecodeSeed(seed)
	if err != nil {
		return nil, fmt.Errorf("sign approvals: %w", err)
	}
	return &Signer{ed25519.NewKeyFromSeed(raw), pub}, nil
}

// Sign returns g with the key and the signature of the kernel.
func (s *Signer) Sign(id StreamIdentity, g events.ApprovalGranted) events.ApprovalGranted {
	g.Key = s.pub
	g.Signature = base64.RawURLEncoding.EncodeToString(ed25519.Sign(s.key, signed(id, g)))
	return g
}

// Sign signs one approval.
func Sign(key nkeys.KeyPair, id StreamIdentity, g events.ApprovalGranted) (events.ApprovalGranted, error) {
	s, err := NewSigner(key)
	if err != nil {
		return g, err
	}
	return s.Sign(id, g), nil
}

// signed is the text that a signature covers: one line a field, in this order.
func signed(id StreamIdentity, g events.ApprovalGranted) []byte {
	return []byte(strings.Join([]string{
		"correx approval 1",
		id.Stream, id.Created.UTC().Format(time.RFC3339Nano),
		string(g.Session), g.ID, g.Tool, g.Token, g.Digest,
		g.Until.UTC().Format(time.RFC3339Nano),
	}, "\n"))
}

// ErrForged is the error of an approval that the kernel did not sign.
var ErrForged = errors.New("approval is not signed by the kernel")

// A Verifier checks approvals against the one key that it trusts, which it was
// given out of band.
type Verifier struct {
	id  StreamIdentity
	pub string
	key nkeys.KeyPair
}

// NewVerifier returns a verifier for one stream and the kernel's public NKey.
func NewVerifier(id StreamIdentity, kernelPub string) (*Verifier, error) {
	key, err := nkeys.FromPublicKey(kernelPub)
	if err != nil {
		return nil, fmt.Errorf("read kernel key %q: %w", kernelPub, err)
	}
	return &Verifier{id, kernelPub, key}, nil
}

// Verify returns an error that wraps [ErrForged] for a tool.approved that the
// kernel did not sign for this stream and this invocation, and nil for every
// other record.
func (v *Verifier) Verify(r events.Record) error {
	g, ok := r.Fact.(events.ApprovalGranted)
	if !ok {
		return nil
	}
	if g.Key != v.pub {
		return fmt.Errorf("%w: it names the key %q", ErrForged, g.Key)
	}
	sig, err := base64.RawURLEncoding.DecodeString(g.Signature)
	if err != nil {
		return fmt.Errorf("%w: signature is not base64url", ErrForged)
	}
	if err := v.key.Verify(signed(v.id, g), sig); err != nil {
		return fmt.Errorf("%w: %w", ErrForged, err)
	}
	return nil
}
