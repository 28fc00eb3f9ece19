package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"correx/pkg/sandbox/stage"
	"correx/pkg/tools"
)

// protected are the paths that the command may not change though they are in one
// of the roots: .git, what is configured, what the command names, and this very
// program. In a directory that goes away afterwards nothing is.
func (r *Runner) protected(c tools.Command, roots []string) []string {
	var out []string
	for _, root := range roots {
		if r.o.Scratch != "" && below(r.o.Scratch, root) {
			continue
		}
		out = append(out, filepath.Join(root, ".git"))
		for _, name := range r.o.Protected {
			if !filepath.IsAbs(name) {
				out = append(out, filepath.Join(root, name))
			}
		}
		out = append(out, repositories(root)...)
	}
	for _, path := range slices.Concat(r.o.Protected, c.ReadOnly, []string{r.self}) {
		if filepath.IsAbs(path) && within(roots, filepath.Clean(path)) != "" {
			out = append(out, filepath.Clean(path))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// protect plans that path, in the writable root, cannot be changed, created,
// moved or removed.
func (p *plan) protect(root, path string) error {
	at := root
	rest := strings.TrimPrefix(strings.TrimPrefix(path, root), "/")
	if rest == "" {
		p.add(op{Mount: stage.Mount{Kind: stage.Again, Path: root}})
		return nil
	}
	parts := strings.Split(rest, "/")
	for i, name := range parts {
		at = filepath.Join(at, name)
		fi, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return p.forbid(at)
		case err != nil:
			return fmt.Errorf("protect %s: %w", path, err)
		case fi.Mode()&os.ModeSymlink != 0:
			return fmt.Errorf("protect %s: %s is a symbolic link, which a tool could replace; put what it points at in its place, or make another directory writable", path, at)
		case i == len(parts)-1:
			p.add(op{Mount: stage.Mount{Kind: stage.Again, Path: at}, file: !fi.IsDir()})
		case !fi.IsDir():
			p.add(op{Mount: stage.Mount{Kind: stage.Again, Path: at}, file: true})
			return nil
		default:
			p.add(op{Mount: stage.Mount{Kind: stage.Pin, Path: at}})
		}
	}
	return nil
}

// forbid plans that nothing can be created at path. Only what is there can be
// mounted on, so an empty directory is made there until the command has ended.
func (p *plan) forbid(path string) error {
	switch err := hold(path); {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errReadOnly):
		return nil // nor could the tool
	case err != nil:
		return fmt.Errorf("protect %s, which does not exist: %w", path, err)
	}
	p.held = append(p.held, path)
	p.cover(path, stage.Void, "dir")
	return nil
}

// How far repositories looks for nested ones.
const (
	searchDepth   = 3
	searchEntries = 1000
)

// repositories are the .git directories and files below a root, but for its own,
// and what those say git takes its hooks from. It does not look into all of a
// large tree.
func repositories(root string) []string {
	var out []string
	entries := searchEntries
	var search func(dir string, depth int)
	search = func(dir string, depth int) {
		list, err := os.ReadDir(dir)
		if err != nil {
			return
		}
		for _, e := range list {
			if entries--; entries < 0 {
				return
			}
			path := filepath.Join(dir, e.Name())
			switch {
			case e.Name() == ".git":
				out = append(out, path)
				out = append(out, hooks(root, dir)...)
			case e.IsDir() && depth < searchDepth && e.Name() != "node_modules":
				search(path, depth+1)
			}
		}
	}
	search(root, 1)
	return out
}

// gitRuns are settings that name a program.
var gitRuns = []string{
	"fsmonitor", "textconv", "clean", "smudge", "process", "command", "driver", "external", "sshcommand", "editor", "pager", "askpass", "helper",
}

// hooks are paths in root that the repository in dir takes its hooks, its settings
// or itself from, other than .git.
func hooks(root, dir string) []string {
	git := filepath.Join(dir, ".git")
	var out []string
	keep := func(path string) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		if path != root && below(root, path) && !below(git, path) {
			out = append(out, path)
		}
	}
	if text, err := readSmall(git); err == nil { // of a worktree or submodule
		if path, ok := strings.CutPrefix(text, "gitdir:"); ok {
			keep(strings.TrimSpace(path))
		}
		return out
	}
	if _, err := os.Lstat(filepath.Join(git, "hooks")); err == nil {
		keep(filepath.Join(git, "hooks"))
	}
	text, _ := readSmall(filepath.Join(git, "config"))
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, "=")
		if value = strings.Trim(strings.TrimSpace(value), `"`); !ok || value == "" {
			continue
		}
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case name == "hookspath":
			keep(value)
		case name == "path" && !filepath.IsAbs(value): // of what is included
			keep(filepath.Join(git, value))
		case name == "path":
			keep(value)
		case slices.Contains(gitRuns, name):
			program, _, _ := strings.Cut(value, " ")
			if _, err := os.Lstat(filepath.Join(dir, program)); err == nil && strings.Contains(program, "/") {
				keep(program)
			}
		}
	}
	return out
}

// readSmall reads a regular file of at most 64 KiB.
func readSmall(path string) (string, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !fi.Mode().IsRegular() || fi.Size() > 64<<10 {
		return "", errors.New("is no small file")
	}
	data, err := os.ReadFile(path)
	return string(data), err
}
