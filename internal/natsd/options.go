package natsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"correx/internal/access"
)

// When the server flushes what it acknowledged.
const (
	SyncAlways   = "always"   // before it acknowledges. The default.
	SyncInterval = "interval" // every second: faster, and a power cut loses that second
)

// MaxPayload is the largest message in bytes.
const MaxPayload = 1 << 20

const syncEvery = time.Second // of [SyncInterval]

// Options says where and how to serve. The zero value of a field is its default.
type Options struct {
	StateDir      string       // required
	Host          string       // address to listen on; default 127.0.0.1
	Port          int          // 0: the one of last time if it is free, else any
	Sync          string       // [SyncAlways] or [SyncInterval]; default always
	Tools, Models []string     // tokens known from the start; see [Server.AllowOffers]
	Logger        *slog.Logger // default: none
}

func (o Options) withDefaults() Options {
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Sync == "" {
		o.Sync = SyncAlways
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error {
	var errs []error
	if o.StateDir == "" {
		errs = append(errs, errors.New("no state directory"))
	}
	if o.Sync != SyncAlways && o.Sync != SyncInterval {
		errs = append(errs, fmt.Errorf("sync is %q; use %s or %s", o.Sync, SyncAlways, SyncInterval))
	}
	if o.Port < 0 || o.Port > 65535 {
		errs = append(errs, fmt.Errorf("port is %d; use 1 to 65535, or 0 for any", o.Port))
	}
	return errors.Join(errs...)
}

// choosePort returns the port to listen on; the server takes RANDOM_PORT for
// any. A port that was asked for by number is never replaced.
func (o Options) choosePort(ctx context.Context) (int, error) {
	if o.Port != 0 {
		return o.Port, probe(ctx, o.Host, o.Port)
	}
	if last := lastPort(o.StateDir); last != 0 && probe(ctx, o.Host, last) == nil {
		return last, nil
	}
	return server.RANDOM_PORT, nil
}

func probe(ctx context.Context, host string, port int) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("%w; stop what listens there, or choose another port", err)
	}
	return l.Close()
}

// lastPort is the port that nats.url names, or 0.
func lastPort(stateDir string) int {
	s, err := access.URL(stateDir)
	if err != nil {
		return 0
	}
	u, err := url.Parse(s)
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return 0
	}
	return port
}

// serverOptions are those of the server itself. A reload builds them anew, so
// they must come out equal but for the users.
func (o Options) serverOptions(port int, users []*server.NkeyUser) *server.Options {
	so := &server.Options{
		ServerName: "correx", Host: o.Host, Port: port, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: o.StateDir, DisableJetStreamBanner: true,
		MaxPayload: MaxPayload, Nkeys: users,
	}
	if o.Sync == SyncAlways {
		so.SyncAlways = true
	} else {
		so.SyncInterval = syncEvery
	}
	return so
}

// users returns one user a role, with what the table of access allows it.
func users(stateDir string, of offers) ([]*server.NkeyUser, error) {
	var users []*server.NkeyUser
	for _, r := range access.Roles() {
		pub, err := access.PublicKey(stateDir, r)
		if err != nil {
			return nil, err
		}
		g := access.Permissions(r, of.Tools, of.Models)
		users = append(users, &server.NkeyUser{Nkey: pub, Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: g.Publish, Deny: g.Deny},
			Subscribe: &server.SubjectPermission{Allow: g.Subscribe},
		}})
	}
	return users, nil
}
