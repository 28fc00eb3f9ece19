package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"correx/pkg/events"
	"correx/pkg/tools"
	"correx/pkg/tools/changes"
	"correx/pkg/tools/diff"
)

// A Status is how a call ended.
type Status string

const (
	Completed Status = "completed"
	Failed    Status = "failed"
	Rejected  Status = "rejected" // it never ran; after `started`, a worker reports it as failed
)

// An Outcome is what came of a call, ready to be told as a fact.
type Outcome struct {
	Status      Status
	Receipt     events.ToolReceipt // without artifacts, which the caller stores out of Overflow
	Reason      string             // of a failure or a rejection
	Recoverable bool               // the same call may do better later
	Effects     events.Effects     // of a failure
	Files       []events.RecoveredFile
	Overflow    []tools.Blob // what was too large for the receipt
}

// ToolResult is the outcome as a tool's result.
func (o Outcome) ToolResult(id events.ToolInvocationID) tools.ToolResult {
	detail := tools.Detail{
		ExitCode: o.Receipt.ExitCode, Structured: o.Receipt.Structured, Overflow: o.Overflow,
		Isolation: o.Receipt.Isolation, Affected: o.Receipt.Affected, Effects: o.Effects,
		FollowUp: o.Receipt.FollowUp,
	}
	if o.Status == Completed {
		return tools.Success{Invocation: id, Output: o.Receipt.Output, Metadata: o.Receipt.Metadata, Detail: detail}
	}
	return tools.Failure{
		Invocation: id, Reason: o.Reason, Recoverable: o.Recoverable,
		Output: o.Receipt.Output, Metadata: o.Receipt.Metadata, Detail: detail,
	}
}

func (x *Executor) rejected(c Call, err error) Outcome {
	return Outcome{
		Status: Rejected, Reason: err.Error(), Effects: events.EffectsNone,
		Receipt: events.ToolReceipt{ExitCode: 1, Tier: c.Tier, Time: x.o.Now().UTC(), Isolation: x.o.Isolation},
	}
}

// notRun is the outcome of a call that could not be prepared. Most causes pass.
func (r *run) notRun(err error) Outcome {
	return Outcome{
		Status: Failed, Reason: err.Error(), Recoverable: true, Effects: events.EffectsNone,
		Receipt: r.receipt(tools.Detail{ExitCode: 1}, nil),
	}
}

func (r *run) completed(v tools.Success) Outcome {
	out := Outcome{Status: Completed, Overflow: slices.Clone(v.Overflow)}
	out.Receipt = r.receipt(v.Detail, v.Metadata)
	out.Receipt.Output, out.Receipt.FollowUp = out.summarise("output", v.Output), v.FollowUp
	if out.Receipt.Affected == nil {
		out.Receipt.Affected = r.changed()
	}
	if v.Diff == "" {
		v.Diff = r.diff()
	}
	out.Receipt.Diff = out.summarise("diff", v.Diff)
	return out
}

func (r *run) failed(v tools.Failure) Outcome {
	out := Outcome{
		Status: Failed, Reason: tools.Summary(v.Reason, reasonSize), Recoverable: v.Recoverable,
		Effects: v.Effects, Overflow: slices.Clone(v.Overflow),
	}
	if v.ExitCode == 0 && len(v.Structured) == 0 {
		v.ExitCode = 1
	}
	out.Receipt = r.receipt(v.Detail, v.Metadata)
	out.Receipt.Output = out.summarise("output", v.Output)
	r.takeBack(&out)
	return out
}

// reasonSize is how long a reason may be, in bytes as JSON.
const reasonSize = 8 << 10

// takeBack rolls back what the run changed, and says what came of that.
func (r *run) takeBack(out *Outcome) {
	e := r.x.o.Journal.find(r.call.Key)
	if e == nil {
		if out.Effects == "" {
			out.Effects = events.EffectsNone
		}
		return
	}
	files, err := r.x.o.Journal.Rollback(r.call.Key)
	out.Files = files
	if out.Effects == "" || out.Effects == events.EffectsNone && len(files) > 0 { // a tool knows nothing of rollbacks
		out.Effects = EffectsOf(e.Entry, files)
	}
	if err != nil {
		r.x.o.Logger.Error("roll back", "key", r.call.Key.String(), "err", err)
		out.Effects = events.EffectsUnknown
		out.Reason += "; and what it changed could not all be taken back: " + err.Error()
	}
	for _, f := range files {
		if f.Effects == events.EffectsConflict {
			out.Reason += fmt.Sprintf("; %s was changed by somebody else meanwhile and is left as it is", f.Path)
			out.Receipt.Affected = append(out.Receipt.Affected, f.Path)
		}
	}
}

func (r *run) receipt(d tools.Detail, metadata map[string]string) events.ToolReceipt {
	now := r.x.o.Now()
	rec := events.ToolReceipt{
		ExitCode: d.ExitCode, Structured: d.Structured, Affected: d.Affected,
		Duration: now.Sub(r.began), Tier: r.call.Tier, Time: now.UTC(),
		Metadata: maps.Clone(metadata), Isolation: d.Isolation,
	}
	if rec.Isolation == "" {
		rec.Isolation = r.x.o.Isolation
	}
	return rec
}

// summarise cuts what is too long for a receipt, and keeps the whole of it as
// overflow.
func (o *Outcome) summarise(name, text string) string {
	short := tools.Summary(text, tools.SummarySize)
	has := slices.ContainsFunc(o.Overflow, func(b tools.Blob) bool { return b.Name == name })
	if short != text && !has {
		o.Overflow = append(o.Overflow, tools.Blob{Name: name, MediaType: "text/plain; charset=utf-8", Data: []byte(text)})
	}
	return short
}

// changed lists the announced paths that are not what they were.
func (r *run) changed() []string {
	if r.set != nil {
		return r.set.Paths()
	}
	var out []string
	for _, f := range r.files {
		if now, err := f.Look(); err != nil || !now.Same(f.Before) {
			out = append(out, f.Path())
		}
	}
	return out
}

// diff is the unified diff of all announced files, from before to now.
func (r *run) diff() string {
	if r.set != nil {
		return r.set.Diff(maxDiff)
	}
	var b strings.Builder
	for i, f := range r.files {
		now, err := f.Look()
		if err != nil || now.Dir != f.Before.Dir && f.Before.Exists {
			continue // whoever changed it since has the last word
		}
		if now.Dir {
			made := changes.Change{Path: f.Path(), Kind: changes.Created, After: changes.State{Type: changes.Directory, Mode: now.Mode}}
			b.WriteString(changes.Set{Changes: []changes.Change{made}}.Diff(0))
			continue
		}
		old, new := diff.Side{Name: f.Path(), Exists: f.Before.Exists, Data: r.before[i]}, diff.Side{Name: f.Path(), Exists: now.Exists, Data: now.Data}
		b.WriteString(diff.Unified(old, new))
	}
	return b.String()
}
