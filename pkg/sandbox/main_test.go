package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"correx/pkg/events"
	"correx/pkg/tools"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	os.Exit(m.Run())
}

// p is a set of parameters.
type p map[string]any

func requestOf(tool string, params p) events.ToolRequest {
	raw, err := json.Marshal(params)
	if err != nil {
		panic(err) // parameters of tests are plain
	}
	return events.ToolRequest{Invocation: "t1-0", Session: "s1", Stage: "turn-1", Tool: tool, Parameters: raw}
}

func callOf(tool string, tier events.Tier, params p) Call {
	r := requestOf(tool, params)
	return Call{Key: Key{Session: r.Session, Invocation: r.Invocation, Started: 7, Nonce: "n"}, Request: r, Tier: tier}
}

// A bench is a worker's directory and a workspace.
type bench struct {
	dir, work string
	journal   *Journal
	executor  *Executor
}

// newBench has the file tools and what is given besides. delegate wraps the
// dispatcher.
func newBench(t testing.TB, change func(*ExecutorOptions, *tools.Registry), more ...tools.Tool) *bench {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{dir: filepath.Join(top, "worker"), work: filepath.Join(top, "work")}
	if err := os.Mkdir(b.work, 0o755); err != nil {
		t.Fatal(err)
	}
	journal, pending, err := OpenJournal(b.dir, JournalOptions{})
	if err != nil || len(pending) != 0 {
		t.Fatalf("open: %v, pending %v", err, pending)
	}
	t.Cleanup(func() { journal.Close() })
	b.journal = journal
	registry, err := fileRegistry(b.work, more...)
	if err != nil {
		t.Fatal(err)
	}
	o := ExecutorOptions{Registry: registry, Journal: journal, Dir: b.dir, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o, registry)
	}
	if b.executor, err = NewExecutor(o); err != nil {
		t.Fatal(err)
	}
	return b
}

func fileRegistry(work string, more ...tools.Tool) (*tools.Registry, error) {
	list, err := tools.Build(tools.Config{
		FileRead:  tools.FileReadConfig{Enabled: true, AllowedPaths: []string{work}},
		FileWrite: tools.FileWriteConfig{Enabled: true, AllowedPaths: []string{work}},
		FileEdit:  tools.FileEditConfig{Enabled: true, AllowedPaths: []string{work}},
		Echo:      tools.EchoConfig{Enabled: true},
	})
	if err != nil {
		return nil, err
	}
	return tools.NewRegistry(append(list, more...)...)
}

func (b *bench) path(rel string) string { return filepath.Join(b.work, rel) }

func (b *bench) put(t testing.TB, rel, content string) {
	t.Helper()
	put(t, b.path(rel), content)
}

func put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// content is what a file has, or absent.
func content(path string) string {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return absent
	}
	if err != nil {
		return err.Error()
	}
	return string(b)
}

const absent = "(absent)"

func wantContent(t testing.TB, path, want string) {
	t.Helper()
	if got := content(path); got != want {
		t.Fatalf("%s has %q, want %q", filepath.Base(path), got, want)
	}
}

// wantClean expects that nothing of a run is left in the worker's directory, and
// no temporary file in the workspace.
func (b *bench) wantClean(t testing.TB) {
	t.Helper()
	for _, dir := range []string{filepath.Join(b.dir, "sandbox"), filepath.Join(b.dir, "backups"), filepath.Join(b.dir, "backups", keptDir)} {
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if n.Name() != keptDir {
				t.Errorf("left in %s: %s", filepath.Base(dir), n.Name())
			}
		}
	}
	_ = filepath.WalkDir(b.work, func(path string, d os.DirEntry, err error) error {
		if err == nil && len(d.Name()) > 8 && d.Name()[:8] == ".correx-" {
			t.Errorf("left behind: %s", path)
		}
		return nil
	})
}

// awaitDeath fails when the process still lives after ten seconds.
func awaitDeath(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	deadline := time.Now().Add(10 * time.Second)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(deadline).Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			t.Fatalf("process %d lives: %v", pid, err)
		}
		return
	}
}

var background = context.Background()
