package escape

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"correx/pkg/tools"
)

// A worker is a worker process, as the test holds it.
type worker struct {
	cmd    *exec.Cmd
	hello  hello
	tty    string
	master *os.File
	in     *json.Encoder
	mu     sync.Mutex
	next   int
	asked  map[int]chan outcome
	gone   chan struct{}
	files  []*os.File
}

// start hires a worker for the role: a session with a terminal, whose working
// directory and one descriptor are outside, and whose environment is poisoned.
func (r *role) start() {
	t := r.t
	t.Helper()
	w := &worker{asked: map[int]chan outcome{}, gone: make(chan struct{})}
	var slave *os.File
	w.master, slave, w.tty = terminal(t)
	r.own(t, w.tty)
	leaked, err := os.Open(filepath.Join(r.top, "leaked"))
	if err != nil {
		t.Fatal(err)
	}
	w.cmd = &exec.Cmd{
		Path: r.program, Args: []string{workerName}, Dir: leaked.Name(),
		Env:         []string{"HOME=" + r.home, "PATH=" + tools.SearchPath, "WORKER_TOKEN=" + r.secret, "USER=" + r.name},
		Stderr:      os.Stderr,
		ExtraFiles:  []*os.File{leaked, slave},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 4, Credential: r.credential()},
	}
	in, err := w.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	leaked.Close()
	w.files = []*os.File{slave, w.master}
	r.worker, w.in = w, json.NewEncoder(in)
	answers := json.NewDecoder(out)
	if err := w.in.Encode(greeting{Secret: r.secret, Home: r.home, State: r.state, Env: r.poison()}); err != nil {
		t.Fatal(err)
	}
	if err := answers.Decode(&w.hello); err != nil {
		t.Fatal("the worker does not start: ", err)
	}
	go w.read(answers)
	t.Cleanup(func() { r.worker.fire() })
}

// read hands out the answers, until the worker is gone.
func (w *worker) read(answers *json.Decoder) {
	defer close(w.gone)
	for {
		var o outcome
		if answers.Decode(&o) != nil {
			return
		}
		w.mu.Lock()
		answer := w.asked[o.ID]
		delete(w.asked, o.ID)
		w.mu.Unlock()
		answer <- o
	}
}

// fire ends the worker.
func (w *worker) fire() {
	_ = w.cmd.Process.Kill() // it may have died of an attempt
	<-w.gone
	_ = w.cmd.Wait()
	for _, f := range w.files {
		f.Close()
	}
}

// run has the worker run something. A worker that died meanwhile is replaced.
func (r *role) run(t testing.TB, l level, c tools.Command) outcome {
	t.Helper()
	w := r.worker
	answer := make(chan outcome, 1)
	w.mu.Lock()
	w.next++
	id := w.next
	w.asked[id] = answer
	err := w.in.Encode(request{ID: id, Level: l, Command: c})
	w.mu.Unlock()
	if err != nil {
		t.Fatal("the worker takes no work: ", err)
	}
	stopped := false
	patience := time.After(c.Timeout + 30*time.Second)
	for {
		select {
		case o := <-answer:
			o.stopped = stopped
			return o
		case <-w.gone:
			w.fire()
			r.start()
			return outcome{Error: "the worker died"}
		case <-time.After(200 * time.Millisecond):
			if isStopped(w.hello.PID) {
				stopped = true
				_ = unix.Kill(w.hello.PID, unix.SIGCONT)
			}
		case <-patience:
			t.Fatalf("the worker does not answer; %s", content(fmt.Sprintf("/proc/%d/status", w.hello.PID)))
		}
	}
}

// isStopped tells whether a process is stopped.
func isStopped(pid int) bool {
	_, state, _ := strings.Cut(content(fmt.Sprintf("/proc/%d/stat", pid)), ") ")
	return strings.HasPrefix(state, "T")
}

// terminal makes a pseudo-terminal. Its slave is no terminal of the tests.
func terminal(t testing.TB) (master, slave *os.File, name string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	name = fmt.Sprintf("/dev/pts/%d", n)
	if slave, err = os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return master, slave, name
}
