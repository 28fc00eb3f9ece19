package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"testing"
)

// numbered are the hashes of so many records.
func numbered(n int) []Hash {
	all := make([]Hash, n)
	for i := range all {
		all[i] = sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i)))
	}
	return all
}

// A tree that grows has at each size the root that its definition gives, and is
// the same when it was written down and read again.
func TestATreeThatGrowsIsTheOneOfItsLeaves(t *testing.T) {
	all := numbered(130)
	var tree Tree
	for n := 1; n <= len(all); n++ {
		tree.Add(all[n-1])
		if got, want := tree.Root(), rootOf(leaves(all[:n])); got != want {
			t.Fatalf("root of %d leaves is %s, not %s", n, got, want)
		}
		again, err := ParseTree(tree.Size(), tree.Peaks())
		if err != nil {
			t.Fatal(err)
		}
		if tree = again; len(tree.peaks) != bits.OnesCount(uint(n)) {
			t.Fatalf("a tree of %d has %d peaks", n, len(tree.peaks))
		}
	}
	if _, err := ParseTree(3, tree.Peaks()+" x"); err == nil {
		t.Error("a peak that is no hash was read")
	}
	if _, err := ParseTree(4, tree.Peaks()); err == nil {
		t.Error("two peaks were taken for a tree of four")
	}
}

// Each leaf of each small tree has its path, which leads nowhere for another
// leaf, index, size or root.
func TestInclusion(t *testing.T) {
	all := leaves(numbered(40))
	for n := uint64(1); n <= uint64(len(all)); n++ {
		root := rootOf(all[:n])
		for m := range n {
			path := inclusion(m, all[:n])
			if got, err := climb(m, n, all[m], path); err != nil || got != root {
				t.Fatalf("leaf %d of %d leads to %s: %v", m, n, got, err)
			}
			for other := range n {
				if got, err := climb(other, n, all[m], path); other != m && err == nil && got == root {
					t.Fatalf("the path of leaf %d of %d holds for index %d", m, n, other)
				}
			}
			if got, err := climb(m, n, all[(m+1)%40], path); err == nil && got == root {
				t.Fatalf("the path of leaf %d of %d holds for another leaf", m, n)
			}
			if _, err := climb(m, n, all[m], append(path[:len(path):len(path)], root)); err == nil {
				t.Fatalf("a path that is too long holds for leaf %d of %d", m, n)
			}
			if len(path) > 0 {
				if _, err := climb(m, n, all[m], path[:len(path)-1]); err == nil {
					t.Fatalf("a path that is too short holds for leaf %d of %d", m, n)
				}
			}
		}
		if _, err := climb(n, n, all[0], nil); err == nil {
			t.Fatalf("a tree of %d has a leaf %d", n, n)
		}
	}
}

// Each prefix of each small tree is proved to be one, and no other tree is.
func TestConsistency(t *testing.T) {
	all := leaves(numbered(40))
	other := leaves(numbered(40))
	other[0] = Hash{}
	for n := uint64(1); n <= uint64(len(all)); n++ {
		for m := uint64(1); m <= n; m++ {
			path := consistency(m, all[:n], true)
			if err := extends(m, n, rootOf(all[:m]), rootOf(all[:n]), path); err != nil {
				t.Fatalf("%d to %d: %v", m, n, err)
			}
			if extends(m, n, rootOf(other[:m]), rootOf(all[:n]), path) == nil {
				t.Fatalf("%d to %d: another beginning is continued", m, n)
			}
			if extends(m, n, rootOf(all[:m]), rootOf(other[:n]), path) == nil {
				t.Fatalf("%d to %d: another end continues it", m, n)
			}
			if m < n && len(path) > 0 && extends(m, n, rootOf(all[:m]), rootOf(all[:n]), path[:len(path)-1]) == nil {
				t.Fatalf("%d to %d: a path that is too short holds", m, n)
			}
		}
	}
	if extends(0, 3, Hash{}, rootOf(all[:3]), nil) == nil || extends(5, 3, Hash{}, Hash{}, nil) == nil {
		t.Error("sizes that cannot be are continued")
	}
}
