package toolworker

import (
	"context"
	"errors"
	"fmt"

	"correx/internal/eventlog"
	"correx/internal/session"
	"correx/internal/worker"
	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

// previewer answers requested invocations with what they would do.
type previewer struct {
	worker   events.WorkerID
	log      *eventlog.Log
	executor *sandbox.Executor
}

// handle takes one delivery of a preview consumer. A preview counts only while
// nothing has followed the request, so whoever comes second has nothing to do.
func (p previewer) handle(ctx context.Context, d worker.Delivery) (worker.Outcome, error) {
	a, _, _, err := events.ParseSubject(d.Subject)
	if err != nil {
		return worker.Term(err.Error()), err
	}
	recs, err := p.log.Read(ctx, a)
	if err != nil {
		return worker.Drop(), err
	}
	i := session.FoldInvocation(recs)
	if i.Status() != session.Requested || i.RequestedSeq != d.Seq {
		return worker.Ack(), nil
	}
	fact := p.preview(ctx, a, i)
	_, err = p.log.Append(ctx, fact, i.LastSeq, cause(recs, d.Seq))
	switch {
	case errors.Is(err, events.ErrTooLarge):
		fact.Diff, fact.Affected = cutNote, nil
		if _, err = p.log.Append(ctx, fact, i.LastSeq, cause(recs, d.Seq)); err == nil || errors.Is(err, eventlog.ErrConflict) {
			return worker.Ack(), nil
		}
	case err == nil, errors.Is(err, eventlog.ErrConflict):
		return worker.Ack(), nil
	}
	return worker.Drop(), fmt.Errorf("preview %s: %w", a, err)
}

func (p previewer) preview(ctx context.Context, a events.Aggregate, i session.Invocation) events.ToolPreviewed {
	v := p.look(ctx, i.Requested.Request)
	return events.ToolPreviewed{
		Ref: a.Ref(), Worker: p.worker, Valid: v.Valid, Reason: v.Reason, Diff: v.Diff,
		Base: v.Base, Affected: v.Affected, Tier: max(v.Tier, i.Requested.Tier), Notes: v.Notes,
	}
}

// look previews; a tool that panics has no opinion that anybody could act on.
func (p previewer) look(ctx context.Context, r events.ToolRequest) (v tools.Preview) {
	defer func() {
		if broke := recover(); broke != nil {
			v = tools.Preview{Reason: fmt.Sprintf("the tool %s broke over these parameters: %v", r.Tool, broke)}
		}
	}()
	return p.executor.Preview(ctx, r)
}

func cause(recs []events.Record, seq uint64) string {
	for _, r := range recs {
		if r.Seq == seq {
			return r.Header.Get(events.HeaderID)
		}
	}
	return ""
}
