package audit

import (
	"crypto/sha256"
	"fmt"
	"math/bits"
	"strings"
)

// Leaf is the hash of a leaf of the tree.
func Leaf(event Hash) Hash {
	var b [1 + sha256.Size]byte
	copy(b[1:], event[:])
	return sha256.Sum256(b[:])
}

// node is the hash of an inner node.
func node(left, right Hash) Hash {
	var b [1 + 2*sha256.Size]byte
	b[0] = 1
	copy(b[1:], left[:])
	copy(b[1+sha256.Size:], right[:])
	return sha256.Sum256(b[:])
}

// A Tree is a Merkle tree as in RFC 9162 that grows at its right end. It keeps
// the roots of its full subtrees only, one for each bit of its size that is set,
// the largest first. Its zero value is empty.
type Tree struct {
	size  uint64
	peaks []Hash
}

// Size is the number of leaves.
func (t Tree) Size() uint64 { return t.size }

// Add appends a record's hash.
func (t *Tree) Add(event Hash) {
	h := Leaf(event)
	for n := t.size; n&1 == 1; n >>= 1 {
		last := len(t.peaks) - 1
		h = node(t.peaks[last], h)
		t.peaks = t.peaks[:last]
	}
	t.peaks = append(t.peaks, h)
	t.size++
}

// Root is the tree's root; that of an empty tree is the SHA-256 of nothing.
func (t Tree) Root() Hash {
	if t.size == 0 {
		return sha256.Sum256(nil)
	}
	h := t.peaks[len(t.peaks)-1]
	for k := len(t.peaks) - 2; k >= 0; k-- {
		h = node(t.peaks[k], h)
	}
	return h
}

// Peaks is the tree as a text, for [ParseTree].
func (t Tree) Peaks() string {
	texts := make([]string, len(t.peaks))
	for i, p := range t.peaks {
		texts[i] = p.String()
	}
	return strings.Join(texts, " ")
}

// ParseTree returns the tree of so many leaves whose [Tree.Peaks] are s.
func ParseTree(size uint64, s string) (Tree, error) {
	t := Tree{size: size}
	for _, text := range strings.Fields(s) {
		h, err := ParseHash(text)
		if err != nil {
			return Tree{}, fmt.Errorf("read tree: %w", err)
		}
		t.peaks = append(t.peaks, h)
	}
	if len(t.peaks) != bits.OnesCount64(size) {
		return Tree{}, fmt.Errorf("read tree: %d peaks, a tree of %d leaves has %d", len(t.peaks), size, bits.OnesCount64(size))
	}
	return t, nil
}

// rootOf is the root over leaves, which are hashed already.
func rootOf(leaves []Hash) Hash {
	if len(leaves) == 1 {
		return leaves[0]
	}
	k := split(uint64(len(leaves)))
	return node(rootOf(leaves[:k]), rootOf(leaves[k:]))
}

// split is the largest power of two below n, which is more than 1.
func split(n uint64) uint64 { return 1 << (bits.Len64(n-1) - 1) }

// inclusion is the path of the leaf at index m, from the leaf upwards.
func inclusion(m uint64, leaves []Hash) []Hash {
	n := uint64(len(leaves))
	if n <= 1 {
		return nil
	}
	k := split(n)
	if m < k {
		return append(inclusion(m, leaves[:k]), rootOf(leaves[k:]))
	}
	return append(inclusion(m-k, leaves[k:]), rootOf(leaves[:k]))
}

// climb is the root that a path leads to from the leaf at index m of n.
func climb(m, n uint64, h Hash, path []Hash) (Hash, error) {
	if m >= n {
		return h, fmt.Errorf("a tree of %d has no leaf %d", n, m)
	}
	last := n - 1
	for _, p := range path {
		if last == 0 {
			return h, fmt.Errorf("the path is too long for a tree of %d", n)
		}
		if m&1 == 1 || m == last {
			h = node(p, h)
			for m&1 == 0 && m != 0 {
				m, last = m>>1, last>>1
			}
		} else {
			h = node(h, p)
		}
		m, last = m>>1, last>>1
	}
	if last != 0 {
		return h, fmt.Errorf("the path is too short for a tree of %d", n)
	}
	return h, nil
}

// consistency is the proof that the first m leaves are a tree that the whole
// continues; 0 < m ≤ len(leaves).
func consistency(m uint64, leaves []Hash, known bool) []Hash {
	n := uint64(len(leaves))
	if m == n {
		if known {
			return nil
		}
		return []Hash{rootOf(leaves)}
	}
	k := split(n)
	if m <= k {
		return append(consistency(m, leaves[:k], known), rootOf(leaves[k:]))
	}
	return append(consistency(m-k, leaves[k:], false), rootOf(leaves[:k]))
}

// extends checks a [consistency] proof between two roots.
func extends(m, n uint64, first, second Hash, path []Hash) error {
	switch {
	case m == 0 || m > n:
		return fmt.Errorf("a tree of %d leaves cannot continue one of %d", n, m)
	case m == n && len(path) == 0 && first == second:
		return nil
	case m == n || len(path) == 0:
		return fmt.Errorf("the roots differ, or the path has the wrong length")
	}
	if bits.OnesCount64(m) == 1 {
		path = append([]Hash{first}, path...)
	}
	fn, sn := m-1, n-1
	for fn&1 == 1 {
		fn, sn = fn>>1, sn>>1
	}
	fr, sr := path[0], path[0]
	for _, c := range path[1:] {
		if sn == 0 {
			return fmt.Errorf("the path is too long")
		}
		if fn&1 == 1 || fn == sn {
			fr, sr = node(c, fr), node(c, sr)
			for fn&1 == 0 && fn != 0 {
				fn, sn = fn>>1, sn>>1
			}
		} else {
			sr = node(sr, c)
		}
		fn, sn = fn>>1, sn>>1
	}
	if fr != first || sr != second || sn != 0 {
		return fmt.Errorf("the path does not lead from the one root to the other")
	}
	return nil
}
