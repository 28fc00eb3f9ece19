package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"correx/internal/session"
	"correx/internal/testenv"
	"correx/internal/testmodel"
	"correx/pkg/events"
)

// workScript appends a line to a file twice, with a pause, and answers. An
// append that ran twice shows in the file.
func workScript() testmodel.Script {
	appendLine := func(n int) string {
		return testmodel.Call("file_edit", fmt.Sprintf(`{"operation":"append","path":"log.txt","content":"line %d\n"}`, n))
	}
	return testmodel.Script{Tasks: map[string][]string{"lines": {
		testmodel.Call("file_write", `{"operation":"write","path":"log.txt","content":"begin\n"}`),
		appendLine(1),
		testmodel.Call("shell", `{"argv":["sleep","0.3"]}`),
		appendLine(2),
		testmodel.Final("Two lines are written."),
	}}}
}

// parts are the processes of one system.
type parts map[string]*process

func (s *system) startParts() parts {
	s.t.Helper()
	p := parts{"bus": s.start("bus", "serve")}
	s.events()
	p["model-worker"] = s.start("model-worker", "--name", "m1")
	p["tool-worker"] = s.start("tool-worker", "--name", "w1")
	p["projector"] = s.start("projector")
	return p
}

func seed(t *testing.T) *rand.Rand { return rand.New(rand.NewPCG(testenv.Seed(t), 1)) }

// rounds is how often a kill is tried: once, and many times in the long run.
func rounds(few, many int) int {
	if os.Getenv("CORREX_SOAK") != "" {
		return many
	}
	return few
}

func TestKillBus(t *testing.T)         { killTest(t, "bus") }
func TestKillModelWorker(t *testing.T) { killTest(t, "model-worker") }
func TestKillToolWorker(t *testing.T)  { killTest(t, "tool-worker") }
func TestKillProjector(t *testing.T)   { killTest(t, "projector") }

// killTest kills one process while a session is at work, again and again, each
// time at another moment, and looks at what became of the sessions.
func killTest(t *testing.T, victim string) {
	rnd := seed(t)
	s := newSystem(t, workScript())
	p := s.startParts()
	s.approveAll()
	for n := range rounds(4, 100) {
		id := events.SessionID(fmt.Sprintf("kill-%d", n))
		s.clean()
		if a := s.api("session.start", fmt.Sprintf(`{"session":%q,"task":"write two lines [task:lines]"}`, id)); !a.OK {
			t.Fatalf("start: %+v", a)
		}
		// Killed once the session has so many records, at some moment of the
		// time between one and the next.
		upTo := 1 + rnd.IntN(36)
		s.awaitRecords(id, upTo)
		<-time.After(time.Duration(rnd.IntN(10)) * time.Millisecond) // any moment will do
		p[victim].kill()
		p[victim] = p[victim].again()
		st := s.await(id, "its end after a kill of "+victim, func(st session.State) bool { return st.Status != session.Running })
		if !completed(st) {
			t.Fatalf("session %s after a kill at record %d: %s %+v", id, upTo, st.Status, st.Outcome)
		}
		s.oneEndEach(st)
		s.filesMatch(st)
	}
	s.databaseEqualsLog()
}

// clean removes the file, so that what is in it is of one session even if its
// first write fails.
func (s *system) clean() {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Join(s.workspace, "log.txt")); err != nil {
		s.t.Fatal(err)
	}
}

// awaitRecords waits until a session has n records or has ended.
func (s *system) awaitRecords(id events.SessionID, n int) {
	s.t.Helper()
	for {
		recs, err := s.events().ReadFilter(s.ctx, events.SessionFilter(id), 1, 0)
		if err == nil && len(recs) >= n || s.fold(id).Status != session.Running {
			return
		}
		s.pause("records", err)
	}
}

// filesMatch holds the file against the log: each append that completed stands
// in it once, each that failed without effects not at all.
func (s *system) filesMatch(st session.State) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.workspace, "log.txt"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	for line := 1; line <= 2; line++ {
		done := 0
		for _, i := range st.Tools {
			if i.Requested.Request.Tool == "file_edit" && strings.Contains(string(i.Requested.Request.Parameters), fmt.Sprintf("line %d", line)) && i.Status() == session.Completed {
				done++
			}
		}
		if got := strings.Count(string(text), fmt.Sprintf("line %d\n", line)); got != done {
			s.t.Errorf("session %s: line %d stands %d times in the file, %d appends completed\n%s", st.ID, line, got, done, text)
		}
	}
}

// A worker that is frozen for longer than the ack wait is taken for lost; when
// it goes on, it must notice, and must not have an effect beside the other's.
func TestKillByFreezing(t *testing.T) {
	s := newSystem(t, workScript())
	p := s.startParts()
	s.approveAll()
	second := s.start("tool-worker", "--name", "w2")
	for n := range rounds(2, 30) {
		id := events.SessionID(fmt.Sprintf("freeze-%d", n))
		s.clean()
		if a := s.api("session.start", fmt.Sprintf(`{"session":%q,"task":"write two lines [task:lines]"}`, id)); !a.OK {
			t.Fatalf("start: %+v", a)
		}
		owner := s.awaitRunning(id)
		frozen := p["tool-worker"]
		if strings.HasSuffix(string(owner), "w2") {
			frozen = second
		}
		frozen.signal(syscall.SIGSTOP)
		st := s.await(id, "its end while a worker is frozen", func(st session.State) bool { return st.Status != session.Running })
		frozen.signal(syscall.SIGCONT)
		if !completed(st) {
			t.Fatalf("session %s: %s %+v", id, st.Status, st.Outcome)
		}
		s.oneEndEach(st)
		s.filesMatch(st)
	}
	s.databaseEqualsLog()
}

// awaitRunning waits until a worker runs the session's shell command, and
// returns whose it is.
func (s *system) awaitRunning(id events.SessionID) events.WorkerID {
	s.t.Helper()
	var owner events.WorkerID
	s.await(id, "a running tool", func(st session.State) bool {
		for _, i := range st.Tools {
			if i.Status() == session.Started && i.Requested.Request.Tool == "shell" {
				owner = i.Started.Worker
				return true
			}
		}
		return st.Status != session.Running
	})
	return owner
}
