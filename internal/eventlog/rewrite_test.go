package eventlog_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/nats-io/nats.go"

	"correx/internal/eventlog"
	"correx/internal/natstest"
)

// A disk comes back as it was some time ago, and the sequences that were lost
// are used again before the follower is back: no sequence is missing, and still
// it is not the story that was read.
func TestRewrittenStreamIsAnAlarm(t *testing.T) {
	b := natstest.Server(t)
	js := b.JetStream(t)
	natstest.Stream(t, js, natstest.StreamConfig("EVENTS", "evt.>", 1))
	writer := open(t, js)
	last := chain(t, writer, "s", 3)[2]
	b.Stop(0)
	old := t.TempDir()
	if err := os.CopyFS(old, os.DirFS(b.StoreDir(0))); err != nil {
		t.Fatal(err)
	}
	b.Start(0)
	reconnected(b, js.Conn())

	c := &cable{}
	f := follow(t, open(t, natstest.JetStream(t, b.Connect(t, nats.SetCustomDialer(c)))), "evt.>", 1)
	appendTo(t, writer, "s", "lost", last)
	for range 4 {
		f.next(t)
	}
	openGate := c.shut()
	b.Stop(0)
	if err := os.RemoveAll(b.StoreDir(0)); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(b.StoreDir(0), os.DirFS(old)); err != nil {
		t.Fatal(err)
	}
	b.Start(0)
	reconnected(b, js.Conn())
	for i := range 3 {
		last = appendTo(t, writer, "s", fmt.Sprint("other ", i), last)
	}
	openGate()
	var rewritten *eventlog.RewrittenError
	if err := f.end(t); !errors.As(err, &rewritten) || rewritten.Seq != 4 {
		t.Errorf("%v, want that the record at 4 is another", err)
	}
	if len(f.got) != 0 {
		t.Errorf("%d records of the other story were handed over", len(f.got))
	}
}

func reconnected(b *natstest.Bus, nc *nats.Conn) {
	b.Await("the client to be back", func() bool { return nc.Status() == nats.CONNECTED })
}
