package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"correx/pkg/sandbox/stage"
	"correx/pkg/tools"
)

// scratchSize is how much a process may keep in /tmp, /var/tmp and /dev/shm.
const scratchSize = 256 << 20

// A plan is the file system that a process sees, on its way to an order.
type plan struct {
	ops    []op
	nodes  []stage.Node
	made   map[stage.Node]bool
	covers int
	held   []string // mount points that were made outside and go away again
}

// An op is a mount and what is at its place outside.
type op struct {
	stage.Mount
	file   bool
	inside string // of a Cover: the node that is its top
}

// planFor plans the mounts for a command. What it made outside is in held, also
// when it fails.
func (r *Runner) planFor(c tools.Command) (*plan, error) {
	p := &plan{made: map[stage.Node]bool{}}
	p.devices()
	for _, dir := range []string{"/run", "/sys"} {
		p.hide(dir, "")
	}
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		p.scratch(dir)
	}
	roots, err := p.changeable(c)
	if err != nil {
		return p, err
	}
	for _, path := range r.secrets() {
		p.hide(path, within(roots, path))
	}
	readable := append(slices.Clone(r.readable), c.Readable...)
	if covered(p.ops, c.Path) {
		readable = append(readable, c.Path) // the program itself is no secret
	}
	if c.Network {
		readable = append(readable, "/etc/resolv.conf")
	}
	for _, path := range readable {
		p.show(path)
	}
	if err := p.check(roots, r.hidden()); err != nil {
		return p, err
	}
	for _, path := range r.protected(c, roots) {
		if err := p.protect(within(roots, path), path); err != nil {
			return p, err
		}
	}
	return p, p.arrange()
}

// changeable plans what the command may change, and returns those directories.
func (p *plan) changeable(c tools.Command) (roots []string, err error) {
	for _, dir := range c.Writable {
		if err := real(dir); err != nil {
			return nil, fmt.Errorf("make %s writable: %w", dir, err)
		}
		p.add(op{Mount: stage.Mount{Kind: stage.Bind, Path: filepath.Clean(dir)}})
		roots = append(roots, filepath.Clean(dir))
	}
	for _, o := range c.Overlays {
		for _, dir := range []string{o.Dir, o.Upper, o.Work} {
			if err := real(dir); err != nil {
				return nil, fmt.Errorf("mount overlay at %s: %s: %w", o.Dir, dir, err)
			}
		}
		p.add(op{Mount: stage.Mount{Kind: stage.Overlay, Path: filepath.Clean(o.Dir), Upper: o.Upper, Work: o.Work}})
		roots = append(roots, filepath.Clean(o.Dir))
	}
	return roots, nil
}

// real refuses what is not the real path of a directory. That no component is a
// symbolic link is for the stage to make sure, which opens it.
func real(dir string) error {
	switch fi, err := os.Lstat(dir); {
	case err != nil:
		return err
	case !filepath.IsAbs(dir) || filepath.Clean(dir) == "/":
		return errors.New("that must be an absolute path, and not all there is")
	case fi.Mode()&os.ModeSymlink != 0:
		return errors.New("it is a symbolic link; name what it points at")
	case !fi.IsDir():
		return errors.New("it is no directory")
	}
	return nil
}

// check refuses to make writable what is to be hidden.
func (p *plan) check(roots, hidden []string) error {
	for _, h := range hidden {
		if slices.Contains(roots, h) {
			return fmt.Errorf("make %s writable: it is one of the paths that are hidden from tools", h)
		}
	}
	return nil
}

// within is the deepest of the roots that path is in, or empty.
func within(roots []string, path string) string {
	best := ""
	for _, r := range roots {
		if len(r) > len(best) && below(r, path) {
			best = r
		}
	}
	return best
}

// covered tells whether a path is in what a cover hides.
func covered(ops []op, path string) bool {
	return slices.ContainsFunc(ops, func(o op) bool { return o.Kind == stage.Cover && below(o.Path, path) })
}

// below compares whole components.
func below(dir, path string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

func (p *plan) add(o op) { p.ops = append(p.ops, o) }

// cover plans an empty directory of a base.
func (p *plan) cover(path string, base stage.Base, kind string) {
	name := fmt.Sprintf("d%d", p.covers)
	p.covers++
	p.node(base, name, kind)
	p.add(op{Mount: stage.Mount{Kind: stage.Cover, Path: path, Base: base, Node: name}, inside: name})
}

func (p *plan) node(base stage.Base, path, kind string) {
	n := stage.Node{Base: base, Path: path, Kind: kind}
	if !p.made[n] {
		p.made[n] = true
		p.nodes = append(p.nodes, n)
	}
}

// scratch gives the process a directory of its own in place of one that all
// share.
func (p *plan) scratch(path string) {
	if fi, err := os.Lstat(path); err == nil && fi.IsDir() {
		p.cover(path, stage.Scratch, "open")
	}
}

// hide puts nothing over what is at path. root is the writable directory that it
// is in, if it is in one: then it cannot be created either.
func (p *plan) hide(path, root string) {
	target, err := resolve(path)
	if err != nil {
		if root != "" {
			_ = p.protect(root, path) // what cannot be made here cannot be made there
		}
		return
	}
	fi, err := os.Lstat(target)
	switch {
	case err != nil || target == "/":
	case fi.IsDir():
		p.cover(target, stage.Void, "dir")
	default:
		p.node(stage.Void, "empty", "file")
		p.add(op{Mount: stage.Mount{Kind: stage.Cover, Path: target, Node: "empty"}, file: true})
	}
}

// show plans what may be read though it would be hidden.
func (p *plan) show(path string) {
	target, err := resolve(path)
	if err != nil {
		return
	}
	fi, err := os.Stat(target)
	if err != nil {
		return
	}
	p.add(op{Mount: stage.Mount{Kind: stage.Readable, Path: target}, file: !fi.IsDir()})
}

// resolve is filepath.EvalSymlinks for paths of which most do not exist.
func resolve(path string) (string, error) {
	if _, err := os.Lstat(path); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// devices plans a /dev with what programs cannot do without.
func (p *plan) devices() {
	p.cover("/dev", stage.Void, "dir")
	dev := p.ops[len(p.ops)-1].inside
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		if _, err := os.Stat("/dev/" + name); err == nil {
			p.add(op{Mount: stage.Mount{Kind: stage.Device, Path: "/dev/" + name}, file: true})
		}
	}
	for _, l := range [][2]string{{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"}} {
		p.nodes = append(p.nodes, stage.Node{Path: dev + "/" + l[0], Kind: "link", To: l[1]})
	}
	p.cover("/dev/shm", stage.Scratch, "open")
}

// rank says what of several things at one path comes on top.
func (o op) rank() int {
	switch o.Kind {
	case stage.Cover:
		return 0
	case stage.Readable, stage.Pin:
		return 1
	case stage.Again:
		return 3
	}
	return 2
}

// arrange sorts the mounts, parents first, and plans the mount points of those
// that lie in a cover.
func (p *plan) arrange() error {
	slices.SortStableFunc(p.ops, func(a, b op) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), a.rank()-b.rank())
	})
	p.ops = slices.CompactFunc(p.ops, func(a, b op) bool {
		return a.Path == b.Path && a.Kind == b.Kind && (a.Kind != stage.Cover || a.Base == b.Base)
	})
	var open []op // from the root to here
	for _, o := range p.ops {
		for len(open) > 0 && !below(open[len(open)-1].Path, o.Path) {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			p.mountPoint(open[len(open)-1], o)
		}
		open = append(open, o)
	}
	return nil
}

// mountPoint plans the place of o, which lies right in over.
func (p *plan) mountPoint(over, o op) {
	if over.inside == "" || over.Path == o.Path {
		return // it is there
	}
	path := over.inside
	parts := strings.Split(strings.TrimPrefix(o.Path, over.Path+"/"), "/")
	for i, name := range parts {
		path += "/" + name
		kind := "dir"
		if i == len(parts)-1 && o.file {
			kind = "file"
		}
		p.node(over.Base, path, kind)
	}
}
