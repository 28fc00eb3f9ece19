package testmodel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
)

// The value types of GGUF v3 that a model needs.
const (
	typeUint32  = 4
	typeInt32   = 5
	typeFloat32 = 6
	typeBool    = 7
	typeString  = 8
	typeArray   = 9
)

const alignment = 32

// A gguf is a model file in the making: metadata, then tensors of 32-bit floats.
// Nothing here fails before save.
type gguf struct {
	keys    bytes.Buffer
	count   uint64
	tensors []tensor
}

// A tensor's dims are fastest first. Its data may be shorter than they say: the
// rest is zero, and a hole in the file.
type tensor struct {
	name string
	dims []uint64
	data []float32
}

// size is the tensor's length in the file, in bytes.
func (t tensor) size() uint64 {
	n := uint64(4)
	for _, d := range t.dims {
		n *= d
	}
	return n
}

func (g *gguf) key(name string, kind uint32) {
	g.count++
	writeString(&g.keys, name)
	write(&g.keys, kind)
}

func (g *gguf) u32(name string, v int) {
	g.key(name, typeUint32)
	write(&g.keys, uint32(v))
}

func (g *gguf) f32(name string, v float32) {
	g.key(name, typeFloat32)
	write(&g.keys, v)
}

func (g *gguf) boolean(name string, v bool) {
	g.key(name, typeBool)
	write(&g.keys, v)
}

func (g *gguf) str(name, v string) {
	g.key(name, typeString)
	writeString(&g.keys, v)
}

func (g *gguf) strs(name string, vs []string) {
	g.array(name, typeString, len(vs))
	for _, v := range vs {
		writeString(&g.keys, v)
	}
}

func (g *gguf) f32s(name string, vs []float32) {
	g.array(name, typeFloat32, len(vs))
	write(&g.keys, vs)
}

func (g *gguf) i32s(name string, vs []int32) {
	g.array(name, typeInt32, len(vs))
	write(&g.keys, vs)
}

func (g *gguf) array(name string, kind uint32, n int) {
	g.key(name, typeArray)
	write(&g.keys, kind)
	write(&g.keys, uint64(n))
}

func (g *gguf) tensor(name string, data []float32, dims ...int) {
	t := tensor{name: name, data: data}
	for _, d := range dims {
		t.dims = append(t.dims, uint64(d))
	}
	g.tensors = append(g.tensors, t)
}

// save makes the file, which must not be in use. A file that could not be
// written whole is removed.
func (g *gguf) save(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write model: %w", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			_ = os.Remove(path)
			err = fmt.Errorf("write model %s: %w", path, err)
		}
	}()

	head, ends := g.head()
	if _, err := f.Write(head); err != nil {
		return err
	}
	start := uint64(len(head))
	for i, t := range g.tensors {
		at := start + ends[i] - padded(t.size())
		if _, err := f.WriteAt(floats(t.data), int64(at)); err != nil {
			return err
		}
	}
	return f.Truncate(int64(start + ends[len(ends)-1]))
}

// head is everything before the tensors' data, padded, and where each tensor
// ends after it.
func (g *gguf) head() (head []byte, ends []uint64) {
	var b bytes.Buffer
	b.WriteString("GGUF")
	write(&b, uint32(3))
	write(&b, uint64(len(g.tensors)))
	write(&b, g.count)
	b.Write(g.keys.Bytes())
	var offset uint64
	for _, t := range g.tensors {
		writeString(&b, t.name)
		write(&b, uint32(len(t.dims)))
		write(&b, t.dims)
		write(&b, uint32(0)) // F32
		write(&b, offset)
		offset += padded(t.size())
		ends = append(ends, offset)
	}
	b.Write(make([]byte, padded(uint64(b.Len()))-uint64(b.Len())))
	return b.Bytes(), ends
}

func padded(n uint64) uint64 { return (n + alignment - 1) / alignment * alignment }

func floats(vs []float32) []byte {
	b := slices.Grow([]byte(nil), 4*len(vs))
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func writeString(b *bytes.Buffer, s string) {
	write(b, uint64(len(s)))
	b.WriteString(s)
}

// write appends a value of fixed size; a buffer and such a value cannot fail.
func write(b *bytes.Buffer, v any) { _ = binary.Write(b, binary.LittleEndian, v) }
