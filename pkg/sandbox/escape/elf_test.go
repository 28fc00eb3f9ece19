package escape

import (
	"encoding/binary"
	"slices"
)

// The code of programs that make one call and exit, with 42 if it succeeded, else
// with the number of the error.
var (
	// socket(AF_UNIX, SOCK_STREAM, 0) is 359 for 32-bit programs.
	int80Socket = code(
		0xb8, 0x67, 0x01, 0, 0, // mov eax, 359
		0xbb, 1, 0, 0, 0, // mov ebx, 1
		0xb9, 1, 0, 0, 0, // mov ecx, 1
		0x31, 0xd2, // xor edx, edx
		0xcd, 0x80, // int 0x80
	)
	// ptrace(PTRACE_TRACEME) is 26 for 32-bit programs.
	int80Ptrace = code(
		0xb8, 26, 0, 0, 0, // mov eax, 26
		0x31, 0xdb, // xor ebx, ebx
		0x31, 0xc9, // xor ecx, ecx
		0x31, 0xd2, // xor edx, edx
		0x31, 0xf6, // xor esi, esi
		0xcd, 0x80, // int 0x80
	)
	// socket is 41, with the bit of x32.
	x32Socket = code(
		0xb8, 41, 0, 0, 0x40, // mov eax, 41 | 0x40000000
		0xbf, 1, 0, 0, 0, // mov edi, 1
		0xbe, 1, 0, 0, 0, // mov esi, 1
		0x31, 0xd2, // xor edx, edx
		0x0f, 0x05, // syscall
	)
)

func code(attempt ...byte) []byte {
	return slices.Concat(attempt, []byte{
		0xbf, 42, 0, 0, 0, // mov edi, 42
		0x85, 0xc0, // test eax, eax
		0x79, 0x04, // jns over the next two
		0x89, 0xc7, // mov edi, eax
		0xf7, 0xdf, // neg edi
		0xb8, 60, 0, 0, 0, // mov eax, 60: exit
		0x0f, 0x05, // syscall
	})
}

// vforkAndStay waits for a child that never does what its parent waits for.
var vforkAndStay = []byte{
	0xb8, 58, 0, 0, 0, // mov eax, 58: vfork
	0x0f, 0x05, // syscall
	0xb8, 34, 0, 0, 0, // mov eax, 34: pause
	0x0f, 0x05, // syscall
	0xeb, 0xf7, // jmp to pause
}

// elf makes code a static program for amd64: one segment, which has the file.
func elf(code []byte) []byte {
	const base, head = 0x400000, 64 + 56
	le := binary.LittleEndian
	b := []byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	b = le.AppendUint16(b, 2)         // executable
	b = le.AppendUint16(b, 62)        // amd64
	b = le.AppendUint32(b, 1)         // version
	b = le.AppendUint64(b, base+head) // entry
	b = le.AppendUint64(b, 64)        // program header
	b = le.AppendUint64(b, 0)         // no sections
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, 1) // load
	b = le.AppendUint32(b, 5) // read and execute
	size := uint64(head + len(code))
	for _, v := range []uint64{0, base, base, size, size, 0x1000} {
		b = le.AppendUint64(b, v)
	}
	return append(b, code...)
}
