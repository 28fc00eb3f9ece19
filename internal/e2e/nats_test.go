package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"correx/internal/session"
	"correx/internal/testmodel"
	"correx/pkg/events"
)

// natsScript writes a file and reads it back.
func natsScript() testmodel.Script {
	return testmodel.Script{Tasks: map[string][]string{"rw": {
		testmodel.Call("file_write", `{"operation":"write","path":"hello.txt","content":"hi"}`),
		testmodel.Call("file_read", `{"operation":"read","path":"hello.txt"}`),
		testmodel.Final("It says hi."),
	}}}
}

// withNATS is a line of shell in which nats is set up as a user sets it up.
func withNATS(line string) string { return `eval "$(bus env)" && ` + line }

func TestNatsCLITenSessionsBeforeAnyWorker(t *testing.T) {
	s := newSystem(t, natsScript())
	s.start("bus", "serve")
	s.events()
	for n := range 10 {
		out := s.shell(withNATS(fmt.Sprintf(
			`nats pub cmd.operator.session.start '{"session":"early-%d","task":"write and read [task:rw]","mode":"auto"}' -J 2>&1`, n)))
		if !strings.Contains(out, "COMMANDS") {
			t.Fatalf("nats pub -J printed %q", out)
		}
	}
	for n := range 10 {
		s.await(events.SessionID(fmt.Sprintf("early-%d", n)), "its start", func(st session.State) bool { return st.Status == session.Running })
	}
	s.start("model-worker")
	s.start("tool-worker")
	for n := range 10 {
		st := s.await(events.SessionID(fmt.Sprintf("early-%d", n)), "its end", func(st session.State) bool { return st.Status != session.Running })
		if answer, _ := st.Answer(); !completed(st) || answer != "It says hi." {
			t.Errorf("session %d: %s, answer %q, outcome %+v", n, st.Status, answer, st.Outcome)
		}
		s.oneEndEach(st)
	}
}

func TestNatsCLIStartApproveWatchReplay(t *testing.T) {
	s := newSystem(t, natsScript())
	s.startParts()
	var started answer
	out := s.shell(withNATS(`nats req --raw api.operator.session.start '{"task":"write and read [task:rw]"}'`))
	if err := json.Unmarshal([]byte(out), &started); err != nil || !started.OK || started.Session == "" {
		t.Fatalf("nats req answered %q: %v", out, err)
	}
	id := events.SessionID(started.Session)
	st := s.await(id, "a question", func(st session.State) bool {
		return len(st.Tools) == 1 && st.Tools[0].Status() == session.ApprovalRequested
	})

	// Watch: the whole story of one session up to now; the question shows what
	// an approval must name.
	watched := s.shell(withNATS(`nats sub --raw --all --wait 2s 'evt.` + string(id) + `.>'`))
	digest := st.Tools[0].Asked.Digest
	if !strings.Contains(watched, digest) || !strings.Contains(watched, "+hi") {
		t.Errorf("nats sub does not show the digest %s and the diff:\n%s", digest, watched)
	}
	out = s.shell(withNATS(`nats req --raw query.approvals '{}'`))
	if !strings.Contains(out, digest) {
		t.Errorf("query.approvals does not show the question:\n%s", out)
	}
	out = s.shell(withNATS(`nats pub cmd.operator.tool.approve '{"session":"` + string(id) + `","invocation":"t1-0","digest":"` + digest + `"}' -J 2>&1`))
	if !strings.Contains(out, "COMMANDS") {
		t.Errorf("nats pub -J printed %q", out)
	}
	st = s.await(id, "its end", func(st session.State) bool { return st.Status != session.Running })
	if answer, _ := st.Answer(); answer != "It says hi." {
		t.Errorf("answer = %q, outcome %+v", answer, st.Outcome)
	}

	services := s.shell(withNATS(`nats micro ls`))
	for _, name := range []string{"kernel", "tool-worker", "model-worker", "projector"} {
		if !strings.Contains(services, name) {
			t.Errorf("nats micro ls does not show %s:\n%s", name, services)
		}
	}

	// Replay: every fact, from the stream, by sequence.
	replayed := s.shell(withNATS(`nats sub --raw --all --wait 2s 'evt.` + string(id) + `.>'`))
	for _, want := range []string{`"task":"write and read [task:rw]"`, digest, "It says hi."} {
		if !strings.Contains(replayed, want) {
			t.Errorf("the replay lacks %q", want)
		}
	}
	viaBus := s.shell(`bus replay --session ` + string(id) + ` --json`)
	lines := strings.Split(strings.TrimSpace(viaBus), "\n")
	if got := strings.Count(strings.TrimSpace(replayed), "\n") + 1; got != len(lines) {
		t.Errorf("nats replays %d facts, bus %d", got, len(lines))
	}
	s.databaseEqualsLog()
}

func TestNatsCLIReject(t *testing.T) {
	s := newSystem(t, natsScript())
	s.startParts()
	s.shell(withNATS(`nats req --raw api.operator.session.start '{"session":"no","task":"write and read [task:rw]"}'`))
	s.await("no", "a question", func(st session.State) bool {
		return len(st.Tools) == 1 && st.Tools[0].Status() == session.ApprovalRequested
	})
	out := s.shell(withNATS(`nats req --raw api.operator.tool.reject '{"session":"no","invocation":"t1-0","reason":"not today"}'`))
	if !strings.Contains(out, `"ok":true`) {
		t.Errorf("tool.reject answered %s", out)
	}
	st := s.await("no", "the rejection", func(st session.State) bool { return st.Tools[0].Status() == session.Rejected })
	if f := st.Tools[0].End.(events.ToolExecutionRejected); !f.Denied || !strings.Contains(f.Reason, "not today") {
		t.Errorf("rejected = %+v", f)
	}
	out = s.shell(withNATS(`nats req --raw api.operator.tool.approve '{"session":"no","invocation":"t1-0","digest":"x"}'`))
	if !strings.Contains(out, `"ok":false`) || !strings.Contains(out, "REJECTED") {
		t.Errorf("a late approval answered %s", out)
	}
}
