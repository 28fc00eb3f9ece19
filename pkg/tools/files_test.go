package tools_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"correx/pkg/events"
	"correx/pkg/tools"
	"correx/pkg/tools/workspace"
)

// fileTools are the three file tools with one allowed directory.
func fileTools(t *testing.T, dirs ...string) map[string]tools.Tool {
	t.Helper()
	return build(t, tools.Config{
		FileRead:  tools.FileReadConfig{Enabled: true, AllowedPaths: dirs},
		FileWrite: tools.FileWriteConfig{Enabled: true, AllowedPaths: dirs},
		FileEdit:  tools.FileEditConfig{Enabled: true, AllowedPaths: dirs},
	})
}

// everyCall is each operation of each file tool on one path.
func everyCall(path string) map[string][]p {
	return map[string][]p{
		"file_read":  {{"operation": "read", "path": path}, {"operation": "list", "path": path}, {"operation": "exists", "path": path}, {"operation": "stat", "path": path}},
		"file_write": {{"operation": "write", "path": path, "content": "x"}, {"operation": "delete", "path": path}},
		"file_edit":  {{"operation": "append", "path": path, "content": "x"}, {"operation": "replace", "path": path, "target": "s3cret", "replacement": "x"}},
	}
}

// wantDenied expects every operation on path to be refused, beforehand and when
// it is run all the same.
func wantDenied(t *testing.T, set map[string]tools.Tool, path string) {
	t.Helper()
	for name, calls := range everyCall(path) {
		for _, params := range calls {
			if v := set[name].ValidateRequest(request(t, name, params)); v.OK() {
				t.Errorf("%s %v is valid", name, params)
			}
			wantFailure(t, run(t, set[name], params), "not allowed")
		}
	}
}

func TestFilesystemTool(t *testing.T) {
	t.Run("empty allowed paths deny all paths", func(t *testing.T) {
		dir := realDir(t)
		put(t, dir+"/a.txt", "s3cret")
		for _, path := range []string{dir + "/a.txt", "a.txt", "/etc/passwd", "/", "."} {
			wantDenied(t, fileTools(t), path)
		}
	})
	t.Run("path traversal is blocked after resolution", func(t *testing.T) {
		top := realDir(t)
		dir := filepath.Join(top, "work")
		put(t, dir+"/sub/b.txt", "inside")
		put(t, top+"/secret.txt", "s3cret")
		put(t, top+"/work-secret/c.txt", "s3cret") // shares a prefix of characters
		set := fileTools(t, dir)
		for _, path := range []string{
			"../secret.txt", "sub/../../secret.txt", dir + "/../secret.txt", "./../work/../secret.txt",
			top + "/work-secret/c.txt", "../work-secret/c.txt", "/etc/passwd", "missing/../../secret.txt",
		} {
			wantDenied(t, set, path)
		}
		if get(t, top+"/secret.txt") != "s3cret" || get(t, top+"/work-secret/c.txt") != "s3cret" {
			t.Fatal("a file outside was changed")
		}
		wantSuccess(t, run(t, set["file_read"], p{"operation": "read", "path": "sub/../sub/b.txt"}), "inside")
		wantSuccess(t, run(t, set["file_read"], p{"operation": "read", "path": dir + "/sub/b.txt"}), "inside")
	})
	t.Run("symlink escape is blocked after resolution", func(t *testing.T) {
		top := realDir(t)
		dir := filepath.Join(top, "work")
		put(t, top+"/out/secret.txt", "s3cret")
		put(t, dir+"/in.txt", "inside s3cret")
		for name, target := range map[string]string{
			"file": "../out/secret.txt", "abs": top + "/out/secret.txt", "dir": "../out", "dangling": "../out/new.txt",
			"chain": "dir", "inner": "in.txt", "innerabs": dir + "/in.txt", "loop": "loop",
		} {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		set := fileTools(t, dir)
		for _, path := range []string{"file", "abs", "dir/secret.txt", "dir/new.txt", "dangling", "chain/secret.txt", "loop"} {
			wantDenied(t, set, path)
		}
		if names, _ := os.ReadDir(top + "/out"); len(names) != 1 || get(t, top+"/out/secret.txt") != "s3cret" {
			t.Fatal("something outside was changed")
		}
		for _, path := range []string{"inner", "innerabs"} { // links that stay inside work
			wantSuccess(t, run(t, set["file_read"], p{"operation": "read", "path": path}), "inside s3cret")
		}
	})
	t.Run("affected paths are empty for read, list, exists and stat", func(t *testing.T) {
		dir := realDir(t)
		set := fileTools(t, dir)
		read := set["file_read"].(tools.FileAffectingTool)
		for _, params := range everyCall("a.txt")["file_read"] {
			if got := read.AffectedPaths(request(t, "file_read", params)); len(got) != 0 {
				t.Errorf("%v affects %v", params, got)
			}
		}
		for _, name := range []string{"file_write", "file_edit"} {
			for _, params := range everyCall("sub/a.txt")[name] {
				got := set[name].(tools.FileAffectingTool).AffectedPaths(request(t, name, params))
				if !slices.Equal(got, []string{dir + "/sub/a.txt"}) {
					t.Errorf("%s %v affects %v", name, params, got)
				}
			}
			if got := set[name].(tools.FileAffectingTool).AffectedPaths(request(t, name, p{"operation": "write", "path": "../x", "content": ""})); got != nil {
				t.Errorf("a denied call affects %v", got)
			}
		}
	})
}

func TestFileRead(t *testing.T) {
	dir := realDir(t)
	put(t, dir+"/a.txt", "alpha\n")
	put(t, dir+"/sub/b.txt", "beta")
	if err := os.Mkdir(dir+"/empty", 0o755); err != nil {
		t.Fatal(err)
	}
	tool := fileTools(t, dir)["file_read"]
	wantSuccess(t, run(t, tool, p{"operation": "read", "path": "a.txt"}), "alpha\n")
	wantSuccess(t, run(t, tool, p{"operation": "list", "path": "."}), "a.txt (file, 6 bytes)\nempty/ (directory)\nsub/ (directory)")
	wantSuccess(t, run(t, tool, p{"operation": "list", "path": "empty"}), "(the directory is empty)")
	wantSuccess(t, run(t, tool, p{"operation": "exists", "path": "sub/b.txt"}), "true")
	wantSuccess(t, run(t, tool, p{"operation": "exists", "path": "sub"}), "true")
	wantSuccess(t, run(t, tool, p{"operation": "exists", "path": "no/where"}), "false")
	wantFailure(t, run(t, tool, p{"operation": "read", "path": "c.txt"}), "no file c.txt", "a.txt, empty/, sub/")
	wantFailure(t, run(t, tool, p{"operation": "read", "path": "x/c.txt"}), "does not exist either")
	wantFailure(t, run(t, tool, p{"operation": "read", "path": "sub"}), "is a directory", "list")
	wantFailure(t, run(t, tool, p{"operation": "read", "path": "a.txt/b"}), "a file and no directory")
	wantFailure(t, run(t, tool, p{"operation": "list", "path": "a.txt"}), "read it instead")
	wantFailure(t, run(t, tool, p{"operation": "write", "path": "a.txt"}), `"write" is unknown`, "exists")
	wantFailure(t, run(t, tool, p{"operation": "read", "path": "a.txt", "content": "x"}), "takes no content")
	wantFailure(t, run(t, tool, p{"operation": "read", "path": "a.txt", "mode": 1}), `unknown field "mode"`)
	wantFailure(t, run(t, tool, `{"path":"a.txt"}`), "operation is missing")
	wantFailure(t, run(t, tool, `[1]`), "not a JSON object")
	wantFailure(t, run(t, tool, `{"operation":7,"path":"a"}`), "cannot unmarshal number")
}

func TestFileKinds(t *testing.T) {
	dir := realDir(t)
	set := fileTools(t, dir)
	if err := syscall.Mkfifo(dir+"/fifo", 0o644); err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/one", "s3cret")
	if err := os.Link(dir+"/one", dir+"/two"); err != nil {
		t.Fatal(err)
	}
	huge, err := os.Create(dir + "/huge")
	if err != nil {
		t.Fatal(err)
	}
	if err := huge.Truncate(1 << 40); err != nil {
		t.Fatal(err)
	}
	huge.Close()
	t.Run("a FIFO is neither read nor written, and nobody hangs", func(t *testing.T) {
		wantFailure(t, run(t, set["file_read"], p{"operation": "read", "path": "fifo"}), "FIFO")
		for _, name := range []string{"file_write", "file_edit"} {
			for _, params := range everyCall("fifo")[name] {
				wantFailure(t, run(t, set[name], params), "FIFO")
			}
		}
	})
	t.Run("a directory is not written", func(t *testing.T) {
		wantFailure(t, run(t, set["file_write"], p{"operation": "write", "path": ".", "content": "x"}), "allowed directory itself")
		if err := os.Mkdir(dir+"/d", 0o755); err != nil {
			t.Fatal(err)
		}
		wantFailure(t, run(t, set["file_write"], p{"operation": "delete", "path": "d"}), "a directory")
	})
	t.Run("a file with several hard links is read, not written", func(t *testing.T) {
		wantSuccess(t, run(t, set["file_read"], p{"operation": "read", "path": "two"}), "s3cret")
		for _, name := range []string{"file_write", "file_edit"} {
			for _, params := range everyCall("two")[name] {
				wantFailure(t, run(t, set[name], params), "2 hard links")
			}
		}
		if get(t, dir+"/one") != "s3cret" {
			t.Fatal("the other name changed")
		}
	})
	t.Run("a huge file is refused", func(t *testing.T) {
		for name, calls := range everyCall("huge") {
			for _, params := range calls {
				if op := params["operation"]; op != "read" && name == "file_read" {
					continue
				}
				wantFailure(t, run(t, set[name], params), "1099511627776 bytes", "are allowed")
			}
		}
	})
	t.Run("a device is not opened", func(t *testing.T) {
		if err := unix.Mknod(dir+"/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
			set, dir = fileTools(t, "/dev"), "/dev" // who may not make one uses the machine's
		}
		wantFailure(t, run(t, set["file_read"], p{"operation": "read", "path": "null"}), "device")
		wantFailure(t, run(t, set["file_write"], p{"operation": "write", "path": "null", "content": "x"}), "device")
	})
}

func TestFileWrite(t *testing.T) {
	dir := realDir(t)
	tool := fileTools(t, dir)["file_write"]
	wantSuccess(t, run(t, tool, p{"operation": "write", "path": "notes/deep/a.txt", "content": "alpha"}), "wrote 5 bytes to notes/deep/a.txt")
	if get(t, dir+"/notes/deep/a.txt") != "alpha" {
		t.Fatal("not written")
	}
	wantSuccess(t, run(t, tool, p{"operation": "write", "path": "notes/deep/a.txt", "content": "alpha"}), "notes/deep/a.txt has exactly this content already")
	wantSuccess(t, run(t, tool, p{"operation": "write", "path": "notes/deep/a.txt", "content": ""}), "wrote 0 bytes to notes/deep/a.txt")
	wantSuccess(t, run(t, tool, p{"operation": "delete", "path": "notes/deep/a.txt"}), "deleted notes/deep/a.txt")
	wantFailure(t, run(t, tool, p{"operation": "delete", "path": "notes/deep/a.txt"}), "no file notes/deep/a.txt to delete")
	wantFailure(t, run(t, tool, p{"operation": "write", "path": "b.txt"}), "needs content")
	wantFailure(t, run(t, tool, p{"operation": "delete", "path": "b.txt", "content": ""}), "takes no content")
	if names, _ := os.ReadDir(dir + "/notes/deep"); len(names) != 0 {
		t.Fatalf("left behind: %v", names)
	}
}

func TestFileWriteKeeps(t *testing.T) {
	dir := realDir(t)
	tool := fileTools(t, dir)["file_write"]
	put(t, dir+"/real.sh", "old")
	if err := os.Chmod(dir+"/real.sh", 0o750); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(dir+"/real.sh", "user.note", []byte("kept"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.sh", dir+"/link.sh"); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir+"/real.sh", 1234, 4321); err != nil {
			t.Fatal(err)
		}
	}
	var before, after unix.Stat_t
	if err := unix.Stat(dir+"/real.sh", &before); err != nil {
		t.Fatal(err)
	}
	wantSuccess(t, run(t, tool, p{"operation": "write", "path": "link.sh", "content": "new"}), "wrote 3 bytes to link.sh")
	if target, err := os.Readlink(dir + "/link.sh"); err != nil || target != "real.sh" {
		t.Fatalf("the link is gone: %q, %v", target, err)
	}
	if err := unix.Stat(dir+"/real.sh", &after); err != nil {
		t.Fatal(err)
	}
	if get(t, dir+"/real.sh") != "new" || before.Mode != after.Mode || before.Uid != after.Uid || before.Gid != after.Gid {
		t.Fatalf("mode %o→%o, owner %d:%d→%d:%d", before.Mode, after.Mode, before.Uid, before.Gid, after.Uid, after.Gid)
	}
	if before.Ino == after.Ino {
		t.Fatal("it was written in place, not replaced")
	}
	note := make([]byte, 16)
	if n, err := unix.Getxattr(dir+"/real.sh", "user.note", note); err != nil || string(note[:n]) != "kept" {
		t.Fatalf("attribute %q, %v", note[:n], err)
	}
}

func TestFilePreviewTouchesNothing(t *testing.T) {
	dir := realDir(t)
	put(t, dir+"/a.txt", "one\ntwo\n")
	set := fileTools(t, dir)
	stamp := func() string {
		var st unix.Stat_t
		if err := unix.Stat(dir+"/a.txt", &st); err != nil {
			t.Fatal(err)
		}
		names, _ := os.ReadDir(dir)
		return fmt.Sprint(st.Ino, st.Mtim, st.Ctim, names)
	}
	before := stamp()
	pv := set["file_edit"].(tools.Previewer).Preview(context.Background(), request(t, "file_edit", p{"operation": "replace", "path": "a.txt", "target": "two", "replacement": "2"}))
	want := fmt.Sprintf("--- %[1]s/a.txt\n+++ %[1]s/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n", dir)
	if pv.Diff != want || !slices.Equal(pv.Base, []events.BaseHash{{Path: dir + "/a.txt", SHA256: workspace.Hash([]byte("one\ntwo\n"))}}) {
		t.Fatalf("preview %+v", pv)
	}
	pv = set["file_write"].(tools.Previewer).Preview(context.Background(), request(t, "file_write", p{"operation": "write", "path": "x/new.txt", "content": "n\n"}))
	want = fmt.Sprintf("--- /dev/null\n+++ %s/x/new.txt\n@@ -0,0 +1 @@\n+n\n", dir)
	if pv.Diff != want || !slices.Equal(pv.Base, []events.BaseHash{{Path: dir + "/x/new.txt"}}) || !slices.Equal(pv.Affected, []string{dir + "/x/new.txt"}) {
		t.Fatalf("preview %+v", pv)
	}
	pv = set["file_write"].(tools.Previewer).Preview(context.Background(), request(t, "file_write", p{"operation": "delete", "path": "a.txt"}))
	if !strings.Contains(pv.Diff, "+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n") {
		t.Fatalf("preview %+v", pv)
	}
	if after := stamp(); before != after {
		t.Fatalf("something was touched: %s, then %s", before, after)
	}
}

func TestFileApprovedBase(t *testing.T) {
	dir := realDir(t)
	put(t, dir+"/a.txt", "changed since")
	tool := fileTools(t, dir)["file_write"]
	ctx := tools.WithScope(context.Background(), tools.Scope{Base: []events.BaseHash{{Path: dir + "/a.txt", SHA256: workspace.Hash([]byte("approved"))}}})
	f, ok := tool.(tools.Executor).Execute(ctx, request(t, "file_write", p{"operation": "write", "path": "a.txt", "content": "x"})).(tools.Failure)
	if !ok || !strings.Contains(f.Reason, "changed since this call was approved") || get(t, dir+"/a.txt") != "changed since" {
		t.Fatalf("got %+v", f)
	}
}

func TestFileExamplesChain(t *testing.T) {
	dir := realDir(t)
	set := fileTools(t, dir)
	for _, name := range []string{"file_write", "file_read", "file_edit"} { // in this order, on one workspace
		e := set[name].Example()
		wantSuccess(t, run(t, set[name], e.Parameters.String()), e.Result)
	}
}

func TestFileToolSchemas(t *testing.T) {
	for name, tool := range fileTools(t, realDir(t)) {
		schema := []byte(tool.ParametersSchema())
		if err := tool.ParametersSchema().Object(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, branch := range bytes.Split(schema, []byte(`"operation"`))[1:] {
			if i := bytes.Index(branch, []byte(`"path":`)); i < 0 {
				continue // the list of what is required
			} else if c := bytes.Index(branch, []byte(`"content":`)); c >= 0 && c < i {
				t.Errorf("%s: content stands before path in %s", name, schema)
			}
		}
		strings := bytes.Count(schema, []byte(`"type":"string"`))
		bounded := bytes.Count(schema, []byte(`"maxLength"`)) + bytes.Count(schema, []byte(`"enum"`))
		if strings != bounded {
			t.Errorf("%s: %d strings, %d of them bounded", name, strings, bounded)
		}
	}
}
