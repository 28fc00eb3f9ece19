package projection

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"correx/internal/natstest"
	"correx/pkg/events"
)

// serving answers queries about a story until the test ends.
func serving(t *testing.T, tell func(*story)) (*nats.Conn, *Projector) {
	t.Helper()
	nc, p, _ := servingFor(t, maxWait, tell)
	return nc, p
}

// servingFor waits only so long for a sequence.
func servingFor(t *testing.T, most time.Duration, tell func(*story)) (*nats.Conn, *Projector, *natstest.Bus) {
	t.Helper()
	bus := startBus(t)
	s := newStory(t)
	tell(s)
	publish(t, bus.JetStream(t), wellFormed(s.recs))
	p, _ := following(t, openLog(t, bus.URL()), filepath.Join(t.TempDir(), "a.db"))
	wait(t, p, uint64(len(s.recs)))
	nc := bus.Connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, nc, p, "0.1.0", most) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	client := bus.Connect(t)
	bus.Await("the service", func() bool {
		_, err := client.Request("query.status", nil, time.Second)
		return err == nil
	})
	return client, p, bus
}

type item map[string]any

// ask asks and decodes the answer.
func ask(t *testing.T, nc *nats.Conn, noun, request string) (Answer, []item) {
	t.Helper()
	msg, err := nc.Request("query."+noun, []byte(request), natstest.Patience)
	if err != nil {
		t.Fatalf("query.%s %s: %v", noun, request, err)
	}
	var a Answer
	if err := json.Unmarshal(msg.Data, &a); err != nil {
		t.Fatalf("query.%s %s answers %s: %v", noun, request, msg.Data, err)
	}
	items := make([]item, len(a.Items))
	for i, raw := range a.Items {
		if err := json.Unmarshal(raw, &items[i]); err != nil {
			t.Fatal(err)
		}
	}
	if a.OK == (a.Error != "") {
		t.Fatalf("query.%s %s answers %s", noun, request, msg.Data)
	}
	return a, items
}

// column is one key of all items.
func pick(items []item, keys ...string) string {
	var out []string
	for _, i := range items {
		var row []string
		for _, k := range keys {
			row = append(row, fmt.Sprint(i[k]))
		}
		out = append(out, strings.Join(row, " "))
	}
	return strings.Join(out, "; ")
}

func TestQueries(t *testing.T) {
	nc, _ := serving(t, everything)
	for _, c := range []struct {
		noun, request string
		keys          []string
		want          string
	}{
		{"sessions", ``, []string{"session", "state", "answer"}, "s3 RUNNING <nil>; s2 CANCELLED <nil>; s1 COMPLETED all done"},
		{"sessions", `{"state":"completed"}`, []string{"session", "total_tokens"}, "s1 59"},
		{"sessions", `{"limit":1}`, []string{"session"}, "s3"},
		{"sessions", `{"tool":"file_write"}`, []string{"session"}, "s1"},
		{"sessions", `{"model":"smol:135m"}`, []string{"session"}, "s1"},
		{"sessions", `{"text":"done","state":"completed"}`, []string{"session"}, "s1"},
		{"approvals", `{"session":"s3"}`, []string{"invocation", "status", "waited_s"}, "t1-0-c PENDING <nil>"},
		{"approvals", `{"state":"granted","session":"s1"}`, []string{"invocation", "status", "answered_by"}, "t1-0 GRANTED person"},
		{"approvals", `{"state":"denied"}`, []string{"session", "invocation", "answered_as"}, "s2 no operator"},
		{"session", `{"session":"s1"}`, []string{"type", "seq", "inference", "invocation"},
			"session 10 t2 <nil>; inference 12 t1 <nil>; invocation 16 <nil> t1-0; message 23 <nil> <nil>; inference 26 t2 <nil>"},
		{"session", `{"session":"system"}`, []string{"type", "invocation"}, "invocation i1; invocation i2; inference <nil>"},
		{"approvals", ``, []string{"session", "invocation", "tool", "tier", "why", "parameters", "diff", "deadline"},
			"s2 waits shell T2 mode prompt map[argv:[true]] <nil> 2026-01-02T05:00:00.000000000Z; s3 t1-0-c shell_commit T2 mode prompt map[set:1] + made 2026-01-02T05:00:00.000000000Z"},
		{"approvals", ``, []string{"invocation", "follows", "preview_notes"}, "waits  <nil>; t1-0-c t1-0 [in /work]"},
		{"workers", ``, []string{"worker", "state"}, "kernel STOPPED; w1 RUNNING; m1 RUNNING; w8 RUNNING; w3 RUNNING; w4 RUNNING"},
		{"workers", `{"state":"stopped"}`, []string{"worker"}, "kernel"},
		{"tools", ``, []string{"tool", "worker", "available"}, "echo w1 true; echo w4 true; shell_commit w3 true; shell_commit w4 true"},
		{"tools", ``, []string{"tool", "worker", "differs", "follow_up_only", "origin"},
			"echo w1 false false ; echo w4 false false ; shell_commit w3 true true mcp:files; shell_commit w4 true false "},
		{"workers", `{"state":"running"}`, []string{"worker", "differing"}, "w1 <nil>; m1 <nil>; w8 <nil>; w3 shell_commit; w4 shell_commit"},
		{"sessions", `{"limit":1}`, []string{"session", "tool_calls"}, "s3 1"},
		{"invocations", `{"session":"s3"}`, []string{"invocation", "follows", "follow_up"}, "t1-0-c t1-0 <nil>; t1-0  map[parameters:map[set:1] tool:shell_commit]"},
		{"models", ``, []string{"model", "worker", "state", "available"}, "bad m1 UNLOADED false; smol:135m m1 UNLOADED false"},
		{"invocations", `{"session":"system"}`, []string{"invocation", "status", "exit_code", "cancel_reason"}, "i2 FAILED <nil> <nil>; i1 FAILED -1 too slow"},
		{"invocations", `{"tool":"file_write"}`, []string{"invocation", "output"}, "t1-0 wrote a.txt"},
		{"commands", `{"state":"rejected"}`, []string{"command", "reasons"}, "c-bad [no command is called that and more]"},
		{"search", `{"text":"WRITE read"}`, []string{"seq", "session", "source", "text"}, "10 s1 task write <a> & read it"},
		{"search", `{"text":"done","session":"s2"}`, []string{"seq"}, ""},
		{"search", `{"text":"nothing \"of the sort"}`, []string{"seq"}, ""},
		{"status", ``, []string{"applied", "lag", "stream"}, "100 0 EVENTS"},
	} {
		if hasFTS == "none" && c.request == `{"text":"WRITE read"}` {
			c.request = `{"text":"WRITE <A>"}` // a part of the text, not words
		}
		if _, items := ask(t, nc, c.noun, c.request); pick(items, c.keys...) != c.want {
			t.Errorf("query.%s %s\ngot  %s\nwant %s", c.noun, c.request, pick(items, c.keys...), c.want)
		}
	}
}

func TestQueriesSayWhatIsWrong(t *testing.T) {
	nc, _ := serving(t, everything)
	for _, c := range []struct{ noun, request, want string }{
		{"session", ``, "session is missing"},
		{"session", `{"session":"s99"}`, `no session is called "s99"`},
		{"search", `{}`, "text is missing"},
		{"sessions", `{"limit":-1}`, "limit is -1"},
		{"sessions", `{"limit":100000}`, "limit is 100000"},
		{"sessions", `{"cursor":18446744073709551615}`, "cursor is"},
		{"sessions", `{"stat":"running"}`, `unknown field "stat"`},
		{"sessions", `not JSON`, "request: "},
		{"sessions", `{"state":"done"}`, `state is "done"; use one of running, paused, completed, failed, cancelled`},
		{"sessions", `{"session":"s1"}`, "session: query.sessions does not take it; it takes state, tool, model, text, since, until"},
		{"models", `{"model":"m"}`, "model: query.models does not take it"},
		{"approvals", `{"since":"yesterday"}`, `since is "yesterday"; use a time like`},
		{"commands", `{"until":"2026-01-02"}`, `until is "2026-01-02"; use a time like`},
		{"search", `{"text":"  "}`, "text is missing"},
	} {
		if a, _ := ask(t, nc, c.noun, c.request); a.OK || !strings.Contains(a.Error, c.want) {
			t.Errorf("query.%s %s answers %v %q, not %q", c.noun, c.request, a.OK, a.Error, c.want)
		}
	}
}

// Page by page one sees each row once, however small the answers must be.
func TestPages(t *testing.T) {
	tell := func(s *story) {
		for k := range 7 {
			id := fmt.Sprintf("s%d", k)
			s.add(events.SessionStarted{Ref: mainRef(id), Task: "task", Mode: events.ModePrompt})
			for i := range 5 {
				s.requested(id, fmt.Sprintf("t%d", i), "echo", events.T0, `{}`, fmt.Sprintf("c%d-%d", k, i))
			}
		}
		s.add(events.WorkerStarted{Ref: ref("system", "w"), Role: events.RoleToolWorker,
			Tools: []events.ToolOffer{{Name: "a"}, {Name: "b"}, {Name: "c"}}})
		s.add(events.WorkerStarted{Ref: ref("system", "m"), Role: events.RoleModelWorker,
			Models: []events.ModelOffer{{Name: "a", Token: "a"}, {Name: "b", Token: "b"}, {Name: "c", Token: "c"}}})
	}
	nc, _ := serving(t, tell)
	for noun, want := range map[string]int{"sessions": 7, "invocations": 35, "commands": 35, "tools": 3, "models": 3} {
		seen := map[string]bool{}
		pages := 0
		for cursor := uint64(0); ; pages++ {
			a, items := ask(t, nc, noun, fmt.Sprintf(`{"limit":2,"cursor":%d}`, cursor))
			for _, i := range items {
				key := pick([]item{i}, "session", "invocation", "command", "tool", "model")
				if seen[key] {
					t.Errorf("query.%s shows %s twice", noun, key)
				}
				seen[key] = true
			}
			if cursor = a.Next; !a.More {
				break
			}
		}
		if len(seen) != want || pages != (want-1)/2 {
			t.Errorf("query.%s shows %d rows on %d further pages, want %d", noun, len(seen), pages, want)
		}
	}
}

// What is too large for an answer is left out and named; all else is there.
func TestLargeRows(t *testing.T) {
	nc, _ := serving(t, func(s *story) {
		s.add(events.SessionStarted{Ref: mainRef("s1"), Task: strings.Repeat("task ", 20_000), Mode: events.ModePrompt})
		for i := range 3 {
			s.requested("s1", fmt.Sprint("t", i), "echo", events.T0, `{"text":"`+strings.Repeat("x", 400_000)+`"}`, "")
			s.add(events.ToolPreviewed{Ref: ref("s1", fmt.Sprint("t", i)), Valid: true, Diff: strings.Repeat("+y\n", 100_000)})
		}
	})
	seen := 0
	for cursor := uint64(0); ; {
		a, items := ask(t, nc, "session", fmt.Sprintf(`{"session":"s1","cursor":%d}`, cursor))
		if len(items) == 0 {
			t.Fatal("an empty page")
		}
		for _, i := range items {
			seen++
			if i["type"] == "invocation" && (fmt.Sprint(i["omitted"]) != "[parameters]" || i["preview_diff"] == nil) {
				t.Errorf("omitted is %v, the diff has %d bytes", i["omitted"], len(fmt.Sprint(i["preview_diff"])))
			}
		}
		if cursor = a.Next; !a.More {
			break
		}
	}
	if seen != 4 {
		t.Errorf("%d rows in all", seen)
	}
}

func TestQueriesWaitForASequence(t *testing.T) {
	nc, p, bus := servingFor(t, natstest.Patience, func(*story) {})
	inbox, err := nc.SubscribeSync(nats.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest("query.sessions", inbox.Subject, []byte(`{"wait_for":1}`)); err != nil {
		t.Fatal(err)
	}
	bus.Await("the question to wait", func() bool { return p.progress.waiting.Load() == 1 })
	if _, items := ask(t, nc, "sessions", ``); len(items) != 0 { // others need not
		t.Fatalf("there are sessions already: %v", items)
	}
	publish(t, bus.JetStream(t), messages(t, 1))
	msg, err := inbox.NextMsgWithContext(natstest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(msg.Data), `"session":"s1"`) {
		t.Errorf("the answer is %s", msg.Data)
	}
}

func TestQueriesDoNotWaitForEver(t *testing.T) {
	nc, _, _ := servingFor(t, 50*time.Millisecond, func(*story) {})
	a, _ := ask(t, nc, "sessions", `{"wait_for":99}`)
	if a.OK || !strings.Contains(a.Error, "sequence 99 is not in the database after 50ms; it is at 0") {
		t.Errorf("a sequence that never comes: %v %q", a.OK, a.Error)
	}
}
