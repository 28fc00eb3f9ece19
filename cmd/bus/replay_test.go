package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"correx/internal/access"
	"correx/internal/natstest"
	"correx/internal/transfer"
	"correx/pkg/events"
)

func TestReplayOfAPart(t *testing.T) {
	m := newMachine(t)
	m.want(m.run("request", "echo", hello, "--yes", "--invocation", "i1"), 0)
	m.want(m.run("run", "x", "--session", "s1", "--detach"), 0)
	all := records(t, m.run("replay", "--json").stdout)
	last := all[len(all)-1].Seq
	middle := all[len(all)/2]
	at := middle.Time.Format(time.RFC3339Nano)
	for _, c := range []struct {
		args []string
		keep func(recordJSON) bool
	}{
		{[]string{"--fact", "tool.requested"}, func(r recordJSON) bool { return strings.Contains(r.Subject, ".tool.i1.requested.") }},
		{[]string{"--fact", "tool.completed,session.started"}, func(r recordJSON) bool {
			return strings.HasSuffix(r.Subject, ".tool.i1.completed") || strings.HasSuffix(r.Subject, ".session.main.started")
		}},
		{[]string{"--from", at}, func(r recordJSON) bool { return !r.Time.Before(middle.Time) }},
		{[]string{"--until", at}, func(r recordJSON) bool { return !r.Time.After(middle.Time) }},
		{[]string{"--from", at, "--until", at}, func(r recordJSON) bool { return r.Time.Equal(middle.Time) }},
		{[]string{"--from", "3", "--until", "4"}, func(r recordJSON) bool { return r.Seq == 3 || r.Seq == 4 }},
		{[]string{"--from", "1h"}, func(recordJSON) bool { return true }},
		{[]string{"--until", "1h"}, func(recordJSON) bool { return false }},
	} {
		var want, got []uint64
		for _, r := range all {
			if c.keep(r) {
				want = append(want, r.Seq)
			}
		}
		for _, r := range records(t, m.run(append([]string{"replay", "--json"}, c.args...)...).stdout) {
			if r.Seq <= last {
				got = append(got, r.Seq)
			}
		}
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(want)
		if string(g) != string(w) {
			t.Errorf("%v gives %s, want %s", c.args, g, w)
		}
	}
}

func TestReplayInOtherFormats(t *testing.T) {
	m := newMachine(t)
	m.want(m.run("run", "x", "--session", "s1", "--detach"), 0)
	t.Run("jsonl of the whole stream", func(t *testing.T) {
		lines := strings.Split(strings.TrimSpace(m.run("replay", "--format", "jsonl", "--through", "3").stdout), "\n")
		if len(lines) != 5 || !strings.HasPrefix(lines[0], `{"format":"`+transfer.Format+`","stream":"EVENTS","created":"`) ||
			!strings.Contains(lines[0], `"first":1,"last":3}`) || !strings.HasPrefix(lines[4], `{"end":{"records":3,"chain_sha256":"`) {
			t.Errorf("the lines are %q", lines)
		}
	})
	t.Run("jsonl of a part", func(t *testing.T) {
		out := m.run("replay", "--format", "jsonl", "--session", "s1").stdout
		if strings.Contains(out, transfer.Format) || strings.Contains(out, `"end"`) || !strings.Contains(out, `"sha256":"`) {
			t.Errorf("it is %s", out)
		}
	})
	t.Run("cloudevents", func(t *testing.T) {
		first, _, _ := strings.Cut(m.run("replay", "--format", "cloudevents", "--session", "s1").stdout, "\n")
		var c struct {
			SpecVersion, ID, Source, Type, Subject, CorrelationID string
			Data                                                  events.SessionStarted
		}
		if err := json.Unmarshal([]byte(first), &c); err != nil {
			t.Fatal(err)
		}
		if c.SpecVersion != "1.0" || c.ID != "s1.session.main+0" || c.Type != "correx.SessionStarted.v1" || c.CorrelationID != "s1" ||
			c.Subject != "evt.s1.session.main.started" || c.Source != "/correx/kernel/kernel" || c.Data.Task != "x" {
			t.Errorf("it is %s", first)
		}
	})
	t.Run("atif", func(t *testing.T) {
		var tr transfer.Trajectory
		if err := json.Unmarshal([]byte(m.run("replay", "--format", "atif", "--session", "s1").stdout), &tr); err != nil {
			t.Fatal(err)
		}
		if tr.SchemaVersion != transfer.ATIFVersion || tr.SessionID != "s1" || len(tr.Steps) == 0 || tr.Steps[0].Message != "x" {
			t.Errorf("it is %+v", tr)
		}
		m.want(m.run("replay", "--format", "atif", "--session", "none"), 1, "the log has nothing of it")
	})
	for _, c := range []struct{ args, says string }{
		{"--format atif", "--session"},
		{"--format atif --session system", "system is none"},
		{"--format atif --session s1 --from 3", "from its beginning"},
		{"--format xml", "none of story, jsonl"},
		{"--format atif --session s1 --json", "leave one out"},
		{"--fact tool.frobbed", "bus schema"},
		{"--from soon", "how long ago"},
		{"--from 9 --until 3", "lies behind"},
		{"--follow --until 3", "none of the others can be"},
	} {
		m.want(m.run(append([]string{"replay"}, strings.Fields(c.args)...)...), 2, c.says)
	}
}

// What is published again comes in order, as it was, where nobody acts on it.
func TestReplayPublishesAgain(t *testing.T) {
	m := newMachine(t)
	m.want(m.run("request", "echo", hello, "--yes", "--invocation", "i1"), 0)
	all := records(t, m.run("replay", "--json", "--kind", "tool").stdout)
	other := natstest.Server(t)
	own, err := access.Connect(natstest.Context(t), access.Dial{StateDir: m.state, Name: "test", Role: access.Operator})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for _, c := range []struct {
		prefix string
		args   []string
		conn   *nats.Conn
	}{
		{"copy.of.it", []string{"--to-server", other.URL(), "--speed", "1000x"}, other.Connect(t)},
		{"replay", nil, own},
	} {
		got := make(chan *nats.Msg, 1000)
		sub, err := c.conn.ChanSubscribe(c.prefix+".>", got)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.conn.Flush(); err != nil {
			t.Fatal(err)
		}
		through := fmt.Sprint(all[len(all)-1].Seq)
		m.want(m.run(append([]string{"replay", "--kind", "tool", "--through", through, "--to-prefix", c.prefix}, c.args...)...), 0)
		for _, r := range all {
			msg := <-got
			want := c.prefix + strings.TrimPrefix(r.Subject, "evt")
			if msg.Subject != want || string(msg.Data) != string(r.Body) || msg.Header["correx-sequence"][0] != fmt.Sprint(r.Seq) ||
				msg.Header["ce-id"][0] != r.Headers.Get("ce-id") || msg.Header["Nats-Expected-Last-Subject-Sequence"] != nil {
				t.Errorf("%s became %s %v %s", r.Subject, msg.Subject, msg.Header, msg.Data)
			}
		}
		_ = sub.Unsubscribe()
	}
	for _, c := range []struct{ want, args string }{
		{"listens", "--to-prefix evt"},
		{"listens", "--to-prefix cmd.operator --to-server nats://127.0.0.1:1"},
		{"begins with replay", "--to-prefix mine"},
		{"go with --to-prefix", "--speed full"},
		{"write full, original", "--to-prefix replay --speed fast"},
		{"a token", "--to-prefix replay.>"},
	} {
		if got := m.run(append([]string{"replay"}, strings.Fields(c.args)...)...); got.status != 2 || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%s: status %d, %s; want %q", c.args, got.status, got.stderr, c.want)
		}
	}
}
