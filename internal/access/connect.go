package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// A Dial says where and as whom to connect.
type Dial struct {
	StateDir string // holds the key, and nats.url
	URL      string // of the server; empty: what nats.url says
	Name     string // of the connection, as the server shows it
	Role     Role
	Logger   *slog.Logger // nil: none
}

const (
	dialFor  = 15 * time.Second       // how long Connect waits for a server
	dialWait = 200 * time.Millisecond // between tries

	// A server that answers two pings in a row with nothing is given up, so that
	// a network that swallows everything is noticed within half a minute.
	pingEvery = 10 * time.Second
)

// URLFile is where the embedded server writes its address.
func URLFile(stateDir string) string { return filepath.Join(stateDir, "nats.url") }

// WriteURL says where the embedded server listens.
func WriteURL(stateDir, url string) error {
	return publish(URLFile(stateDir), []byte(url+"\n"), os.Rename)
}

// URL returns what [WriteURL] wrote.
func URL(stateDir string) (string, error) {
	b, err := os.ReadFile(URLFile(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("address of the server: %s is not there; start `bus serve`, or name a server by --nats", URLFile(stateDir))
	}
	if err != nil {
		return "", fmt.Errorf("address of the server: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// Connect connects in d.Role. A server or a key that is not there yet is waited
// for, for 15 seconds or until ctx is done. A lost connection comes back by itself, for
// as long as it takes; what is published in between fails at once, for a claim
// that was given up must not be sent later. The caller closes the connection.
func Connect(ctx context.Context, d Dial) (*nats.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dialFor, fmt.Errorf("nobody answered for %s", dialFor))
	defer cancel()
	tick := time.NewTicker(dialWait)
	defer tick.Stop()
	for {
		nc, err := dial(d)
		if err == nil {
			return nc, nil
		}
		if !transient(err) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// dial tries once.
func dial(d Dial) (*nats.Conn, error) {
	opts, err := d.options()
	if _, gone := os.Stat(KeyFile(d.StateDir, d.Role)); err != nil && errors.Is(gone, fs.ErrNotExist) {
		return nil, &unready{err} // a bus that starts at this moment makes it
	}
	if err != nil {
		return nil, err
	}
	url := d.URL
	if url == "" {
		if url, err = URL(d.StateDir); err != nil {
			return nil, &unready{err}
		}
	}
	nc, err := nats.Connect(url, opts...)
	if errors.Is(err, nats.ErrAuthorization) {
		return nil, fmt.Errorf("connect to %s as %s: the server does not know the key in %s: %w", url, d.Role, KeyFile(d.StateDir, d.Role), err)
	}
	if err != nil {
		return nil, &unready{fmt.Errorf("connect to %s as %s: %w", url, d.Role, err)}
	}
	return nc, nil
}

// unready is an error that time may mend.
type unready struct{ error }

func (u *unready) Unwrap() error { return u.error }

func transient(err error) bool {
	var u *unready
	return errors.As(err, &u)
}

// options are those of every connection; see [Connect] for why.
func (d Dial) options() ([]nats.Option, error) {
	if _, err := ParseRole(string(d.Role)); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if _, err := PublicKey(d.StateDir, d.Role); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	key, err := nats.NkeyOptionFromSeed(KeyFile(d.StateDir, d.Role))
	if err != nil {
		return nil, fmt.Errorf("connect as %s: %w", d.Role, err)
	}
	log := d.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With(slog.String("role", string(d.Role)), slog.String("connection", d.Name))
	return []nats.Option{
		key,
		nats.Name(d.Name),
		nats.CustomInboxPrefix(d.Role.InboxPrefix()),
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1),
		nats.ReconnectWait(dialWait),
		nats.ReconnectJitter(dialWait/2, dialWait/2),
		nats.IgnoreAuthErrorAbort(),
		nats.PermissionErrOnSubscribe(true),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(2),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) { report(log, s, err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("connection lost", slog.Any("error", err))
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("connected again", slog.String("url", nc.ConnectedUrlRedacted()))
		}),
	}, nil
}

// report logs what the server told this connection out of band. A denied
// publish is otherwise seen as a time-out only.
func report(log *slog.Logger, s *nats.Subscription, err error) {
	if what, subject, ok := denied(err); ok {
		log.Error("denied by the server's permissions",
			slog.String("operation", what), slog.String("subject", subject))
		return
	}
	if s != nil {
		log = log.With(slog.String("subject", s.Subject))
	}
	log.Error("connection", slog.Any("error", err))
}

// denied takes a permission violation apart: `… for Publish to "a.b"`.
func denied(err error) (operation, subject string, ok bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return "", "", false
	}
	_, rest, _ := strings.Cut(err.Error(), " for ")
	operation, rest, _ = strings.Cut(rest, " to ")
	t := strings.SplitN(rest, `"`, 3)
	if len(t) < 3 {
		return "", "", false
	}
	return strings.ToLower(operation), t[1], true
}
