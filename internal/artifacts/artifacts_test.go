package artifacts_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/artifacts"
	"correx/internal/leader"
	"correx/internal/natstest"
)

func content(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = r.Read(b)
	return b
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// bucket makes ARTIFACTS on n servers.
func bucket(t *testing.T, n int) (*natstest.Bus, jetstream.JetStream) {
	t.Helper()
	bus := natstest.Fleet(t, n)
	js := bus.JetStream(t)
	natstest.Streams(t, js, n)
	return bus, js
}

func TestRoundTrip(t *testing.T) {
	const chunk = 128 << 10
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("R%d", n), func(t *testing.T) {
			b, js := bucket(t, n)
			writer := artifacts.New(natstest.JetStream(t, b.ConnectNode(t, 0)))
			reader := artifacts.New(natstest.JetStream(t, b.ConnectNode(t, n-1)))
			library, err := js.ObjectStore(natstest.Context(t), artifacts.Bucket)
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{0, 1, chunk - 1, chunk, chunk + 1, 3*chunk + 7} {
				data := content(size)
				ref, err := writer.PutBytes(natstest.Context(t), data, "stdout", "text/plain")
				if err != nil {
					t.Fatalf("%d bytes: %v", size, err)
				}
				if ref.SHA256 != hash(data) || ref.Size != int64(size) || ref.Name != "stdout" || ref.MediaType != "text/plain" {
					t.Errorf("%d bytes: reference is %+v", size, ref)
				}
				if got, err := reader.Get(natstest.Context(t), ref.SHA256); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%d bytes: got %d back: %v", size, len(got), err)
				}
				if got, err := library.GetBytes(natstest.Context(t), ref.SHA256); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%d bytes: the client library got %d back: %v", size, len(got), err)
				}
			}
		})
	}
}

func TestPutReadsAnyReader(t *testing.T) {
	_, js := bucket(t, 1)
	s := artifacts.New(js)
	data := content(300 << 10)
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(append([]byte("skip"), data...)); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(4, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	pipe, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	go func() { _, _ = w.Write(data); w.Close() }()
	for name, r := range map[string]io.Reader{
		"file": file, "pipe": pipe, "stream": iotest.HalfReader(bytes.NewReader(data)), "eof with data": iotest.DataErrReader(bytes.NewReader(data)),
	} {
		ref, err := s.Put(natstest.Context(t), r, name, "")
		if err != nil || ref.SHA256 != hash(data) || ref.Size != int64(len(data)) {
			t.Errorf("%s: %+v, %v", name, ref, err)
		}
	}
	broken := errors.New("disk is broken")
	if _, err := s.Put(natstest.Context(t), iotest.ErrReader(broken), "x", ""); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
}

// The same content is stored once, however often and by how many it is put.
func TestPutOnlyIfAbsent(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("R%d", n), func(t *testing.T) {
			_, js := bucket(t, n)
			s := artifacts.New(js)
			data := content(200 << 10)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					if _, err := s.PutBytes(natstest.Context(t), data, "x", ""); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			descriptions := func() (n, all uint64) {
				stream, err := js.Stream(natstest.Context(t), "OBJ_ARTIFACTS")
				if err != nil {
					t.Fatal(err)
				}
				info, err := stream.Info(natstest.Context(t), jetstream.WithSubjectFilter("$O.ARTIFACTS.M.>"))
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range info.State.Subjects {
					n += c
				}
				return n, info.State.LastSeq
			}
			n, before := descriptions()
			if n != 1 {
				t.Errorf("%d descriptions, want one", n)
			}
			if _, err := s.PutBytes(natstest.Context(t), data, "another name", ""); err != nil {
				t.Fatal(err)
			}
			if _, after := descriptions(); after != before {
				t.Errorf("putting it again wrote %d messages", after-before)
			}
			if got, err := s.Get(natstest.Context(t), hash(data)); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

func TestGetRefusesWhatIsNotThere(t *testing.T) {
	_, js := bucket(t, 1)
	s := artifacts.New(js)
	if _, err := s.Get(natstest.Context(t), hash(content(3))); !errors.Is(err, artifacts.ErrNotFound) {
		t.Errorf("absent: %v", err)
	}
	for _, key := range []string{"", "x", strings.ToUpper(hash(content(3))), hash(content(3)) + "0", "../" + hash(content(3))[3:]} {
		if _, err := s.Get(natstest.Context(t), key); err == nil || errors.Is(err, artifacts.ErrNotFound) {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

// Somebody with the right to write puts other content under a hash.
func TestGetVerifiesTheHash(t *testing.T) {
	_, js := bucket(t, 1)
	s := artifacts.New(js)
	library, err := js.ObjectStore(natstest.Context(t), artifacts.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	key := hash([]byte("what was said"))
	if _, err := library.PutString(natstest.Context(t), key, "what was not said"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(natstest.Context(t), key); !errors.Is(err, artifacts.ErrCorrupt) || got != nil {
		t.Errorf("%q, %v; want %v", got, err, artifacts.ErrCorrupt)
	}
}

// An object that an operator deleted can be put again.
func TestPutAfterDelete(t *testing.T) {
	_, js := bucket(t, 1)
	s := artifacts.New(js)
	data := content(1000)
	ref, err := s.PutBytes(natstest.Context(t), data, "x", "")
	if err != nil {
		t.Fatal(err)
	}
	library, err := js.ObjectStore(natstest.Context(t), artifacts.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	if err := library.Delete(natstest.Context(t), ref.SHA256); err != nil {
		t.Fatal(err)
	}
	if has, err := s.Has(natstest.Context(t), ref.SHA256); has || err != nil {
		t.Errorf("has it after a delete: %t, %v", has, err)
	}
	if _, err := s.PutBytes(natstest.Context(t), data, "x", ""); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(natstest.Context(t), ref.SHA256); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A worker has one read of the API and one subject tree, and no more.
func TestPutAndGetNeedLittle(t *testing.T) {
	little := &server.Permissions{Publish: &server.SubjectPermission{
		Allow: []string{"$JS.API.STREAM.MSG.GET.OBJ_ARTIFACTS", "$O.ARTIFACTS.>"},
	}}
	b := natstest.Server(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "all", Password: "p"}, {Username: "worker", Password: "p", Permissions: little},
			{Username: "reader", Password: "p", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: little.Publish.Allow[:1]}}},
		}
	})
	natstest.Streams(t, natstest.JetStream(t, b.Connect(t, nats.UserInfo("all", "p"))), 1)
	as := func(user string) *artifacts.Store {
		return artifacts.New(natstest.JetStream(t, b.Connect(t, nats.UserInfo(user, "p"))))
	}
	data := content(300 << 10)
	ref, err := as("worker").PutBytes(natstest.Context(t), data, "x", "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := as("reader").Get(natstest.Context(t), ref.SHA256); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := as("reader").PutBytes(natstest.Context(t), []byte("new"), "x", ""); !errors.Is(err, leader.ErrDenied) {
		t.Errorf("put by one who may only read: %v, want %v", err, leader.ErrDenied)
	}
}

func TestPutEndsWithItsContext(t *testing.T) {
	_, js := bucket(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := artifacts.New(js).PutBytes(ctx, []byte("x"), "x", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}
