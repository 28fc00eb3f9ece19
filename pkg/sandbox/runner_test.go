package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"correx/pkg/events"
	"correx/pkg/tools"
)

func newRunner(t testing.TB) *Runner { t.Helper(); return newRunnerAt(t, "") }

func newRunnerAt(t testing.TB, level events.Isolation) *Runner {
	t.Helper()
	r, err := NewRunner(RunnerOptions{Level: level})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// script is a command that runs a shell script in dir. What it starts as "sleep
// $MARK" can be found by alive.
func script(dir, text string, timeout time.Duration) tools.Command {
	return tools.Command{Path: "/bin/sh", Argv: []string{"sh", "-c", text}, Env: []string{"PATH=" + tools.SearchPath, mark()}, Dir: dir, Timeout: timeout, Writable: []string{dir}}
}

var marks atomic.Int64

func mark() string { return fmt.Sprintf("MARK=600.%d%06d", os.Getpid(), marks.Add(1)) }

// alive are the processes of a script that sleep, whatever they did to get away.
// In there they have other numbers.
func alive(t *testing.T, env []string) (pids []int) {
	t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	want := "sleep\x00" + strings.TrimPrefix(env[1], "MARK=") + "\x00"
	for _, e := range all {
		if text, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil && string(text) == want {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

func pidIn(t *testing.T, path string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(content(path)))
	if err != nil || pid <= 1 {
		t.Fatalf("no process id in %s: %q", path, content(path))
	}
	return pid
}

// A daemon leaves its session, its group and its parents, and holds the output.
const daemon = `setsid sh -c 'setsid sh -c "echo \$\$ > pid.tmp; mv pid.tmp pid; exec sleep $MARK" & exit 0' ; while ! test -e pid; do :; done; `

func TestRunnerKillsTheWholeTree(t *testing.T) {
	r := newRunner(t)
	for name, c := range map[string]struct {
		text    string
		timeout time.Duration
		check   func(tools.Exit) bool
	}{
		"at the deadline":          {daemon + "sleep $MARK", 300 * time.Millisecond, func(e tools.Exit) bool { return e.TimedOut && e.Signal == "killed" && e.Code == -1 }},
		"at its own end":           {daemon + "exit 3", time.Minute, func(e tools.Exit) bool { return e.Code == 3 && !e.TimedOut }},
		"when it dies of a signal": {daemon + "kill -TERM $$", time.Minute, func(e tools.Exit) bool { return e.Signal == "terminated" }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			began := time.Now()
			cmd := script(dir, c.text, c.timeout)
			exit, err := r.Run(background, cmd)
			if err != nil || !c.check(exit) {
				t.Fatalf("%+v, %v", exit, err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Fatalf("it took %s", took)
			}
			if left := alive(t, cmd.Env); len(left) > 0 || content(filepath.Join(dir, "pid")) == absent {
				t.Fatalf("the daemon lives, or never did: %v", left)
			}
		})
	}
}

func TestRunnerCancel(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	cmd := script(dir, daemon+"mkfifo ready; echo > ready; sleep $MARK", time.Minute)
	go func() {
		for ctx.Err() == nil { // opening blocks until the script opens its end
			if f, err := os.Open(filepath.Join(dir, "ready")); err == nil {
				f.Close()
				cancel()
			}
		}
	}()
	exit, err := newRunner(t).Run(ctx, cmd)
	if err != nil || !exit.Cancelled || exit.TimedOut {
		t.Fatalf("%+v, %v", exit, err)
	}
	if left := alive(t, cmd.Env); len(left) > 0 || content(filepath.Join(dir, "pid")) == absent {
		t.Fatalf("the daemon lives, or never did: %v", left)
	}
}

func TestRunnerOverflow(t *testing.T) {
	exit, err := newRunner(t).Run(background, script(t.TempDir(), "yes", time.Minute))
	if err != nil || !exit.Overflowed || exit.Stdout.Total <= streamFull {
		t.Fatalf("%v, %d bytes, %v", exit.Overflowed, exit.Stdout.Total, err)
	}
	if len(exit.Stdout.Head) != keepHead || len(exit.Stdout.Tail) != keepTail {
		t.Fatalf("kept %d and %d", len(exit.Stdout.Head), len(exit.Stdout.Tail))
	}
}

func TestRunnerCountsOutput(t *testing.T) {
	exit, err := newRunner(t).Run(background, script(t.TempDir(), "head -c 200000 /dev/zero; printf end; printf e >&2", time.Minute))
	if err != nil || exit.Stdout.Total != 200003 || string(exit.Stdout.Tail[keepTail-3:]) != "end" || string(exit.Stderr.Head) != "e" {
		t.Fatalf("%d bytes, %v", exit.Stdout.Total, err)
	}
}

// TestRunnerStageKilled has the program kill the stage that watches over it.
func TestRunnerStageKilled(t *testing.T) {
	dir := t.TempDir()
	began := time.Now()
	text := "sleep 600 & echo $! > child; echo $$ > pid; kill -KILL $PPID; sleep 600"
	r := newRunnerAt(t, events.IsolationNone) // in a namespace it cannot even see it
	exit, err := r.Run(background, script(dir, text, time.Minute))
	if err != nil || !exit.Lost || exit.Code != -1 {
		t.Fatalf("%+v, %v", exit, err)
	}
	for _, name := range []string{"pid", "child"} {
		awaitDeath(t, pidIn(t, filepath.Join(dir, name)))
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Fatalf("it took %s", took)
	}
}

func TestRunnerStartFails(t *testing.T) {
	dir := t.TempDir()
	c := script(dir, "", time.Minute)
	c.Path = filepath.Join(dir, "nothing")
	if _, err := newRunner(t).Run(background, c); !errors.Is(err, syscall.ENOENT) {
		t.Fatalf("got %v", err)
	}
	c = script(filepath.Join(dir, "nowhere"), "", time.Minute)
	if _, err := newRunner(t).Run(background, c); !errors.Is(err, syscall.ENOENT) {
		t.Fatalf("got %v", err)
	}
}

func TestRunnerGivesNothingAway(t *testing.T) {
	dir := t.TempDir()
	secret, err := os.Open("/etc/hostname") // a descriptor of the worker's
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	if _, err := unix.FcntlInt(secret.Fd(), unix.F_SETFD, 0); err != nil { // and one that is inherited
		t.Fatal(err)
	}
	c := script(dir, "ls /proc/self/fd; env; cat", time.Minute)
	exit, err := newRunner(t).Run(background, c)
	if err != nil || exit.Code != 0 {
		t.Fatalf("%+v, %v", exit, err)
	}
	got := string(exit.Stdout.Head)
	if want := "0\n1\n2\n3\n" + c.Env[1] + "\nPATH=" + tools.SearchPath + "\nPWD=" + dir + "\n"; got != want { // 3 is ls reading the directory
		t.Fatalf("got %q, want %q", got, want)
	}
}

// holdingWorker is a process that runs a tool and waits.
func holdingWorker() error {
	r, err := NewRunner(RunnerOptions{Level: events.Isolation(os.Getenv("CORREX_TEST_LEVEL"))})
	if err != nil {
		return err
	}
	timeout, err := time.ParseDuration(os.Getenv("CORREX_TEST_TIMEOUT"))
	if err != nil {
		return err
	}
	c := script(os.Getenv("CORREX_TEST_DIR"), daemon+"echo up > report; sleep $MARK", timeout)
	c.Env[1] = os.Getenv("CORREX_TEST_MARK")
	_, err = r.Run(background, c)
	return err
}

// TestToolsDieWithTheWorker kills a worker, and stops another for longer than its
// tool may run.
func TestToolsDieWithTheWorker(t *testing.T) {
	for name, c := range map[string]struct {
		level   events.Isolation
		signal  syscall.Signal
		timeout time.Duration
	}{
		"killed":            {events.IsolationFull, syscall.SIGKILL, time.Hour},
		"stopped":           {events.IsolationFull, syscall.SIGSTOP, 2 * time.Second},
		"killed, fs-only":   {events.IsolationFSOnly, syscall.SIGKILL, time.Hour},
		"killed, no level":  {events.IsolationNone, syscall.SIGKILL, time.Hour},
		"stopped, no level": {events.IsolationNone, syscall.SIGSTOP, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, pids := startHoldingWorker(t, c.level, c.timeout)
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			for _, pid := range pids {
				awaitDeath(t, pid)
			}
		})
	}
}

// startHoldingWorker returns a worker whose tool runs, and the processes of that.
func startHoldingWorker(t *testing.T, level events.Isolation, timeout time.Duration) (*exec.Cmd, []int) {
	t.Helper()
	dir, mark := t.TempDir(), mark()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"=worker", "CORREX_TEST_DIR="+dir, "CORREX_TEST_TIMEOUT="+timeout.String(),
		"CORREX_TEST_LEVEL="+string(level), "CORREX_TEST_MARK="+mark)
	if err := unix.Mkfifo(filepath.Join(dir, "report"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be dead already
		_ = cmd.Wait()
	})
	report, err := os.OpenFile(filepath.Join(dir, "report"), os.O_RDWR, 0) // with a writer, so as not to wait for ever
	if err != nil {
		t.Fatal(err)
	}
	defer report.Close()
	if err := report.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(report).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for { // both sleep, or are about to
		if pids := alive(t, []string{"", mark}); len(pids) == 2 {
			return cmd, pids
		} else if time.Now().After(deadline) {
			t.Fatalf("processes %v", pids)
		}
	}
}

func BenchmarkRunnerTrue(b *testing.B) {
	r := newRunner(b)
	c := tools.Command{Path: "/bin/true", Argv: []string{"true"}, Env: []string{}, Dir: "/", Timeout: time.Minute}
	for b.Loop() {
		if exit, err := r.Run(background, c); err != nil || exit.Code != 0 {
			b.Fatal(fmt.Sprint(exit, err))
		}
	}
}
