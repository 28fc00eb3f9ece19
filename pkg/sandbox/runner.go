package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"correx/pkg/events"
	"correx/pkg/tools"
)

const (
	// grace is how long after its deadline a stage may take to kill its tree.
	grace = 5 * time.Second
	// drainWait is how long the output is awaited when the tree is dead; only a
	// process that got away can hold it open.
	drainWait = 250 * time.Millisecond
)

// A Runner starts processes, each below a stage of its own (see [Stage]). It is
// the one place where a tool's process is started and confined.
type Runner struct{ o RunnerOptions }

// RunnerOptions are what a Runner can do without.
type RunnerOptions struct {
	Limits Limits
}

// NewRunner fails in a program that does not call [Stage].
func NewRunner(o RunnerOptions) (*Runner, error) {
	if !stageKnown {
		return nil, errors.New("make runner: this program does not call sandbox.Stage at the start of main, and so cannot watch over a process")
	}
	o.Limits = withDefaults(o.Limits)
	return &Runner{o: o}, nil
}

// Isolation implements tools.Runner.
func (*Runner) Isolation() events.Isolation { return events.IsolationNone }

// Run implements tools.Runner.
func (r *Runner) Run(ctx context.Context, c tools.Command) (tools.Exit, error) {
	if len(c.Argv) == 0 || c.Timeout <= 0 {
		return tools.Exit{}, errors.New("start process: argv or time-out is missing")
	}
	began := time.Now()
	p, err := r.start(c, false)
	if err != nil {
		return tools.Exit{}, fmt.Errorf("start process: %w", err)
	}
	exit, err := p.finish(ctx, c.Timeout)
	exit.Duration, exit.Isolation = time.Since(began), r.Isolation()
	return exit, err
}

// A process is a stage at work.
type process struct {
	cmd            *exec.Cmd
	control        *os.File
	status         *os.File
	stdin          *os.File // of a dialogue, and so is spoken
	spoken         *os.File // its standard output, which is not captured then
	stdout, stderr *stream
	full           chan struct{} // a stream ran over
}

// start starts a stage and gives it its order. With talk the caller has the
// standard input and output of the process.
func (r *Runner) start(c tools.Command, talk bool) (*process, error) {
	var pipes pipeSet
	defer pipes.closeTheirs()
	stdout, stderr, control, status := pipes.out(), pipes.out(), pipes.in(), pipes.out()
	var stdin pipe
	if talk {
		stdin = pipes.in()
	}
	if pipes.err != nil {
		pipes.closeOurs()
		return nil, pipes.err
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{stageName}, Env: []string{}, Dir: "/",
		Stdout: stdout.theirs, Stderr: stderr.theirs, ExtraFiles: []*os.File{control.theirs, status.theirs},
		// A session of its own: Ctrl-C is for the worker to hear, and the group
		// can be killed by the stage's number if the stage itself is killed.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if talk {
		cmd.Stdin = stdin.theirs
	}
	if err := cmd.Start(); err != nil {
		pipes.closeOurs()
		return nil, err
	}
	p := &process{cmd: cmd, control: control.ours, status: status.ours, full: make(chan struct{}, 2)}
	p.stderr = newStream(stderr.ours, p.full)
	if talk {
		p.stdin, p.spoken = stdin.ours, stdout.ours
	} else {
		p.stdout = newStream(stdout.ours, p.full)
	}
	o := order{Path: c.Path, Argv: c.Argv, Env: c.Env, Dir: c.Dir, Timeout: c.Timeout, Limits: r.o.Limits}
	if err := json.NewEncoder(p.control).Encode(o); err != nil && !errors.Is(err, unix.EPIPE) {
		p.control.Close() // the stage ends without an order, and says so
	}
	return p, nil
}

// finish returns when the stage and all below it is gone. Without a time-out that
// is when the process ends, or ctx.
func (p *process) finish(ctx context.Context, timeout time.Duration) (tools.Exit, error) {
	reports := make(chan []status, 1)
	go func() { reports <- readStatus(p.status) }()
	dead := make(chan error, 1)
	go func() { dead <- p.wait() }()

	var exit tools.Exit
	var lost <-chan time.Time
	if timeout > 0 {
		lost = time.After(timeout + grace)
	}
	letGo := ctx.Done()
	full := p.full
	for alive := true; alive; {
		select {
		case <-dead: // how it ended is in its reports
			alive = false
		case <-letGo:
			exit.Cancelled, letGo = true, nil
			p.control.Close()
			lost = time.After(grace)
		case <-full:
			exit.Overflowed, full = true, nil
			p.control.Close()
			lost = time.After(grace)
		case <-lost: // it was stopped, or cannot die
			_ = p.cmd.Process.Kill()
		}
	}
	p.control.Close()
	if p.stdout != nil {
		exit.Stdout = p.stdout.finish()
	}
	exit.Stderr = p.stderr.finish()
	_ = p.status.SetReadDeadline(time.Now().Add(drainWait))
	err := conclude(&exit, <-reports, p.cmd.ProcessState)
	p.status.Close()
	return exit, err
}

// wait waits for the stage. Before its number is given up it kills what is left of
// its group: nothing, unless the stage was killed.
func (p *process) wait() error {
	pid := p.cmd.Process.Pid
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	_ = unix.Kill(-pid, unix.SIGKILL)
	return p.cmd.Wait()
}

func readStatus(f *os.File) []status {
	var all []status
	dec := json.NewDecoder(f)
	for {
		var s status
		if dec.Decode(&s) != nil {
			return all
		}
		all = append(all, s)
	}
}

// conclude takes over what the stage reported. A stage that ends without a last
// report was killed; the program and its group died with it.
func conclude(exit *tools.Exit, reports []status, stage *os.ProcessState) error {
	exit.Code = -1
	var last status
	if len(reports) > 0 {
		last = reports[len(reports)-1]
	}
	switch {
	case last.Errno != 0:
		return syscall.Errno(last.Errno)
	case last.Error != "":
		return errors.New(last.Error)
	case !last.Ended && stage != nil && stage.Sys().(syscall.WaitStatus).Signaled():
		exit.Lost = true
		return nil
	case !last.Ended:
		return fmt.Errorf("the stage ended without a word: %v", stage)
	}
	exit.Code, exit.TimedOut = last.Code, last.TimedOut
	if last.Signal != 0 {
		exit.Signal = syscall.Signal(last.Signal).String()
	}
	if !last.TimedOut && last.Signal == 0 {
		exit.Cancelled, exit.Overflowed = false, exit.Overflowed && last.Code != 0 // it was done before it was stopped
	}
	return nil
}

// A pipe has an end for the worker and one for the stage.
type pipe struct{ ours, theirs *os.File }

// A pipeSet makes pipes and remembers them and the first error.
type pipeSet struct {
	all []pipe
	err error
}

// out makes a pipe that the stage writes; in one that it reads.
func (s *pipeSet) out() pipe { return s.make(false) }
func (s *pipeSet) in() pipe  { return s.make(true) }

func (s *pipeSet) make(reads bool) pipe {
	r, w, err := os.Pipe()
	if err != nil {
		s.err = errors.Join(s.err, err)
		return pipe{}
	}
	p := pipe{ours: r, theirs: w}
	if reads {
		p = pipe{ours: w, theirs: r}
	}
	s.all = append(s.all, p)
	return p
}

func (s *pipeSet) closeTheirs() {
	for _, p := range s.all {
		p.theirs.Close()
	}
}

func (s *pipeSet) closeOurs() {
	for _, p := range s.all {
		p.ours.Close()
	}
}
