package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"correx/internal/testmodel"
	"correx/pkg/events"
)

// Two workers that offer one tool otherwise are an alarm that nobody can miss: in
// the kernel's log, in bus tools and in bus workers, until one of them goes.
func TestTwoWorkersWithOtherDigests(t *testing.T) {
	s := newSystem(t, testmodel.Script{})
	bus := s.start("bus", "serve")
	s.start("projector")
	s.start("tool-worker", "--name", "w1")
	s.awaitText("tools", "w1")
	if text := s.run("bus", "tools"); strings.Contains(text, "DIFFERS") {
		t.Fatalf("one worker differs:\n%s", text)
	}
	path := filepath.Join(s.state, "correx.yaml")
	config, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(config), "echo: {enabled: true, tier: T2}", "echo: {enabled: true, tier: T3}", 1)
	if other == string(config) {
		t.Fatal("the configuration has no echo of T2")
	}
	if err := os.WriteFile(path, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	w2 := s.start("tool-worker", "--name", "w2")
	text := s.awaitText("tools", "DIFFERS")
	for _, line := range strings.Split(text, "\n") {
		name, _, _ := strings.Cut(line, " ")
		if name != "" && name != "TOOL" && (name == "echo") != strings.Contains(line, "DIFFERS") {
			t.Errorf("bus tools says %q", line)
		}
	}
	var rows []struct {
		Tool, Worker, Digest string
		Differs              bool
	}
	if err := json.Unmarshal([]byte(s.run("bus", "tools", "--json")), &rows); err != nil || len(rows) < 10 || len(rows)%2 != 0 {
		t.Errorf("bus tools --json has %d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		if r.Differs != (r.Tool == "echo") || len(r.Digest) != 64 {
			t.Errorf("row %+v", r)
		}
	}
	if text := s.run("bus", "workers"); strings.Count(text, "DIFFERS from another worker's: echo") != 2 {
		t.Errorf("bus workers says\n%s", text)
	}
	for _, r := range rows {
		var offers []events.ToolOffer
		m, err := s.operator().RequestWithContext(s.ctx, events.ToolsSubject(events.WorkerID(r.Worker)), nil)
		if err != nil {
			t.Errorf("%s says nothing of itself: %v", r.Worker, err)
		} else if json.Unmarshal(m.Data, &offers) != nil || len(offers) != len(rows)/2 {
			t.Errorf("%s says of itself %s", r.Worker, m.Data)
		}
	}
	for !strings.Contains(bus.out.String(), "alarm: workers announce one tool with different digests") {
		s.pause("an alarm of the kernel", nil)
	}
	w2.signal(syscall.SIGTERM)
	<-w2.done
	for strings.Contains(s.run("bus", "tools"), "DIFFERS") {
		s.pause("the difference to end", nil)
	}
}

// awaitText runs a command of bus until what it prints has a text.
func (s *system) awaitText(command, want string) string {
	s.t.Helper()
	for {
		cmd := exec.CommandContext(s.ctx, filepath.Join(s.bin, "bus"), command)
		cmd.Env = s.env()
		text, err := cmd.Output() // it fails while what it asks is not up yet
		if strings.Contains(string(text), want) {
			return string(text)
		}
		s.pause("bus "+command+" to show "+want, err)
	}
}
