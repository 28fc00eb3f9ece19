package model

// bits packs small numbers into a Key, and takes them out again in the same
// order. A number never straddles the two words.
type bits struct {
	k   Key
	pos uint
}

func (b *bits) place(n uint) (word, shift uint) {
	if b.pos&63+n > 64 {
		b.pos = (b.pos>>6 + 1) << 6
	}
	word, shift = b.pos>>6, b.pos&63
	b.pos += n
	return word, shift
}

func (b *bits) put(v uint8, n uint) {
	word, shift := b.place(n)
	b.k[word] |= uint64(v) << shift
}

func (b *bits) get(n uint) uint8 {
	word, shift := b.place(n)
	return uint8(b.k[word]>>shift) & (1<<n - 1)
}

// A field visits one number of a state, to pack it or to unpack it.
type field func(v *uint8, n uint)

func (b *bits) packing(v *uint8, n uint)   { b.put(*v, n) }
func (b *bits) unpacking(v *uint8, n uint) { *v = b.get(n) }

func less(a, b Key) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }
