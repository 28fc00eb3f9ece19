package escape

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"correx/internal/testenv"
)

// A role is as whom attempts are made, with a worker and directories of its own.
type role struct {
	name     string // root or user
	uid      int
	top      string
	home     string
	state    string
	program  string // the worker's: this one
	attacker string
	secret   string
	worker   *worker
	count    int
	t        testing.TB // of the whole test: a worker may be replaced in the middle
}

// nobody is the unprivileged user.
const nobody = 65534

// credential is nil where the role is who runs the tests.
func (r *role) credential() *syscall.Credential {
	if r.uid == os.Geteuid() {
		return nil
	}
	return &syscall.Credential{Uid: uint32(r.uid), Gid: uint32(r.uid)}
}

func (r *role) own(t testing.TB, path string) {
	t.Helper()
	if r.uid == os.Geteuid() {
		return
	}
	if err := os.Lchown(path, r.uid, r.uid); err != nil {
		t.Fatal(err)
	}
}

// owner is the role for chown.
func (r *role) owner() string { return fmt.Sprintf("%d:%d", r.uid, r.uid) }

// mkdir makes directories that belong to the role.
func (r *role) mkdir(t testing.TB, dir string) {
	t.Helper()
	if exists(dir) {
		return
	}
	r.mkdir(t, filepath.Dir(dir))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.own(t, dir)
}

// roles are root and a user, or the user alone who runs the tests.
func roles(t testing.TB) []*role {
	t.Helper()
	top, err := os.MkdirTemp(ground(t), "escape-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(top); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	// A user does not reach where the go command puts this program.
	program, attacker := filepath.Join(top, "worker"), filepath.Join(top, "attacker")
	copyFile(t, "/proc/self/exe", program)
	copyFile(t, attackerProgram(t), attacker)
	all := []*role{{name: "root", uid: 0}, {name: "user", uid: nobody}}
	if os.Geteuid() != 0 {
		all = []*role{{name: "user", uid: os.Geteuid()}}
	}
	for _, r := range all {
		r.top, r.program, r.attacker = filepath.Join(top, r.name), program, attacker
		r.home, r.state = filepath.Join(r.top, "home"), filepath.Join(r.top, "state")
		r.secret = fmt.Sprintf("secret-%016x", rand.Uint64())
		r.t = t
		r.fill(t)
		r.start()
	}
	return all
}

// ground is a directory for all sites, in none that a sandbox hides as a whole, as
// it does /tmp: what is outside has to be held, not only out of sight. A user has
// to reach it.
func ground(t testing.TB) string {
	t.Helper()
	cache, err := filepath.EvalSymlinks(filepath.Join(testenv.Root(), ".cache"))
	for _, dir := range []string{cache, "/srv", "/opt", "/var/lib"} {
		hidden := strings.HasPrefix(dir, "/tmp/") || strings.HasPrefix(dir, "/var/tmp/")
		if err == nil && !hidden && unix.Access(dir, unix.W_OK) == nil && (os.Geteuid() != 0 || open(dir)) {
			return dir
		}
		err = nil
	}
	t.Fatal("there is no directory that a user can reach")
	return ""
}

// open tells whether everybody may pass through a directory and all above it.
func open(dir string) bool {
	fi, err := os.Stat(dir)
	return err == nil && fi.Mode()&0o001 != 0 && (dir == "/" || open(filepath.Dir(dir)))
}

// fill makes what must not be read.
func (r *role) fill(t testing.TB) {
	t.Helper()
	s := &site{role: r}
	for _, name := range secretFiles {
		s.put(t, filepath.Join(r.home, name), r.secret)
	}
	for _, name := range []string{"keys/tool-worker.nk", "journal/journal", "backups/s2-t2", "sandbox/s2/t2/notes.txt"} {
		s.put(t, filepath.Join(r.state, name), r.secret)
	}
	r.mkdir(t, filepath.Join(r.top, "leaked"))
}

// poison is in the worker's own environment, and would have a program run what
// stands in the workspace.
func (r *role) poison() map[string]string {
	return map[string]string{
		"BASH_ENV": "evil.sh", "LD_PRELOAD": "./evil.so", "GIT_CONFIG_COUNT": "1",
		"GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "./evil.sh",
	}
}

// secretFiles are in a home directory.
var secretFiles = []string{".ssh/id_ed25519", ".aws/credentials", ".gnupg/secring.gpg", ".config/gcloud/credentials.db", ".kube/config", ".docker/config.json", ".netrc", ".git-credentials"}

var attackerBuild = sync.OnceValues(func() (string, error) {
	if !raceEnabled {
		return "/proc/self/exe", nil
	}
	// The race detector maps more than any limit of address space allows.
	dir, err := os.MkdirTemp("", "correx-escape-build-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	out := filepath.Join(dir, "escape.test")
	cmd := exec.Command("go", "test", "-c", "-tags", testenv.Tags, "-buildvcs=false", "-o", out, ".")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the attacker: %w: %s", err, text)
	}
	return out, nil
})

// attackerProgram is this program, as it is without the race detector.
func attackerProgram(t testing.TB) string {
	t.Helper()
	path, err := attackerBuild()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// builtIn is where the attacker was built; empty: nowhere.
var builtIn string
