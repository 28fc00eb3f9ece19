// Package artifacts keeps large outputs by their SHA-256.
//
// They lie in the object bucket ARTIFACTS in the client library's own format,
// so that "nats object get" reads them. Writing and reading are done here by
// hand, for three reasons: an object must be put only if it is absent, which
// the library cannot promise; reading must ask the leader, for a fact that
// names an artifact may arrive before a replica has it; and a worker must need
// nothing but STREAM.MSG.GET and the right to publish to $O.ARTIFACTS.>, while
// the library makes a consumer to read.
package artifacts

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/leader"
	"correx/pkg/events"
)

// Bucket is the object bucket of all artifacts.
const Bucket = "ARTIFACTS"

// chunkSize is the library's own.
const chunkSize = 128 << 10

var (
	// ErrNotFound is returned for a hash that nothing is kept under.
	ErrNotFound = errors.New("no such artifact")
	// ErrCorrupt is returned when what is kept does not have the hash.
	ErrCorrupt = errors.New("artifact is damaged: its content does not have the hash it is kept under")
)

// A Store is the bucket on one connection. It may be used by many goroutines.
type Store struct {
	js   jetstream.JetStream
	lead *leader.Stream
}

// New returns the store. It asks the server nothing.
func New(js jetstream.JetStream) *Store {
	return &Store{js: js, lead: leader.Of(js, "OBJ_"+Bucket)}
}

func chunkSubject(nuid string) string { return "$O." + Bucket + ".C." + nuid }

func metaSubject(key string) string {
	return "$O." + Bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(key))
}

// digest is a SHA-256 as the library writes it.
func digest(sum []byte) string { return "SHA-256=" + base64.URLEncoding.EncodeToString(sum) }

func checkKey(key string) error {
	if b, err := hex.DecodeString(key); err != nil || len(b) != 32 || hex.EncodeToString(b) != key {
		return fmt.Errorf("%q is no SHA-256 in lower-case hex", key)
	}
	return nil
}

// An entry is what is known of one key. Seq is that of its last description,
// which may say that it was deleted.
type entry struct {
	jetstream.ObjectInfo
	seq uint64
}

// lookup returns the entry of a key; one that nothing is known of has seq 0.
func (s *Store) lookup(ctx context.Context, key string) (entry, error) {
	m, err := s.lead.Last(ctx, metaSubject(key))
	if errors.Is(err, leader.ErrNone) {
		return entry{}, nil
	}
	if err != nil {
		return entry{}, err
	}
	e := entry{seq: m.Seq}
	if err := json.Unmarshal(m.Data, &e.ObjectInfo); err != nil {
		return entry{}, fmt.Errorf("read description: %w", err)
	}
	return e, nil
}

func (e entry) there() bool { return e.seq != 0 && !e.Deleted }

// Has reports whether something is kept under a hash.
func (s *Store) Has(ctx context.Context, sha256 string) (bool, error) {
	if err := checkKey(sha256); err != nil {
		return false, fmt.Errorf("look for artifact: %w", err)
	}
	e, err := s.lookup(ctx, sha256)
	if err != nil {
		return false, fmt.Errorf("look for artifact %s: %w", sha256, err)
	}
	return e.there(), nil
}

func ref(key, name, mediaType string, size int64) events.ArtifactRef {
	return events.ArtifactRef{Name: name, SHA256: key, Size: size, MediaType: mediaType}
}
