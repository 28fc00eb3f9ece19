package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestCommitIsWhatTheCommandDidAsUser is TestCommitIsWhatTheCommandDid in a process
// without any privilege: overlays in a user namespace, closed directories that are
// closed to this worker too.
func TestCommitIsWhatTheCommandDidAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is not root: the other test ran as a user already")
	}
	dir, err := os.MkdirTemp("", "correx-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { openAll(dir); os.RemoveAll(dir) })
	program := filepath.Join(dir, "test")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	for _, err := range []error{os.Chmod(dir, 0o755), os.Chown(dir, nobody, nobody)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-test.run", "^TestCommitIsWhatTheCommandDid$", "-test.v")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	text, err := cmd.CombinedOutput()
	switch {
	case strings.Contains(string(text), "--- SKIP"):
		t.Skipf("as a user:\n%s", text)
	case err != nil || !strings.Contains(string(text), "--- PASS: TestCommitIsWhatTheCommandDid/0"):
		t.Fatalf("as a user: %v\n%s", err, text)
	}
}
