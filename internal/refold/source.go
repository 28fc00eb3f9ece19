package refold

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/eventlog"
	"correx/internal/leader"
	"correx/pkg/events"
)

// A Source is a log that can be read from anywhere, more than once.
type Source interface {
	eventlog.Source
	// Command returns a command as it was published, or false if it is not at hand.
	Command(ctx context.Context, id events.CommandID) (events.Wish, bool, error)
}

// A Stream is EVENTS on a server, with COMMANDS beside it.
type Stream struct {
	*eventlog.Log
	commands *leader.Stream
	created  time.Time
}

// OpenStream reads commands from the stream of that name.
func OpenStream(ctx context.Context, js jetstream.JetStream, log *eventlog.Log, commands string) (*Stream, error) {
	s := &Stream{Log: log, commands: leader.Of(js, commands)}
	info, err := s.commands.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", commands, err)
	}
	s.created = info.Created
	return s, nil
}

// Command implements [Source]. A command of a stream that was made anew since is
// not at hand.
func (s *Stream) Command(ctx context.Context, id events.CommandID) (events.Wish, bool, error) {
	number, _, _ := strings.Cut(string(id), "-")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil || id != events.CommandIDOf(seq, s.created) {
		return events.Wish{}, false, nil
	}
	m, err := s.commands.At(ctx, seq)
	if errors.Is(err, leader.ErrNone) {
		return events.Wish{}, false, nil
	}
	if err != nil {
		return events.Wish{}, false, fmt.Errorf("read command %s: %w", id, err)
	}
	return events.DecodeCommand(id, m.Seq, m.Time, m.Subject, events.Header(m.Header), m.Data), true, nil
}
