// Package eventlog is EVENTS as the rest of Correx sees it: facts are appended
// on a condition, aggregates are read from the stream's leader, and the whole
// is followed in stream order.
//
// [Log.Append] stores a fact only if the record that its writer saw last is
// still the last one of the fact's aggregate; else it returns [ErrConflict],
// and the writer reads and decides again. That one rule replaces every lock
// between processes.
//
// [Log.Read] and its kin ask the leader, one record at a time, and need no
// consumer, so that workers can use them. [Log.Follow] needs the right to make
// one.
package eventlog

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/leader"
	"correx/pkg/events"
)

// Options configure a [Log]. What is left zero has a default.
type Options struct {
	// Source is who appends, as in "kernel" or "tool-worker/w1".
	Source string
	// Verify says of a record that was decoded whether it holds, as the
	// signature of an approval. What it refuses gets its error as Err and
	// loses its Fact. Nil accepts all.
	Verify func(events.Record) error
	Logger *slog.Logger

	Stream string        // default EVENTS
	Answer time.Duration // how long one publish waits for its answer before it is repeated; default 1 s
	Watch  time.Duration // after how long a silence Follow asks the leader whether there is really nothing; default 5 s
}

// An Identity tells a stream from one of the same name that was made anew.
type Identity struct {
	Stream  string
	Created time.Time
}

// A Log is one stream of facts on one connection. It may be used by many
// goroutines at once; no lock is held while the server works.
type Log struct {
	js   jetstream.JetStream
	lead *leader.Stream
	opts Options
	log  *slog.Logger
	id   Identity
	size int    // most bytes of one message, headers included
	all  string // the filter that selects every record

	clock clock
}

// Open asks for the stream's identity, which the Log holds on to: a stream that
// was deleted and made again is never mistaken for it.
func Open(ctx context.Context, js jetstream.JetStream, opts Options) (*Log, error) {
	if opts.Stream == "" {
		opts.Stream = "EVENTS"
	}
	if opts.Answer <= 0 {
		opts.Answer = time.Second
	}
	if opts.Watch <= 0 {
		opts.Watch = 5 * time.Second
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Log{js: js, lead: leader.Of(js, opts.Stream), opts: opts, log: opts.Logger.With("stream", opts.Stream)}
	info, err := l.lead.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	if len(info.Subjects) != 1 {
		return nil, fmt.Errorf("open event log: stream %s has subjects %q; it must have exactly one, such as %s.>",
			opts.Stream, info.Subjects, events.PrefixFact)
	}
	l.id = Identity{Stream: opts.Stream, Created: info.Created}
	l.size, l.all = info.MaxMsgSize, info.Subjects[0]
	return l, nil
}

// Identity is the stream's, as it was at [Open].
func (l *Log) Identity() Identity { return l.id }

// Last returns the sequence of the stream's last record, or 0. It fails with a
// [ForeignStreamError] when the stream is not the one that was opened.
func (l *Log) Last(ctx context.Context) (uint64, error) {
	info, err := l.info(ctx)
	return info.Last, err
}

// info asks the leader and holds the answer against the Log's identity.
func (l *Log) info(ctx context.Context) (leader.Info, error) {
	info, err := l.lead.Info(ctx)
	if err != nil {
		return leader.Info{}, err
	}
	if !info.Created.Equal(l.id.Created) {
		return leader.Info{}, &ForeignStreamError{Stream: l.id.Stream, Want: l.id.Created, Got: info.Created}
	}
	return info, nil
}
