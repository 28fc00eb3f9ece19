package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// A Hash is a SHA-256.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText makes a hash stand in JSON as it does in print.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText is [ParseHash].
func (h *Hash) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHash(string(text))
	return err
}

// ParseHash reads 64 hex digits.
func ParseHash(s string) (h Hash, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("%q is not a SHA-256 in hex", s)
	}
	return Hash(b), nil
}

// An Event is a record of a stream as it is stored. A nil Header and an empty one
// are the same.
type Event struct {
	Seq     uint64
	Time    time.Time
	Subject string
	Header  map[string][]string
	Data    []byte
}

// Tags keep what is hashed for one purpose from being taken for another.
const (
	tagContent = "correx content 1"
	tagEvent   = "correx event 1"
	tagGenesis = "correx chain 1"
)

// A Hasher hashes records, with one buffer for all. It is for one goroutine; its
// zero value is ready.
type Hasher struct {
	buf   []byte
	names []string
}

// Content is the hash of what a record says: subject, headers and body, wherever
// and whenever it is stored.
func (h *Hasher) Content(subject string, header map[string][]string, data []byte) Hash {
	h.names = appendNames(h.names[:0], header)
	b := appendText(h.buf[:0], tagContent)
	b = appendText(b, subject)
	b = binary.BigEndian.AppendUint64(b, uint64(len(h.names)))
	for _, name := range h.names {
		b = appendText(b, name)
		b = binary.BigEndian.AppendUint64(b, uint64(len(header[name])))
		for _, v := range header[name] {
			b = appendText(b, v)
		}
	}
	h.buf = appendText(b, data)
	return sha256.Sum256(h.buf)
}

// Event is the hash of a record: its content and its place.
func (h *Hasher) Event(e Event) Hash {
	return Placed(e.Seq, e.Time, h.Content(e.Subject, e.Header, e.Data))
}

// Placed is the hash of a record whose content's hash is known.
func Placed(seq uint64, stored time.Time, content Hash) Hash {
	var buf [8 + len(tagEvent) + 8 + 8 + sha256.Size]byte
	b := appendText(buf[:0], tagEvent)
	b = binary.BigEndian.AppendUint64(b, seq)
	b = binary.BigEndian.AppendUint64(b, uint64(stored.UnixNano()))
	return sha256.Sum256(append(b, content[:]...))
}

// appendNames appends the names of headers, in the order of their bytes.
func appendNames(names []string, header map[string][]string) []string {
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(text))), text...)
}

// An Identity tells one stream from every other: its name and when it was made.
type Identity struct {
	Stream  string
	Created time.Time
}

// Is reports whether two identities are of one stream.
func (i Identity) Is(o Identity) bool { return i.Stream == o.Stream && i.Created.Equal(o.Created) }

func (i Identity) String() string {
	return fmt.Sprintf("stream %s of %s", i.Stream, i.Created.UTC().Format(time.RFC3339Nano))
}

// Genesis is where the chain of a stream begins.
func Genesis(i Identity) Hash {
	b := appendText(nil, tagGenesis)
	b = appendText(b, i.Stream)
	return sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(i.Created.UnixNano())))
}

// Link is the chain's next link: the digest of the last one and of a record's hash.
func Link(chain, event Hash) Hash {
	var b [2 * sha256.Size]byte
	copy(b[:], chain[:])
	copy(b[sha256.Size:], event[:])
	return sha256.Sum256(b[:])
}
