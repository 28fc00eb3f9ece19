package tools_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"correx/pkg/tools"
)

const againEnv = "CORREX_TEST_AGAIN"

// again runs the test in a process of its own, and reports whether this is that
// one.
func again(t *testing.T, attr *syscall.SysProcAttr) bool {
	t.Helper()
	if os.Getenv(againEnv) == t.Name() {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", append(os.Environ(), againEnv+"="+t.Name()), attr
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC):
		t.Skipf("this machine lets nobody make namespaces: %v", err)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("%s", out)
	case !bytes.Contains(out, []byte("--- PASS: "+t.Name())):
		t.Fatalf("it did not run:\n%s", out)
	}
	return false
}

// inNamespace runs the test where it may mount.
func inNamespace(t *testing.T) bool {
	t.Helper()
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Getuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if !again(t, attr) {
		return false
	}
	mount(t, "", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	return true
}

func mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		t.Fatalf("mount %s: %v", target, err)
	}
	if target != "/" {
		t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestFileMounts(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	top := realDir(t)
	dir := top + "/work"
	put(t, dir+"/f", "one\n")
	put(t, top+"/other/x", "one\n")
	mkdir(t, dir+"/tmpfs")
	mkdir(t, dir+"/bind")
	mkdir(t, dir+"/locked")
	mount(t, "tmpfs", dir+"/tmpfs", "tmpfs", 0, "size=1m")
	mount(t, top+"/other", dir+"/bind", "", unix.MS_BIND, "")
	mount(t, "tmpfs", dir+"/locked", "tmpfs", 0, "size=1m")
	put(t, dir+"/locked/x", "one\n")
	mount(t, "", dir+"/locked", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	mount(t, top+"/other/x", dir+"/f", "", unix.MS_BIND, "")
	set := fileTools(t, dir)
	t.Run("what is mounted within belongs to it", func(t *testing.T) {
		for _, sub := range []string{"tmpfs", "bind"} {
			for _, c := range everyChange(sub + "/y") {
				put(t, dir+"/"+sub+"/y", "one\n")
				if s, ok := run(t, set[c.tool], c.params).(tools.Success); !ok {
					t.Errorf("%v: %+v", c.params, s)
				}
			}
		}
		wantSuccess(t, run(t, set["file_read"], p{"operation": "read", "path": "bind/x"}), "one\n")
	})
	t.Run("one patch over two file systems", func(t *testing.T) {
		put(t, dir+"/tmpfs/y", "one\n")
		put(t, dir+"/y", "one\n")
		params := p{"operation": "patch", "patch": "--- y\n+++ y\n@@ -1 +1 @@\n-one\n+1\n--- tmpfs/y\n+++ tmpfs/y\n@@ -1 +1 @@\n-one\n+2\n"}
		if _, ok := run(t, set["file_edit"], params).(tools.Success); !ok || get(t, dir+"/y") != "1\n" || get(t, dir+"/tmpfs/y") != "2\n" {
			t.Fatal("not patched")
		}
	})
	t.Run("a mount point is not replaced", func(t *testing.T) {
		wantRefused(t, set, "f", "is a mount point")
		wantSuccess(t, run(t, set["file_read"], p{"operation": "read", "path": "f"}), "one\n")
	})
	t.Run("nothing is written to what is mounted read-only", func(t *testing.T) {
		wantRefused(t, set, "locked/x", "mounted read-only")
		wantFailure(t, run(t, set["file_write"], p{"operation": "write", "path": "locked/new/y", "content": "x"}), "mounted read-only")
		wantFailure(t, run(t, set["file_write"], p{"operation": "mkdir", "path": "locked/d"}), "mounted read-only")
	})
}

func TestFileNoSpace(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	dir := realDir(t)
	mkdir(t, dir+"/small")
	mount(t, "tmpfs", dir+"/small", "tmpfs", 0, "size=64k")
	put(t, dir+"/small/a.txt", "one\n")
	set := fileTools(t, dir)
	wantFull := func(t *testing.T, r tools.ToolResult) {
		t.Helper()
		f, ok := r.(tools.Failure)
		if !ok || !f.Recoverable || !strings.Contains(f.Reason, "no space left") || !strings.Contains(f.Reason, "as it was") {
			t.Fatalf("got %+v", r)
		}
		if names, _ := os.ReadDir(dir + "/small"); len(names) != 1 || get(t, dir+"/small/a.txt") != "one\n" {
			t.Fatalf("left %v, %q", names, get(t, dir+"/small/a.txt"))
		}
	}
	large := strings.Repeat("0123456789abcde\n", 8<<10) // 128 KiB
	t.Run("an old file", func(t *testing.T) {
		wantFull(t, run(t, set["file_write"], p{"operation": "write", "path": "small/a.txt", "content": large}))
		wantFull(t, run(t, set["file_edit"], p{"operation": "append", "path": "small/a.txt", "content": large}))
	})
	t.Run("a new file", func(t *testing.T) {
		wantFull(t, run(t, set["file_write"], p{"operation": "write", "path": "small/new.txt", "content": large}))
	})
	t.Run("the second file of a patch", func(t *testing.T) {
		put(t, dir+"/b.txt", "one\n")
		diff := "--- b.txt\n+++ b.txt\n@@ -1 +1 @@\n-one\n+1\n" + fmt.Sprintf("--- /dev/null\n+++ small/new.txt\n@@ -0,0 +1,%d @@\n+%s", 8<<10, strings.ReplaceAll(strings.TrimSuffix(large, "\n"), "\n", "\n+"))
		wantFull(t, run(t, set["file_edit"], p{"operation": "patch", "patch": diff}))
		if get(t, dir+"/b.txt") != "one\n" {
			t.Fatal("the first file is changed")
		}
	})
}

// immutableFlag is what chattr +i sets.
const immutableFlag = 0x10

func TestFileImmutable(t *testing.T) {
	dir := realDir(t)
	put(t, dir+"/a.txt", "one\n")
	put(t, dir+"/d/x", "one\n")
	set := fileTools(t, dir)
	for _, path := range []string{dir + "/a.txt", dir + "/d"} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, immutableFlag); err != nil {
			t.Skipf("nobody may make files immutable here: %v", err)
		}
		defer func() { _ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0) }()
	}
	wantRefused(t, set, "a.txt", "is immutable")
	wantRefused(t, set, "d/x", "is an immutable directory")
	wantFailure(t, run(t, set["file_write"], p{"operation": "write", "path": "d/new", "content": "x"}), "is an immutable directory")
}

// TestFilePermissions is what a user meets who is not root.
func TestFilePermissions(t *testing.T) {
	if os.Getuid() == 0 && !again(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}) {
		return
	}
	dir := realDir(t)
	for name, mode := range map[string]os.FileMode{"secret": 0o200, "locked": 0o444, "d/x": 0o644, "closed/x": 0o644} {
		put(t, dir+"/"+name, "one\n")
		if err := os.Chmod(dir+"/"+name, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"d": 0o555, "closed": 0} {
		if err := os.Chmod(dir+"/"+name, mode); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Chmod(dir+"/"+name, 0o755) }()
	}
	set := fileTools(t, dir)
	wantRefused(t, set, "secret", "permission denied")
	wantRefused(t, set, "locked", "is read-only (mode 0444)")
	wantRefused(t, set, "d/x", "is a directory in which this worker may not write")
	wantRefused(t, set, "closed/x", "permission denied")
	wantFailure(t, run(t, set["file_write"], p{"operation": "write", "path": "d/new/y", "content": "x"}), "may not write")
	wantFailure(t, run(t, set["file_write"], p{"operation": "mkdir", "path": "d/new"}), "may not write")
	wantFailure(t, run(t, set["file_read"], p{"operation": "read", "path": "secret"}), "permission denied")
	wantFailure(t, run(t, set["file_read"], p{"operation": "list", "path": "closed"}), "permission denied")
	for path, part := range map[string]string{"closed": "kind: directory\nmode: 0000", "secret": "size: 4 bytes\ncontent: cannot be read: "} {
		if s, ok := run(t, set["file_read"], p{"operation": "stat", "path": path}).(tools.Success); !ok || !strings.Contains(s.Output, part) {
			t.Errorf("%s: %+v", path, s)
		}
	}
}
