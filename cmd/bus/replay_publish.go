package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"correx/internal/cli"
	"correx/internal/eventlog"
	"correx/internal/leader"
	"correx/pkg/events"
)

// replayPrefix is the first token of what may be published on the bus's own server
// again.
const replayPrefix = "replay"

// Headers of what is published again, beside its own.
const (
	headerSequence = "correx-sequence"     // in EVENTS
	headerRecorded = "correx-recordedtime" // when it was stored there, RFC 3339
)

// A republish is where a replay publishes to.
type republish struct {
	prefix string // in place of evt; empty: it prints
	server string // URL; empty: the bus's own
	creds  string // file for that server
	speed  string // full, original, or so many times as fast: 10x
}

// check finds what must not be published to: subjects that mean something to a bus
// or to a server.
func (p republish) check() error {
	if p.prefix == "" {
		if p.server != "" || p.creds != "" || p.speed != "" {
			return cli.Usage("--to-server, --to-creds and --speed go with --to-prefix")
		}
		return nil
	}
	tokens := strings.Split(p.prefix, ".")
	for _, t := range tokens {
		if err := events.CheckToken(t); err != nil {
			return cli.Usage("--to-prefix %q: a token %w", p.prefix, err)
		}
	}
	switch {
	case slices.Contains([]string{"evt", "cmd", "api", "query", "live", "wrk"}, tokens[0]):
		return cli.Usage("--to-prefix %s is where a bus listens: what happened once would happen again; choose another", tokens[0])
	case p.server == "" && tokens[0] != replayPrefix:
		return cli.Usage("--to-prefix on the bus's own server begins with %s, as in %s.%s", replayPrefix, replayPrefix, p.prefix)
	}
	_, err := p.times()
	return err
}

// times is how many times as fast as it happened; 0: as fast as it goes.
func (p republish) times() (float64, error) {
	switch number, ok := strings.CutSuffix(p.speed, "x"); {
	case p.speed == "" || p.speed == "full":
		return 0, nil
	case p.speed == "original":
		return 1, nil
	case ok:
		if n, err := strconv.ParseFloat(number, 64); err == nil && n > 0 && n <= 1e6 {
			return n, nil
		}
	}
	return 0, cli.Usage("--speed %q: write full, original, or a number of times such as 10x", p.speed)
}

// publisher publishes records again, in the pace of the times at which they were
// stored.
func (a *app) publisher(ctx context.Context, own *nats.Conn, p republish) (replayPrinter, func(), error) {
	times, err := p.times()
	if err != nil {
		return replayPrinter{}, nil, err
	}
	var denied atomic.Pointer[error]
	conn, done := own, func() {}
	if p.server != "" {
		opts := []nats.Option{nats.Name("bus replay")}
		if p.creds != "" {
			opts = append(opts, nats.UserCredentials(p.creds))
		}
		if conn, err = nats.Connect(p.server, opts...); err != nil {
			return replayPrinter{}, nil, fmt.Errorf("connect to --to-server: %w", err)
		}
		done = conn.Close
	}
	conn.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied.CompareAndSwap(nil, &err) })
	count := 0
	flush := func() error {
		if err := conn.FlushWithContext(ctx); err != nil {
			return fmt.Errorf("publish again: %w", err)
		}
		if err := denied.Load(); err != nil {
			return fmt.Errorf("publish again: %w", *err)
		}
		return nil
	}
	pace := pacer{times: times}
	out := replayPrinter{begin: func(eventlog.Identity, uint64) error { return nil }}
	out.record = func(r events.Record) error {
		if waited, err := pace.wait(ctx, r.Time); err != nil {
			return err
		} else if waited || count%1000 == 0 {
			if err := flush(); err != nil {
				return err
			}
		}
		if err := conn.PublishMsg(p.message(r)); err != nil {
			return fmt.Errorf("publish record %d again: %w", r.Seq, err)
		}
		count++
		return nil
	}
	out.end = func() error {
		if err := flush(); err != nil {
			return err
		}
		_, err := fmt.Fprintf(a.env.Stderr, "%s published to %s.>\n", counted(count, "record"), p.prefix)
		return err
	}
	return out, done, nil
}

// message is a record under the new prefix. What the server was once asked to make
// sure of is left out: it holds nowhere else.
func (p republish) message(r events.Record) *nats.Msg {
	_, rest, _ := strings.Cut(r.Subject, ".")
	m := &nats.Msg{Subject: p.prefix + "." + rest, Header: nats.Header{}, Data: r.Data}
	for name, values := range r.Header {
		if !strings.HasPrefix(name, "Nats-") {
			m.Header[name] = values
		}
	}
	m.Header[headerSequence] = []string{strconv.FormatUint(r.Seq, 10)}
	m.Header[headerRecorded] = []string{r.Time.UTC().Format(time.RFC3339Nano)}
	return m
}

// A pacer waits so that times lie apart as they did, times faster.
type pacer struct {
	times float64 // 0: no waiting
	first time.Time
	began time.Time
}

// wait returns when it is time for t, and whether it had to wait at all.
func (p *pacer) wait(ctx context.Context, t time.Time) (bool, error) {
	if p.times == 0 {
		return false, ctx.Err()
	}
	if p.first.IsZero() {
		p.first, p.began = t, time.Now()
	}
	due := time.Duration(float64(t.Sub(p.first)) / p.times)
	left := due - time.Since(p.began)
	if left <= 0 {
		return false, ctx.Err()
	}
	if err := leader.Pause(ctx, left); err != nil {
		return true, errors.Join(errors.New("publish again: stopped"), err)
	}
	return true, nil
}
