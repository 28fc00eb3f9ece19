package escape

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"correx/pkg/tools"
)

// A site is where one attempt takes place. All of it belongs to the one who makes
// the attempt, so that only the sandbox stands between.
type site struct {
	Work    string // may be written
	Own     string // the invocation's directory, may be written
	Outside string // may not, nor what follows
	Leaked  string // a descriptor of it the worker has, not to be inherited
	Home    string // the worker's
	State   string // the worker's directory, with other invocations
	Bin     string // this program
	TTY     string // the worker's
	Worker  int    // its process
	Address uintptr
	Length  int
	Victim  int    // a process outside
	Mark    string // in the environment of all that the attempt starts
	More    map[string]string

	secret  string
	shared  []byte // memory that the test shares
	role    *role
	network string // on which somebody outside listens
	reader  int    // of a named pipe outside
	heard   <-chan string
	ended   <-chan struct{} // closed when the victim has ended
	level   level
}

const untouched = "untouched"

func (s *site) victim() string { return filepath.Join(s.Outside, "victim.txt") }

// newSite makes the directories of one attempt anew.
func (r *role) newSite(t testing.TB, l level) *site {
	t.Helper()
	r.count++
	id := fmt.Sprintf("t%d", r.count)
	s := &site{
		Work: filepath.Join(r.top, id, "work"), Outside: filepath.Join(r.top, id, "outside"), Leaked: filepath.Join(r.top, "leaked"),
		Own: filepath.Join(r.state, "sandbox", "s1", id), Home: r.home, State: r.state,
		Bin: r.attacker, TTY: r.worker.tty, Worker: r.worker.hello.PID, Address: r.worker.hello.Address, Length: r.worker.hello.Length,
		Mark: fmt.Sprintf("correx-escape-%d-%s-%s", os.Getpid(), r.name, id), More: map[string]string{},
		secret: r.secret, role: r, level: l,
	}
	for _, dir := range []string{s.Work, s.Outside, s.Own, s.Leaked} {
		r.mkdir(t, dir)
	}
	s.put(t, s.victim(), untouched)
	s.put(t, filepath.Join(s.Leaked, "victim.txt"), untouched)
	t.Cleanup(func() {
		kill(s.survivors())
		for _, dir := range []string{s.Own, filepath.Dir(s.Work)} {
			if err := os.RemoveAll(dir); err != nil {
				t.Errorf("clean up: %v", err)
			}
		}
	})
	return s
}

// put writes a file that belongs to the role.
func (s *site) put(t testing.TB, path, text string) {
	t.Helper()
	s.role.mkdir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s.role.own(t, path)
}

// content is what a file has, seen from outside.
func content(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// changedVictim looks whether the file outside is as it was.
func changedVictim(_ testing.TB, s *site, _ outcome) bool { return content(s.victim()) != untouched }

// appears is for attempts that make a file outside.
func appears(path func(s *site) string) func(testing.TB, *site, outcome) bool {
	return func(_ testing.TB, s *site, _ outcome) bool { return exists(path(s)) }
}

func planted(s *site) string { return filepath.Join(s.Outside, "planted") }

// command is what the attempt runs.
func (s *site) command(t testing.TB, a attempt) tools.Command {
	t.Helper()
	c := tools.Command{
		Dir: s.Work, Timeout: 20 * time.Second, Writable: []string{s.Work, s.Own},
		Env: []string{"PATH=" + tools.SearchPath, "HOME=" + s.Own, "TMPDIR=" + s.Own, "LANG=C.UTF-8", "MARK=" + s.Mark},
	}
	switch {
	case a.inside != nil:
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		c.Path, c.Argv = s.Bin, []string{attackerName, a.name, string(text)}
	case a.program != nil:
		c.Path = a.program(s)
		c.Argv = []string{filepath.Base(c.Path), s.Mark}
	default:
		c.Path, c.Argv = "/bin/sh", []string{"sh", "-c", a.script}
		for name, value := range map[string]string{"WORK": s.Work, "OUTSIDE": s.Outside, "WORKER_HOME": s.Home, "STATE": s.State} {
			c.Env = append(c.Env, name+"="+value)
		}
	}
	if a.command != nil {
		a.command(&c, s)
	}
	return c
}

// startVictim starts a process outside that belongs to the role.
func startVictim(t testing.TB, s *site) {
	t.Helper()
	victim := s.copyOf(t, "/bin/sleep", filepath.Join(s.Outside, "victim"))
	cmd := exec.Command(victim, "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.role.credential()}
	cmd.Dir = s.Outside
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // killed, by the attempt or below
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	s.Victim, s.ended = cmd.Process.Pid, ended
}

// victimDied looks whether the process outside has ended. An attempt that says
// that it killed it is given time for that.
func victimDied(_ testing.TB, s *site, o outcome) bool {
	wait := time.Duration(0)
	if o.did() {
		wait = 2 * time.Second
	}
	select {
	case <-s.ended:
		return true
	case <-time.After(wait):
		return false
	}
}

// copyOf copies a program to where the role may change it.
func (s *site) copyOf(t testing.TB, program, to string) string {
	t.Helper()
	copyFile(t, program, to)
	s.role.own(t, to)
	return to
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeProgram(t, to, b)
}

// writeProgram writes a file to be run. No process is started meanwhile, which
// would inherit the descriptor, and make the file busy.
func writeProgram(t testing.TB, path string, b []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
}
