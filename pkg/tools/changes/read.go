package changes

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Read says what the commands that ran on overlays changed: all that lies in the
// layers' upper directories, held against the directories below. No process may
// be left that writes to them. Nothing is read through a symbolic link. protected
// says of which paths a change is refused; nil refuses none.
//
// A copied file that is what it was is no change. What somebody else changed below
// since the upper directory was made is a [MovedError], where the file system
// knows when that was; what cannot be in a set is a [RefusedError].
//
// Permissions that the commands took away from themselves in the upper directory
// are given back there as far as reading needs them.
func Read(ctx context.Context, layers []Layer, limits Limits, protected func(path string) bool) (Set, error) {
	r := reader{ctx: ctx, limits: limits.withDefaults(), protected: protected}
	for _, l := range layers {
		if err := r.layer(l); err != nil {
			return Set{}, fmt.Errorf("read changes below %s: %w", l.Dir, err)
		}
	}
	slices.SortFunc(r.out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	for i := 1; i < len(r.out); i++ {
		if r.out[i].Path == r.out[i-1].Path {
			return Set{}, fmt.Errorf("read changes: %s is in two layers", r.out[i].Path)
		}
	}
	return Set{Changes: r.out}, nil
}

// A reader is a set in the making.
type reader struct {
	ctx       context.Context
	limits    Limits
	protected func(string) bool
	since     int64 // when the upper directory was made, ns since 1970; 0: not known
	entries   int
	bytes     int64
	out       []Change
}

func (r *reader) layer(l Layer) error {
	upper, err := openTop(l.Upper)
	if err != nil {
		return err
	}
	defer upper.Close()
	lower, err := openTop(l.Dir)
	if err != nil {
		return err
	}
	defer lower.Close()
	r.since = birth(upper)
	return r.merge(place{dir: upper, path: l.Dir}, &place{dir: lower, path: l.Dir}, false, 0)
}

// merge compares an upper directory with the one below, which may be nil. What an
// opaque one does not have is gone, and what is in it is opaque too.
func (r *reader) merge(upper place, lower *place, opaque bool, depth int) error {
	if depth > maxDepth {
		return refuse(upper.path, "is nested in %d directories, and more are not committed", maxDepth)
	}
	names, err := r.names(upper)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if err := r.entry(upper, lower, name, opaque, depth); err != nil {
			return err
		}
	}
	if !opaque || lower == nil {
		return nil
	}
	below, err := r.names(*lower)
	if err != nil {
		return err
	}
	for _, name := range below {
		if _, found := slices.BinarySearch(names, name); !found {
			if err := r.gone(*lower, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry compares one entry of an upper directory with that below.
func (r *reader) entry(upper place, lower *place, name string, opaque bool, depth int) error {
	now, err := r.upperNode(upper, name)
	if err != nil {
		return err
	}
	defer now.close()
	if now.whiteout {
		if lower == nil {
			return nil
		}
		return r.gone(*lower, name)
	}
	var was node
	if lower != nil {
		if was, err = r.lowerNode(*lower, name); err != nil {
			return err
		}
		defer was.close()
	}
	if err := r.emit(now.path, was, now); err != nil {
		return err
	}
	var below *place
	if was.state.Type == Directory {
		below = &place{dir: was.dir, path: was.path}
	}
	if now.state.Type == Directory {
		return r.merge(place{dir: now.dir, path: now.path}, below, opaque || now.opaque, depth+1)
	}
	if below != nil {
		return r.allGone(*below)
	}
	return nil
}

// gone adds what stands below under name, and all that is in it, as deleted.
func (r *reader) gone(lower place, name string) error {
	was, err := r.lowerNode(lower, name)
	if err != nil {
		return err
	}
	defer was.close()
	if was.state.Type == Nothing {
		return nil
	}
	if err := r.emit(was.path, was, node{}); err != nil {
		return err
	}
	if was.state.Type != Directory {
		return nil
	}
	return r.allGone(place{dir: was.dir, path: was.path})
}

func (r *reader) allGone(lower place) error {
	names, err := r.names(lower)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.gone(lower, name); err != nil {
			return err
		}
	}
	return r.ctx.Err()
}

// emit adds a change, if it is one.
func (r *reader) emit(path string, was, now node) error {
	if was.state.Same(now.state) {
		return nil
	}
	if r.protected != nil && r.protected(path) {
		return refuse(path, "is protected, and the command %s it; nothing is committed. Have it leave that alone", kindOf(was.state, now.state))
	}
	if was.state.Type == File && was.links > 1 {
		return refuse(path, "has %d hard links; changing it would change its other names too, so nothing is committed. Have the command leave it alone, or make it a file of its own", was.links)
	}
	if r.since != 0 && was.ctime > r.since {
		return &MovedError{Path: path, Why: "somebody else changed it while the command ran"}
	}
	was.state.MTime = 0
	c := Change{Path: path, Kind: kindOf(was.state, now.state), Before: was.state, After: now.state, Old: was.data, Data: now.data}
	if c.Before.SHA256 == c.After.SHA256 {
		c.Old = nil
	}
	if r.out = append(r.out, c); len(r.out) > r.limits.Entries {
		return fmt.Errorf("more than %d paths changed, and so many are not committed at once; have the command change less, or raise the limit", r.limits.Entries)
	}
	return nil
}
