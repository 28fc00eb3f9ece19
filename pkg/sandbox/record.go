package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

// The journal is one file: magic, then frames. A frame is the length of its
// payload (4 bytes, little endian), a CRC-32C over all that follows (4), how much
// of the file was on disk when it was written (8), and the payload, a record in
// JSON.
const (
	magic       = "CRXJRNL1"
	frameHeader = 16
	maxFrame    = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type recordKind string

const (
	beginRecord     recordKind = "begin"
	announcedRecord recordKind = "announced" // files after its beginning
	stagedRecord    recordKind = "staged"
	appliedRecord   recordKind = "applied"
	resultRecord    recordKind = "result"
	rollingRecord   recordKind = "rolling"
	rolledRecord    recordKind = "rolled"
	clearRecord     recordKind = "clear"
)

// A record is one step of one entry. Which fields it has depends on its kind.
type record struct {
	Kind     recordKind             `json:"kind"`
	ID       uint64                 `json:"id"` // of the entry, within the file
	Key      *Key                   `json:"key,omitempty"`
	Tool     string                 `json:"tool,omitempty"`
	Unlisted bool                   `json:"unlisted,omitempty"`
	Files    []Change               `json:"files,omitempty"`
	File     int                    `json:"file,omitempty"` // index into Files
	After    *workspace.State       `json:"after,omitempty"`
	Result   []byte                 `json:"result,omitempty"`
	Outcome  []events.RecoveredFile `json:"outcome,omitempty"`
}

// A Change is one step of what an invocation is about to do to one file, directory
// or symbolic link. They are taken back in the opposite order.
type Change struct {
	workspace.Undo
	Data   []byte `json:"data,omitempty"`   // what was in it; a large one lies in Backup
	Backup string `json:"backup,omitempty"` // file name below the entry's backup directory
}

func encodeFrame(r record, onDisk int64) ([]byte, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.Kind, err)
	}
	if len(payload) > maxFrame {
		return nil, fmt.Errorf("encode %s: %d bytes are more than the %d that fit", r.Kind, len(payload), maxFrame)
	}
	frame := make([]byte, frameHeader, frameHeader+len(payload))
	binary.LittleEndian.PutUint32(frame, uint32(len(payload)))
	binary.LittleEndian.PutUint64(frame[8:], uint64(onDisk))
	frame = append(frame, payload...)
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(frame[8:], castagnoli))
	return frame, nil
}

// frameAt returns the payload of the frame that data begins with.
func frameAt(data []byte) (payload []byte, onDisk int64, ok bool) {
	if len(data) < frameHeader {
		return nil, 0, false
	}
	n := int64(binary.LittleEndian.Uint32(data))
	if n > maxFrame || n > int64(len(data)-frameHeader) {
		return nil, 0, false
	}
	body := data[8 : frameHeader+n]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(data[4:]) {
		return nil, 0, false
	}
	return body[8:], int64(binary.LittleEndian.Uint64(body)), true
}

// scan reads a journal. It returns how much of it is sound: what follows is a
// write that a crash tore, which nobody was told of. A frame that is unreadable
// though it was on disk before others were written is damage, and an error.
func scan(data []byte, each func(record) error) (sound int64, err error) {
	if len(data) < len(magic) {
		return 0, nil
	}
	if string(data[:len(magic)]) != magic {
		return 0, fmt.Errorf("it does not begin with %s and is no journal of this version", magic)
	}
	at := int64(len(magic))
	for {
		payload, _, ok := frameAt(data[at:])
		if !ok {
			break
		}
		var r record
		if err := json.Unmarshal(payload, &r); err != nil {
			return 0, fmt.Errorf("record at byte %d: %w", at, err)
		}
		if err := each(r); err != nil {
			return 0, fmt.Errorf("record at byte %d: %w", at, err)
		}
		at += frameHeader + int64(len(payload))
	}
	return at, damaged(data, at)
}

// damaged looks for a frame behind the tear that was written when the tear was
// on disk already.
func damaged(data []byte, tear int64) error {
	for rest := data[tear:]; len(rest) > frameHeader; {
		i := bytes.Index(rest[1:], []byte(`{"kind":`))
		if i < 0 {
			return nil
		}
		if start := i + 1 - frameHeader; start > 0 {
			if _, onDisk, ok := frameAt(rest[start:]); ok && onDisk > tear {
				return fmt.Errorf("the record at byte %d is damaged, and later ones are not", tear)
			}
		}
		rest = rest[i+1:]
	}
	return nil
}
