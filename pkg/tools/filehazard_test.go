package tools_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"correx/pkg/events"
	"correx/pkg/tools"
	"correx/pkg/tools/workspace"
)

// everyChange is each way to change one file that has the line "one", in order of
// their names.
func everyChange(path string) []struct {
	tool   string
	params p
	after  string
} {
	patch := fmt.Sprintf("--- %[1]s\n+++ %[1]s\n@@ -1 +1 @@\n-one\n+1\n", path)
	return []struct {
		tool   string
		params p
		after  string
	}{
		{"file_write", p{"operation": "write", "path": path, "content": "new\n"}, "new\n"},
		{"file_edit", p{"operation": "append", "path": path, "content": "two\n"}, "one\ntwo\n"},
		{"file_edit", p{"operation": "replace", "path": path, "target": "one", "replacement": "1"}, "1\n"},
		{"file_edit", p{"operation": "patch", "patch": patch}, "1\n"},
		{"file_write", p{"operation": "delete", "path": path}, ""},
	}
}

// wantRefused expects every change of path to be refused before a person would be
// asked, and to be refused again when it is run all the same.
func wantRefused(t *testing.T, set map[string]tools.Tool, path string, parts ...string) {
	t.Helper()
	for _, c := range everyChange(path) {
		r := request(t, c.tool, c.params)
		v := set[c.tool].ValidateRequest(r)
		preview := set[c.tool].(tools.Previewer).Preview(context.Background(), r)
		f := wantFailure(t, run(t, set[c.tool], c.params), parts...)
		if v.Reason() != f.Reason || preview.Valid || preview.Reason != f.Reason {
			t.Errorf("%v: %q when run, %q when asked, preview %+v", c.params, f.Reason, v.Reason(), preview)
		}
	}
}

func TestFileChangesKeepMetadata(t *testing.T) {
	acl := []byte{2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 1, 0, 0, 0, 4, 0, 4, 0, 255, 255, 255, 255, 16, 0, 6, 0, 255, 255, 255, 255, 32, 0, 4, 0, 255, 255, 255, 255}
	for _, c := range everyChange("link") {
		if c.after == "" {
			continue
		}
		t.Run(fmt.Sprint(c.params["operation"]), func(t *testing.T) {
			dir := realDir(t)
			set := fileTools(t, dir)
			put(t, dir+"/real", "one\n")
			if err := os.Symlink("real", dir+"/link"); err != nil {
				t.Fatal(err)
			}
			if err := unix.Setxattr(dir+"/real", "user.note", []byte("kept"), 0); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir+"/real", 0o664); err != nil {
				t.Fatal(err)
			}
			hasACL := unix.Setxattr(dir+"/real", "system.posix_acl_access", acl, 0) == nil // not every file system has them
			if os.Getuid() == 0 {
				if err := os.Chown(dir+"/real", 1234, 4321); err != nil {
					t.Fatal(err)
				}
			}
			var before, after unix.Stat_t
			if err := unix.Stat(dir+"/real", &before); err != nil {
				t.Fatal(err)
			}
			if s, ok := run(t, set[c.tool], c.params).(tools.Success); !ok {
				t.Fatalf("got %+v", s)
			}
			if err := unix.Stat(dir+"/real", &after); err != nil {
				t.Fatal(err)
			}
			if get(t, dir+"/real") != c.after || before.Mode != after.Mode || before.Uid != after.Uid || before.Gid != after.Gid {
				t.Fatalf("%q, mode %o→%o, owner %d:%d→%d:%d", get(t, dir+"/real"), before.Mode, after.Mode, before.Uid, before.Gid, after.Uid, after.Gid)
			}
			if target, err := os.Readlink(dir + "/link"); err != nil || target != "real" {
				t.Fatalf("the link is gone: %q, %v", target, err)
			}
			value := make([]byte, 100)
			if n, err := unix.Getxattr(dir+"/real", "user.note", value); err != nil || string(value[:n]) != "kept" {
				t.Fatalf("attribute %q, %v", value[:n], err)
			}
			if n, err := unix.Getxattr(dir+"/real", "system.posix_acl_access", value); hasACL && (err != nil || !slices.Equal(value[:n], acl)) {
				t.Fatalf("access list %v, %v", value[:n], err)
			}
		})
	}
}

func TestFileSymlinks(t *testing.T) {
	top := realDir(t)
	dir := top + "/work"
	put(t, dir+"/sub/b.txt", "one\n")
	put(t, top+"/out/c.txt", "one\n")
	for name, target := range map[string]string{"middle": "sub", "dangling": "sub/new.txt", "out": "../out", "outfile": "../out/c.txt", "loop": "loop2", "loop2": "loop", "deep": "middle/b.txt"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	set := fileTools(t, dir)
	for _, path := range []string{"out/c.txt", "outfile", "loop", "loop/x", "middle/../../out/c.txt"} {
		wantRefused(t, set, path, "not allowed")
	}
	if get(t, top+"/out/c.txt") != "one\n" {
		t.Fatal("a file outside was changed")
	}
	wantSuccess(t, run(t, set["file_read"], p{"operation": "read", "path": "middle/b.txt"}), "one\n")
	wantSuccess(t, run(t, set["file_read"], p{"operation": "read", "path": "deep"}), "one\n")
	wantSuccess(t, run(t, set["file_read"], p{"operation": "exists", "path": "dangling"}), "false")
	wantFailure(t, run(t, set["file_read"], p{"operation": "read", "path": "dangling"}), "there is no file dangling (which leads to "+dir+"/sub/new.txt)", "b.txt")
	wantFailure(t, run(t, set["file_write"], p{"operation": "delete", "path": "dangling"}), "which leads to")
	preview := set["file_write"].(tools.Previewer).Preview(context.Background(), request(t, "file_write", p{"operation": "write", "path": "dangling", "content": "x"}))
	if !slices.Equal(preview.Affected, []string{dir + "/sub/new.txt"}) {
		t.Fatalf("preview %+v", preview)
	}
	wantSuccess(t, run(t, set["file_write"], p{"operation": "write", "path": "dangling", "content": "x"}), "wrote 1 bytes to dangling")
	if target, err := os.Readlink(dir + "/dangling"); err != nil || target != "sub/new.txt" || get(t, dir+"/sub/new.txt") != "x" {
		t.Fatalf("link to %q, %v", target, err)
	}
	wantSuccess(t, run(t, set["file_write"], p{"operation": "delete", "path": "deep"}), "deleted deep")
	if _, err := os.Lstat(dir + "/deep"); err != nil {
		t.Fatal("the link was deleted, not what it leads to")
	}
	list := run(t, set["file_read"], p{"operation": "list", "path": "."}).(tools.Success).Output
	if !strings.Contains(list, "middle (link to sub)\n") || !strings.Contains(list, "sub/ (directory)") {
		t.Fatalf("listed %q", list)
	}
}

func TestFileKindsAreNotChanged(t *testing.T) {
	dir := realDir(t)
	set := fileTools(t, dir)
	if err := unix.Mkfifo(dir+"/fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", dir+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	put(t, dir+"/one", "one\n")
	if err := os.Link(dir+"/one", dir+"/two"); err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/locked", "one\n")
	if err := os.Chmod(dir+"/locked", 0o444); err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/d/x", "one\n")
	for name, part := range map[string]string{"fifo": "FIFO", "socket": "socket", "two": "2 hard links", "locked": "is read-only (mode 0444)", "d": "directory", "one/x": "a file and no directory"} {
		wantRefused(t, set, name, part)
	}
	for name, kind := range map[string]string{"fifo": "FIFO", "socket": "socket", "d": "directory", "locked": "file"} {
		stat := run(t, set["file_read"], p{"operation": "stat", "path": name}).(tools.Success).Output
		if !strings.Contains(stat, "kind: "+kind+"\n") {
			t.Errorf("%s is %q", name, stat)
		}
	}
	wantFailure(t, run(t, set["file_read"], p{"operation": "read", "path": "socket"}), "is a socket")
	wantSuccess(t, run(t, set["file_read"], p{"operation": "list", "path": "."}),
		"d/ (directory)\nfifo (FIFO)\nlocked (file, 4 bytes)\none (file, 4 bytes)\nsocket (socket)\ntwo (file, 4 bytes)")
}

func TestFilePathSpellings(t *testing.T) {
	dir := realDir(t)
	put(t, dir+"/a.txt", "one\n")
	put(t, dir+"/sub/b.txt", "one\n")
	set := fileTools(t, dir)
	for _, path := range []string{"./a.txt", "sub/../a.txt", ".//a.txt", "sub/./../a.txt", dir + "/a.txt", dir + "//./a.txt", "sub/../sub/../a.txt"} {
		wantSuccess(t, run(t, set["file_read"], p{"operation": "read", "path": path}), "one\n")
	}
	long := strings.Repeat("x", 256)
	for path, part := range map[string]string{
		"": "the path is empty", ".": "allowed directory itself", "sub/..": "allowed directory itself", dir: "allowed directory itself", "/": "not allowed",
		"a\x00b": "has a NUL", `a\x00b`: "has a NUL", strings.Repeat("x/", 2049): "longer than 4096", long: "256 bytes long", "sub/" + long + "/y": "256 bytes long",
		"a.txt/": "ends in a slash", "new/": "ends in a slash", "sub/.": "ends in a slash", "../" + filepath.Base(dir) + "/a.txt": "leads out",
	} {
		for _, c := range everyChange(path) {
			if c.params["operation"] != "patch" { // names in patches have cases of their own
				wantFailure(t, run(t, set[c.tool], c.params), part)
			}
		}
	}
	wantFailure(t, run(t, set["file_read"], p{"operation": "read", "path": "a.txt/"}), "ends in a slash")
	wantFailure(t, run(t, set["file_read"], p{"operation": "read", "path": "."}), "use the operation list")
	wantFailure(t, run(t, set["file_read"], p{"operation": "read", "path": "A.TXT"}), "there is a.txt: upper and lower case are not the same")
	wantFailure(t, run(t, set["file_read"], p{"operation": "stat", "path": "a.txt/"}), "no directory; leave out the slash")
	for path, want := range map[string]string{"a.txt/": "false", "sub/": "true", "sub/.": "true", ".": "true", "sub": "true", "a.txt": "true", "A.TXT": "false"} {
		wantSuccess(t, run(t, set["file_read"], p{"operation": "exists", "path": path}), want)
	}
	wantSuccess(t, run(t, set["file_read"], p{"operation": "list", "path": "sub/"}), "b.txt (file, 4 bytes)")
}

// TestFileProtected: what a line can make somebody's next program run by is read,
// and not changed, however it is reached.
func TestFileProtected(t *testing.T) {
	dir := realDir(t)
	for _, name := range []string{".git/config", "sub/.git/hooks/x", ".gitignore", "conf/x", "conf2", "key", "worktree/.git"} {
		put(t, dir+"/"+name, "one\n")
	}
	if err := os.Symlink(".git", dir+"/innocent"); err != nil {
		t.Fatal(err)
	}
	set := build(t, tools.Config{
		FileWrite: tools.FileWriteConfig{Enabled: true, AllowedPaths: []string{dir}}, FileEdit: tools.FileEditConfig{Enabled: true, AllowedPaths: []string{dir}},
		FileRead: tools.FileReadConfig{Enabled: true, AllowedPaths: []string{dir}}, Protected: []string{"conf", dir + "/key", "absent/deep"},
	})
	for _, path := range []string{".git/config", ".git/new", "innocent/config", "innocent/new", "sub/.git/hooks/x", "worktree/.git", "new/.git/x", ".GIT/config", "sub/../.git/config"} {
		wantRefused(t, set, path, "is in .git")
	}
	for _, path := range []string{"conf/x", "conf/new", "key", "absent/deep", "absent/deep/x", "absent"} {
		wantRefused(t, set, path, "the configuration protects")
	}
	wantFailure(t, run(t, set["file_write"], p{"operation": "mkdir", "path": "new/.git"}), "is in .git")
	wantFailure(t, run(t, set["file_write"], p{"operation": "mkdir", "path": "conf/d"}), "protects")
	wantSuccess(t, run(t, set["file_read"], p{"operation": "read", "path": "innocent/config"}), "one\n")
	for _, path := range []string{".gitignore", "conf2"} {
		wantSuccess(t, run(t, set["file_edit"], p{"operation": "replace", "path": path, "target": "one", "replacement": "1"}), "replaced the text at line 1 of "+path)
	}
}

// A meddling recorder does something when a change is announced, which is after
// the file was read, and before the rename.
type meddling struct {
	tools.Recorder
	meddle func()
}

func (m meddling) Staged(string, workspace.State, workspace.State) error { m.meddle(); return nil }
func (meddling) Applied(string, workspace.State) error                   { return nil }
func (meddling) Temp(string) string                                      { return workspace.TempName() }

func TestFileChangedAtTheLastMoment(t *testing.T) {
	for _, c := range everyChange("a.txt") {
		t.Run(fmt.Sprint(c.params["operation"]), func(t *testing.T) {
			dir := realDir(t)
			put(t, dir+"/a.txt", "one\n")
			tool := fileTools(t, dir)[c.tool]
			r := request(t, c.tool, c.params)
			preview := tool.(tools.Previewer).Preview(context.Background(), r)
			execute := func(s tools.Scope) tools.Failure {
				f, ok := tool.(tools.Executor).Execute(tools.WithScope(context.Background(), s), r).(tools.Failure)
				if !ok || !f.Recoverable {
					t.Fatalf("got %+v", f)
				}
				return f
			}
			f := execute(tools.Scope{Base: preview.Base, Recorder: meddling{meddle: func() { put(t, dir+"/a.txt", "theirs\n") }}})
			if !strings.Contains(f.Reason, "changed in the meantime") || get(t, dir+"/a.txt") != "theirs\n" {
				t.Fatalf("%q, left %q", f.Reason, get(t, dir+"/a.txt"))
			}
			put(t, dir+"/a.txt", "one\n-\n") // between the preview and the run
			f = execute(tools.Scope{Base: preview.Base})
			if !strings.Contains(f.Reason, "changed since this call was approved") || get(t, dir+"/a.txt") != "one\n-\n" {
				t.Fatalf("%q, left %q", f.Reason, get(t, dir+"/a.txt"))
			}
			put(t, dir+"/a.txt", "one\n")
			f = execute(tools.Scope{Base: []events.BaseHash{{Path: dir + "/other"}}})
			if !strings.Contains(f.Reason, "the approval does not name it") || get(t, dir+"/a.txt") != "one\n" {
				t.Fatalf("%q, left %q", f.Reason, get(t, dir+"/a.txt"))
			}
			if names, _ := os.ReadDir(dir); len(names) != 1 {
				t.Fatalf("left behind: %v", names)
			}
		})
	}
}
