package tools_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"correx/internal/testenv"
	"correx/pkg/events"
	"correx/pkg/tools"
)

func TestFileWriteKeepsEncoding(t *testing.T) {
	for _, c := range []struct {
		name, before, content string
		after                 string // "": it is refused
		says                  string
	}{
		{"CR LF", "1\r\n2\r\n", "3\n4\n", "3\r\n4\r\n", "wrote 6 bytes to a.txt, with the line ends"},
		{"CR LF that is written so", "1\r\n2\r\n", "3\r\n4\r\n", "3\r\n4\r\n", "wrote 6 bytes to a.txt"},
		{"CR LF, and equal but for that", "1\r\n2\r\n", "1\n2\n", "1\r\n2\r\n", "exactly this content already"},
		{"mixed line ends", "1\r\n2\n", "3\n4\n", "3\n4\n", "wrote 4 bytes to a.txt"},
		{"LF", "1\n", "3\r\n", "3\r\n", "wrote 3 bytes to a.txt"},
		{"a byte order mark", "\uFEFF1\n", "2\n", "\uFEFF2\n", "the byte order mark that it had"},
		{"a byte order mark that is written", "\uFEFF1\n", "\uFEFF2\n", "\uFEFF2\n", "wrote 5 bytes"},
		{"UTF-16", "\xff\xfe1\x00", "2", "", "it is UTF-16 LE, and only UTF-8 is written"},
		{"letters over an unknown encoding", "gr\xfcn", "grün", "", "its encoding is unknown"},
		{"ASCII over an unknown encoding", "gr\xfcn", "green", "green", "wrote 5 bytes"},
		{"over a binary file", "\x00\x01", "text", "text", "wrote 4 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := realDir(t)
			put(t, dir+"/a.txt", c.before)
			r := run(t, fileTools(t, dir)["file_write"], p{"operation": "write", "path": "a.txt", "content": c.content})
			if c.after == "" {
				wantFailure(t, r, c.says)
				c.after = c.before
			} else if s, ok := r.(tools.Success); !ok || !strings.Contains(s.Output, c.says) {
				t.Fatalf("got %+v", r)
			}
			if got := get(t, dir+"/a.txt"); got != c.after {
				t.Fatalf("got %q", got)
			}
		})
	}
}

// TestFileEditDistantBytes: a replacement changes the bytes that it is about and
// none elsewhere, whatever they are.
func TestFileEditDistantBytes(t *testing.T) {
	seed, runs := testenv.Seed(t), 100
	if os.Getenv("CORREX_SOAK") != "" {
		runs = 5000
	}
	r := rand.New(rand.NewPCG(seed, 5))
	dir := realDir(t)
	tool := fileTools(t, dir)["file_edit"]
	for n := range runs {
		noise := func(most int, of string) []byte {
			b := make([]byte, r.IntN(most))
			for i := range b {
				b[i] = of[r.IntN(len(of))]
			}
			return b
		}
		const plain = "ab \t\r\n'\"\\"
		before, after := noise(100_000, plain+"\xc3\xa9\xe4\xff\x80"), noise(100_000, plain+"\xc3\xa9\xe4\xff\x80")
		replacement := string(noise(200, plain))
		file := bytes.Join([][]byte{before, []byte("THE TARGET"), after}, nil)
		put(t, dir+"/a.txt", string(file))
		result := run(t, tool, p{"operation": "replace", "path": "a.txt", "target": "THE TARGET", "replacement": replacement})
		if _, ok := result.(tools.Success); !ok {
			t.Fatalf("seed %d, run %d: %+v", seed, n, result)
		}
		if want := bytes.Join([][]byte{before, []byte(replacement), after}, nil); get(t, dir+"/a.txt") != string(want) {
			t.Fatalf("seed %d, run %d: other bytes changed too", seed, n)
		}
	}
}

func TestFileMkdir(t *testing.T) {
	dir := realDir(t)
	put(t, dir+"/a.txt", "one\n")
	tool := fileTools(t, dir)["file_write"]
	mkdir := func(path string) p { return p{"operation": "mkdir", "path": path} }
	preview := tool.(tools.Previewer).Preview(context.Background(), request(t, "file_write", mkdir("x/y/")))
	if !preview.Valid || !strings.Contains(preview.Diff, "+++ "+dir+"/x/y/\n") || len(preview.Base) != 1 || preview.Base[0] != (events.BaseHash{Path: dir + "/x/y"}) {
		t.Fatalf("preview %+v", preview)
	}
	if _, err := os.Lstat(dir + "/x"); err == nil {
		t.Fatal("the preview made something")
	}
	s, ok := run(t, tool, mkdir("x/y/")).(tools.Success)
	if !ok || s.Output != "made the directory x/y/" || len(s.Affected) != 1 || s.Affected[0] != dir+"/x/y" {
		t.Fatalf("got %+v", s)
	}
	if fi, err := os.Lstat(dir + "/x/y"); err != nil || !fi.IsDir() {
		t.Fatalf("made %v, %v", fi, err)
	}
	for _, path := range []string{"x/y", "x", ".", dir} {
		wantSuccess(t, run(t, tool, mkdir(path)), path+" is a directory already")
		if got := tool.(tools.FileAffectingTool).AffectedPaths(request(t, "file_write", mkdir(path))); got != nil {
			t.Errorf("%s affects %v", path, got)
		}
	}
	wantFailure(t, run(t, tool, mkdir("a.txt")), "exists and is a file")
	wantFailure(t, run(t, tool, mkdir("a.txt/b")), "a file and no directory")
	wantFailure(t, run(t, tool, mkdir("../x")), "not allowed")
	wantFailure(t, run(t, tool, p{"operation": "mkdir", "path": "z", "content": ""}), "takes no content")
	wantFailure(t, run(t, tool, p{"operation": "delete", "path": "x"}), "is a directory")
	scope := tools.Scope{Recorder: meddling{meddle: func() { put(t, dir+"/late/theirs", "x") }}}
	f, ok := tool.(tools.Executor).Execute(tools.WithScope(context.Background(), scope), request(t, "file_write", mkdir("late"))).(tools.Failure)
	if !ok || !f.Recoverable || !strings.Contains(f.Reason, "somebody else made it") || get(t, dir+"/late/theirs") != "x" {
		t.Fatalf("got %+v", f)
	}
}
