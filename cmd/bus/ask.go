package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"correx/internal/cli"
	"correx/internal/session"
	"correx/pkg/events"
)

// A question is one that is put to the person at the terminal.
type question struct {
	id     events.ToolInvocationID
	asked  events.ApprovalRequested
	cancel context.CancelFunc
	done   chan struct{}
	typing bool // a reason is being typed

	// The answer may be remembered: there is a session, all that would be
	// permitted in it was shown, and it is no review, each of which is its own.
	remember bool
}

// A reply is what the person said: a key, or a reason.
type reply struct {
	q      *question
	key    rune
	reason string
	err    error
}

// cardOf is what an approval of i would permit. It fails when what can be shown
// is not what the question names: then nobody may be asked.
func cardOf(i session.Invocation) (cli.Card, error) {
	if i.Requested == nil || i.Asked == nil {
		return cli.Card{}, fmt.Errorf("%s/%s has not been asked for", i.Session, i.ID)
	}
	if d := i.Digest(i.Asked.Policy); d != i.Asked.Digest {
		return cli.Card{}, fmt.Errorf("%s/%s: the question names digest %s, and what would be shown has %s; it is not to be approved", i.Session, i.ID, i.Asked.Digest, d)
	}
	c := cli.Card{
		Session: string(i.Session), Invocation: string(i.ID), Tool: i.Asked.Tool, Tier: i.Asked.Tier.String(),
		Why: i.Asked.Why, Notes: i.Asked.Notes, Parameters: i.Requested.Request.Parameters,
		Digest: i.Asked.Digest, Deadline: i.Asked.Deadline,
	}
	c.ReviewOf = string(i.Follows())
	if p := i.Previewed; p != nil {
		c.Diff, c.Affected, c.Found = p.Diff, p.Affected, p.Notes
	}
	return c, nil
}

// settle forgets a question that somebody else has answered.
func (w *watcher) settle(id events.ToolInvocationID) {
	if i, ok := w.state.Tool(id); ok && i.Status() == session.ApprovalRequested {
		return
	}
	w.waiting = slices.DeleteFunc(w.waiting, func(x events.ToolInvocationID) bool { return x == id })
	if w.asking != nil && w.asking.id == id {
		w.dismiss()
	}
}

// dismiss takes the present question back.
func (w *watcher) dismiss() {
	if w.asking != nil {
		w.asking.cancel()
		<-w.asking.done
		w.asking = nil
	}
}

// next puts the next question, if none is put.
func (w *watcher) next(ctx context.Context) error {
	for w.asking == nil && len(w.waiting) > 0 {
		id := w.waiting[0]
		w.waiting = w.waiting[1:]
		i, ok := w.state.Tool(id)
		if !ok || i.Status() != session.ApprovalRequested {
			continue
		}
		if err := w.put(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// put shows a question, and answers it itself with --yes.
func (w *watcher) put(ctx context.Context, i session.Invocation) error {
	env := w.app.env
	card, err := cardOf(i)
	if err != nil {
		fmt.Fprintln(env.Stderr, env.ErrStyle().Red(cli.Visible(err.Error())))
		return nil
	}
	if !w.app.flags.JSON || env.Keys != nil && !w.yes {
		fmt.Fprint(env.Stderr, card.Render(env.ErrStyle(), time.Now()))
	}
	q := &question{id: i.ID, asked: *i.Asked, remember: card.Whole() && w.state.ID != events.System && i.Follows() == ""}
	switch {
	case w.yes:
		return w.decide(ctx, w.approval(q, events.ScopeOnce, "--yes"))
	case env.Keys == nil:
		fmt.Fprintf(env.Stderr, "nobody is at a terminal here; answer with: bus approve %s/%s\n", i.Session, i.ID)
		return nil
	}
	w.listen(ctx, q)
	w.remind()
	return nil
}

// listen waits for one key, and after an r for a reason.
func (w *watcher) listen(ctx context.Context, q *question) {
	ctx, q.cancel = context.WithCancel(ctx)
	q.done = make(chan struct{})
	w.asking = q
	keys, answers := w.app.env.Keys, w.answers
	go func() {
		defer close(q.done)
		r := reply{q: q}
		if r.key, r.err = keys.Key(ctx); ctx.Err() != nil {
			return
		}
		if r.key == 'r' {
			select { // tell that a reason comes, so that nothing writes over it
			case answers <- reply{q: q, key: reasonComes}:
			case <-ctx.Done():
				return
			}
			r.reason, r.err = keys.Line(ctx)
		}
		select {
		case answers <- r:
		case <-ctx.Done():
		}
	}()
}

const reasonComes = -1

// answered acts on what the person said.
func (w *watcher) answered(ctx context.Context, r reply) error {
	if r.q != w.asking {
		return nil
	}
	if r.err != nil {
		w.dismiss()
		w.clear()
		fmt.Fprintf(w.app.env.Stderr, "no answer from the terminal (%v); answer with: bus approve %s/%s\n", r.err, w.state.ID, r.q.id)
		return w.next(ctx)
	}
	if r.key == reasonComes {
		r.q.typing = true
		w.clear()
		fmt.Fprint(w.app.env.Stderr, "reason (Enter for none): ")
		return nil
	}
	w.dismiss()
	w.clear()
	var cmd events.Command
	switch {
	case r.key == 'a':
		cmd = w.approval(r.q, events.ScopeOnce, "")
	case r.key == 's' && r.q.remember:
		cmd = w.approval(r.q, events.ScopeSession, "")
	case r.key == 'r':
		cmd = events.ToolReject{Session: w.state.ID, Invocation: r.q.id, Reason: r.reason}
	case r.key == 'x':
		cmd = w.stop(r.q)
	default:
		w.listen(ctx, &question{id: r.q.id, asked: r.q.asked, remember: r.q.remember})
		w.remind()
		return nil
	}
	if err := w.decide(ctx, cmd); err != nil {
		return err
	}
	return w.next(ctx)
}

func (w *watcher) approval(q *question, scope events.ApprovalScope, reason string) events.Command {
	return events.ToolApprove{Session: w.state.ID, Invocation: q.id, Digest: q.asked.Digest, Scope: scope, Reason: reason}
}

// stop ends the session, or the invocation if it is of none.
func (w *watcher) stop(q *question) events.Command {
	if w.state.ID == events.System {
		return events.ToolCancel{Session: w.state.ID, Invocation: q.id, Reason: "stopped at the question"}
	}
	return events.SessionCancel{Session: w.state.ID, Reason: "stopped at the question"}
}

// decide gives a command. A refusal is shown and no more: somebody else may have
// been faster, and the log shows what became of it.
func (w *watcher) decide(ctx context.Context, cmd events.Command) error {
	if _, err := w.app.command(ctx, w.client, cmd); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Fprintln(w.app.env.Stderr, w.app.env.ErrStyle().Red(cli.Visible(err.Error())))
	}
	return nil
}

// remind shows the choices and the time that is left.
func (w *watcher) remind() {
	q := w.asking
	if q == nil || q.typing {
		return
	}
	s := w.app.env.ErrStyle()
	always, all := "", "it"
	if q.remember {
		always = "  [s] for the session"
	}
	if w.state.ID != events.System {
		all = "the session"
	}
	w.replace(s.Bold("[a] approve once"+always+"  [r] reject  [x] stop "+all) +
		s.Dim("  "+time.Until(q.asked.Deadline).Round(time.Second).String()+" left"))
}
