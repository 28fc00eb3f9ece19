package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"correx/pkg/events"
	"correx/pkg/tools"
	"correx/pkg/tools/changes"
	"correx/pkg/tools/workspace"
)

// maxDiff is how long the diff of a set of changes may be.
const maxDiff = 1 << 20

// Listed reports whether the journal knows all that a run of r may change: the tool
// says so, or it changes nothing but by a commit, and does not reach the network.
func Listed(t tools.Tool, r events.ToolRequest) bool {
	if _, ok := t.(tools.FileAffectingTool); ok {
		return true
	}
	return tools.Commits(t, r) && !slices.Contains(t.RequiredCapabilities(), events.NetworkAccess)
}

// prepareLate lets a run commit what it changes when it is over. Until then the
// journal has no entry of it, for there is nothing to take back; but one that may
// have done what no journal knows has one.
func (r *run) prepareLate() error {
	r.scope = tools.Scope{Dir: r.dir, Base: r.call.Base, Commit: r.commit}
	if Listed(r.tool, r.call.Request) {
		return nil
	}
	if err := r.x.o.Journal.Begin(r.call.Key, r.tool.Name(), nil, true); err != nil {
		return fmt.Errorf("note that it runs: %w", err)
	}
	return nil
}

// commit makes a set of changes, through the journal. What a failure leaves is
// taken back when the run is settled.
func (r *run) commit(ctx context.Context, roots *workspace.Roots, set changes.Set) error {
	if r.set != nil {
		return errors.New("commit changes: this run has committed already")
	}
	if err := r.approved(set); err != nil {
		return err
	}
	r.set = &set
	if set.Empty() {
		return nil
	}
	unlock, err := r.x.locks.lock(ctx, slices.Sorted(slices.Values(set.Paths())))
	if err != nil {
		return err
	}
	r.unlock = unlock
	plan, err := set.Plan(roots)
	if err != nil {
		return err
	}
	rec, err := r.x.o.Journal.Commit(r.call.Key, r.tool.Name(), plan)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	return plan.Apply(ctx, rec)
}

// Commit records, durably, the steps of a plan with all that takes them back, as
// changes of an invocation that need not have begun. Its steps are then made by the
// recorder that it returns.
func (j *Journal) Commit(key Key, tool string, plan *changes.Plan) (workspace.Recorder, error) {
	var files []Change
	for _, u := range plan.Undo() {
		files = append(files, Change{Undo: u.Undo, Data: u.Data})
	}
	if err := j.announce(key, tool, files); err != nil {
		return nil, err
	}
	return j.recorder(j.find(key)), nil
}

// approved holds a set against what the approval rests on. One that rests on no
// file is for whatever the command may change.
func (r *run) approved(set changes.Set) error {
	if len(r.call.Base) == 0 {
		return nil
	}
	approved := make(map[string]string, len(r.call.Base))
	for _, b := range r.call.Base {
		approved[b.Path] = b.SHA256
	}
	for _, b := range set.Base() {
		was, ok := approved[b.Path]
		if !ok {
			return fmt.Errorf("%s would be changed, and the approval does not name it; ask again", b.Path)
		}
		if was != b.SHA256 {
			return &movedError{path: b.Path, was: was, isIt: b.SHA256}
		}
	}
	return nil
}
