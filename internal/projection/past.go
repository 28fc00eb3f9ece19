package projection

import (
	"hash/maphash"

	"correx/pkg/events"
)

// pastBits is the size of a past: half a MiB, by which six of seven new aggregates
// are known to be new when there are a million.
const pastBits = 1 << 22

// A past knows which aggregates have surely had no record yet, for a writer that
// began with the first record of the log: what is new need not be looked up. It
// may err in one direction only, and then a look finds nothing.
type past struct {
	seed maphash.Seed
	bits []uint64
}

func newPast() *past { return &past{maphash.MakeSeed(), make([]uint64, pastBits/64)} }

// has reports whether a may have had a record, and remembers that it has one now.
// Of a nil past, which knows nothing, everything may have had one.
func (p *past) has(a events.Aggregate) bool {
	if p == nil {
		return true
	}
	h := maphash.Comparable(p.seed, a)
	had := true
	for _, bit := range [...]uint64{h % pastBits, h >> 32 % pastBits} {
		had = had && p.bits[bit/64]&(1<<(bit%64)) != 0
		p.bits[bit/64] |= 1 << (bit % 64)
	}
	return had
}
