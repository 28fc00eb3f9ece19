package llama

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Defaults of a [Launcher].
const (
	DefaultStallTimeout = 30 * time.Second
	DefaultLoadTimeout  = 10 * time.Minute
	DefaultStopGrace    = 5 * time.Second
)

// portTries is how often a port is chosen before a load fails: another program
// may take one between the choice and the server's bind.
const portTries = 5

// A Launcher starts llama-servers. Its zero durations mean the defaults.
type Launcher struct {
	Executable   string        // path, or a name on PATH; may be a script that execs it
	PIDFile      string        // names the child while it lives; empty: none
	StallTimeout time.Duration // without a sign of life while loading
	LoadTimeout  time.Duration // of a whole load
	StopGrace    time.Duration // from SIGTERM to SIGKILL

	log   *logFile               // nil: nowhere
	port  func() (string, error) // nil: freePort
	flags flagCache
}

// Launch starts a server with d and returns when it is up, is ours, and has
// answered a probe. On an error, which is a *LoadError or of ctx, nothing is
// left running.
func (l *Launcher) Launch(ctx context.Context, d Descriptor) (*Process, error) {
	d = d.withDefaults()
	ctx, cancel := context.WithTimeoutCause(ctx, orDefault(l.LoadTimeout, DefaultLoadTimeout), errTooLong)
	defer cancel()
	exe, args, err := l.prepare(ctx, d)
	if err != nil {
		return nil, &LoadError{Model: d.ModelID, Reason: err.Error(), Err: err}
	}
	for try := 1; ; try++ {
		p, err := l.once(ctx, d, exe, args)
		if err == nil {
			return p, nil
		}
		if try < portTries && p != nil && (portTaken(p) || errors.Is(err, errForeign)) {
			continue
		}
		failed := &LoadError{Model: d.ModelID, Reason: err.Error(), Err: err}
		if p != nil {
			failed.Log = p.Tail(crashLines)
		}
		return nil, failed
	}
}

// prepare finds what is needed before anything runs.
func (l *Launcher) prepare(ctx context.Context, d Descriptor) (exe string, args []string, err error) {
	if err := d.Validate(); err != nil {
		return "", nil, err
	}
	_, remote := d.repo()
	if !remote {
		if _, err := os.Stat(d.Path); err != nil {
			return "", nil, fmt.Errorf("open model file: %w", err)
		}
	}
	if exe, err = exec.LookPath(orDefault(l.Executable, "llama-server")); err != nil {
		return "", nil, fmt.Errorf("find llama-server: %w", err)
	}
	flags, err := l.flags.of(ctx, exe)
	if err != nil {
		return "", nil, err
	}
	args = append(d.flags(), flags.optional()...)
	if !remote && flags["--offline"] {
		args = append(args, "--offline")
	}
	args = append(args, threads(runtime.NumCPU(), d.Args)...)
	return exe, append(args, d.Args...), nil
}

// threads leaves a core of a small machine to everything else, unless args say
// otherwise. llama-server's threads wait for each other all the time: with one on
// each core, any other work on the machine halts them all. On two cores with a
// load of 10, a model of 135M made 3 to 11 tokens a second with two threads, and
// 38 to 50 with one.
func threads(cores int, args []string) []string {
	for _, a := range args {
		if name, _, _ := strings.Cut(a, "="); name == "-t" || name == "--threads" {
			return nil
		}
	}
	if cores < 2 || cores > 4 {
		return nil
	}
	return []string{"--threads", strconv.Itoa(cores - 1)}
}

// once makes one attempt. The process is returned with an error too, dead, for
// its log.
func (l *Launcher) once(ctx context.Context, d Descriptor, exe string, args []string) (*Process, error) {
	choose := freePort
	if l.port != nil {
		choose = l.port
	}
	port, err := choose()
	if err != nil {
		return nil, err
	}
	key := rand.Text()
	log := l.log
	if log == nil {
		log = &logFile{}
	}
	p := &Process{
		Descriptor: d, log: newLogRing(log), done: make(chan struct{}),
		grace:  orDefault(l.StopGrace, DefaultStopGrace),
		client: NewClient(d.ModelID, "http://127.0.0.1:"+port, key, nil),
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	cmd := exec.Command(exe, append(args, "--host", "127.0.0.1", "--port", port)...)
	cmd.Env = environment(key)
	begun := time.Now()
	if err := p.start(cmd, l.PIDFile); err != nil {
		return nil, fmt.Errorf("start %s: %w", exe, err)
	}
	if err := p.comeUp(ctx, orDefault(l.StallTimeout, DefaultStallTimeout)); err != nil {
		p.Stop(err)
		return p, err
	}
	p.Latency = time.Since(begun)
	return p, nil
}

// freePort lets the system choose a port of loopback.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("choose a port for llama-server: %w", err)
	}
	defer ln.Close()
	return strconv.Itoa(ln.Addr().(*net.TCPAddr).Port), nil
}

// portTaken reports whether a dead server could not have its port.
func portTaken(p *Process) bool {
	if p.Exit().Code != 1 {
		return false
	}
	for _, line := range p.Tail(ringLines) {
		if strings.Contains(line, "bind") || strings.Contains(line, "address already in use") {
			return true
		}
	}
	return false
}

var (
	errTooLong = errors.New("it took longer than a whole load may take")
	errForeign = errors.New("another server answers on its port")
)
