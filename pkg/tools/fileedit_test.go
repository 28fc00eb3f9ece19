package tools_test

import (
	"context"
	"testing"

	"correx/pkg/events"
	"correx/pkg/tools"
)

func TestFileEdit(t *testing.T) {
	replace := func(target, replacement string) p {
		return p{"operation": "replace", "path": "a.txt", "target": target, "replacement": replacement}
	}
	for _, c := range []struct {
		name, before string
		params       p
		after        string   // empty: it fails
		reason       []string // of the failure
	}{
		{"append", "one\n", p{"operation": "append", "path": "a.txt", "content": "two\n"}, "one\ntwo\n", nil},
		{"append adds no line end", "one", p{"operation": "append", "path": "a.txt", "content": "two"}, "onetwo", nil},
		{"append takes over CR LF", "one\r\n", p{"operation": "append", "path": "a.txt", "content": "two\nthree\n"}, "one\r\ntwo\r\nthree\r\n", nil},
		{"append nothing", "one", p{"operation": "append", "path": "a.txt", "content": ""}, "", []string{"nothing to append"}},
		{"replace one", "a b c", replace("b", "x"), "a x c", nil},
		{"replace bytes that are no text", "a\xff\xfeb", replace("b", "x"), "a\xff\xfex", nil},
		{"remove", "a b c", replace(" b", ""), "a c", nil},
		{"replace over lines", "1\n2\n3\n", replace("2\n3", "x"), "1\nx\n", nil},
		{"replace in CR LF", "1\r\n2\r\n3\r\n", replace("1\n2", "x\ny"), "x\r\ny\r\n3\r\n", nil},
		{"mixed line ends are left alone", "1\r\n2\n3", replace("1\n2", "x"), "", []string{"with other line ends, at line 1", "mixed: 1 LF, 1 CR LF"}},
		{"mixed line ends, within one line", "1\r\n2\n3", replace("2", "x"), "1\r\nx\n3", nil},
		{"mixed line ends, written as they are", "1\r\n2\n3", replace("1\r\n2", "x\r\ny"), "x\r\ny\n3", nil},
		{"CR LF for a file in LF", "1\n2\n", replace("1\r\n2", "x"), "", []string{"with other line ends, at line 1", "are LF"}},
		{"append to mixed line ends", "1\r\n2\n", p{"operation": "append", "path": "a.txt", "content": "3\n"}, "1\r\n2\n3\n", nil},
		{"append behind a byte order mark", "\uFEFF1\n", p{"operation": "append", "path": "a.txt", "content": "2\n"}, "\uFEFF1\n2\n", nil},
		{"replace behind a byte order mark", "\uFEFF1\n", replace("1", "2"), "\uFEFF2\n", nil},
		{"append to UTF-16", "\xff\xfe1\x00", p{"operation": "append", "path": "a.txt", "content": "2"}, "", []string{"UTF-16 LE", "only UTF-8 is written"}},
		{"replace in a binary file", "a\x00b", replace("a", "c"), "", []string{"is binary (3 bytes)"}},
		{"letters into an unknown encoding", "gr\xfcn", replace("n", "ß"), "", []string{"its encoding is unknown"}},
		{"ASCII into an unknown encoding", "gr\xfcn", replace("n", "m"), "gr\xfcm", nil},
		{"a file without a last newline keeps none", "one\ntwo", replace("two", "2"), "one\n2", nil},
		{"no match", "alpha\nbeta\n", replace("gamma", "x"), "", []string{"does not occur", "3 lines"}},
		{"near match", "alpha\n  If  x == 1:\n", replace("if x == 1:", "x"), "", []string{"line 2", "If  x == 1:"}},
		{"several", "x\ny\nx\nx", replace("x", "z"), "", []string{"3 times", "lines 1, 3, 4", "once"}},
		{"overlapping ones count", "aaa", replace("aa", "b"), "", []string{"2 times"}},
		{"empty target", "a", replace("", "b"), "", []string{"target is empty"}},
		{"equal", "a", replace("a", "a"), "", []string{"equal"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := realDir(t)
			put(t, dir+"/a.txt", c.before)
			tool := fileTools(t, dir)["file_edit"]
			valid := tool.ValidateRequest(request(t, "file_edit", c.params))
			preview := tool.(tools.Previewer).Preview(context.Background(), request(t, "file_edit", c.params))
			result := run(t, tool, c.params)
			if c.after == "" {
				wantFailure(t, result, c.reason...)
				if valid.OK() || preview.Valid || get(t, dir+"/a.txt") != c.before {
					t.Fatalf("valid %v, preview %v, file %q", valid.OK(), preview.Valid, get(t, dir+"/a.txt"))
				}
				return
			}
			if _, ok := result.(tools.Success); !ok || !valid.OK() || !preview.Valid || preview.Tier != events.T3 {
				t.Fatalf("%+v, valid %v, preview %+v", result, valid.OK(), preview)
			}
			if got := get(t, dir+"/a.txt"); got != c.after {
				t.Fatalf("got %q, want %q", got, c.after)
			}
		})
	}
	t.Run("the file must exist", func(t *testing.T) {
		wantFailure(t, run(t, fileTools(t, realDir(t))["file_edit"], replace("a", "b")), "no file a.txt", "write it first")
	})
}
