package escape

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"correx/pkg/tools"
)

// gitAttempts plant what a person's next git command, or the next start of a
// program, would run. The workspace may be written; these parts of it may not.
func gitAttempts() []attempt {
	at := func(names ...string) func(s *site) string {
		return func(s *site) string { return filepath.Join(append([]string{s.Work}, names...)...) }
	}
	return []attempt{
		{name: "write a hook in .git", prepare: repository, escaped: appears(at(".git", "hooks", "post-checkout")),
			inside: func(*site) error { return write(".git/hooks/post-checkout") }},
		{name: "write .git/config", prepare: repository, escaped: evilIn(".git/config"),
			inside: func(*site) error { return write(".git/config") }},
		{name: "replace .git/config by renaming", prepare: repository, escaped: evilIn(".git/config"),
			inside: func(*site) error { return made(func() error { return os.Rename("evil", ".git/config") }) }},
		{name: "rename .git away and make another", prepare: repository, escaped: evilIn(".git/config"), inside: func(*site) error {
			if err := os.Rename(".git", "git"); err != nil {
				return err
			}
			return write(".git/config")
		}},
		{name: "remove .git and make another", prepare: repository, escaped: evilIn(".git/config"), inside: func(*site) error {
			if err := os.RemoveAll(".git"); err != nil {
				return err
			}
			return write(".git/config")
		}},
		{name: "make .git where there is none", escaped: evilIn(".git/config"), inside: func(*site) error { return write(".git/config") }},
		{name: "make .git a symbolic link where there is none", escaped: evilIn(".git/config"), inside: func(*site) error {
			if err := write("fake/config"); err != nil {
				return err
			}
			return os.Symlink("fake", ".git")
		}},
		{name: "rewrite the .git file of a worktree", prepare: func(t testing.TB, s *site) {
			s.put(t, filepath.Join(s.Work, ".git"), "gitdir: "+filepath.Join(s.Outside, "gitdir"))
		}, escaped: evilIn(".git"), inside: func(*site) error { return scribbleEvil(".git") }},
		{name: "replace the .git file of a worktree", prepare: func(t testing.TB, s *site) {
			s.put(t, filepath.Join(s.Work, ".git"), "gitdir: "+filepath.Join(s.Outside, "gitdir"))
		}, escaped: evilIn(".git"), inside: func(*site) error { return made(func() error { return os.Rename("evil", ".git") }) }},
		{name: "write a hook where .git/hooks is a link to the workspace", prepare: func(t testing.TB, s *site) {
			repository(t, s)
			s.role.mkdir(t, filepath.Join(s.Work, "hooks"))
			s.link(t, "../hooks", filepath.Join(s.Work, ".git", "hooks"))
		}, escaped: appears(at(".git", "hooks", "post-checkout")), inside: func(*site) error { return write("hooks/post-checkout") }},
		{name: "write a hook where core.hooksPath is a directory of the workspace", prepare: func(t testing.TB, s *site) {
			repository(t, s)
			asRole(t, s, "git", "config", "core.hooksPath", "tools/hooks")
			s.role.mkdir(t, filepath.Join(s.Work, "tools", "hooks"))
		}, escaped: appears(at("tools", "hooks", "post-checkout")), inside: func(*site) error { return write("tools/hooks/post-checkout") }},
		{name: "write a file of the workspace that .git/config includes", prepare: func(t testing.TB, s *site) {
			repository(t, s)
			asRole(t, s, "git", "config", "include.path", "../gitconfig")
			s.put(t, filepath.Join(s.Work, "gitconfig"), untouched)
		}, escaped: evilIn("gitconfig"), inside: func(*site) error { return scribbleEvil("gitconfig") }},
		{name: "write a program of the workspace that .git/config has git run", prepare: func(t testing.TB, s *site) {
			repository(t, s)
			asRole(t, s, "git", "config", "core.fsmonitor", "tools/monitor --quick")
			s.put(t, filepath.Join(s.Work, "tools", "monitor"), untouched)
		}, escaped: evilIn("tools/monitor"), inside: func(*site) error { return scribbleEvil("tools/monitor") }},
		{name: "write a hook of a repository below the workspace", prepare: nested("sub"), escaped: appears(at("sub", ".git", "hooks", "post-checkout")),
			inside: func(*site) error { return write("sub/.git/hooks/post-checkout") }},
		{name: "write a hook of a repository far below the workspace", prepare: nested("a/b/c/d/e"), escaped: appears(at("a/b/c/d/e", ".git", "hooks", "post-checkout")),
			inside: func(*site) error { return write("a/b/c/d/e/.git/hooks/post-checkout") },
			open:   "repositories are looked for in the workspace and three directories down."},
		{name: "make a repository in a directory of its own", escaped: evilIn("mine/.git/config"), inside: func(*site) error { return write("mine/.git/config") },
			open: "a directory that it made is its own, with all that is in it: look before you use git in one."},
		{name: "write a file that the configuration protects", prepare: protected, command: protects("settings.json"),
			escaped: evilIn("settings.json"), inside: func(*site) error { return scribbleEvil("settings.json") }},
		{name: "replace a file that the configuration protects", prepare: protected, command: protects("settings.json"),
			escaped: evilIn("settings.json"), inside: func(*site) error { return made(func() error { return os.Rename("evil", "settings.json") }) }},
		{name: "delete a file that the configuration protects and make another", prepare: protected, command: protects("settings.json"),
			escaped: evilIn("settings.json"), inside: func(*site) error {
				if err := os.Remove("settings.json"); err != nil {
					return err
				}
				return write("settings.json")
			}},
		{name: "hard-link a file that the configuration protects and write the link", prepare: protected, command: protects("settings.json"),
			escaped: evilIn("settings.json"), inside: func(*site) error {
				if err := os.Link("settings.json", "other"); err != nil {
					return err
				}
				return scribbleEvil("other")
			}},
		{name: "make a protected file that is not there yet", command: protects("settings.json"),
			escaped: evilIn("settings.json"), inside: func(*site) error { return write("settings.json") }},
		{name: "make a protected file whose directory is not there yet", command: protects("conf/settings.json"),
			escaped: evilIn("conf/settings.json"), inside: func(*site) error { return write("conf/settings.json") }},
		{name: "rename the directory of a protected file away and make another", prepare: func(t testing.TB, s *site) {
			s.put(t, filepath.Join(s.Work, "conf/settings.json"), untouched)
		}, command: protects("conf/settings.json"), escaped: evilIn("conf/settings.json"), inside: func(*site) error {
			if err := os.Rename("conf", "old"); err != nil {
				return err
			}
			return write("conf/settings.json")
		}},
		{name: "exchange the directory of a protected file with another", prepare: func(t testing.TB, s *site) {
			s.put(t, filepath.Join(s.Work, "conf/settings.json"), untouched)
		}, command: protects("conf/settings.json"), escaped: evilIn("conf/settings.json"), inside: func(*site) error {
			if err := write("fake/settings.json"); err != nil {
				return err
			}
			return unix.Renameat2(unix.AT_FDCWD, "conf", unix.AT_FDCWD, "fake", unix.RENAME_EXCHANGE)
		}},
	}
}

const evil = "#!/bin/sh\necho evil\n"

// write makes a file with all its directories, or overwrites it.
func write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(evil), 0o755)
}

func scribbleEvil(path string) error { return os.WriteFile(path, []byte(evil), 0o755) }

// evilIn looks whether a file of the workspace is the attempt's.
func evilIn(name string) func(testing.TB, *site, outcome) bool {
	return func(_ testing.TB, s *site, _ outcome) bool { return content(filepath.Join(s.Work, name)) == evil }
}

func protected(t testing.TB, s *site) { s.put(t, filepath.Join(s.Work, "settings.json"), untouched) }

// nested makes a repository below the workspace.
func nested(dir string) func(testing.TB, *site) {
	return func(t testing.TB, s *site) {
		s.role.mkdir(t, filepath.Join(s.Work, dir))
		asRole(t, s, "git", "init", "-q", "--template=", dir)
		s.role.mkdir(t, filepath.Join(s.Work, dir, ".git", "hooks"))
	}
}

func protects(name string) func(*tools.Command, *site) {
	return func(c *tools.Command, s *site) { c.ReadOnly = append(c.ReadOnly, filepath.Join(s.Work, name)) }
}

// link makes a symbolic link that belongs to the role.
func (s *site) link(t testing.TB, to, path string) {
	t.Helper()
	_ = os.Remove(path) // an empty directory, or nothing
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
	s.role.own(t, path)
}

// repository makes the workspace a git repository of the role's.
func repository(t testing.TB, s *site) {
	t.Helper()
	asRole(t, s, "git", "init", "-q", "--template=")
	s.role.mkdir(t, filepath.Join(s.Work, ".git", "hooks"))
}
