package e2e

import (
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"correx/internal/session"
	"correx/internal/testenv"
	"correx/internal/testmodel"
)

// TestReadmeTour types the blocks of README's tour into three shells, as they
// stand. Only what the tour builds and fetches is there already: make, and the
// scripts that print where a program or the model is. In between it waits for
// what a person would wait to see.
func TestReadmeTour(t *testing.T) {
	s := newSystem(t, testmodel.Script{Tasks: map[string][]string{"tour": {
		testmodel.Call("file_write", `{"operation":"write","path":"notes/hello.txt","content":"Hello from Correx"}`),
		testmodel.Call("file_read", `{"operation":"read","path":"notes/hello.txt"}`),
		testmodel.Final("It says Hello from Correx."),
	}}})
	s.state = filepath.Join(s.dir, "correx-tour") // where the tour puts it
	blocks := tourOf(t)
	terminals := map[string]*terminal{}
	for _, name := range []string{"1", "2", "3"} {
		terminals[name] = s.newTerminal(checkout(s))
	}
	at := 0
	next := func(name, has string) *terminal {
		t.Helper()
		if at == len(blocks) || blocks[at].terminal != name || !strings.Contains(blocks[at].text, has) {
			t.Fatalf("block %d of the tour is not one of terminal %s with %q; this test follows README and must be changed with it", at+1, name, has)
		}
		terminals[name].enter(blocks[at].text)
		at++
		return terminals[name]
	}

	next("1", "make build").done()
	up := next("1", "bus up")
	up.shows("Correx is up.")
	services := next("2", "nats micro ls").done()
	for _, name := range []string{"kernel", "projector"} {
		if !strings.Contains(services, name) {
			t.Errorf("nats micro ls does not show %s:\n%s", name, services)
		}
	}
	if a := next("2", "session.start").done(); !strings.Contains(a, `"fact":"session.started"`) {
		t.Errorf("session.start answered %s", a)
	}
	watch := next("3", "nats sub")
	st := s.await("tour", "a question", func(st session.State) bool {
		return len(st.Tools) == 1 && st.Tools[0].Status() == session.ApprovalRequested
	})
	watch.shows("approval_requested.file_write")
	s.awaitShell("query.approvals", st.Tools[0].Asked.Digest)
	if q := next("2", "query.approvals").done(); !strings.Contains(q, "+Hello from Correx") {
		t.Errorf("the question has no diff: %s", q)
	}
	next("2", "tool.approve").done()
	s.await("tour", "its end", completed)
	watch.shows("evt.tour.session.main.completed")
	s.awaitShell("query.sessions", "It says Hello from Correx.")
	if got := next("2", "query.sessions").done(); !strings.Contains(got, "It says Hello from Correx.") || !strings.HasSuffix(strings.TrimSpace(got), "\nHello from Correx") {
		t.Errorf("the answer and the file are not there: %s", got)
	}
	if got := next("2", "nats stream get").done(); !strings.Contains(got, "evt.tour.session.main.started") || !strings.Contains(got, "correx.SessionCompleted.v1") {
		t.Errorf("the replay is not the session: %s", got)
	}
	if got := next("2", "bus run").done(); !strings.Contains(got, "\nIt says Hello from Correx.\n") || !strings.Contains(got, "tour-2  COMPLETED") {
		t.Errorf("bus run and bus show printed %s", got)
	}
	if at != len(blocks) {
		t.Errorf("the tour has %d blocks, and this test knows %d", len(blocks), at)
	}
	s.databaseEqualsLog()
	s.runQueries()
	terminals["3"].interrupt()
	up.interrupt()
}

// tourTask is the task of the tour, to which the scripted model needs a mark.
const tourTask = "Write Hello from Correx to notes/hello.txt and read it back."

// A block is a piece of shell in README, marked with the terminal it is for.
type block struct{ terminal, text string }

var tourBlock = regexp.MustCompile("(?s)<!-- tour: terminal ([0-9]) -->\n```sh\n(.*?)```\n")

func tourOf(t *testing.T) []block {
	t.Helper()
	var all []block
	for _, m := range tourBlock.FindAllStringSubmatch(document(t, "README.md"), -1) {
		all = append(all, block{m[1], strings.ReplaceAll(m[2], tourTask, testmodel.Task("tour", tourTask))})
	}
	return all
}

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkout is a directory like a checkout in which all is built and fetched. It
// returns the environment of a terminal there.
func checkout(s *system) (dir string, env []string) {
	s.t.Helper()
	dir = filepath.Join(s.dir, "checkout")
	for name, text := range map[string]string{
		"tools/make":           "#!/bin/sh\nln -sfn " + s.bin + " bin\n",
		"scripts/model":        "#!/bin/sh\necho " + filepath.Join(s.dir, "scripted.gguf") + "\n",
		"scripts/llama-server": "#!/bin/sh\necho " + testenv.LlamaServer(s.t) + "\n",
		"scripts/nats":         "#!/bin/sh\necho " + testenv.NatsCLI(s.t) + "\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			s.t.Fatal(err)
		}
	}
	// Nobody is at these terminals to say yes to bus run.
	return dir, []string{"PATH=" + filepath.Join(dir, "tools") + ":" + os.Getenv("PATH"), "HOME=" + s.dir, "XDG_CONFIG_HOME=" + s.dir, "NO_COLOR=1", "YES=1"}
}

// A terminal is a shell that lives as long as the tour.
type terminal struct {
	s     *system
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *syncBuffer
	seen  int // bytes of out that earlier blocks printed
	block int
	ended chan struct{}
}

func (s *system) newTerminal(dir string, env []string) *terminal {
	s.t.Helper()
	r := &terminal{s: s, cmd: exec.Command("sh", "-e"), out: &syncBuffer{}, ended: make(chan struct{})}
	r.cmd.Dir, r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = dir, env, r.out, r.out
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { _ = r.cmd.Wait(); close(r.ended) }() // it ends by a signal, or by what the test finds missing
	s.t.Cleanup(func() {
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
		<-r.ended
		if s.t.Failed() {
			s.t.Logf("--- a terminal of the tour\n%s", tail(r.out.String()))
		}
	})
	return r
}

// enter types a block, and a line that says when it has ended.
func (r *terminal) enter(text string) {
	r.s.t.Helper()
	r.seen = len(r.out.String())
	r.block++
	if _, err := io.WriteString(r.in, text+fmt.Sprintf("\necho; echo ended-%d\n", r.block)); err != nil {
		r.s.t.Fatalf("the shell is gone before %q: %v", text, err)
	}
}

// done waits until the block has ended well, and returns what it printed.
func (r *terminal) done() string {
	r.s.t.Helper()
	out, _, _ := strings.Cut(r.shows(fmt.Sprintf("\nended-%d\n", r.block)), fmt.Sprintf("\nended-%d\n", r.block))
	return out
}

// shows waits until the block has printed text, and returns all that it printed.
func (r *terminal) shows(text string) string {
	r.s.t.Helper()
	late := time.Now().Add(patience)
	for {
		out := r.out.String()[r.seen:]
		if strings.Contains(out, text) {
			return out
		}
		select {
		case <-r.ended:
			r.s.t.Fatalf("the shell ended in block %d, before %q", r.block, text)
		default:
		}
		if time.Now().After(late) {
			r.s.t.Fatalf("block %d does not show %q", r.block, text)
		}
		r.s.pause(text, nil)
	}
}

// interrupt is Ctrl-C. What ran must end, and the shell with it.
func (r *terminal) interrupt() {
	r.s.t.Helper()
	_ = r.in.Close()
	if err := syscall.Kill(-r.cmd.Process.Pid, syscall.SIGINT); err != nil {
		r.s.t.Errorf("Ctrl-C: %v", err)
	}
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.s.t.Error("Ctrl-C does not end it")
	}
}

// awaitShell waits until the projector knows something.
func (s *system) awaitShell(query, want string) {
	s.t.Helper()
	late := time.Now().Add(patience)
	for {
		m, err := s.operator().Request(query, nil, 10*time.Second)
		if err == nil && strings.Contains(string(m.Data), want) {
			return
		}
		if time.Now().After(late) {
			s.t.Fatalf("%s does not answer with %q (%v)", query, want, err)
		}
		s.pause(query, err)
	}
}

var sqliteLine = regexp.MustCompile(`(?m)^sqlite3 -readonly \S+ "(.*)"$`)

// runQueries runs the SQL that the documents show against a real database.
func (s *system) runQueries() {
	s.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.state, "correx.db")+"?mode=ro")
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	tried := 0
	for _, name := range []string{"README.md", "docs/sqlite.md"} {
		for _, m := range sqliteLine.FindAllStringSubmatch(document(s.t, name), -1) {
			tried++
			if _, err := db.Exec(m[1]); err != nil {
				s.t.Errorf("%s shows a query that fails: %s: %v", name, m[1], err)
			}
		}
	}
	if tried < 5 {
		s.t.Errorf("only %d queries were found", tried)
	}
}
