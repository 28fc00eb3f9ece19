package auditor

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minio/highwayhash"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"correx/internal/natstest"
)

func message(e Entry) *nats.Msg {
	h := nats.Header{}
	for name, values := range e.Header {
		h[name] = slices.Clone(values)
	}
	return &nats.Msg{Subject: e.Subject, Header: h, Data: e.Data}
}

// A stored is a record as the server's file store keeps it.
type storedMsg struct {
	seq, time uint64
	subject   []byte
	header    []byte
	body      []byte
}

// The store's files of EVENTS below a server's directory.
func messageDir(dir string) string {
	return filepath.Join(dir, "jetstream", "$G", "streams", "EVENTS", "msgs")
}

const headerBit = 1 << 31

// readBlock takes the one block of a small stream apart.
func readBlock(t *testing.T, dir string) (msgs []storedMsg) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(messageDir(dir), "1.blk"))
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	for len(b) > 0 {
		size := le.Uint32(b)
		record := b[:size&^headerBit]
		m := storedMsg{seq: le.Uint64(record[4:]), time: le.Uint64(record[12:])}
		n := int(le.Uint16(record[20:]))
		rest := record[22 : len(record)-highwayhash.Size64]
		m.subject, rest = rest[:n], rest[n:]
		if size&headerBit != 0 {
			k := le.Uint32(rest)
			m.header, rest = rest[4:4+k], rest[4+k:]
		}
		m.body = rest
		if got := m.bytes(t); !bytes.Equal(got, record) {
			t.Fatalf("the store has another form than this test knows: record %d", m.seq)
		}
		msgs = append(msgs, m)
		b = b[len(record):]
	}
	return msgs
}

// bytes is the record with a checksum that the server takes for right.
func (m storedMsg) bytes(t *testing.T) []byte {
	t.Helper()
	key := sha256.Sum256([]byte("EVENTS-1"))
	sum, err := highwayhash.New64(key[:])
	if err != nil {
		t.Fatal(err)
	}
	size := 22 + len(m.subject) + len(m.body) + highwayhash.Size64
	flag := 0
	if len(m.header) > 0 {
		size, flag = size+4+len(m.header), headerBit
	}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(size|flag))
	b = le.AppendUint64(b, m.seq)
	b = le.AppendUint64(b, m.time)
	sum.Write(b[4:20])
	b = append(le.AppendUint16(b, uint16(len(m.subject))), m.subject...)
	sum.Write(m.subject)
	if len(m.header) > 0 {
		b = append(le.AppendUint32(b, uint32(len(m.header))), m.header...)
		sum.Write(m.header)
	}
	sum.Write(m.body)
	return sum.Sum(append(b, m.body...))
}

// writeBlock puts records in the place of those that were there. The index, from
// which the server would learn of it, goes; it makes it anew.
func writeBlock(t *testing.T, dir string, msgs []storedMsg) {
	t.Helper()
	var b []byte
	for _, m := range msgs {
		b = append(b, m.bytes(t)...)
	}
	err := os.WriteFile(filepath.Join(messageDir(dir), "1.blk"), b, 0o600)
	if err == nil {
		err = os.Remove(filepath.Join(messageDir(dir), "index.db"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// numbered gives the records the sequences 1, 2, …
func numbered(msgs []storedMsg) []storedMsg {
	for i := range msgs {
		msgs[i].seq = uint64(i + 1)
	}
	return msgs
}

func edited(m storedMsg) storedMsg {
	m.body = bytes.Replace(m.body, []byte("message "), []byte("another "), 1)
	return m
}

// Each edit of the stream's files, made while the server was stopped and with
// checksums that it takes for right, is found and named when it runs again, from
// the stream alone and beside the database.
func TestTamperStreamFiles(t *testing.T) {
	s := newScene(t)
	given := s.given()
	s.bus.Stop(0)
	dir := s.bus.StoreDir(0)
	if all := readBlock(t, dir); len(all) != sceneLast {
		t.Fatalf("the store has %d records", len(all))
	}
	for _, c := range []struct {
		name  string
		edit  func(msgs []storedMsg) []storedMsg
		alone Kind // what verify finds in the stream alone; "": nothing, it cannot
		at    uint64
		where uint64 // what compare names
	}{
		{"nothing", func(m []storedMsg) []storedMsg { return m }, "", 0, 0},
		{"a body", func(m []storedMsg) []storedMsg { m[16] = edited(m[16]); return m }, Altered, 17, 17},
		{"a header", func(m []storedMsg) []storedMsg {
			m[49].header = bytes.Replace(m[49].header, []byte("ce-specversion: 1.0"), []byte("ce-specversion: 1.1"), 1)
			return m
		}, Altered, 50, 50},
		{"a time", func(m []storedMsg) []storedMsg { m[16].time++; return m }, Altered, 17, 17},
		{"deletion", func(m []storedMsg) []storedMsg { return slices.Delete(m, 16, 17) }, Missing, 17, 17},
		{"deletion, closed up", func(m []storedMsg) []storedMsg { return numbered(slices.Delete(m, 16, 17)) }, Missing, 17, 17},
		{"deletion of the first", func(m []storedMsg) []storedMsg { return m[3:] }, Missing, 1, 1},
		{"deletion of the end", func(m []storedMsg) []storedMsg { return m[:100] }, "", 0, 101},
		{"insertion", func(m []storedMsg) []storedMsg {
			more := edited(m[1])
			more.time = m[16].time
			return numbered(slices.Insert(m, 16, more))
		}, Inserted, 17, 17},
		{"reordering", func(m []storedMsg) []storedMsg {
			m[16], m[17] = m[17], m[16]
			m[16].time, m[17].time = m[17].time, m[16].time
			return numbered(m)
		}, Reordered, 17, 17},
		{"behind the last checkpoint", func(m []storedMsg) []storedMsg { m[129] = edited(m[129]); return m }, "", 0, 130},
		{"a checkpoint taken out", func(m []storedMsg) []storedMsg { return numbered(slices.Delete(m, 80, 81)) }, Missing, 81, 81},
	} {
		t.Run(c.name, func(t *testing.T) {
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(dir).(fs.ReadDirFS)); err != nil {
				t.Fatal(err)
			}
			writeBlock(t, copied, c.edit(readBlock(t, copied)))
			stream := streamOf(t, serverOf(t, copied))
			r := verifyStream(t, stream, Options{Keys: []string{s.pub}})
			if c.alone == "" {
				sound(t, r)
			} else {
				named(t, r, c.alone, c.at)
			}
			// Who kept the checkpoints sees a log that was cut off, too.
			r = verifyStream(t, stream, Options{Keys: []string{s.pub}, Given: given})
			if c.name == "deletion of the end" {
				named(t, r, Missing, 101)
			}
			r, err := Compare(natstest.Context(t), stream, database(t, s.db), nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.where == 0 {
				sound(t, r)
				return
			}
			if r.OK() || r.Findings[0].Seq != c.where {
				t.Errorf("beside the database: %v, want event %d", r.Findings, c.where)
			}
		})
	}
}

// serverOf is a server on a store that is there already.
func serverOf(t *testing.T, dir string) *natstest.Bus {
	return natstest.Server(t, func(o *server.Options) { o.StoreDir = dir })
}

// Damage without the right checksum: the server does not show the record, which
// is named.
func TestTamperStreamFilesClumsily(t *testing.T) {
	s := newScene(t)
	s.bus.Stop(0)
	path := filepath.Join(messageDir(s.bus.StoreDir(0)), "1.blk")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	where := bytes.Index(b, []byte(fmt.Sprintf("%q", "message 17")))
	if where < 0 {
		t.Fatal("the message is not in the block")
	}
	b[where+1] = 'M'
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s.bus.Start(0)
	r := verifyStream(t, s.stream(), Options{Keys: []string{s.pub}})
	if r.OK() || r.Findings[0].Seq != 17 || !strings.Contains(string(r.Findings[0].Kind), "ed") && r.Findings[0].Kind != Missing {
		t.Errorf("found %v", r.Findings)
	}
}
