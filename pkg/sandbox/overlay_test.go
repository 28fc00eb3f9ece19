package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"correx/pkg/tools"
	"correx/pkg/tools/changes"
	"correx/pkg/tools/workspace"
)

// seed is that of CORREX_SEED, or a new one that is told.
func seedOf(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano()) & 0xffffffff
	if s := os.Getenv("CORREX_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("CORREX_SEED=%d", seed)
	return seed
}

func soak() bool { return os.Getenv("CORREX_SOAK") != "" }

// A layered is a directory and an overlay over it.
type layered struct{ dir, upper, work string }

func layOver(t testing.TB, dir string) layered {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := layered{dir, filepath.Join(top, "upper"), filepath.Join(top, "work")}
	for _, d := range []string{l.upper, l.work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// run runs a script on the overlay.
func (l layered) run(ctx context.Context, r tools.Runner, text string) (tools.Exit, error) {
	return r.Run(ctx, tools.Command{
		Path: "/bin/sh", Argv: []string{"sh", "-c", text}, Env: []string{"PATH=" + tools.SearchPath}, Dir: l.dir,
		Timeout: time.Minute, Overlays: []tools.Overlay{{Dir: l.dir, Upper: l.upper, Work: l.work}},
	})
}

// seen is the tree that the commands on the overlay saw at the end.
func (l layered) seen(t testing.TB, r *Runner, dest string) map[string]string {
	t.Helper()
	if err := os.Mkdir(dest, 0o755); err != nil {
		t.Fatal(err)
	}
	exit, err := r.Run(context.Background(), tools.Command{
		Path: "/bin/sh", Argv: []string{"sh", "-c", `for f in *; do if [ -e "$f" ] || [ -L "$f" ]; then cp -a "$f" "$0" || exit 1; fi; done`, dest}, Env: []string{"PATH=" + tools.SearchPath}, Dir: l.dir, Timeout: time.Minute,
		Writable: []string{dest}, Overlays: []tools.Overlay{{Dir: l.dir, Upper: l.upper, Work: l.work}},
	})
	if err != nil || exit.Code != 0 {
		t.Fatalf("copy what is seen: %+v, %s, %v", exit, exit.Stderr.Head, err)
	}
	return treeOf(t, dest)
}

func (l layered) read() (changes.Set, error) {
	return changes.Read(context.Background(), []changes.Layer{{Dir: l.dir, Upper: l.upper}}, changes.Limits{}, nil)
}

// treeOf is all below a directory: types, modes, contents and targets.
func treeOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	tree, err := walkTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func walkTree(dir string) (map[string]string, error) {
	tree := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		what := fi.Mode().String()
		switch {
		case fi.Mode()&os.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what = "-> " + to
		case fi.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += " " + string(data)
		}
		tree[strings.TrimPrefix(path, dir+"/")] = what
		return nil
	})
	return tree, err
}

// differ tells how two trees differ.
func differ(have, want map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if have[name] != want[name] {
			fmt.Fprintf(&b, "%s is %.60q, want %.60q\n", name, have[name], want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, ok := want[name]; !ok {
			fmt.Fprintf(&b, "%s is %.60q, want nothing\n", name, have[name])
		}
	}
	return b.String()
}

// A chance draws trees and commands. Plain ones close no directory to their own
// user: of a closed one mv can rename what it cannot copy, and an overlay has it
// copy all directories.
type chance struct {
	*rand.Rand
	plain bool
}

func (c chance) name() string { return string(rune('a' + c.IntN(5))) }

// path is a path of up to three names, so that most commands meet something.
func (c chance) path() string {
	p := c.name()
	for range c.IntN(3) {
		p += "/" + c.name()
	}
	return p
}

func (c chance) word() string {
	words := []string{"", "one", "two\\nlines", "\\000\\001", strings.Repeat("x", 3000)}
	return words[c.IntN(len(words))]
}

func (c chance) mode() string {
	if c.plain {
		return []string{"755", "700", "750"}[c.IntN(3)]
	}
	return []string{"u=rX,g=", "755", "u=rwX,go=", "u=rX,go=rX", "a=rwX"}[c.IntN(5)]
}

// command is one line of a script. Many fail, and that is part of it.
func (c chance) command() string {
	p, q := c.path(), c.path()
	switch c.IntN(18) {
	case 0, 1:
		return fmt.Sprintf("printf '%s' > %s", c.word(), p)
	case 2:
		return fmt.Sprintf("printf '%s' >> %s", c.word(), p)
	case 3, 4:
		return "mkdir -p " + p
	case 5:
		return "rm -rf " + p
	case 6:
		return "rm -f " + p
	case 7:
		return fmt.Sprintf("mv %s %s", p, q)
	case 8:
		return fmt.Sprintf("mv -T %s %s", p, q)
	case 9:
		return fmt.Sprintf("ln -sfn %s %s", q, p)
	case 10:
		return fmt.Sprintf("ln %s %s", p, q)
	case 11:
		return fmt.Sprintf("chmod %s %s", c.mode(), p)
	case 12:
		// What cp makes of a directory that it copies into itself depends on the order of its names.
		return fmt.Sprintf(`case "$(realpath -m %s)/" in "$(realpath -m %s)"/*) ;; *) cp -a %s %s;; esac`, q, p, p, q)
	case 13:
		return fmt.Sprintf("rm -rf %s; printf '%s' > %s", p, c.word(), p)
	case 14:
		return fmt.Sprintf("rm -rf %s; mkdir -p %s/%s", p, p, c.name())
	case 15:
		if c.plain {
			return "touch " + p
		}
		return fmt.Sprintf("mkdir -p %s && chmod 500 %s", p, p)
	case 16:
		return fmt.Sprintf("chmod 700 %s && rm -rf %s/%s", p, p, c.name())
	}
	return fmt.Sprintf("sed -i s/o/0/ %s", p)
}

func (c chance) script(n int) string {
	lines := []string{"exec 2>/dev/null", "umask 022"}
	for range n {
		lines = append(lines, c.command())
	}
	return strings.Join(append(lines, "exit 0"), "\n")
}

// copyTree copies with modes, and times so that nothing is younger than it was.
func copyTree(t testing.TB, from, to string) {
	t.Helper()
	if text, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copy: %v: %s", err, text)
	}
}

// TestCommitIsWhatTheCommandDid runs random scripts on overlays. Their changes are
// read, kept, read again and made, and the tree is then what the script saw; where
// that must be, it is what the script makes of a copy without an overlay, too. Then
// the changes are taken back.
func TestCommitIsWhatTheCommandDid(t *testing.T) {
	runner := newRunner(t)
	needOverlay(t, runner)
	seed, rounds := seedOf(t), 25
	if soak() {
		rounds = 1500
	}
	for n := range rounds {
		c := chance{rand.New(rand.NewPCG(seed, uint64(n))), n%2 == 0}
		if !t.Run(strconv.Itoa(n), func(t *testing.T) { commitOnce(t, runner, c) }) {
			t.Fatalf("round %d of CORREX_SEED=%d", n, seed)
		}
	}
}

func commitOnce(t *testing.T, runner *Runner, c chance) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer openAll(top)
	direct, over := filepath.Join(top, "direct"), filepath.Join(top, "over")
	if err := os.Mkdir(direct, 0o755); err != nil {
		t.Fatal(err)
	}
	setup, text := c.script(15+c.IntN(20)), c.script(1+c.IntN(12))
	sh(t, direct, strings.ReplaceAll(setup, "\nln ", "\ncp -r "))
	copyTree(t, direct, over)
	before := treeOf(t, over)
	l := layOver(t, over)
	defer openAll(filepath.Dir(l.upper))
	exit, err := l.run(context.Background(), runner, text)
	if err != nil || exit.Code != 0 {
		t.Fatalf("run: %+v, %v", exit, err)
	}
	want := l.seen(t, runner, filepath.Join(top, "seen"))
	set, err := l.read()
	if err != nil {
		t.Fatalf("read: %v\n%s", err, text)
	}
	if now := treeOf(t, over); !maps.Equal(now, before) {
		t.Fatalf("the command changed what lies below:\n%s", differ(now, before))
	}
	kept, err := set.Encode()
	if err != nil {
		t.Fatalf("encode: %v\n%s", err, text)
	}
	if set, err = changes.Decode(kept); err != nil {
		t.Fatal(err)
	}
	if c.plain {
		sh(t, direct, text)
		if have := treeOf(t, direct); !maps.Equal(have, want) {
			t.Fatalf("on an overlay the command does something else:\n%s\n%s", differ(want, have), text)
		}
	}
	roots, err := workspace.Open([]string{over})
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	plan, err := set.Plan(roots)
	if err != nil {
		t.Fatalf("plan: %v\n%s", err, text)
	}
	journal, key := newJournal(t), callOf("shell", 0, nil).Key
	rec := announce(t, journal, key, plan)
	if err := plan.Apply(context.Background(), rec); err != nil {
		t.Fatalf("apply: %v\n%s\n%s", err, text, set.Diff(0))
	}
	if have := treeOf(t, over); !maps.Equal(have, want) {
		t.Fatalf("committed is not what the command saw:\n%s\n%s\n%s", differ(have, want), text, set.Diff(0))
	}
	takeBackTwice(t, journal, key, over, before, text)
}

// takeBackTwice takes a commit back, and then once more, as after a crash right
// before that was noted.
func takeBackTwice(t *testing.T, j *Journal, key Key, dir string, before map[string]string, text string) {
	t.Helper()
	for range 2 {
		files, err := j.Rollback(key)
		if err != nil {
			t.Fatalf("roll back: %v\n%s", err, text)
		}
		for _, f := range files {
			if f.Effects != "rolled_back" {
				t.Fatalf("%+v\n%s", f, text)
			}
		}
		if now := treeOf(t, dir); !maps.Equal(now, before) {
			t.Fatalf("taken back it is not what it was:\n%s\n%s", differ(now, before), text)
		}
		if e := j.find(key); e != nil {
			e.settled = false
		}
	}
}

func newJournal(t testing.TB) *Journal {
	t.Helper()
	j, _, err := OpenJournal(t.TempDir(), JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func announce(t testing.TB, j *Journal, key Key, plan *changes.Plan) workspace.Recorder {
	t.Helper()
	rec, err := j.Commit(key, "shell", plan)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// sh runs a script in a directory, unconfined.
func sh(t testing.TB, dir, text string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", text)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + tools.SearchPath}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("script: %v: %s\n%s", err, out.String(), text)
	}
}

// openAll lets the directories of a test be removed.
func openAll(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
}

// needOverlay skips where the kernel mounts no overlays.
func needOverlay(t testing.TB, r *Runner) {
	t.Helper()
	dir := t.TempDir()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = layOver(t, real).run(context.Background(), r, "exit 0")
	if errors.Is(err, tools.ErrNoOverlay) || errors.Is(err, unix.EPERM) {
		t.Skipf("no overlays here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
