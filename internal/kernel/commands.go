package kernel

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/session"
	"correx/pkg/events"
)

// Names of the stream of commands and of the consumer by which one kernel at a
// time reads it (streams.yaml).
const (
	commandStreamName = "COMMANDS"
	commandConsumer   = "kernel-commands"
)

// A wish is a command on its way to being decided.
type wish struct {
	events.Wish
	msg     jetstream.Msg
	slot    bool      // counts against maxCommands
	wake    time.Time // while it waits for what it refers to
	checked uint64    // EVENTS was read up to here before rejecting
	again   bool      // it may have been decided before: by an earlier kernel, or another
}

// commandStream is COMMANDS as the kernel reads it.
type commandStream struct {
	consumer jetstream.Consumer
	created  time.Time // creation time of the stream
	ackWait  time.Duration
	before   uint64 // last command when the kernel began
}

func (c *commandStream) open(ctx context.Context, js jetstream.JetStream) error {
	s, err := js.Stream(ctx, commandStreamName)
	if err != nil {
		return fmt.Errorf("open %s: %w", commandStreamName, err)
	}
	c.consumer, err = s.Consumer(ctx, commandConsumer)
	if err != nil {
		return fmt.Errorf("open consumer %s of %s: %w; `bus streams apply` makes it", commandConsumer, commandStreamName, err)
	}
	c.created = s.CachedInfo().Created
	c.before = s.CachedInfo().State.LastSeq
	c.ackWait = c.consumer.CachedInfo().Config.AckWait
	return nil
}

// id is a command's identity: sequence, and creation time of the stream.
func (c *commandStream) id(seq uint64) events.CommandID {
	return events.CommandIDOf(seq, c.created)
}

// serveCommands takes commands on, in the order of the stream, until ctx is
// done.
func (k *Kernel) serveCommands(ctx context.Context) error {
	opts := []jetstream.PullConsumeOpt{jetstream.PullMaxMessages(256)}
	if cfg := k.commands.consumer.CachedInfo().Config; len(cfg.PriorityGroups) > 0 {
		opts = append(opts, jetstream.PullPriorityGroup(cfg.PriorityGroups[0]))
	}
	opts = append(opts, jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		k.logger.Debug("reading commands", "err", err)
	}))
	in, err := k.commands.consumer.Consume(func(m jetstream.Msg) { k.takeOn(ctx, m) }, opts...)
	if err != nil {
		return fmt.Errorf("read commands: %w", err)
	}
	keep := time.NewTicker(max(k.commands.ackWait/3, 10*time.Millisecond))
	defer keep.Stop()
	for {
		select {
		case <-ctx.Done():
			in.Stop()
			return nil
		case <-in.Closed():
			return fmt.Errorf("read commands: the consumer was closed")
		case <-keep.C:
			k.keepCommands()
		}
	}
}

// takeOn hands one command to its key, or rejects it at once.
func (k *Kernel) takeOn(ctx context.Context, m jetstream.Msg) {
	meta, err := m.Metadata()
	if err != nil {
		k.logger.Error("command without metadata", "subject", m.Subject(), "err", err)
		return
	}
	command := k.commands.id(meta.Sequence.Stream)
	if k.keepIfHeld(command, m) {
		return
	}
	select {
	case k.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	w := &wish{
		Wish: events.DecodeCommand(command, meta.Sequence.Stream, meta.Timestamp, m.Subject(), events.Header(m.Headers()), m.Data()),
		msg:  m, slot: true, again: meta.NumDelivered > 1 || meta.Sequence.Stream <= k.commands.before,
	}
	k.hold(w)
	id, ok := session.KeyOf(w.Wish)
	switch {
	case len(w.Faults) > 0:
		k.spawn(func() { k.reject(w, w.Faults) })
	case ok:
		fresh := creates(w.Wish)
		k.give(id, fresh, func(e *key) { e.wishes = append(e.wishes, w) })
	default:
		k.spawn(func() { k.carryOutModel(w) })
	}
}

func (k *Kernel) spawn(f func()) {
	k.work.Add(1)
	go func() { defer k.work.Done(); f() }()
}

// creates reports whether a command opens a key. Then nothing should be on the
// log before it, and nothing is read; if something is, the log says so by a
// conflict, and the key reads it then.
func creates(w events.Wish) bool {
	switch b := w.Command.(type) {
	case events.SessionStart, events.SessionFork, events.InferenceRun:
		return true
	case events.ToolRun:
		if _, follows := session.Followed(b.Invocation); follows {
			return false // its key is that of what it would follow
		}
		return b.Session == "" || b.Session == events.System
	}
	return false
}

// carryOut goes through the commands that a key has not decided yet. It reports
// whether the key may react on its state as it is.
func (k *Kernel) carryOut(e *key) bool {
	world := *k.world.Load()
	var rest []*wish
	for n, w := range e.pending {
		state := e.view()
		if _, done := state.Cites(w.ID); done {
			k.settle(w)
			continue
		}
		switch rejected, err := k.rejectedBefore(w); {
		case err != nil:
			e.pending = append(rest, e.pending[n:]...)
			if k.pause("look for an earlier rejection", err) {
				k.nudgeBusy(e)
			}
			return false
		case rejected:
			k.settle(w)
			continue
		}
		a, err := session.Handle(state, world, w.Wish, k.Clock(), k.others())
		if err != nil {
			e.pending = append(rest, e.pending[n:]...)
			if k.pause("read what is to be forked", err) {
				k.nudgeBusy(e)
			}
			return false
		}
		switch {
		case a.Decision != nil:
			e.pending = append(rest, e.pending[n:]...)
			k.append(e, *a.Decision)
			return false // seen by the state first
		case len(a.Reject) > 0:
			if !k.upToDate(e, w) {
				e.pending = append(rest, e.pending[n:]...)
				return false
			}
			k.reject(w, a.Reject)
		default:
			w.wake = a.Wait
			k.free(w)
			rest = append(rest, w)
		}
	}
	e.pending = rest
	return true
}

// upToDate reports whether the key has folded all that was on the log when it
// was first asked about w. A command is rejected only then: it may have been
// carried out already, or have overtaken what it refers to.
func (k *Kernel) upToDate(e *key, w *wish) bool {
	if w.checked == 0 {
		last, err := k.Log.Last(k.ctx)
		if err != nil {
			if k.pause("read the log's last sequence", err) {
				k.nudgeBusy(e)
			}
			return false
		}
		w.checked = max(last, 1)
	}
	if k.folded.Load() >= w.checked {
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.inbox) == 0 {
			return true
		}
		return false // what came meanwhile is folded first
	}
	k.passLater(e, w.checked)
	if k.folded.Load() >= w.checked {
		k.nudgeBusy(e)
	}
	return false
}

// rejectedBefore reports whether the log rejects a command already. That stands
// in an aggregate of its own, so that no state knows it; without a look there, a
// command whose rejection was not acknowledged would be carried out once its
// grounds are gone.
func (k *Kernel) rejectedBefore(w *wish) (bool, error) {
	k.mu.Lock()
	a, known := k.recent.get(w.ID)
	k.mu.Unlock()
	if known && !a.OK {
		return true, nil
	}
	if !w.again {
		return false, nil
	}
	recs, err := k.Log.Read(k.ctx, events.Aggregate{Session: events.System, Kind: events.KindCommand, ID: string(w.ID)})
	if err != nil {
		return false, err
	}
	w.again = false
	for _, r := range recs {
		if _, ok := r.Fact.(events.CommandRejected); ok {
			return true, nil
		}
	}
	return false, nil
}

// reject answers a command by a fact of its own aggregate.
func (k *Kernel) reject(w *wish, reasons []string) {
	f := events.CommandRejected{
		Ref:      events.Ref{Session: events.System, ID: string(w.ID)},
		Decision: events.Decision{DecidedAt: k.folded.Load(), Now: k.Clock(), Command: w.ID, Actor: w.Actor},
		Subject:  clip(w.Subject), Reasons: reasons,
	}
	for {
		_, err := k.Log.Append(k.ctx, f, 0, "command/"+string(w.ID))
		if err == nil || isConflict(err) { // rejected before: a redelivery
			k.settle(w)
			return
		}
		if !k.pause("reject command", err) {
			return
		}
	}
}

func clip(s string) string {
	if len(s) > events.MaxSubject {
		return s[:events.MaxSubject] + "…"
	}
	return s
}
