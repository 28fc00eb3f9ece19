package changes

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"correx/pkg/tools/workspace"
)

// atOnce is how many independent steps are made at once: they share the disk's
// syncs.
const atOnce = 16

// Check reports whether the workspace still is what the set rests on. A
// [MovedError] names what is not.
func (s Set) Check(roots *workspace.Roots) error {
	_, err := s.Plan(roots)
	return err
}

// Apply makes the changes, all or none, and durably: without a recorder, what was
// made before a failure is taken back here. A path that is not any more what the
// set rests on is a [MovedError] if that shows before anything is done, and
// [workspace.ErrChanged] in any case.
func (s Set) Apply(ctx context.Context, roots *workspace.Roots, rec workspace.Recorder) error {
	p, err := s.Plan(roots)
	if err != nil {
		return err
	}
	return p.Apply(ctx, rec)
}

// Apply makes the changes, durably. Every step is announced to rec, which is
// called from several goroutines. When it fails, some steps are made: whoever
// recorded them takes them back by [Plan.Undo]. Without a recorder that is done
// here.
func (p *Plan) Apply(ctx context.Context, rec workspace.Recorder) error {
	if rec != nil {
		return p.make(ctx, rec)
	}
	kept := newKept(p.Undo())
	err := p.make(ctx, kept)
	if err == nil {
		return nil
	}
	return errors.Join(err, kept.takeBack())
}

// make makes the steps, those that are independent of each other at once.
func (p *Plan) make(ctx context.Context, rec workspace.Recorder) error {
	for from := 0; from < len(p.steps); {
		to := from + 1
		for to < len(p.steps) && p.steps[to].phase == p.steps[from].phase && p.steps[to].order() == p.steps[from].order() {
			to++
		}
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(atOnce)
		for _, s := range p.steps[from:to] {
			g.Go(func() error {
				if ctx.Err() != nil {
					return fmt.Errorf("stopped before %s was touched: %w", s.change.Path, context.Cause(ctx))
				}
				return s.make(rec)
			})
		}
		if err := g.Wait(); err != nil {
			return fmt.Errorf("commit changes: %w", err)
		}
		from = to
	}
	return nil
}

func (s step) make(rec workspace.Recorder) error {
	var err error
	after := s.change.After
	switch {
	case s.phase == removing:
		err = s.place.Remove(s.before, rec)
	case s.phase == opening || s.phase == closing:
		_, err = s.place.Chmod(s.before, s.mode, rec)
	case s.phase == makingDirs:
		_, err = s.place.MakeDir(s.mode, rec)
	case after.Type == Symlink:
		_, err = s.place.Link(s.before, after.Target, rec)
	case s.before.Exists && s.before.SHA256 == after.SHA256:
		_, err = s.place.Chmod(s.before, after.Mode, rec)
	default:
		_, err = s.place.Put(s.before, s.change.Data, after.Mode, after.MTime, rec)
	}
	return err
}

// kept is a recorder that takes the changes back itself, as long as its process
// lives.
type kept struct {
	steps *workspace.Steps
	mu    sync.Mutex
	undo  []Undo
}

func newKept(undo []Undo) *kept {
	paths := make([]string, len(undo))
	for i, u := range undo {
		paths[i] = u.Path()
	}
	return &kept{steps: workspace.NewSteps(paths), undo: undo}
}

func (k *kept) Staged(path string, _, after workspace.State) error {
	n, ok := k.steps.Stage(path)
	if !ok {
		return fmt.Errorf("%s was not announced", path)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.undo[n].Staged = &after
	return nil
}

func (k *kept) Applied(path string, after workspace.State) error {
	n, _ := k.steps.Staged(path)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.undo[n].Applied = &after
	return nil
}

func (k *kept) Temp(path string) string {
	n, _ := k.steps.Next(path)
	return k.undo[n].Temp
}

func (k *kept) takeBack() error {
	var faults []error
	for i := len(k.undo) - 1; i >= 0; i-- {
		u := k.undo[i]
		outcome, err := u.Restore(func() ([]byte, error) { return u.Data, nil })
		if err == nil && outcome == workspace.Conflict && !k.undo[k.steps.First(u.Path())].IsBack() {
			err = fmt.Errorf("%s was changed by somebody else meanwhile and is left as it is", u.Path())
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}
