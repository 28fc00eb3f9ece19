package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain lets the test program be the processes that are supervised.
func TestMain(m *testing.M) {
	if role := os.Getenv("CLI_TEST_ROLE"); role != "" {
		actors[role]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var actors = map[string]func(){
	"wait": func() { // ends on SIGTERM
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		fmt.Println("up", os.Getpid())
		<-stop
		fmt.Println("down")
	},
	"stubborn": func() { // does not
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("up", os.Getpid())
		select {}
	},
	"parent": func() { // leaves a child of its own behind
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "CLI_TEST_ROLE=stubborn")
		c.Stdout = os.Stdout
		if err := c.Start(); err != nil {
			panic(err)
		}
		_ = c.Wait()
	},
	"wrong": func() { fmt.Println("bad flag"); os.Exit(2) },
	"supervisor": func() {
		s := Supervisor{Output: os.Stdout, Logger: slog.New(slog.DiscardHandler)}
		_ = s.Run(context.Background(), func() {}, actor("one", "stubborn"), actor("two", "parent"))
	},
}

func actor(name, role string) Process {
	return Process{Name: name, Path: os.Args[0], Env: []string{"CLI_TEST_ROLE=" + role}, Grace: 200 * time.Millisecond}
}

// A transcript is what supervised processes print, line by line.
type transcript struct {
	*bufio.Scanner
	w *io.PipeWriter

	mu  sync.Mutex
	all bytes.Buffer
}

func newTranscript(t *testing.T) *transcript {
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close(); r.Close() })
	return &transcript{Scanner: bufio.NewScanner(r), w: w}
}

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.all.Write(b)
	t.mu.Unlock()
	return t.w.Write(b)
}

// next returns the pid of the next process that says that it is up.
func next(t *testing.T, lines *bufio.Scanner) (name string, pid int) {
	t.Helper()
	for lines.Scan() {
		f := strings.Fields(strings.ReplaceAll(lines.Text(), "│", " "))
		if len(f) == 3 && f[1] == "up" {
			pid, err := strconv.Atoi(f[2])
			if err != nil {
				t.Fatal(err)
			}
			return f[0], pid
		}
	}
	t.Fatalf("no process came up: %v", lines.Err())
	return "", 0
}

// gone waits until a process has ended, which may have happened before.
func gone(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000)
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			t.Errorf("process %d is still there (%v)", pid, err)
		}
		return
	}
}

func supervise(t *testing.T, processes ...Process) (out *transcript, stop func(), ended <-chan error) {
	t.Helper()
	out = newTranscript(t)
	s := Supervisor{Output: out, Logger: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, func() {}, processes...); out.w.Close() }()
	return out, cancel, done
}

func TestWhoDiesIsStartedAgain(t *testing.T) {
	out, stop, ended := supervise(t, actor("one", "wait"))
	_, first := next(t, out.Scanner)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_, second := next(t, out.Scanner)
	if first == second {
		t.Errorf("process %d came up twice", first)
	}
	go func() {
		for out.Scan() {
		}
	}()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("a run that was stopped returned %v", err)
	}
	gone(t, second)
}

func TestTheLastIsStoppedFirst(t *testing.T) {
	ready := func(out *transcript) func(context.Context) error {
		return func(context.Context) error { next(t, out.Scanner); return nil }
	}
	out := newTranscript(t)
	a, b := actor("first", "wait"), actor("second", "wait")
	a.Grace, b.Grace = 10*time.Second, 10*time.Second
	a.Ready, b.Ready = ready(out), ready(out)
	s := Supervisor{Output: out, Logger: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	up := func() {
		go func() {
			for out.Scan() {
			}
		}()
		cancel()
	}
	if err := s.Run(ctx, up, a, b); err != nil {
		t.Fatal(err)
	}
	text := out.all.String()
	if i, j := strings.Index(text, "second      │ down"), strings.Index(text, "first       │ down"); i < 0 || j < i {
		t.Errorf("want second down, then first:\n%s", text)
	}
}

func TestWhoDoesNotEndIsKilledWithAllItStarted(t *testing.T) {
	out, stop, ended := supervise(t, actor("one", "parent"), actor("two", "stubborn"))
	pids := map[string]int{}
	for len(pids) < 2 {
		name, pid := next(t, out.Scanner)
		pids[name] = pid
	}
	go func() {
		for out.Scan() {
		}
	}()
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	gone(t, pids["one"])
	gone(t, pids["two"])
}

func TestWrongArgumentsEndTheRun(t *testing.T) {
	out, stop, ended := supervise(t, actor("one", "wait"), actor("two", "wrong"))
	defer stop()
	pids := make(chan int, 1)
	go func() {
		defer close(pids)
		for out.Scan() { // the other may be ended before it says that it is up
			if f := strings.Fields(strings.ReplaceAll(out.Text(), "│", " ")); len(f) == 3 && f[1] == "up" {
				if pid, err := strconv.Atoi(f[2]); err == nil {
					pids <- pid
				}
			}
		}
	}()
	err := <-ended
	if err == nil || !strings.Contains(err.Error(), "two cannot run: exit status 2") {
		t.Errorf("the run ended with %v", err)
	}
	out.w.Close()
	for pid := range pids {
		gone(t, pid)
	}
}

func TestAProgramThatIsMissingEndsTheRun(t *testing.T) {
	_, stop, ended := supervise(t, Process{Name: "none", Path: "/nonexistent/program"})
	defer stop()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "none cannot run") {
		t.Errorf("the run ended with %v", err)
	}
}

// TestNothingOutlivesTheSupervisor kills one in a way that it cannot see.
func TestNothingOutlivesTheSupervisor(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CLI_TEST_ROLE=supervisor")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	pids := map[string]int{}
	for len(pids) < 2 {
		name, pid := next(t, lines)
		pids[name] = pid
	}
	children := []int{pids["one"], parentOf(t, pids["two"])}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range children {
		gone(t, pid)
	}
	// What a child starts is its own affair; here nobody else ends it.
	_ = syscall.Kill(pids["two"], syscall.SIGKILL)
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	ppid, err := strconv.Atoi(strings.Fields(rest)[1])
	if err != nil {
		t.Fatal(err)
	}
	return ppid
}
