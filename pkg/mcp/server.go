package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server is one MCP server over all its lives.
type server struct {
	config Server
	o      Options
	log    *slog.Logger
	life   context.Context // of its processes
	end    context.CancelFunc
	quit   context.Context // done when it is to end
	leave  context.CancelFunc
	once   sync.Once

	turn      chan struct{} // held by whoever uses the fields below
	link      *link         // the last; nil: there was none
	failures  int           // one after another
	notBefore time.Time     // the next start

	pins map[string]string // what was announced; fixed when offer returns

	mu      sync.Mutex
	changed map[string]error // tools that are refused
}

func newServer(c Server, o Options) *server {
	life, end := context.WithCancel(context.Background())
	quit, leave := context.WithCancel(life)
	return &server{
		config: c, o: o, log: o.Logger.With(slog.String("mcp_server", c.Name)),
		life: life, end: end, quit: quit, leave: leave,
		turn: make(chan struct{}, 1), pins: map[string]string{}, changed: map[string]error{},
	}
}

// close ends the server and waits for it.
func (s *server) close() {
	s.once.Do(func() {
		s.leave()
		s.turn <- struct{}{} // for ever: nothing is connected any more
		if s.link != nil {
			s.link.leave()
		}
		s.end()
	})
}

const (
	// settled is how long a server must live for its end to count as the first.
	settled   = 10 * time.Second
	longestGo = time.Minute
)

// delay is how long a server is left alone after so many failures: the first
// costs nothing.
func delay(failures int) time.Duration {
	if failures < 2 {
		return 0
	}
	return min(time.Second<<min(failures-2, 10), longestGo)
}

// connected returns a link to the server as it was announced, and starts it again
// if it has ended. Servers that keep ending are started less and less often.
func (s *server) connected(ctx context.Context) (*link, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.quit.Done():
		return nil, fmt.Errorf("MCP server %s was ended with this worker", s.config.Name)
	}
	if s.link != nil && s.link.alive() {
		if s.link.stale.Swap(false) {
			if err := s.verify(ctx, s.link); err != nil {
				s.link.stale.Store(true)
				return nil, err
			}
		}
		return s.link, nil
	}
	if s.quit.Err() != nil {
		return nil, fmt.Errorf("MCP server %s was ended with this worker", s.config.Name)
	}
	s.count()
	if wait := time.Until(s.notBefore); wait > 0 {
		return nil, fmt.Errorf("MCP server %s ended %d times, and is started again in %s; %s",
			s.config.Name, s.failures, wait.Round(100*time.Millisecond), s.lastWords())
	}
	s.log.Info("starting MCP server again")
	l, err := s.dial(ctx)
	if err == nil {
		if err = s.verify(ctx, l); err != nil {
			l.kill(err)
		}
	}
	if err != nil {
		s.failures++
		s.notBefore = time.Now().Add(delay(s.failures))
		return nil, err
	}
	s.link = l
	return l, nil
}

// count takes note, once, that the last link has ended.
func (s *server) count() {
	l := s.link
	if l == nil || l.counted {
		return
	}
	l.counted = true
	if l.ended.Sub(l.began) > settled {
		s.failures = 0
	}
	s.failures++
	s.notBefore = l.ended.Add(delay(s.failures))
}

func (s *server) lastWords() string {
	if s.link == nil {
		return "it never ran"
	}
	return s.link.why
}

// A link is one life of a server.
type link struct {
	session *sdk.ClientSession
	pipe    *pipe // nil: by HTTP
	cut     context.CancelFunc
	began   time.Time
	stale   atomic.Bool // it said that its tools changed
	counted bool

	gone  chan struct{} // closed when it has ended, and then
	ended time.Time
	why   string
}

func (l *link) alive() bool {
	select {
	case <-l.gone:
		return false
	default:
		return true
	}
}

// watch waits for the end of a link.
func (s *server) watch(l *link) {
	err := l.session.Wait()
	l.why = "the connection was closed"
	if err != nil {
		l.why = visible(err.Error(), 1<<10)
	}
	if l.pipe != nil {
		_ = l.pipe.Close()
		l.why = l.pipe.ending()
	}
	l.cut()
	l.ended = time.Now()
	s.log.Info("MCP server ended", slog.String("how", l.why))
	close(l.gone)
}

// leave ends a link politely, and in any case.
func (l *link) leave() {
	over := time.AfterFunc(2*closing, func() { l.kill(fmt.Errorf("it did not end")) })
	defer over.Stop()
	_ = l.session.Close()
	<-l.gone
}

// kill ends a link at once.
func (l *link) kill(why error) {
	if l.pipe != nil {
		l.pipe.kill(why)
	}
	l.cut()
	_ = l.session.Close()
	<-l.gone
}
