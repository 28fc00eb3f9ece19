package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"correx/internal/access"
	"correx/internal/cli"
	"correx/internal/natstest"
	"correx/pkg/events"
)

// A running projector's database is backed up. The copy is the database, verifies,
// and a projector on it goes on with what the log has got since.
func TestBackup(t *testing.T) {
	b := startBus(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	if status, _, stderr := b.projector(t.Context(), "backup", copied); status != cli.StatusFailed || !strings.Contains(stderr, "does not exist; start a projector") {
		t.Errorf("without a database it ends with %d: %s", status, stderr)
	}
	stop := b.running("--name", "p1")
	log := b.log(access.Kernel)
	started := events.SessionStarted{Ref: events.Ref{Session: "s1", ID: events.Main}, Task: "hello", Mode: events.ModePrompt}
	seq, err := log.Append(natstest.Context(t), started, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	viewer := b.connect(access.Viewer)
	b.query(viewer, "sessions", fmt.Sprintf(`{"wait_for":%d}`, max(seq, 2))) // the start of p1, too
	status, stdout, stderr := b.projector(t.Context(), "backup", copied, "--json")
	var c struct {
		Path   string
		Events uint64
		Last   uint64 `json:"last_seq"`
	}
	if err := json.Unmarshal([]byte(stdout), &c); err != nil || status != cli.StatusOK || c.Path != copied || c.Events != c.Last || c.Last < 2 {
		t.Fatalf("it ends with %d, %v: %s%s", status, err, stdout, stderr)
	}
	_, got, _ := b.projector(t.Context(), "dump", "--db", copied)
	if !strings.Contains(got, `"task":"hello"`) || !strings.Contains(got, fmt.Sprintf(`{"key":"checkpoint","value":"%d"}`, c.Last)) {
		t.Errorf("the copy is\n%s", got)
	}
	// Unless the projector signed something meanwhile, the database is still the same.
	if _, want, _ := b.projector(t.Context(), "dump"); got != want && strings.Contains(want, fmt.Sprintf(`{"key":"checkpoint","value":"%d"}`, c.Last)) {
		t.Errorf("the copy\n%s\nis not the database\n%s", got, want)
	}
	if status, stdout, stderr := b.projector(t.Context(), "verify", "--views", "--db", copied); status != cli.StatusOK {
		t.Errorf("verify of the copy ends with %d: %s%s", status, stdout, stderr)
	}
	stop()
	b.goesOn(copied)
	b.refusesToReplace(copied)
}

// goesOn runs a projector on a copy until it has all of the log.
func (b *bus) goesOn(copied string) {
	b.t.Helper()
	b.running("--name", "p2", "--db", copied)
	seq, err := b.log(access.Kernel).Append(natstest.Context(b.t),
		events.SessionStarted{Ref: events.Ref{Session: "s2", ID: events.Main}, Task: "again", Mode: events.ModePrompt}, 0, "")
	if err != nil {
		b.t.Fatal(err)
	}
	got := b.query(b.connect(access.Viewer), "sessions", fmt.Sprintf(`{"wait_for":%d}`, seq))
	if !strings.Contains(got, `"task":"hello"`) || !strings.Contains(got, `"task":"again"`) {
		b.t.Errorf("on the copy query.sessions answers %s", got)
	}
}

// refusesToReplace backs up once more: to a new name, and over what is there.
func (b *bus) refusesToReplace(copied string) {
	b.t.Helper()
	other := filepath.Join(b.t.TempDir(), "other.db")
	if status, stdout, stderr := b.projector(b.t.Context(), "backup", other); status != cli.StatusOK || !strings.Contains(stdout, "events, last sequence") {
		b.t.Errorf("a second one ends with %d: %s%s", status, stdout, stderr)
	}
	before, err := os.Stat(other)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, to := range []string{copied, other} {
		if status, _, stderr := b.projector(b.t.Context(), "backup", to); status != cli.StatusFailed || !strings.Contains(stderr, "file already exists; name another file") {
			b.t.Errorf("over a file it ends with %d: %s", status, stderr)
		}
	}
	if after, err := os.Stat(other); err != nil || !os.SameFile(before, after) || after.ModTime() != before.ModTime() {
		b.t.Errorf("the file that was there is another: %v", err)
	}
}
