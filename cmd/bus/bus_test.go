package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"correx/internal/session"
	"correx/pkg/events"
)

const hello = `{"text":"hello"}`

func TestAnswersInPlace(t *testing.T) {
	m := newMachine(t)
	t.Run("a approves", func(t *testing.T) {
		o := m.want(m.do(call{args: []string{"request", "echo", hello}, keys: says("a")}), 0, "echo T2 asks for approval", "[a] approve once  [r] reject  [x] stop it")
		if o.stdout != "hello\n" {
			t.Errorf("stdout is %q, want the answer alone", o.stdout)
		}
	})
	t.Run("s approves for the session", func(t *testing.T) {
		m.want(m.run("run", "a task", "--detach", "--session", "s1"), 0)
		again := []string{"request", "echo", hello, "--session", "s1"}
		m.want(m.do(call{args: again, keys: says("s")}), 0, "[s] for the session", "[x] stop the session")
		p := says()
		m.want(m.do(call{args: again, keys: p}), 0, "approved by rule")
		m.want(m.do(call{args: []string{"request", "echo", `{"text":"other"}`, "--session", "s1"}, keys: says("r")}), 4)
		if p.times() != 0 {
			t.Error("asked again for an equal call")
		}
	})
	t.Run("s is no answer where nothing can remember it", func(t *testing.T) {
		p := says("s", "a")
		m.want(m.do(call{args: []string{"request", "echo", hello}, keys: p}), 0)
		if p.times() != 2 {
			t.Errorf("asked %d times, want 2", p.times())
		}
	})
	t.Run("r rejects with a reason", func(t *testing.T) {
		m.want(m.do(call{args: []string{"request", "echo", hello}, keys: says("r:not today")}), 4, "reason (Enter for none)", "not today")
	})
	t.Run("x stops", func(t *testing.T) {
		m.want(m.do(call{args: []string{"request", "echo", hello}, keys: says("x")}), 1, "rejected")
	})
	t.Run("other keys do nothing", func(t *testing.T) {
		p := says("q", "\n", "y", "a")
		m.want(m.do(call{args: []string{"request", "echo", hello}, keys: p}), 0)
		if p.times() != 4 {
			t.Errorf("asked %d times, want 4", p.times())
		}
	})
	t.Run("a terminal that ends is no answer", func(t *testing.T) {
		done, errs := make(chan outcome, 1), &lockedBuffer{}
		go func() {
			done <- m.do(call{args: []string{"request", "echo", hello, "--invocation", "eof"}, keys: says("EOF"), errs: errs})
		}()
		m.until(func() bool { return strings.Contains(errs.String(), "no answer from the terminal") })
		m.until(func() bool { return m.run("approve", "eof").status == 0 })
		m.want(<-done, 0, "no answer from the terminal")
	})
	t.Run("somebody else was faster", func(t *testing.T) {
		p, done := says(), make(chan outcome, 1)
		go func() {
			done <- m.do(call{args: []string{"request", "echo", hello, "--invocation", "faster"}, keys: p})
		}()
		m.until(func() bool { return p.times() == 1 })
		m.want(m.run("approve", "system/faster"), 0, "approved system/faster")
		m.want(<-done, 0, "approved by operator")
	})
	t.Run("--yes and YES=1", func(t *testing.T) {
		m.want(m.run("request", "echo", hello, "--yes"), 0, "hello")
		m.want(m.do(call{args: []string{"request", "echo", "-"}, stdin: hello, vars: map[string]string{"YES": "1"}}), 0, "hello")
	})
}

func TestApproveAndReject(t *testing.T) {
	m := newMachine(t)
	ask := func(id string, more ...string) {
		t.Helper()
		m.want(m.run(append([]string{"request", "echo", hello, "--detach", "--invocation", id}, more...)...), 0, "system/"+id)
		m.until(func() bool {
			return strings.Contains(m.run("replay", "--kind", "tool").stdout, id+" waits for approval")
		})
	}
	ask("i1")
	digest := "x"
	t.Run("another digest", func(t *testing.T) {
		o := m.want(m.run("approve", "i1", "--digest", "0000"), 1, "nothing was approved")
		_, after, _ := strings.Cut(o.stderr, "digest        ")
		digest, _, _ = strings.Cut(after, "\n")
	})
	t.Run("its digest", func(t *testing.T) {
		m.want(m.run("approve", "i1", "--digest", digest), 0, "approved system/i1")
	})
	t.Run("again", func(t *testing.T) {
		m.until(func() bool { return strings.Contains(m.run("approve", "i1").stderr, "is COMPLETED") })
		m.want(m.run("approve", "i1"), 1, "does not wait for an answer")
	})
	t.Run("what is not there", func(t *testing.T) {
		m.want(m.run("approve", "nothing"), 1, "no such invocation")
		m.want(m.run("approve", "a b"), 2, "write <session>/<invocation>")
		m.want(m.run("reject", "s1/nothing"), 1, "no such invocation")
	})
	t.Run("reject", func(t *testing.T) {
		ask("i2")
		m.want(m.run("reject", "i2", "--reason", "no need"), 0, "rejected system/i2")
		m.until(func() bool { return strings.Contains(m.run("replay").stdout, "no need") })
	})
	t.Run("several, but none of T3", func(t *testing.T) {
		ask("i3")
		ask("i4", "--tier", "T3")
		ask("i5")
		m.want(m.run("approve", "i3", "i4"), 2, "approve it by itself")
		m.want(m.run("approve", "i3", "i5"), 0, "approved system/i3\napproved system/i5")
		m.want(m.run("approve", "i4"), 0)
	})
	t.Run("a file that is shown as a diff", func(t *testing.T) {
		path := filepath.Join(m.work, "a.txt")
		body, err := json.Marshal(map[string]string{"operation": "write", "path": path, "content": "one\n"})
		if err != nil {
			t.Fatal(err)
		}
		m.want(m.do(call{args: []string{"request", "file_write", string(body)}, keys: says("a")}), 0, "+one")
		if got, err := os.ReadFile(path); err != nil || string(got) != "one\n" {
			t.Errorf("the file has %q (%v)", got, err)
		}
	})
}

func TestSessionsWithoutAModel(t *testing.T) {
	m := newMachine(t)
	id := strings.TrimSpace(m.want(m.run("run", "a task", "--detach", "--session", "s1", "--wall-time", "1h"), 0).stdout)
	if id != "s1" {
		t.Errorf("the session is called %q", id)
	}
	m.want(m.run("run", "a task", "--detach", "--session", "s1"), 1, "s1")
	m.want(m.run("say", "s1", "hurry"), 0, "said to s1")
	m.want(m.run("pause", "s1", "--reason", "lunch"), 0)
	m.want(m.run("resume", "s1"), 0)
	m.want(m.run("show", "s1"), 0, "RUNNING", "a task", "user hurry", "paused: lunch", "resumed",
		"waits for a model-worker that offers any model, until ")
	m.want(m.run("show", "s1", "--json"), 0, `"for": "a model-worker that offers any model"`, `"until"`)
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p, done := says(), make(chan outcome, 1)
		m.want(m.run("request", "echo", hello, "--session", "s1", "--detach", "--invocation", "own"), 0)
		go func() { done <- m.doContext(ctx, call{args: []string{"show", "--follow", "s1"}, keys: p}) }()
		m.until(func() bool { return p.times() == 1 }) // a late viewer sees what waits
		cancel()
		m.want(<-done, 130, "session s1 goes on", "echo T2 asks for approval")
	})
	done := make(chan outcome, 1)
	go func() { done <- m.run("show", "--follow", "s1") }()
	m.want(m.run("cancel", "s1", "--reason", "enough"), 0)
	m.want(<-done, 3, "cancelled: enough")
	m.want(m.run("show", "--follow", "s1"), 3)
	m.want(m.run("say", "s1", "more"), 1, "CANCELLED")
	m.want(m.run("show", "none"), 1, "the log has nothing of it")
	t.Run("as it was", func(t *testing.T) {
		first := records(t, m.run("replay", "--session", "s1", "--json").stdout)[0].Seq
		m.want(m.run("show", "s1", "--at", strconv.FormatUint(first, 10)), 0, "RUNNING")
		var j sessionSummary
		if err := json.Unmarshal([]byte(m.run("show", "s1", "--json").stdout), &j); err != nil {
			t.Fatal(err)
		}
		if j.State != session.SessionCancelled || j.Reason != "enough" || j.Task != "a task" || len(j.Records) < 5 {
			t.Errorf("the session is %+v", j)
		}
	})
}

func records(t *testing.T, lines string) []recordJSON {
	t.Helper()
	var all []recordJSON
	dec := json.NewDecoder(strings.NewReader(lines))
	for dec.More() {
		var r recordJSON
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func TestReplayAndTail(t *testing.T) {
	m := newMachine(t)
	m.want(m.run("request", "echo", hello, "--yes", "--invocation", "i1"), 0)
	m.want(m.run("run", "x", "--session", "s1", "--detach"), 0)
	all := records(t, m.run("replay", "--json").stdout)
	for i, r := range all {
		if r.Seq != uint64(i+1) || r.Error != "" || r.Headers.Get(events.HeaderID) == "" || !json.Valid(r.Body) {
			t.Errorf("record %d is %+v", i, r)
		}
	}
	for _, c := range []struct {
		args []string
		keep func(recordJSON) bool
	}{
		{[]string{"--session", "s1"}, func(r recordJSON) bool { return strings.HasPrefix(r.Subject, "evt.s1.") }},
		{[]string{"--kind", "tool"}, func(r recordJSON) bool { return strings.HasPrefix(r.Subject, "evt.system.tool.") }},
		{[]string{"--kind", "tool", "--session", "s1"}, func(recordJSON) bool { return false }},
		{[]string{"--from", "3", "--through", "4"}, func(r recordJSON) bool { return r.Seq == 3 || r.Seq == 4 }},
	} {
		var want []uint64
		for _, r := range all {
			if c.keep(r) {
				want = append(want, r.Seq)
			}
		}
		var got []uint64
		for _, r := range records(t, m.run(append([]string{"replay", "--json"}, c.args...)...).stdout) {
			if r.Seq <= all[len(all)-1].Seq {
				got = append(got, r.Seq)
			}
		}
		if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("%v gives %v, want %v", c.args, got, want)
		}
	}
	t.Run("tail", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		out, done := &lockedBuffer{}, make(chan outcome, 1)
		go func() {
			done <- m.doContext(ctx, call{args: []string{"tail", "--last", "1000", "--session", "s2", "--json"}, out: out})
		}()
		m.want(m.run("run", "y", "--session", "s2", "--detach"), 0)
		m.want(m.run("cancel", "s2"), 0)
		m.until(func() bool { return strings.Contains(out.String(), "evt.s2.session.main.cancelled") })
		cancel()
		o := m.want(<-done, 0, "evt.s2.session.main.started")
		for _, r := range records(t, o.stdout) {
			if !strings.HasPrefix(r.Subject, "evt.s2.") {
				t.Errorf("tail of s2 has %s", r.Subject)
			}
		}
	})
}

func TestWrongUse(t *testing.T) {
	m := &machine{t: t, state: t.TempDir()}
	for _, c := range []struct{ args, says string }{
		{"run", "the task is missing"},
		{"run a b", `"b" is too much`},
		{"run a --mode never", `mode is "never"; use prompt, auto or deny`},
		{"run a --capability MAGIC", `capability is "MAGIC"`},
		{"run a --session system", "no session may be called"},
		{"run a --turns -1", "limits has a negative number"},
		{"request echo", "the JSON object of its parameters is missing"},
		{"request echo [1]", "parameters is not a JSON object"},
		{"request echo {} --tier T9", "T9"},
		{"approve", "the invocation is missing"},
		{"approve x --scope ever", `scope is "ever"`},
		{"approve a b --digest 1", "name one"},
		{"tail --kind a.b", "--kind"},
		{"tail --from 1 --last 2", "none of the others can be"},
		{"show a.b", "session"},
		{"show s1 --at yesterday", `point "yesterday" is none`},
		{"show s1 --at -5m", "lies ahead"},
		{"show s1 --at 0", "the first sequence of EVENTS is 1"},
		{"show s1 --diff", "the point to begin at"},
		{"show s1 --diff 1 2 3", `"3" is too much`},
		{"show s1 2", `"2" is too much`},
		{"show s1 --diff 1 2 --at 3", "none of the others can be"},
		{"fork", "the session is missing"},
		{"fork s1", "at is missing; name a sequence of EVENTS"},
		{"fork s1 --at x", "--at"},
		{"fork s1 --at 3 --mode never", `mode is "never"; use prompt, auto or deny`},
		{"fork s1 --at 3 --turns -1", "limits has a negative number"},
		{"fork s1 --at 3 --session system", "no session may be called"},
		{"schema nope", `nothing is called "nope"`},
		{"serve --name a.b", "--name"},
		{"serve --name w1", "kernel-2"},
		{"serve extra", "unknown command"},
		{"frob", "unknown command"},
		{"sessions --log-level shout", "log level"},
		{"env --frob", "unknown flag"},
	} {
		t.Run(c.args, func(t *testing.T) {
			m := &machine{t: t, state: m.state}
			m.want(m.run(strings.Fields(c.args)...), 2, c.says, "--help says more")
		})
	}
}

func TestWithoutAServer(t *testing.T) {
	m := &machine{t: t, state: t.TempDir()}
	m.want(m.run("sessions"), 1, "bus serve")
	m.want(m.run("env"), 1, "bus serve")
}

func TestServerSide(t *testing.T) {
	m := newMachine(t)
	t.Run("a second one on the same store", func(t *testing.T) { m.want(m.run("serve"), 2, "is in use by") })
	t.Run("a second up", func(t *testing.T) { m.want(m.run("up"), 1, "already running") })
	t.Run("streams", func(t *testing.T) {
		m.want(m.run("streams", "plan"), 0, "unchanged stream EVENTS")
		m.want(m.run("streams", "apply"), 0, "unchanged stream COMMANDS")
		m.want(m.run("streams", "plan", "--file", filepath.Join(m.state, "none.yaml")), 1, "none.yaml")
		m.want(m.run("streams", "server-config", "--tools", "echo"), 0, "nkey", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.tool-echo", "no --models are named")
		if o := m.want(m.run("streams", "server-config", "--tools", "echo", "--models", "m"), 0); o.stderr != "" {
			t.Errorf("all is named, and it says %q", o.stderr)
		}
		m.want(m.run("streams", "server-config"), 0, "no --tools are named: with this block a tool-worker can take no work")
	})
	t.Run("env", func(t *testing.T) {
		o := m.want(m.run("env"), 0, "export NATS_URL='nats://127.0.0.1:", "export NATS_NKEY='"+m.state+"/keys/operator.nk'", "export CORREX_STATE=")
		var vars map[string]string
		if err := json.Unmarshal([]byte(m.run("env", "--json").stdout), &vars); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(o.stdout, vars["NATS_URL"]) {
			t.Errorf("variables are %v", vars)
		}
	})
	t.Run("without a projector", func(t *testing.T) { m.want(m.run("sessions"), 1, "no projector is running") })
	t.Run("somebody else's name", func(t *testing.T) {
		m.want(m.run("cancel", "s1", "--actor", "a.b"), 1, "actor")
	})
}

func TestSchemaIsDeterministic(t *testing.T) {
	m := &machine{t: t, state: t.TempDir()}
	first := m.want(m.run("schema", "--json"), 0).stdout
	if again := m.run("schema", "--json").stdout; again != first {
		t.Error("two runs differ")
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(first), &all); err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(m.run("schema").stdout)
	if len(names) != len(all) || len(names) != len(events.CommandTypes())+len(events.FactTypes()) {
		t.Errorf("%d names, %d schemas", len(names), len(all))
	}
	m.want(m.run("schema", "tool.approve"), 0, `"digest"`)
}
