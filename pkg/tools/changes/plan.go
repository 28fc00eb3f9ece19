package changes

import (
	"context"
	"errors"

	"correx/pkg/tools/workspace"
)

// A Plan is a set on its way into the workspace.
type Plan struct{ undo []Undo }

// An Undo is what takes one step of a plan back.
type Undo struct {
	workspace.Undo
	Data []byte // of a file before
}

// Plan holds a set against what is there, and plans the steps that make it. A
// [MovedError] says that a path is not any more what the set rests on.
func (s Set) Plan(roots *workspace.Roots) (*Plan, error) {
	return nil, errors.New("plan changes: not implemented yet")
}

// Undo is what takes the steps back, in their order. It is taken back in the
// opposite one.
func (p *Plan) Undo() []Undo { return p.undo }

// Apply makes the changes. Every step is announced to rec, which may be called
// from several goroutines. When it fails, some are made: whoever recorded them
// takes them back.
func (p *Plan) Apply(ctx context.Context, rec workspace.Recorder) error {
	return errors.New("apply changes: not implemented yet")
}

// Check reports whether the workspace still is what the set rests on. A
// [MovedError] names what is not.
func (s Set) Check(roots *workspace.Roots) error {
	_, err := s.Plan(roots)
	return err
}

// Apply makes the changes, all or none: without a recorder, what was made before
// a failure is taken back here. A path that is not any more what the set rests on
// is a [MovedError], and nothing is done.
func (s Set) Apply(ctx context.Context, roots *workspace.Roots, rec workspace.Recorder) error {
	p, err := s.Plan(roots)
	if err != nil {
		return err
	}
	return p.Apply(ctx, rec)
}
