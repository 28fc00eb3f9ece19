package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"correx/pkg/events"
	"correx/pkg/sandbox/stage"
	"correx/pkg/tools"
)

// needs skips where this machine does not reach a level.
func needs(t *testing.T, level events.Isolation) *Runner {
	t.Helper()
	r := newRunnerAt(t, level)
	if r.Isolation() != level {
		t.Skipf("this machine reaches %s only: %+v", r.Isolation(), Look().Missing)
	}
	return r
}

// TestAsUser runs the tests of this file as an unprivileged user.
func TestAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("these tests run as a user already")
	}
	dir, err := os.MkdirTemp("/var/tmp", "correx-user-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "test")
	syscall.ForkLock.RLock() // no child inherits the descriptor, which would keep it busy
	err = errors.Join(os.WriteFile(copied, program, 0o755), os.Chmod(dir, 0o777))
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied, "-test.run", "^Test(Confined|Runner|Overlay|Protected|Dialogue)", "-test.v", "-test.timeout", "3m")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "no tests to run") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func runCommand(t *testing.T, r *Runner, c tools.Command) tools.Exit {
	t.Helper()
	exit, err := r.Run(background, c)
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

// said is what a script printed, and its errors.
func said(e tools.Exit) string {
	return string(e.Stdout.Head) + string(e.Stderr.Head)
}

func TestConfinedFiles(t *testing.T) {
	for _, level := range []events.Isolation{events.IsolationFull, events.IsolationFSOnly} {
		t.Run(string(level), func(t *testing.T) {
			needs(t, level)
			top := t.TempDir()
			work, outside, secret := filepath.Join(top, "work"), filepath.Join(top, "outside"), filepath.Join(top, "secret")
			put(t, filepath.Join(work, "a"), "alpha")
			put(t, outside, "untouched")
			put(t, filepath.Join(secret, "key"), "private")
			r, err := NewRunner(RunnerOptions{Level: level, Hidden: []string{secret}})
			if err != nil {
				t.Fatal(err)
			}
			c := script(work, `cat a; echo new > a; echo out > `+outside+`; cat `+secret+`/key; true`, time.Minute)
			exit := runCommand(t, r, c)
			if exit.Code != 0 || !strings.HasPrefix(said(exit), "alpha") || strings.Contains(said(exit), "private") || exit.Isolation != level {
				t.Fatalf("%+v %s", exit, said(exit))
			}
			wantContent(t, filepath.Join(work, "a"), "new\n")
			wantContent(t, outside, "untouched")
			fi, err := os.Stat(filepath.Join(work, "a"))
			if err != nil || int(fi.Sys().(*syscall.Stat_t).Uid) != os.Getuid() {
				t.Fatalf("the file belongs to somebody else: %v", err)
			}
		})
	}
}

func TestConfinedMachineIsHidden(t *testing.T) {
	r := needs(t, events.IsolationFull)
	exit := runCommand(t, r, script(t.TempDir(), `ls -A /run /proc | grep -v '^[0-9]*$'; ls -A /dev; echo $$; kill -9 1; kill -TERM 1; cat /proc/1/environ; echo alive`, time.Minute))
	out := said(exit)
	for _, want := range []string{"/run:\n", "self\nthread-self\n", "null\nrandom\nshm\nstderr\n", "\n2\n", "alive"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
}

func TestConfinedNetwork(t *testing.T) {
	r := needs(t, events.IsolationFull)
	perl, err := exec.LookPath("perl")
	if err != nil {
		t.Skip("perl is missing")
	}
	for _, c := range []struct {
		network       bool
		family, proto string
		want          string
	}{
		{false, "2", "0", "no"}, {false, "1", "0", "no"}, {true, "2", "0", "yes"}, {true, "10", "0", "yes"},
		{true, "1", "0", "no"}, {true, "16", "0", "no"}, {true, "40", "0", "no"}, {true, "2", "262", "no"},
	} {
		cmd := script(t.TempDir(), "", time.Minute)
		cmd.Path, cmd.Network = perl, c.network
		cmd.Argv = []string{"perl", "-e", `print socket(my $s, $ARGV[0], 1, $ARGV[1]) ? "yes" : "no"`, c.family, c.proto}
		if exit := runCommand(t, r, cmd); said(exit) != c.want {
			t.Errorf("network %v, family %s, protocol %s: %s", c.network, c.family, c.proto, said(exit))
		}
	}
}

func TestProtected(t *testing.T) {
	r := needs(t, events.IsolationFull)
	r.o.Protected = []string{".agent/settings"}
	dir := t.TempDir()
	for _, path := range []string{"repo/.git/config", "sub/dir/.git/config", "keep/a"} {
		put(t, filepath.Join(dir, path), "mine")
	}
	put(t, filepath.Join(dir, "tree", ".git"), "gitdir: "+filepath.Join(dir, "elsewhere"))
	put(t, filepath.Join(dir, "elsewhere", "config"), "mine")
	c := script(dir, `for f in .git/hooks/x .git repo/.git/config sub/dir/.git/config sub/dir/.git/x tree/.git elsewhere/config .agent/settings .agent keep/a; do
		(echo evil > $f) 2>/dev/null && echo wrote $f
	done; mkdir .git/hooks; mkdir -p .agent; mv sub moved; mv repo/.git x; rm -rf sub/dir/.git repo/.git tree/.git; echo ok > new; echo end`, time.Minute)
	c.ReadOnly = []string{filepath.Join(dir, "keep")}
	exit := runCommand(t, r, c)
	if out := string(exit.Stdout.Head); out != "end\n" {
		t.Fatalf("%s\n%s", out, exit.Stderr.Head)
	}
	for _, path := range []string{"repo/.git/config", "sub/dir/.git/config", "elsewhere/config", "keep/a"} {
		wantContent(t, filepath.Join(dir, path), "mine")
	}
	wantContent(t, filepath.Join(dir, "new"), "ok\n")
	for _, path := range []string{".git", ".agent", "moved"} { // what was made to hold the place is gone
		wantContent(t, filepath.Join(dir, path), absent)
	}
}

func TestProtectedHoldsAreSwept(t *testing.T) {
	needs(t, events.IsolationFull)
	dir := t.TempDir()
	file, left, used := filepath.Join(dir, "holds"), filepath.Join(dir, ".git"), filepath.Join(dir, "b", ".git")
	put(t, filepath.Join(used, "config"), "a repository by now")
	if err := errors.Join(os.Mkdir(left, 0o555), os.WriteFile(file, []byte(left+"\x00"+used+"\x00"), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { holds.file = "" })
	if _, err := NewRunner(RunnerOptions{Holds: file}); err != nil {
		t.Fatal(err)
	}
	wantContent(t, left, absent)
	wantContent(t, filepath.Join(used, "config"), "a repository by now")
}

func TestConfinedRefusesLinksByLandlock(t *testing.T) {
	r := needs(t, events.IsolationFSOnly)
	dir, outside := t.TempDir(), t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	cmd := script(dir, "exit 0", time.Minute)
	cmd.Writable = []string{link}
	if exit, err := r.Run(background, cmd); err == nil {
		t.Fatalf("it ran: %+v", exit)
	}
}

func TestConfinedRefusesLinks(t *testing.T) {
	r := needs(t, events.IsolationFull)
	dir, outside := t.TempDir(), t.TempDir()
	for name, c := range map[string]func(*tools.Command) error{
		"itself": func(c *tools.Command) error {
			c.Writable = []string{filepath.Join(dir, "link")}
			return os.Symlink(outside, filepath.Join(dir, "link"))
		},
		"above": func(c *tools.Command) error {
			c.Writable = []string{filepath.Join(dir, "up", "sub")}
			return errors.Join(os.Mkdir(filepath.Join(outside, "sub"), 0o755), os.Symlink(outside, filepath.Join(dir, "up")))
		},
		"protected": func(c *tools.Command) error { return os.Symlink(outside, filepath.Join(dir, ".git")) },
	} {
		t.Run(name, func(t *testing.T) {
			cmd := script(dir, "exit 0", time.Minute)
			if err := c(&cmd); err != nil {
				t.Fatal(err)
			}
			if exit, err := r.Run(background, cmd); err == nil {
				t.Fatalf("it ran: %+v", exit)
			}
		})
	}
}

func TestOverlay(t *testing.T) {
	r := needs(t, events.IsolationFull)
	if err := r.Overlays(); err != nil {
		t.Skip(err)
	}
	top := t.TempDir()
	o := tools.Overlay{Dir: filepath.Join(top, "real"), Upper: filepath.Join(top, "upper"), Work: filepath.Join(top, "work")}
	put(t, filepath.Join(o.Dir, "a"), "alpha")
	put(t, filepath.Join(o.Dir, "gone"), "beta")
	if err := errors.Join(os.Mkdir(o.Upper, 0o755), os.Mkdir(o.Work, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = removeAll(o.Work) }) // the kernel leaves a directory there that nobody may enter
	c := script(o.Dir, "echo more >> a; rm gone; echo new > b; cat a b; ls; mkdir .git", time.Minute)
	c.Writable, c.Overlays = nil, []tools.Overlay{o}
	exit := runCommand(t, r, c)
	if got := string(exit.Stdout.Head); got != "alphamore\nnew\na\nb\n" {
		t.Fatalf("%q %s", got, exit.Stderr.Head)
	}
	wantContent(t, filepath.Join(o.Dir, "a"), "alpha")
	wantContent(t, filepath.Join(o.Dir, "gone"), "beta")
	wantContent(t, filepath.Join(o.Dir, "b"), absent)
	wantContent(t, filepath.Join(o.Upper, "a"), "alphamore\n")
	wantContent(t, filepath.Join(o.Upper, ".git"), absent)
	if fi, err := os.Lstat(filepath.Join(o.Upper, "gone")); err != nil || fi.Mode()&os.ModeCharDevice == 0 {
		t.Fatalf("no whiteout: %v %v", fi, err)
	}
	c.Overlays[0].Upper = filepath.Join(top, "nowhere")
	if _, err := r.Run(background, c); err == nil {
		t.Fatal("an overlay without an upper layer was mounted")
	}
}

func TestConfinedLimits(t *testing.T) {
	r := needs(t, events.IsolationFull)
	many := script(t.TempDir(), `i=0; while [ $i -lt 100 ]; do sleep 100 & i=$((i+1)); done; echo all`, time.Minute)
	many.Limits.Processes = 20
	if os.Geteuid() == 0 && Look().Cgroups == "" {
		t.Log("as root processes are counted by cgroups alone, and there are none")
	} else if exit := runCommand(t, r, many); strings.Contains(said(exit), "all") || exit.TimedOut {
		t.Errorf("%+v %s", exit, said(exit))
	}
	big := script(t.TempDir(), `head -c 5M /dev/zero > big; echo $?`, time.Minute)
	big.Limits.FileSize = 1 << 20
	if exit := runCommand(t, r, big); strings.HasPrefix(said(exit), "0\n") {
		t.Errorf("a large file: %s", said(exit))
	}
	busy := script(t.TempDir(), `while :; do :; done`, time.Minute)
	busy.Limits.CPU = 1
	if exit := runCommand(t, r, busy); exit.Signal == "" || exit.TimedOut {
		t.Errorf("computing without end: %+v", exit)
	}
	if Look().Cgroups == "" {
		t.Skip("no cgroup can be made here")
	}
	hungry := script(t.TempDir(), `head -c 300M /dev/zero | tail | wc -c`, time.Minute)
	hungry.Limits.Memory = 64 << 20
	if exit := runCommand(t, r, hungry); !exit.OutOfMemory || strings.HasPrefix(said(exit), "314572800") {
		t.Errorf("much memory: %+v %s", exit, said(exit))
	}
	deadline := time.Now().Add(10 * time.Second)
	for len(ownGroups(t)) > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("cgroups are left: %v", ownGroups(t))
		}
		time.Sleep(time.Millisecond)
	}
}

// ownGroups are the cgroups of this process.
func ownGroups(t *testing.T) (all []string) {
	t.Helper()
	here := groupsHere()
	for _, dir := range []string{here.pids, here.memory, here.unified} {
		left, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("%s%d-*", groupPrefix, os.Getpid())))
		if err != nil {
			t.Fatal(err)
		}
		if dir != "" {
			all = append(all, left...)
		}
	}
	return all
}

// TestMend has each fault that an operator can do something about say what.
func TestMend(t *testing.T) {
	settings := func(name string) string {
		return map[string]string{"kernel/apparmor_restrict_unprivileged_userns": "1"}[name]
	}
	for step, want := range map[stage.Step]string{
		stage.MakeNamespaces: "AppArmor", stage.MountProc: "/proc", stage.MakeRuleset: "Landlock", stage.Seccomp: "CONFIG_SECCOMP",
	} {
		if got := mend(&stage.Fault{Step: step, Errno: syscall.EPERM}, settings); !strings.Contains(got, want) {
			t.Errorf("%v: %q", step, got)
		}
	}
}
