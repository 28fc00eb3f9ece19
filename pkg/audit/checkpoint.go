package audit

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"correx/pkg/events"
)

// ErrUntrusted is the error of a checkpoint that no trusted key has signed.
var ErrUntrusted = errors.New("the checkpoint is not signed by a trusted key")

// A State is what can be said of a prefix of a stream.
type State struct {
	Chain Hash
	Tree  Tree
}

// Begin is the state before the first record.
func Begin(i Identity) State { return State{Chain: Genesis(i)} }

// Add takes the next record's hash in.
func (s *State) Add(event Hash) {
	s.Chain = Link(s.Chain, event)
	s.Tree.Add(event)
}

// Checkpoints is the aggregate of all checkpoints of a stream: whoever is late
// finds that it has moved on.
func Checkpoints() events.Aggregate {
	return events.Aggregate{Session: events.System, Kind: events.KindAudit, ID: events.Main}
}

// A Signer is an NKey pair.
type Signer interface {
	PublicKey() (string, error)
	Sign(text []byte) ([]byte, error)
}

// Sign returns the checkpoint of a stream's first records, whose last ones have
// the fingerprints. Previous is the sequence of the checkpoint before, or 0.
func Sign(key Signer, of Identity, s State, previous uint64, last []Fingerprint) (events.AuditCheckpoint, error) {
	c := events.AuditCheckpoint{
		Ref: Checkpoints().Ref(), Through: s.Tree.Size(), Chain: s.Chain.String(),
		Root: s.Tree.Root().String(), Stream: of.Stream, Created: of.Created.UTC(), Previous: previous,
		Fingerprints: EncodeFingerprints(last[max(0, len(last)-MaxFingerprints):]),
	}
	var err error
	if c.Key, err = key.PublicKey(); err != nil {
		return c, fmt.Errorf("sign checkpoint: %w", err)
	}
	sig, err := key.Sign(Statement(c))
	if err != nil {
		return c, fmt.Errorf("sign checkpoint: %w", err)
	}
	c.Signature = base64.RawURLEncoding.EncodeToString(sig)
	return c, nil
}

// Statement is the text that a checkpoint's signature covers: one line a field.
func Statement(c events.AuditCheckpoint) []byte {
	prints := sha256.Sum256([]byte(c.Fingerprints))
	return []byte(strings.Join([]string{
		"correx checkpoint 1",
		c.Stream, c.Created.UTC().Format(time.RFC3339Nano),
		strconv.FormatUint(c.Through, 10), c.Chain, c.Root,
		strconv.FormatUint(c.Previous, 10), Hash(prints).String(),
	}, "\n"))
}

// Check returns an error that wraps [ErrUntrusted] unless one of the keys, public
// NKeys, has signed c as it is. With no keys it trusts the one that c names,
// which shows that c is whole and nothing else.
func Check(c events.AuditCheckpoint, keys ...string) error {
	if len(keys) > 0 && !slices.Contains(keys, c.Key) {
		return fmt.Errorf("%w: it names %q", ErrUntrusted, c.Key)
	}
	key, err := nkeys.FromPublicKey(c.Key)
	if err != nil {
		return fmt.Errorf("%w: %q is no public NKey", ErrUntrusted, c.Key)
	}
	sig, err := base64.RawURLEncoding.DecodeString(c.Signature)
	if err != nil || key.Verify(Statement(c), sig) != nil {
		return fmt.Errorf("%w: the signature is not that of %s over it", ErrUntrusted, c.Key)
	}
	_, err = DecodeFingerprints(c.Fingerprints)
	return err
}

// Of is the stream that c is of.
func Of(c events.AuditCheckpoint) Identity { return Identity{c.Stream, c.Created} }

// Clone is a state that shares nothing with s.
func (s State) Clone() State {
	s.Tree.peaks = slices.Clone(s.Tree.peaks)
	return s
}
