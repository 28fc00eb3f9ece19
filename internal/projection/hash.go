package projection

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"sort"

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
func HashRecord(r events.Record) Hash {
	d := digest{Hash: sha256.New()}
	d.number(r.Seq)
	d.number(uint64(r.Time.UnixNano()))
	d.text([]byte(r.Subject))
	names := make([]string, 0, len(r.Header))
	for name := range r.Header {
		names = append(names, name)
	}
	sort.Strings(names)
	d.number(uint64(len(names)))
	for _, name := range names {
		d.text([]byte(name))
		d.number(uint64(len(r.Header[name])))
		for _, v := range r.Header[name] {
			d.text([]byte(v))
		}
	}
	d.text(r.Data)
	return Hash(d.Sum(nil))
}

// Link is the chain's next link: the digest of the last one and of a record's hash.
func Link(chain, record Hash) Hash {
	return sha256.Sum256(append(chain[:], record[:]...))
}

type digest struct{ hash.Hash }

func (d digest) number(n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	d.Write(b[:]) // a hash's Write never fails
}

func (d digest) text(b []byte) {
	d.number(uint64(len(b)))
	d.Write(b)
}
