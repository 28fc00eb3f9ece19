package changes

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"correx/pkg/tools/workspace"
)

// A Plan is a set on its way into the workspace: steps, each of which changes one
// name. First what is closed to its owner is opened, then things go, the innermost
// first; directories come, the outermost first, then files and links; last,
// directories get the mode that they are to have.
type Plan struct{ steps []step }

// An Undo is what takes one step of a plan back.
type Undo struct {
	workspace.Undo
	Data []byte // of a file before
}

// A phase is a part of a plan.
type phase int

const (
	opening phase = iota
	removing
	makingDirs
	putting
	closing
)

// A step changes one name.
type step struct {
	phase  phase
	depth  int
	change Change // its After is what the step leads to
	mode   uint32 // of a directory, after the step
	place  workspace.Place
	before workspace.State
	old    []byte
}

// Plan holds a set against what is there, and plans the steps that make it. A
// [MovedError] says that a path is not any more what the set rests on. Nothing is
// touched.
func (s Set) Plan(roots *workspace.Roots) (*Plan, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("plan changes: %w", err)
	}
	b := planner{roots: roots, dirs: map[string]*dir{}}
	for _, c := range s.Changes {
		if err := b.change(c); err != nil {
			return nil, err
		}
	}
	if err := b.open(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(b.steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.phase, b.phase), cmp.Compare(a.order(), b.order()), strings.Compare(a.change.Path, b.change.Path))
	})
	return &Plan{b.steps}, nil
}

// order is when the step comes within its phase; steps of one order are
// independent of each other.
func (s step) order() int {
	switch s.phase {
	case removing, closing:
		return -s.depth
	case putting:
		return 0
	}
	return s.depth
}

// Undo is what takes the steps back, in the order in which they are made. They are
// taken back in the opposite one. A path may have several.
func (p *Plan) Undo() []Undo {
	all := make([]Undo, len(p.steps))
	temps := map[string]string{}
	for i, s := range p.steps {
		path := s.change.Path
		if temps[path] == "" {
			temps[path] = workspace.TempName()
		}
		all[i] = Undo{
			Undo: workspace.Undo{Root: s.place.Root(), Rel: s.place.Rel(), Before: s.before, Temp: temps[path], Trusted: true},
			Data: s.old,
		}
	}
	return all
}

// A planner is a plan in the making.
type planner struct {
	roots *workspace.Roots
	steps []step
	dirs  map[string]*dir
}

// A dir is a directory whose mode matters: it changes, or something in it does.
type dir struct {
	place   workspace.Place
	before  workspace.State // as it was; of a new one, as it is made
	after   uint32          // mode
	inside  bool            // something in it changes
	removed bool
}

// change plans one change.
func (b *planner) change(c Change) error {
	place, err := b.roots.At(c.Path)
	if err != nil {
		return err
	}
	now, err := place.LookAny(workspace.MaxAny)
	if err != nil {
		return &MovedError{Path: c.Path, Why: "it cannot be read any more: " + err.Error()}
	}
	if is := stateOf(now.State); !is.Same(c.Before) {
		return &MovedError{Path: c.Path, Why: fmt.Sprintf("it was %s, and is %s now", c.Before.brief(), is.brief())}
	}
	s := step{change: c, depth: strings.Count(c.Path, "/"), place: place, before: now.State, old: c.Old}
	if c.Before.Type == File && c.Before.SHA256 == c.After.SHA256 {
		s.old = c.Data
	}
	up := b.dirAt(path.Dir(c.Path))
	up.inside = up.inside || c.Before.Type != c.After.Type || c.After.Type != Directory
	b.plan(s)
	return nil
}

// plan adds the steps of one change.
func (b *planner) plan(s step) {
	before, after := s.change.Before.Type, s.change.After.Type
	if before == Directory || after == Directory {
		d := b.dirAt(s.change.Path)
		d.place, d.before, d.after, d.removed = s.place, s.before, s.change.After.Mode, after != Directory
	}
	if before == Directory && after == Directory {
		return // its mode alone: see open
	}
	if before != Nothing && (after == Nothing || before == Directory || after == Directory) {
		gone := s
		gone.phase = removing
		b.steps = append(b.steps, gone)
		s.before, s.old = workspace.State{}, nil
	}
	switch after {
	case Directory:
		s.phase, s.mode = makingDirs, s.change.After.Mode|0o700
		b.dirs[s.change.Path].before = workspace.State{Exists: true, Dir: true, Mode: s.mode}
		b.steps = append(b.steps, s)
	case File, Symlink:
		s.phase = putting
		b.steps = append(b.steps, s)
	}
}

func (b *planner) dirAt(path string) *dir {
	if b.dirs[path] == nil {
		b.dirs[path] = &dir{}
	}
	return b.dirs[path]
}

// open plans the modes of directories: what is closed to its owner is open while
// something in it changes.
func (b *planner) open() error {
	for name, d := range b.dirs {
		if d.place == (workspace.Place{}) { // it does not change itself
			if err := b.look(name, d); err != nil {
				return err
			}
		}
		if !d.before.Exists || !d.before.Dir {
			continue
		}
		at := step{change: Change{Path: name, After: State{Type: Directory}}, depth: strings.Count(name, "/"), place: d.place, before: d.before}
		if d.inside && d.before.Mode&0o700 != 0o700 || !d.removed && d.after&0o700 == 0o700 && d.after != d.before.Mode {
			opened := at
			opened.phase, opened.mode = opening, d.before.Mode|0o700
			if d.removed { // what is made again of it is another
				opened.before.Inode, opened.before.Dev = 0, 0
			}
			if !d.removed && d.after&0o700 == 0o700 {
				opened.mode = d.after
			}
			b.steps = append(b.steps, opened)
			at.before.Mode = opened.mode
			b.reopened(name, opened.mode)
		}
		if !d.removed && at.before.Mode != d.after {
			at.phase, at.mode = closing, d.after
			b.steps = append(b.steps, at)
		}
	}
	return nil
}

// reopened has the step that removes a directory find the mode that opening left.
func (b *planner) reopened(path string, mode uint32) {
	for i := range b.steps {
		if s := &b.steps[i]; s.change.Path == path && s.phase == removing {
			s.before.Mode = mode
		}
	}
}

// look finds out about a directory that does not change itself. For who may do
// everything none is closed.
func (b *planner) look(name string, d *dir) error {
	d.removed = true // nothing to close
	if os.Geteuid() == 0 {
		return nil
	}
	place, err := b.roots.At(name)
	var denied *workspace.DeniedError
	if errors.As(err, &denied) {
		return nil // an allowed directory itself
	}
	if err != nil {
		return err
	}
	now, err := place.LookAny(workspace.MaxAny)
	if err != nil || !now.Dir {
		return err
	}
	d.place, d.before, d.after, d.removed = place, now.State, now.Mode, false
	return nil
}
