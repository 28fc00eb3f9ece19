package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"correx/internal/cli"
	"correx/internal/eventlog"
	"correx/internal/session"
	"correx/pkg/events"
)

// A watcher shows a story as it happens, on stderr, and asks for approvals in
// place. With --json the records go to stdout instead.
type watcher struct {
	app    *app
	client *client
	yes    bool // approve whatever is asked

	inference events.InferenceID          // the only one that is shown; empty: all
	shows     func(events.Aggregate) bool // what is shown and asked about; nil: all

	state  session.State
	denied bool // somebody said no, or nobody answered

	asking  *question
	waiting []events.ToolInvocationID // questions behind the one that is asked
	answers chan reply
	tail    string // what is being generated
	since   time.Time
	shown   bool // a line that will be replaced is on the terminal
}

// watch shows what filter selects from sequence from on, until end says that it
// is over. It returns the state at that point.
func (w *watcher) watch(ctx context.Context, log *eventlog.Log, filter string, from uint64, end func(session.State, events.Record) bool) (session.State, error) {
	ctx, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	records, followed := make(chan events.Record), make(chan error, 1)
	work.Go(func() {
		followed <- log.Follow(ctx, filter, from, func(r events.Record) error {
			select {
			case records <- r:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	live, quiet, err := w.client.live(w.state.ID, w.inference)
	if err != nil {
		return w.state, err
	}
	defer quiet()
	w.answers = make(chan reply)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	defer w.dismiss()
	if err := w.next(ctx); err != nil {
		return w.state, err
	}
	for {
		select {
		case r := <-records:
			if err := w.take(ctx, r); err != nil {
				return w.state, err
			}
			if end(w.state, r) {
				w.clear()
				return w.state, nil
			}
		case r := <-w.answers:
			if err := w.answered(ctx, r); err != nil {
				return w.state, err
			}
		case m := <-live:
			w.generate(m)
		case <-second.C:
			w.remind()
			w.progress()
		case err := <-followed:
			if err == nil {
				err = ctx.Err()
			}
			return w.state, err
		}
	}
}

// live subscribes to what is being generated in a session. What a slow terminal
// cannot show is dropped.
func (c *client) live(s events.SessionID, i events.InferenceID) (<-chan *nats.Msg, func(), error) {
	if s == events.System && i == "" {
		return nil, func() {}, nil
	}
	subject := events.LiveSubject(s, "*")
	if i != "" {
		subject = events.LiveSubject(s, i)
	}
	ch := make(chan *nats.Msg, 1024)
	sub, err := c.conn.ChanSubscribe(subject, ch)
	if err != nil {
		return nil, nil, fmt.Errorf("listen to the model: %w", err)
	}
	return ch, func() { _ = sub.Unsubscribe() }, nil
}

// take folds and prints one record, and asks what it asks.
func (w *watcher) take(ctx context.Context, r events.Record) error {
	w.state = session.Evolve(w.state, r)
	if w.shows != nil && !w.shows(r.Aggregate) {
		return nil
	}
	w.clear()
	w.tail, w.since = "", time.Now()
	if err := w.print(r); err != nil {
		return err
	}
	id := events.ToolInvocationID(r.Aggregate.ID)
	switch r.Fact.(type) {
	case events.ApprovalRequested:
		w.waiting = append(w.waiting, id)
	case events.ApprovalDenied, events.ApprovalExpired:
		w.denied = true
	}
	w.settle(id)
	return w.next(ctx)
}

func (w *watcher) print(r events.Record) error {
	if w.app.flags.JSON {
		return cli.JSONLine(w.app.env.Stdout, asJSON(r))
	}
	if text := describe(r, w.app.env.ErrStyle()); text != "" {
		_, err := fmt.Fprintln(w.app.env.Stderr, text)
		return err
	}
	return nil
}

// generate shows the end of what a model is saying, on a terminal.
func (w *watcher) generate(m *nats.Msg) {
	if !w.app.env.ErrTerminal || w.asking != nil {
		return
	}
	w.tail += delta(m.Data)
	if n := len(w.tail); n > 4096 {
		w.tail = strings.ToValidUTF8(w.tail[n-2048:], "")
	}
	text := []rune(cli.Line(w.tail, 1<<16))
	if len(text) > 70 {
		text = text[len(text)-70:]
	}
	w.replace(w.app.env.ErrStyle().Dim("  " + string(text)))
}

// delta is the text of a live message.
func delta(data []byte) string {
	var d struct {
		Delta string `json:"delta"`
	}
	if json.Unmarshal(data, &d) != nil {
		return ""
	}
	return d.Delta
}

// progress says what has been waited for, on a terminal.
func (w *watcher) progress() {
	if !w.app.env.ErrTerminal || w.app.flags.JSON || w.asking != nil || w.tail != "" || w.since.IsZero() {
		return
	}
	if what := awaited(w.state); what != "" {
		w.replace(w.app.env.ErrStyle().Dim(fmt.Sprintf("  %s … %s", what, time.Since(w.since).Round(time.Second))))
	}
}

// awaited says what a session waits for.
func awaited(s session.State) string {
	for _, i := range s.Tools {
		switch {
		case i.End != nil || i.Requested == nil:
		case i.Status() == session.ApprovalRequested:
			if first := i.Follows(); first != "" {
				return "waiting for the review of " + string(first)
			}
			return "waiting for an approval of " + string(i.ID)
		default:
			return line(i.Requested.Request.Tool) + " is at work"
		}
	}
	for _, i := range s.Inferences {
		if !i.Status().Ended() && i.Requested != nil {
			return "waiting for " + line(string(i.Requested.Model))
		}
	}
	if s.Status == session.Running {
		return "waiting for a worker that offers its model and tools"
	}
	return ""
}

// replace shows a line that the next thing replaces.
func (w *watcher) replace(text string) {
	fmt.Fprint(w.app.env.Stderr, "\r\x1b[K"+text)
	w.shown = true
}

func (w *watcher) clear() {
	if w.shown {
		fmt.Fprint(w.app.env.Stderr, "\r\x1b[K")
		w.shown = false
	}
}
