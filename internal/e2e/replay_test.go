package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"correx/internal/session"
	"correx/internal/testenv"
)

// lines are the JSON lines that a process has printed whole.
func (p *process) lines() []string {
	var all []string
	for line := range strings.Lines(p.out.String()) {
		if strings.HasPrefix(line, "{") && strings.HasSuffix(line, "\n") {
			all = append(all, strings.TrimSuffix(line, "\n"))
		}
	}
	return all
}

// A replay that follows has each record once, in order, whatever happens to the bus.
func TestReplayFollowsAcrossAKill(t *testing.T) {
	rnd := seed(t)
	s := newSystem(t, workScript())
	bus := s.start("bus", "serve")
	s.events()
	all := s.start("bus", "replay", "--follow", "--format", "jsonl")
	part := s.start("bus", "replay", "--follow", "--format", "jsonl", "--from", "2", "--kind", "session")
	for n := range rounds(3, 50) {
		for k := range 2 + rnd.IntN(4) {
			if a := s.api("session.start", fmt.Sprintf(`{"session":"s-%d-%d","task":"x"}`, n, k)); !a.OK {
				t.Fatalf("start: %+v", a)
			}
		}
		<-time.After(time.Duration(rnd.IntN(20)) * time.Millisecond) // any moment will do
		bus.kill()
		bus = bus.again()
	}
	if a := s.api("session.start", `{"session":"last","task":"x"}`); !a.OK {
		t.Fatalf("start: %+v", a)
	}
	s.followed(all, "--from", "1")
	s.followed(part, "--from", "2", "--kind", "session")
}

// followed waits until p has printed the start of session last, and holds what it
// printed up to there against a replay of the same.
func (s *system) followed(p *process, args ...string) {
	s.t.Helper()
	var got []string
	var end uint64
	for start := time.Now(); end == 0; {
		if time.Since(start) > patience {
			s.t.Fatalf("the replay does not reach session last:\n%s", tail(p.out.String()))
		}
		got = p.lines()
		for n, line := range got {
			var r struct {
				Seq     uint64
				Subject string
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				s.t.Fatalf("%v: %s", err, line)
			}
			if r.Subject == "evt.last.session.main.started" {
				got, end = got[:n+1], r.Seq
				break
			}
		}
		<-time.After(10 * time.Millisecond)
	}
	again := s.run("bus", append([]string{"replay", "--format", "jsonl", "--through", fmt.Sprint(end)}, args...)...)
	var want []string
	for line := range strings.Lines(again) {
		if strings.HasPrefix(line, `{"seq":`) {
			want = append(want, strings.TrimSuffix(line, "\n"))
		}
	}
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		s.t.Errorf("what was followed is not what stands there: %s", firstDifference(a, b))
	}
}

// The commands of docs/replay.md that work with other programs print what they say.
func TestReplayChapter(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "docs/replay.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## With other programs")
	_, rest, _ = strings.Cut(rest, "```sh\n")
	block, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/replay.md has no block of commands with other programs")
	}
	s := newSystem(t, workScript())
	s.startParts()
	s.approveAll()
	if a := s.api("session.start", `{"session":"tour","task":"write two lines [task:lines]"}`); !a.OK {
		t.Fatalf("start: %+v", a)
	}
	if st := s.await("tour", "its end", func(st session.State) bool { return st.Status != session.Running }); !completed(st) {
		t.Fatalf("the session is %s", st.Status)
	}
	want := []string{"evt.tour.tool.t1-0.requested.file_write", "correx.SessionStarted.v1", `"total_prompt_tokens": `, `"session":"tour"`}
	lines := strings.Split(strings.TrimSpace(block), "\n")
	if len(lines) != len(want) {
		t.Fatalf("the block has %d commands, want %d", len(lines), len(want))
	}
	for n, line := range lines {
		if strings.HasPrefix(line, "nats ") {
			line = withNATS(line)
		}
		if out := s.shell(line); !strings.Contains(out, want[n]) {
			t.Errorf("%s\nlacks %s:\n%s", line, want[n], tail(out))
		}
	}
}
