package natsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"correx/internal/access"
)

// A Server is a running NATS server.
type Server struct {
	opts  Options
	store string // its directory
	log   *natsLog
	lock  *os.File
	nats  *server.Server
	port  int
	stop  sync.Once

	mu     sync.Mutex // of what follows
	offers offers
}

const readyFor = 30 * time.Second // how long a store may take to open

// Start serves until [Server.Shutdown]. It makes what is missing: directories,
// keys, kernel.pub; and writes nats.url when clients may come. When it fails,
// nothing keeps running, and the store is free.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	s := &Server{opts: o, store: filepath.Join(o.StateDir, server.JetStreamStoreDir)}
	s.log = &natsLog{log: o.Logger.With(slog.String("component", "nats"))}
	defer func() {
		if err != nil {
			s.Shutdown()
		}
	}()
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	if err := s.serve(ctx); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	return s, nil
}

// open takes the store and makes the keys.
func (s *Server) open(ctx context.Context) error {
	if err := os.MkdirAll(s.store, 0o700); err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	var err error
	if s.lock, err = lock(s.store); err != nil {
		return err
	}
	if err := access.EnsureKeys(s.opts.StateDir); err != nil {
		return err
	}
	known, err := loadOffers(s.store)
	if err != nil {
		return err
	}
	if s.offers, err = known.with(s.opts.Tools, s.opts.Models); err != nil {
		return err
	}
	if s.port, err = s.opts.choosePort(ctx); err != nil {
		return err
	}
	return nil
}

// serve starts the server proper, waits until clients may come, and says where.
func (s *Server) serve(ctx context.Context) error {
	users, err := users(s.opts.StateDir, s.offers)
	if err != nil {
		return err
	}
	n, err := server.NewServer(s.opts.serverOptions(s.port, users))
	if err != nil {
		return err
	}
	s.nats = n
	n.SetLoggerV2(s.log, false, false, false)
	n.Start()
	if err := s.ready(ctx); err != nil {
		return err
	}
	addr := n.Addr().(*net.TCPAddr)
	s.port = addr.Port
	if !addr.IP.IsLoopback() {
		s.opts.Logger.Warn("the server listens beyond this machine, and not over TLS", slog.String("address", addr.String()))
	}
	return access.WriteURL(s.opts.StateDir, s.ClientURL())
}

// ready waits until the server takes connections and JetStream is up.
func (s *Server) ready(ctx context.Context) error {
	deadline := time.Now().Add(readyFor)
	for time.Now().Before(deadline) {
		if err := errors.Join(s.log.err(), context.Cause(ctx)); err != nil {
			return err
		}
		if s.nats.ReadyForConnections(100*time.Millisecond) && s.nats.JetStreamEnabled() {
			return nil
		}
	}
	return fmt.Errorf("not ready after %s", readyFor)
}

// ClientURL is the address for clients: of loopback when the server listens on
// every address.
func (s *Server) ClientURL() string {
	host := s.opts.Host
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return fmt.Sprintf("nats://%s", net.JoinHostPort(host, fmt.Sprint(s.port)))
}

// AllowOffers lets workers pull from the durable consumers of these tools and
// models, by token, besides all that were allowed before. Connections live on.
// When it returns, the permissions hold.
func (s *Server) AllowOffers(tools, models []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, err := s.offers.with(tools, models)
	if err != nil {
		return fmt.Errorf("allow offers: %w", err)
	}
	if next.equal(s.offers) {
		return nil
	}
	users, err := users(s.opts.StateDir, next)
	if err != nil {
		return fmt.Errorf("allow offers: %w", err)
	}
	if err := s.nats.ReloadOptions(s.opts.serverOptions(s.port, users)); err != nil {
		return fmt.Errorf("allow offers: reload permissions: %w", err)
	}
	s.offers = next
	return next.save(s.store)
}

// Shutdown stops the server, waits until its files are closed, and frees the
// store. It may be called twice. nats.url stays: it keeps the port for the next
// start.
func (s *Server) Shutdown() {
	s.stop.Do(func() {
		if s.nats != nil {
			s.nats.Shutdown()
			s.nats.WaitForShutdown()
		}
		if s.lock != nil {
			s.lock.Close()
		}
	})
}
