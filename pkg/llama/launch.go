package llama

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
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
	Socket       string        // path of the Unix socket to listen on, where that works; empty: a port of loopback
	StallTimeout time.Duration // without a sign of life while loading
	LoadTimeout  time.Duration // of a whole load
	StopGrace    time.Duration // from SIGTERM to SIGKILL

	log   *logFile               // nil: nowhere
	port  func() (string, error) // nil: freePort
	flags flagCache

	noSocket atomic.Bool // Unix sockets do not work here
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
		if try < portTries && p != nil && ctx.Err() == nil && (portTaken(p) || errors.Is(err, errForeign)) {
			l.noSocket.Store(true)
			continue
		}
		failed := &LoadError{Model: d.ModelID, Reason: err.Error(), Err: err, ran: p != nil}
		if p != nil {
			failed.Log, failed.OutOfMemory = p.Tail(crashLines), p.OutOfMemory()
		}
		return nil, failed
	}
}

// prepare finds what is needed before anything runs.
func (l *Launcher) prepare(ctx context.Context, d Descriptor) (exe string, args []string, err error) {
	if err := d.Validate(); err != nil {
		return "", nil, err
	}
	if !d.remote() {
		if _, err := os.Stat(d.Path); err != nil {
			return "", nil, fmt.Errorf("open model file: %w", err)
		}
	}
	if exe, err = exec.LookPath(orDefault(l.Executable, defaultExecutable)); err != nil {
		return "", nil, fmt.Errorf("find llama-server: %w", err)
	}
	flags, err := l.flags.of(ctx, exe)
	if err != nil {
		return "", nil, err
	}
	if err := flags.check(d.Args); err != nil {
		return "", nil, err
	}
	if !flags[sockets] {
		l.noSocket.Store(true)
	}
	args = append(d.flags(), flags.optional(d)...)
	return exe, append(args, d.Args...), nil
}

// once makes one attempt. The process is returned with an error too, dead, for
// its log.
func (l *Launcher) once(ctx context.Context, d Descriptor, exe string, args []string) (*Process, error) {
	at, err := l.listen()
	if err != nil {
		return nil, err
	}
	key := rand.Text()
	log := l.log
	if log == nil {
		log = &logFile{}
	}
	p := &Process{
		Descriptor: d, log: newLogRing(log, key), done: make(chan struct{}),
		grace:  orDefault(l.StopGrace, DefaultStopGrace),
		socket: at.socket, oomKills: oomKills(),
	}
	p.client = at.client(d.ModelID, key, p)
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	cmd := exec.Command(exe, append(args, at.args...)...)
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

var (
	errTooLong = errors.New("it took longer than a whole load may take")
	errForeign = errors.New("another server answers on its port")
)
