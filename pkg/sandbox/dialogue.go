package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"correx/pkg/tools"
)

var _ tools.Starter = (*Runner)(nil)

// Start implements tools.Starter. The process is confined as one that Run
// starts, and dies with ctx, with its time-out if it has one, and with the worker.
func (r *Runner) Start(ctx context.Context, c tools.Command) (tools.Dialogue, error) {
	if len(c.Argv) == 0 || c.Timeout < 0 {
		return nil, errors.New("start process: argv is missing, or the time-out is negative")
	}
	began := time.Now()
	p, err := r.start(c, true)
	if err != nil {
		return nil, fmt.Errorf("start process: %w", err)
	}
	ctx, kill := context.WithCancel(ctx)
	d := &dialogue{in: p.stdin, out: p.spoken, kill: kill, done: make(chan struct{})}
	go func() {
		defer close(d.done)
		defer kill()
		d.exit, d.err = p.finish(ctx, c.Timeout)
		d.exit.Duration, d.exit.Isolation = time.Since(began), r.Isolation()
	}()
	return d, nil
}

// A dialogue is a process whose standard input and output are the caller's.
type dialogue struct {
	in, out *os.File
	kill    context.CancelFunc
	done    chan struct{}
	exit    tools.Exit // valid when done is closed, and so is err
	err     error
	closing sync.Once
	closed  error
}

// Read implements io.Reader. What the process printed before it died can still
// be read then.
func (d *dialogue) Read(b []byte) (int, error) { return d.out.Read(b) }

// Write implements io.Writer.
func (d *dialogue) Write(b []byte) (int, error) { return d.in.Write(b) }

// CloseWrite implements tools.Dialogue.
func (d *dialogue) CloseWrite() error { return d.in.Close() }

// Close implements tools.Dialogue. Its error is that of a process that could not
// be started.
func (d *dialogue) Close() error {
	d.closing.Do(func() {
		d.kill()
		<-d.done
		_ = d.in.Close() // twice, if CloseWrite was called
		d.closed = errors.Join(d.err, d.out.Close())
	})
	return d.closed
}

// Done implements tools.Dialogue.
func (d *dialogue) Done() <-chan struct{} { return d.done }

// Exit implements tools.Dialogue.
func (d *dialogue) Exit() tools.Exit {
	select {
	case <-d.done:
		return d.exit
	default:
		return tools.Exit{Code: -1}
	}
}
