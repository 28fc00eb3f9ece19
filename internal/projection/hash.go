package projection

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"correx/pkg/events"
)

// A Hash is a SHA-256.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

func parseHash(s string) (h Hash, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("%q is not a SHA-256 in hex", s)
	}
	copy(h[:], b)
	return h, nil
}

// HashRecord is the digest of a record as the stream has it: sequence, time in
// nanoseconds, subject, headers by name, body; each number eight bytes, each
// text behind its length.
func HashRecord(r events.Record) Hash { return hashRecord(r, sortedNames(r.Header)) }

func hashRecord(r events.Record, names []string) Hash {
	b := make([]byte, 0, 1024+len(r.Data))
	b = binary.BigEndian.AppendUint64(b, r.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Time.UnixNano()))
	b = appendText(b, r.Subject)
	b = binary.BigEndian.AppendUint64(b, uint64(len(names)))
	for _, name := range names {
		b = appendText(b, name)
		b = binary.BigEndian.AppendUint64(b, uint64(len(r.Header[name])))
		for _, v := range r.Header[name] {
			b = appendText(b, v)
		}
	}
	return sha256.Sum256(appendText(b, r.Data))
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(text))), text...)
}

// sortedNames are the names of headers, in order.
func sortedNames(h events.Header) []string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Link is the chain's next link: the digest of the last one and of a record's hash.
func Link(chain, record Hash) Hash {
	return sha256.Sum256(append(chain[:], record[:]...))
}
