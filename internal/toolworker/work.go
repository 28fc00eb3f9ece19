package toolworker

import (
	"context"
	"fmt"
	"log/slog"

	"correx/internal/artifacts"
	"correx/internal/claim"
	"correx/internal/session"
	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

// work runs invocations in the sandbox.
type work struct {
	worker    events.WorkerID
	executor  *sandbox.Executor
	journal   *journal
	artifacts *artifacts.Store
	isolation events.Isolation
	least     events.Isolation // below which no process is started
	logger    *slog.Logger
}

// job is how t is claimed and run. What touches nothing keeps no journal and may
// be run again.
func (w *work) job(t tools.Tool) claim.Job {
	j := claim.Job{
		Rules:      claim.ToolRules{Worker: w.worker, Isolation: w.isolation, Admit: w.admit(t)},
		Work:       run{w, t},
		Idempotent: !tools.Touches(t),
	}
	if tools.Touches(t) {
		j.Journal = w.journal
	}
	return j
}

// callOf is an invocation as the sandbox takes it.
func callOf(a events.Aggregate, i session.Invocation, f events.Fence) sandbox.Call {
	c := sandbox.Call{Key: keyOf(a, f), Request: i.Requested.Request, Tier: i.Granted.Tier}
	if i.Previewed != nil {
		c.Base = i.Previewed.Base
		if c.Base == nil {
			c.Base = []events.BaseHash{} // it was previewed, and rests on no file
		}
	}
	return c
}

// admit says why an approved invocation must not run here.
func (w *work) admit(t tools.Tool) func(session.Invocation) string {
	return func(i session.Invocation) string {
		switch only, follows := tools.FollowUpOnly(t), i.Follows(); {
		case only && follows == "":
			return fmt.Sprintf("the tool %s only follows up what another tool did", t.Name())
		case !only && follows != "":
			return fmt.Sprintf("the tool %s is not made to follow up what another did", t.Name())
		}
		if reason := w.tooLittle(t, i.Granted.Tier); reason != "" {
			return reason
		}
		a := events.Aggregate{Session: i.Session, Kind: events.KindTool, ID: string(i.ID)}
		if err := w.executor.Admit(callOf(a, i, events.Fence{})); err != nil {
			return err.Error()
		}
		return ""
	}
}

// tooLittle says why a tool that starts processes is not confined well enough
// here. What is T3 never runs without any confinement.
func (w *work) tooLittle(t tools.Tool, tier events.Tier) string {
	if !spawns(t) {
		return ""
	}
	const hint = "; tool-worker probe says what is missing and how to mend it"
	switch {
	case w.isolation.Rank() < w.least.Rank():
		return fmt.Sprintf("this machine confines processes by %q, and at least %q is configured (tools.sandbox.min_level)", w.isolation, w.least) + hint
	case tier >= events.T3 && w.isolation.Rank() < events.IsolationFSOnly.Rank():
		return fmt.Sprintf("this machine confines processes by %q, and what is %s needs at least %q", w.isolation, tier, events.IsolationFSOnly) + hint
	}
	return ""
}

func spawns(t tools.Tool) bool {
	for _, c := range t.RequiredCapabilities() {
		if c == events.ShellExec || c == events.ProcessSpawn {
			return true
		}
	}
	return false
}

// run is the claim.Work of one tool.
type run struct {
	*work
	tool tools.Tool
}

// Run implements [claim.Work].
func (r run) Run(ctx context.Context, t claim.Task) events.Fact {
	a := t.State.Aggregate
	call := callOf(a, t.State.Fold.(session.Invocation), t.Fence())
	if tools.Touches(r.tool) {
		r.journal.begins(sandbox.Entry{
			Key: call.Key, Tool: r.tool.Name(), State: sandbox.Running, Unlisted: !sandbox.Listed(r.tool, call.Request),
		})
		defer r.journal.forgetUnbegun(a)
	}
	out := r.executor.Run(ctx, call)
	refs := r.store(ctx, &out)
	end := fit(endOf(t, out, refs, context.Cause(ctx)), string(r.worker))
	return r.keep(ctx, a, t, end)
}

// keep journals the end, if the run has an entry at all. An end that cannot be
// journalled must not be published: a crash would then roll back what the log
// calls completed. So the run is rolled back, and has failed.
func (r run) keep(ctx context.Context, a events.Aggregate, t claim.Task, end events.Fact) events.Fact {
	e, ok := r.journal.find(a)
	if !ok {
		return end
	}
	err := r.journal.Result(e.claim(), end)
	if err == nil {
		return end
	}
	r.logger.Error("journal a result", "aggregate", a.String(), "error", err)
	effects := events.EffectsUnknown
	if undone, uerr := r.journal.Undo(ctx, e.claim()); uerr == nil {
		effects = undone.Effects
	}
	return events.ToolExecutionFailed{
		Ref: a.Ref(), Fence: t.Fence(), Recoverable: true, Effects: effects,
		Reason: "the worker could not record the result and took it back: " + err.Error(),
	}
}
