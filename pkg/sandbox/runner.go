package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"correx/pkg/events"
	"correx/pkg/sandbox/stage"
	"correx/pkg/tools"
)

const (
	// grace is how long after its deadline a stage may take to kill its tree.
	grace = 5 * time.Second
	// drainWait is how long the output is awaited when the tree is dead; only a
	// process that got away can hold it open.
	drainWait = 250 * time.Millisecond
)

// A Runner starts processes, each below a stage of its own (see package stage).
// It is the one place where a tool's process is started and confined.
type Runner struct {
	o        RunnerOptions
	level    stage.Level
	found    []string // secrets of this machine
	readable []string // what programs need of what is hidden
	self     string   // this program
}

// RunnerOptions are what a Runner can do without.
type RunnerOptions struct {
	Limits Limits
	// Level is what it should confine to; empty: the most that this machine can.
	Level events.Isolation
	// Hidden are more paths that no process sees, such as Correx's own state.
	Hidden []string
	// Protected are more paths that no process may change: names relative to each
	// writable directory, or absolute.
	Protected []string
	// Scratch is where invocations have their directories. They go away
	// afterwards, so nothing in them is protected.
	Scratch string
	// Holds is a file that remembers, over a crash, the empty directories that are
	// made where something must not be created. Empty: nothing does.
	Holds string
}

// NewRunner makes a runner, and finds out what this machine can confine.
func NewRunner(o RunnerOptions) (*Runner, error) {
	level, err := levelFor(o.Level)
	if err != nil {
		return nil, fmt.Errorf("make runner: %w", err)
	}
	o.Limits = withDefaults(o.Limits)
	return newRunnerOf(o, level)
}

func newRunnerOf(o RunnerOptions, level stage.Level) (*Runner, error) {
	r := &Runner{o: o, level: level, found: findSecrets(), readable: []string{"/sys/devices/system/cpu", "/sys/devices/system/node"}}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("make runner: find this program: %w", err)
	}
	r.self = self
	if o.Holds != "" {
		if err := sweepHolds(o.Holds); err != nil {
			return nil, fmt.Errorf("make runner: %w", err)
		}
	}
	return r, nil
}

// Isolation implements tools.Runner.
func (r *Runner) Isolation() events.Isolation { return isolations[r.level] }

// levelFor is the level that is asked for, as far as this machine reaches.
func levelFor(i events.Isolation) (stage.Level, error) {
	if i == events.IsolationNone {
		return stage.None, nil
	}
	best, err := levelOf(Look().Level)
	if err != nil || i == "" {
		return best, err
	}
	level, err := levelOf(i)
	return min(level, best), err
}

func levelOf(i events.Isolation) (stage.Level, error) {
	for level, name := range isolations {
		if name == i {
			return level, nil
		}
	}
	return stage.None, fmt.Errorf("level %q is unknown; there are full, fs-only and none", i)
}

var isolations = map[stage.Level]events.Isolation{
	stage.Full: events.IsolationFull, stage.FSOnly: events.IsolationFSOnly, stage.None: events.IsolationNone,
}

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
	held           []string      // to be released when it is dead
	group          *group        // of its processes; nil: there is none
}

// start starts a stage and gives it its order, which is made while the stage gets
// up. With talk the caller has the standard input and output of the process.
func (r *Runner) start(c tools.Command, talk bool) (*process, error) {
	var rules *os.File
	var handled uint64
	if r.level != stage.None {
		var err error
		if rules, handled, err = makeRuleset(c.Network, r.rules(c)); err != nil {
			return nil, err
		}
		defer rules.Close()
	}
	p, err := startStage(rules, talk)
	if err != nil {
		return nil, err
	}
	o, err := r.order(c, p)
	if err != nil {
		p.abandon()
		return nil, err
	}
	o.Handled = handled
	_ = p.control.SetWriteDeadline(time.Now().Add(grace)) // a long order waits for its reader
	if _, err := p.control.Write(o.Encode()); err != nil && !errors.Is(err, unix.EPIPE) {
		p.control.Close() // the stage ends without an order, and says so
	}
	return p, nil
}

func startStage(rules *os.File, talk bool) (*process, error) {
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
		Path: "/proc/self/exe", Args: []string{stage.Name}, Env: stageEnv, Dir: "/",
		Stdout: stdout.theirs, Stderr: stderr.theirs, ExtraFiles: []*os.File{control.theirs, status.theirs},
		// A session of its own: Ctrl-C is for the worker to hear, and the group
		// can be killed by the stage's number if the stage itself is killed.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if rules != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, rules)
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
	return p, nil
}

// abandon ends a stage that gets no order.
func (p *process) abandon() {
	p.control.Close()
	_ = p.cmd.Process.Kill() // it may have ended by itself
	_ = p.cmd.Wait()
	for _, s := range []*stream{p.stdout, p.stderr} {
		if s != nil {
			s.finish()
		}
	}
	for _, f := range []*os.File{p.status, p.stdin, p.spoken} {
		if f != nil {
			f.Close()
		}
	}
	p.letGo()
}

// letGo gives back what was made for the command.
func (p *process) letGo() {
	release(p.held)
	if p.group != nil {
		p.group.close()
	}
}

// finish returns when the stage and all below it is gone. Without a time-out that
// is when the process ends, or ctx.
func (p *process) finish(ctx context.Context, timeout time.Duration) (tools.Exit, error) {
	defer p.letGo()
	reports := make(chan *stage.Status, 1)
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
	if p.group != nil {
		exit.OutOfMemory = p.group.killed()
	}
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

// readStatus returns nil if there is none.
func readStatus(f *os.File) *stage.Status {
	s, err := stage.ReadStatus(f)
	if err != nil {
		return nil
	}
	return &s
}

// conclude takes over what the stage reported. A stage that ends without a
// report was killed; the program and its group died with it.
func conclude(exit *tools.Exit, s *stage.Status, process *os.ProcessState) error {
	exit.Code = -1
	switch {
	case s == nil && process != nil && process.Sys().(syscall.WaitStatus).Signaled():
		exit.Lost = true
		return nil
	case s == nil:
		return fmt.Errorf("the stage ended without a word: %v", process)
	case s.Fault != nil && exit.Cancelled:
		return nil // it was killed on its way
	case s.Fault != nil:
		return faultOf(s.Fault)
	}
	exit.Code, exit.TimedOut = s.Code, s.TimedOut
	if s.Signal != 0 {
		exit.Signal = syscall.Signal(s.Signal).String()
	}
	if !s.TimedOut && s.Signal == 0 {
		exit.Cancelled, exit.Overflowed = false, exit.Overflowed && s.Code != 0 // it was done before it was stopped
	}
	return nil
}

// faultOf makes an overlay that the kernel refuses known as such.
func faultOf(f *stage.Fault) error {
	if f.Step == stage.MountOverlay {
		return fmt.Errorf("%w: %w", tools.ErrNoOverlay, f)
	}
	return f
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
