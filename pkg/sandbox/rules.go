package sandbox

import (
	"os"
	"path/filepath"
	"slices"

	"correx/pkg/tools"
)

// rulesFor are the rules of a process that has Landlock alone. It can only allow,
// and always with all that lies below: so everything that is next to what must
// not be read is allowed one by one, and what appears there later is not.
func (r *Runner) rulesFor(c tools.Command) []rule {
	var hidden []string
	for _, path := range slices.Concat(r.secrets(), []string{"/run", "/tmp", "/var/tmp", "/dev/shm"}) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			hidden = append(hidden, real)
		}
	}
	rules := carve("/", hidden, false)
	for _, path := range slices.Concat(r.readable, c.Readable, []string{c.Path}) {
		rules = append(rules, rule{path: path})
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		rules = append(rules, rule{path: "/dev/" + name, write: true})
	}
	for _, root := range c.Writable {
		// What is protected is not written, nor can anything be made beside it.
		rules = append(rules, carve(root, slices.Concat(hidden, r.existing(c, root)), true)...)
		rules = append(rules, carve(root, hidden, false)...)
	}
	return rules
}

// existing are the protected paths that exist.
func (r *Runner) existing(c tools.Command, root string) []string {
	var out []string
	for _, path := range r.protected(c, []string{root}) {
		if _, err := os.Lstat(path); err == nil {
			out = append(out, path)
		}
	}
	return out
}

// carve allows all in dir but what is kept out.
func carve(dir string, out []string, write bool) []rule {
	if slices.ContainsFunc(out, func(o string) bool { return o == dir }) {
		return nil
	}
	if !slices.ContainsFunc(out, func(o string) bool { return below(dir, o) }) {
		return []rule{{path: dir, write: write}}
	}
	entries, _ := os.ReadDir(dir) // what cannot be listed is not allowed
	var rules []rule
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			rules = append(rules, carve(filepath.Join(dir, e.Name()), out, write)...)
		}
	}
	return rules
}
