package tools

import (
	"context"

	"correx/pkg/events"
	"correx/pkg/tools/changes"
	"correx/pkg/tools/workspace"
)

// A Recorder is told of changes to files; see [workspace.Recorder].
type Recorder = workspace.Recorder

// A Scope is what surrounds one run. Whoever runs tools hands it down by
// [WithScope]; without one a tool runs with nothing recorded.
type Scope struct {
	Dir      string            // the invocation's own directory; empty: none
	Base     []events.BaseHash // what the approval rests on
	Recorder Recorder
	// Commit makes a set of changes below roots, through the journal: all of it, or
	// none and an error, which is the run's failure. It may be called once, by a
	// [CommittingTool]. nil: nobody keeps a journal, and [changes.Set.Apply] does.
	Commit func(ctx context.Context, roots *workspace.Roots, set changes.Set) error
}

type scopeKey struct{}

// WithScope hands s down to the tools that run under the context.
func WithScope(ctx context.Context, s Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// ScopeOf returns the scope of a run, or an empty one.
func ScopeOf(ctx context.Context) Scope {
	s, _ := ctx.Value(scopeKey{}).(Scope)
	return s
}

// base returns the approved state of a path, and whether there is one.
func (s Scope) base(path string) (events.BaseHash, bool) {
	for _, b := range s.Base {
		if b.Path == path {
			return b, true
		}
	}
	return events.BaseHash{}, false
}
