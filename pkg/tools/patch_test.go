package tools_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sys/unix"

	"correx/pkg/tools"
	"correx/pkg/tools/workspace"
)

// A patchCase is one patch on a workspace.
type patchCase struct {
	name   string
	before string // a.txt; or all files, as txtar; or none
	patch  string
	after  string // in the same way; refused: as before
	says   string // part of the answer, or of the reason for which it is refused
}

const (
	refused = "\x00refused"
	none    = "\x00none"
)

// tree reads a case's files: by their path, what is in them.
func tree(text string) map[string]string {
	switch {
	case text == none:
		return map[string]string{}
	case !strings.HasPrefix(text, "-- "):
		return map[string]string{"a.txt": text}
	}
	m := map[string]string{}
	for _, f := range txtar.Parse([]byte(text)).Files {
		m[f.Name] = string(f.Data)
	}
	return m
}

// onDisk reads all files below dir; stamps has what else would tell of a change.
func onDisk(t *testing.T, dir string) (files map[string]string, stamps string) {
	t.Helper()
	files = map[string]string{}
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		fmt.Fprintln(&b, path, st.Ino, st.Mode, st.Mtim, st.Ctim)
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, b.String()
}

func (c patchCase) run(t *testing.T) {
	t.Helper()
	dir := realDir(t)
	for name, data := range tree(c.before) {
		put(t, filepath.Join(dir, name), data)
	}
	before, stamps := onDisk(t, dir)
	tool := fileTools(t, dir)["file_edit"]
	params := p{"operation": "patch", "patch": c.patch}
	valid := tool.ValidateRequest(request(t, "file_edit", params))
	preview := tool.(tools.Previewer).Preview(context.Background(), request(t, "file_edit", params))
	if _, now := onDisk(t, dir); now != stamps {
		t.Fatalf("the preview touched something:\n%s\nthen\n%s", stamps, now)
	}
	affected := tool.(tools.FileAffectingTool).AffectedPaths(request(t, "file_edit", params))
	result := run(t, tool, params)
	after, _ := onDisk(t, dir)
	if c.after == refused {
		f := wantFailure(t, result, c.says)
		if valid.OK() || preview.Valid || valid.Reason() != f.Reason || preview.Reason != f.Reason {
			t.Fatalf("reason %q, of the validation %q, of the preview %+v", f.Reason, valid.Reason(), preview)
		}
		if _, now := onDisk(t, dir); now != stamps {
			t.Fatalf("something was touched:\n%s\nthen\n%s", stamps, now)
		}
		return
	}
	s, ok := result.(tools.Success)
	if !ok || !valid.OK() || !preview.Valid || !strings.Contains(s.Output, c.says) {
		t.Fatalf("got %+v\nvalid: %q\npreview: %+v", result, valid.Reason(), preview)
	}
	if want := tree(c.after); !maps.Equal(after, want) {
		t.Fatalf("got %q\nwant %q", after, want)
	}
	c.checkPreview(t, dir, before, after, affected, preview)
}

// checkPreview holds what was announced against what happened.
func (c patchCase) checkPreview(t *testing.T, dir string, before, after map[string]string, affected []string, v tools.Preview) {
	t.Helper()
	var changed []string
	for name := range before {
		if after[name] != before[name] || !has(after, name) {
			changed = append(changed, filepath.Join(dir, name))
		}
	}
	for name := range after {
		if !has(before, name) {
			changed = append(changed, filepath.Join(dir, name))
		}
	}
	slices.Sort(changed)
	if !slices.Equal(affected, changed) || !slices.Equal(v.Affected, changed) {
		t.Fatalf("changed %v, announced %v, previewed %v", changed, affected, v.Affected)
	}
	for i, b := range v.Base {
		name := strings.TrimPrefix(b.Path, dir+"/")
		want := ""
		if has(before, name) {
			want = workspace.Hash([]byte(before[name]))
		}
		if b.Path != changed[i] || b.SHA256 != want {
			t.Fatalf("base %+v", v.Base)
		}
	}
}

func has(m map[string]string, name string) bool { _, ok := m[name]; return ok }

func runPatchCases(t *testing.T, cases []patchCase) {
	for _, c := range cases {
		t.Run(c.name, c.run)
	}
}

const (
	head = "--- a.txt\n+++ a.txt\n"
	six  = "one\ntwo\nthree\nfour\nfive\nsix\n"
)

func TestPatchApplies(t *testing.T) {
	runPatchCases(t, []patchCase{
		{"a line is replaced", six, head + "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n", "one\n2\nthree\nfour\nfive\nsix\n", "patched a.txt at line 1"},
		{"a line is added", six, head + "@@ -1,2 +1,3 @@\n one\n+1.5\n two\n", "one\n1.5\ntwo\nthree\nfour\nfive\nsix\n", "patched"},
		{"a line is removed", six, head + "@@ -2,2 +2 @@\n two\n-three\n", "one\ntwo\nfour\nfive\nsix\n", "line 2"},
		{"at the beginning", six, head + "@@ -1,2 +1,3 @@\n+zero\n one\n two\n", "zero\n" + six, ""},
		{"at the end", six, head + "@@ -5,2 +5,3 @@\n five\n six\n+seven\n", six + "seven\n", "line 5"},
		{"the first line goes", six, head + "@@ -1,2 +1 @@\n-one\n two\n", "two\nthree\nfour\nfive\nsix\n", ""},
		{"the last line goes", six, head + "@@ -5,2 +5 @@\n five\n-six\n", "one\ntwo\nthree\nfour\nfive\n", ""},
		{"all lines go and the file stays", "one\n", head + "@@ -1 +0,0 @@\n-one\n", "", "patched"},
		{"no context at all", six, head + "@@ -4 +4 @@\n-four\n+4\n", "one\ntwo\nthree\n4\nfive\nsix\n", "line 4"},
		{"context above only, in the middle", six, head + "@@ -2,2 +2,3 @@\n two\n three\n+3.5\n", "one\ntwo\nthree\n3.5\nfour\nfive\nsix\n", ""},
		{"context below only, in the middle", six, head + "@@ -3,2 +3,3 @@\n+2.5\n three\n four\n", "one\ntwo\n2.5\nthree\nfour\nfive\nsix\n", ""},
		{"two hunks", six, head + "@@ -1 +1 @@\n-one\n+1\n@@ -6 +6 @@\n-six\n+6\n", "1\ntwo\nthree\nfour\nfive\n6\n", "at line 1, line 6"},
		{"two hunks that touch", six, head + "@@ -2,2 +2,2 @@\n two\n-three\n+3\n@@ -4,2 +4,2 @@\n-four\n+4\n five\n", "one\ntwo\n3\n4\nfive\nsix\n", ""},
		{"hunks that add lines move those below", six, head + "@@ -1 +1,3 @@\n one\n+a\n+b\n@@ -5,2 +7,1 @@\n five\n-six\n", "one\na\nb\ntwo\nthree\nfour\nfive\n", ""},
		{"into an empty file", "", head + "@@ -0,0 +1,2 @@\n+one\n+two\n", "one\ntwo\n", ""},
		{"the section behind @@ is no matter", six, head + "@@ -3 +3 @@ func main() {\n-three\n+3\n", "one\ntwo\n3\nfour\nfive\nsix\n", ""},
		{"an empty line that stays may have lost its blank", "a\n\nb\n", head + "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n", ""},
		{"the patch may lack its last newline", six, head + "@@ -6 +6 @@\n-six\n+6", "one\ntwo\nthree\nfour\nfive\n6\n", ""},
		{"empty lines behind the patch do no harm", six, head + "@@ -6 +6 @@\n-six\n+6\n\n\n", "one\ntwo\nthree\nfour\nfive\n6\n", ""},
		{"empty lines before it do none", six, "\n" + head + "@@ -6 +6 @@\n-six\n+6\n", "one\ntwo\nthree\nfour\nfive\n6\n", ""},
		{"lines that look like headers are lines", "x\n-- x\n++ y\n@@ z\n", head + "@@ -2,3 +2,3 @@\n--- x\n+-- X\n ++ y\n-@@ z\n+@@ Z\n", "x\n-- X\n++ y\n@@ Z\n", ""},
		{"the number of the new lines is no matter", six, head + "@@ -3 +99 @@\n-three\n+3\n", "one\ntwo\n3\nfour\nfive\nsix\n", ""},
		{"a time behind the name", six, "--- a.txt\t2026-11-30 10:00:00.000000000 +0000\n+++ a.txt\t2026-12-01\n@@ -3 +3 @@\n-three\n+3\n", "one\ntwo\n3\nfour\nfive\nsix\n", ""},
		{"no newline before, none after", "a\nb", head + "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n", "a\nc", ""},
		{"a newline comes", "a\nb", head + "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n", ""},
		{"a newline goes", "a\nb\n", head + "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", "a\nb", ""},
		{"the last line without a newline stays", "a\nb", head + "@@ -1,2 +1,3 @@\n+z\n a\n b\n\\ No newline at end of file\n", "z\na\nb", ""},
		{"the marker in another language", "a", head + "@@ -1 +1 @@\n-a\n\\ Kein Zeilenumbruch am Dateiende.\n+b\n", "b\n", ""},
		{"CR LF of the file", "one\r\ntwo\r\n", head + "@@ -1,2 +1,2 @@\n one\r\n-two\r\n+2\r\n", "one\r\n2\r\n", ""},
		{"a patch in LF on a file in CR LF", "one\r\ntwo\r\n", head + "@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n", "one\r\n2\r\n3\r\n", ""},
		{"a patch in CR LF throughout", "one\r\ntwo\r\n", "--- a.txt\r\n+++ a.txt\r\n@@ -2 +2 @@\r\n-two\r\n+2\r\n", "one\r\n2\r\n", ""},
		{"mixed line ends stay as they are", "a\r\nb\nc\r\nd\n", head + "@@ -2,2 +2,2 @@\n-b\n+B\n c\r\n", "a\r\nB\nc\r\nd\n", ""},
		{"line ends can be changed", "a\r\nb\n", head + "@@ -1 +1 @@\n-a\r\n+a\n", "a\nb\n", ""},
		{"a lone CR is a character", "a\rb\nc\n", head + "@@ -1 +1 @@\n-a\rb\n+a\rB\n", "a\rB\nc\n", ""},
		{"a byte order mark stays", "\uFEFFone\ntwo\n", head + "@@ -1 +1 @@\n-one\n+1\n", "\uFEFF1\ntwo\n", ""},
		{"letters of all kinds", "ä\n€\n🙂\n", head + "@@ -2,2 +2,2 @@\n-€\n+$\n 🙂\n", "ä\n$\n🙂\n", ""},
		{"bytes that are no UTF-8 stay", "\xe4\nb\n\xff\n", head + "@@ -2 +2 @@\n-b\n+c\n", "\xe4\nc\n\xff\n", ""},
		{"white space at the end counts", "a \nb\n", head + "@@ -1 +1 @@\n-a \n+a\n", "a\nb\n", ""},
		{"a tab is no blank", "\ta\nb\n", head + "@@ -1,2 +1,2 @@\n \ta\n-b\n+c\n", "\ta\nc\n", ""},
		{"git's own headers", six, "diff --git a/a.txt b/a.txt\nindex 0123456..89abcde 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -6 +6 @@\n-six\n+6\n", "one\ntwo\nthree\nfour\nfive\n6\n", "patched a.txt"},
		{"git's headers without prefix", six, "diff --git a.txt a.txt\n--- a.txt\n+++ a.txt\n@@ -6 +6 @@\n-six\n+6\n", "one\ntwo\nthree\nfour\nfive\n6\n", ""},
	})
}

func TestPatchOffsets(t *testing.T) {
	runPatchCases(t, []patchCase{
		{"further down than it says", "zero\nhalf\n" + six, head + "@@ -2,3 +2,3 @@\n two\n-three\n+3\n four\n", "zero\nhalf\none\ntwo\n3\nfour\nfive\nsix\n", "at line 4 (2 lines further down than it says)"},
		{"further up", six, head + "@@ -9,2 +9,2 @@\n two\n-three\n+3\n", "one\ntwo\n3\nfour\nfive\nsix\n", "at line 2 (7 lines further up than it says)"},
		{"one further", "zero\n" + six, head + "@@ -1 +1 @@\n-one\n+1\n", "zero\n1\ntwo\nthree\nfour\nfive\nsix\n", "at line 2 (1 line further down than it says)"},
		{"behind the end of the file by its number", "one\n", head + "@@ -500 +500 @@\n-one\n+1\n", "1\n", "499 lines further up"},
		{"each hunk has its own", "zero\n" + six, head + "@@ -1 +1 @@\n-one\n+1\n@@ -4 +4 @@\n-four\n+4\n", "zero\n1\ntwo\nthree\n4\nfive\nsix\n", "line 2 (1 line further down than it says), line 5 (1 line"},
		{"where it says wins over where it fits too", "x\nx\nx\n", head + "@@ -2 +2 @@\n-x\n+y\n", "x\ny\nx\n", "at line 2"},
		{"context above only, at an offset", "zero\n" + six, head + "@@ -2,2 +2,3 @@\n two\n three\n+3.5\n", "zero\none\ntwo\nthree\n3.5\nfour\nfive\nsix\n", "further down"},
		{"the first lines, at an offset", "zero\n" + six, head + "@@ -1,2 +1,3 @@\n+half\n one\n two\n", "zero\nhalf\n" + six, "further down"},
		{"two places and neither where it says", "x\na\nx\nb\n", head + "@@ -2 +2 @@\n-x\n+y\n", refused, "at the lines 1, 3; write the line that is meant into @@, or more lines around it"},
		{"many places", strings.Repeat("x\ny\n", 20), head + "@@ -2 +2 @@\n-x\n+z\n", refused, "and 10 more"},
		{"where the hunk above stands", "one\nx\ntwo\n", head + "@@ -1 +1 @@\n-two\n+2\n@@ -2 +2 @@\n-x\n+y\n", refused, "the hunk above it ends below that"},
		{"only in front of the hunk above", "two\none\n", head + "@@ -2 +2 @@\n-one\n+1\n@@ -3 +3 @@\n-two\n+2\n", refused, "does not fit"},
	})
}

func TestPatchBounds(t *testing.T) {
	dir := realDir(t)
	tool := fileTools(t, dir)["file_edit"]
	var many, large strings.Builder
	for i := range 101 {
		fmt.Fprintf(&many, "--- /dev/null\n+++ n%d\n@@ -0,0 +1 @@\n+x\n", i)
	}
	for i := range 5 {
		put(t, fmt.Sprintf("%s/l%d", dir, i), "one\n"+strings.Repeat("0123456789abcde\n", workspace.MaxSize/16-1))
		fmt.Fprintf(&large, "--- l%[1]d\n+++ l%[1]d\n@@ -1 +1 @@\n-one\n+1\n", i)
	}
	_, stamps := onDisk(t, dir)
	for text, part := range map[string]string{
		many.String():  "names 101 files, and 100 are allowed",
		large.String(): "over 33554432 bytes large together",
		"--- l0\n+++ l0\n@@ -1 +1,2 @@\n one\n+" + strings.Repeat("x", 100) + "\n": "bytes large, and 8388608 are allowed",
	} {
		wantFailure(t, run(t, tool, p{"operation": "patch", "patch": text}), part)
	}
	if _, now := onDisk(t, dir); now != stamps {
		t.Fatal("something was touched")
	}
}
