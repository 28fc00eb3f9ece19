package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/session"
	"correx/pkg/events"
)

// However the bus is killed around a fork, there is one, it has the other's past,
// and what was done in that is not done again.
func TestKillBusAroundAFork(t *testing.T) {
	rnd := seed(t)
	s := newSystem(t, workScript())
	p := s.startParts()
	s.approveAll()
	if a := s.api("session.start", `{"session":"first","task":"write two lines [task:lines]"}`); !a.OK {
		t.Fatalf("start: %+v", a)
	}
	first := s.await("first", "its end", func(st session.State) bool { return st.Status != session.Running })
	if !completed(first) {
		t.Fatalf("the first session: %s %+v", first.Status, first.Outcome)
	}
	at := first.Tools[1].EndSeq // line 1 is written
	for n := range rounds(4, 60) {
		id := fmt.Sprintf("fork-%d", n)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.publishOnce("cmd.operator.session.fork", fmt.Sprintf(`{"session":"first","at":%d}`, at), id)
		}()
		<-time.After(time.Duration(rnd.IntN(12)) * time.Millisecond) // any moment will do
		p["bus"].kill()
		p["bus"] = p["bus"].again()
		<-done
		st := s.await(s.awaitForks(n + 1)[n], "its end", func(st session.State) bool { return st.Status != session.Running })
		if !completed(st) || len(st.Tools) != 2 || st.Tools[0].ID != "t3-0" || st.Tools[1].ID != "t4-0" {
			t.Fatalf("the fork %s is %s %+v, %+v", st.ID, st.Status, st.Outcome, st.Tools)
		}
		s.oneEndEach(st)
	}
	forks := s.awaitForks(rounds(4, 60))
	text, err := os.ReadFile(filepath.Join(s.workspace, "log.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := "begin\nline 1\n" + strings.Repeat("line 2\n", 1+len(forks))
	if string(text) != want {
		t.Errorf("the file has\n%swant\n%s", text, want)
	}
	s.databaseEqualsLog()
}

// publishOnce puts a command on the log once, whatever happens to the server.
func (s *system) publishOnce(subject, body, id string) {
	js, err := jetstream.New(s.conn)
	for err == nil && s.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(s.ctx, 2*time.Second)
		_, err := js.Publish(ctx, subject, []byte(body), jetstream.WithMsgID(id))
		cancel()
		if err == nil {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
}

// awaitForks waits for the nth fork, and returns all that there are, in order.
func (s *system) awaitForks(n int) []events.SessionID {
	s.t.Helper()
	for late := time.Now().Add(patience); ; {
		recs, err := s.events().ReadFilter(s.ctx, "evt.*.session.main.started", 1, 0)
		var all []events.SessionID
		for _, r := range recs {
			if f, ok := r.Fact.(events.SessionStarted); ok && f.ForkOf != nil {
				all = append(all, r.Aggregate.Session)
			}
		}
		switch {
		case err == nil && len(all) > n:
			s.t.Fatalf("%d commands made %d forks: %v", n, len(all), all)
		case err == nil && len(all) == n:
			return all
		case time.Now().After(late):
			s.t.Fatalf("%d forks, want %d", len(all), n)
		}
		s.pause("forks", err)
	}
}

// Bus fork, and the nats program, go another way with what they name; the model is
// told the past, and the prompt can be packed again.
func TestForkByCommands(t *testing.T) {
	s := newSystem(t, workScript())
	s.startParts()
	s.approveAll()
	s.run("bus", "run", "write two lines [task:lines]", "--session", "first")
	first := s.fold("first")
	at := strconv.FormatUint(first.Tools[1].EndSeq, 10)

	s.run("bus", "fork", "first", "--at", at, "--session", "second", "--mode", "auto", "--say", "Make haste.")
	second := s.fold("second")
	if !completed(second) || second.Started.Mode != events.ModeAuto || second.Started.Task != first.Started.Task {
		t.Fatalf("the fork is %s, %+v", second.Status, second.Started)
	}
	if out := s.run("bus", "show", "second"); !strings.Contains(out, "its past: bus show first --at "+at) || !strings.Contains(out, "user Make haste.") {
		t.Errorf("bus show printed %s", out)
	}
	own := second.Inferences[0]
	prompt := s.run("bus", "show", "second", "--prompt", string(own.ID))
	for _, said := range []string{"Make haste.", "line 1"} {
		if !strings.Contains(prompt, said) {
			t.Errorf("the prompt of %s lacks %q:\n%s", own.ID, said, prompt)
		}
	}
	late := time.Now().Add(patience)
	for out := ""; !strings.Contains(out, `"fork_of":"first"`) || !strings.Contains(out, `"fork_at":`+at); { // the projector follows
		if time.Now().After(late) {
			t.Fatalf("the projector says %s", out)
		}
		out = s.shell(`eval "$(bus env)"; nats req --raw query.session '{"session":"second"}'`)
	}
	if out := s.run("bus", "audit", "report", "second", "--unverified"); !strings.Contains(out, "session first at event "+at) {
		t.Errorf("the report is %s", out)
	}
	// With plain NATS.
	out := s.shell(fmt.Sprintf(`eval "$(bus env)"; nats req --raw api.operator.session.fork '{"session":"second","at":%d,"new":"third","say":"Again [task:lines]"}'`, second.MainSeq))
	if !strings.Contains(out, `"session":"third"`) {
		t.Fatalf("the api answered %s", out)
	}
	s.await("third", "its end", completed)
}
