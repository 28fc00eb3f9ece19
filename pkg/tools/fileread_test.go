package tools_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"correx/pkg/tools"
)

func TestFileReadLines(t *testing.T) {
	dir := realDir(t)
	put(t, dir+"/ten", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n")
	put(t, dir+"/open", "1\n2")
	put(t, dir+"/empty", "")
	put(t, dir+"/crlf", "1\r\n2\r\n3\r\n")
	put(t, dir+"/long", strings.Repeat("é", 100<<10)+"\nend\n")
	put(t, dir+"/large", strings.Repeat("0123456789abcde\n", 100<<10)) // 1.6 MB
	tool := fileTools(t, dir)["file_read"]
	for _, c := range []struct {
		path          string
		offset, limit int // 0: not given
		want          string
	}{
		{"ten", 3, 2, "3\n4\n[lines 3 to 4 of 10; to go on, use offset 5]"},
		{"ten", 0, 1, "1\n[line 1 of 10; to go on, use offset 2]"},
		{"ten", 9, 0, "9\n10\n[lines 9 to 10 of 10, the end of the file]"},
		{"ten", 10, 5, "10\n[line 10 of 10, the end of the file]"},
		{"ten", 0, 100, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n[lines 1 to 10 of 10, the end of the file]"},
		{"open", 2, 1, "2\n[line 2 of 2, the end of the file]"},
		{"crlf", 2, 1, "2\r\n[line 2 of 3; to go on, use offset 3]"},
		{"empty", 1, 10, "(the file is empty)"},
		{"empty", 0, 0, "(the file is empty)"},
		{"large", 102399, 0, "0123456789abcde\n0123456789abcde\n[lines 102399 to 102400 of 102400, the end of the file]"},
	} {
		wantSuccess(t, run(t, tool, window(c.path, c.offset, c.limit)), c.want)
	}
	wantFailure(t, run(t, tool, window("ten", 11, 0)), "ten has 10 lines; offset 11 is behind its end")
	wantFailure(t, run(t, tool, p{"operation": "read", "path": "ten", "offset": 0}), "counted from 1")
	wantFailure(t, run(t, tool, p{"operation": "read", "path": "ten", "limit": -1}), "1 or more")
	wantFailure(t, run(t, tool, p{"operation": "stat", "path": "ten", "limit": 1}), "takes no limit")
	wantFailure(t, run(t, tool, p{"operation": "read", "path": "ten", "offset": 1.5}), "cannot unmarshal")
	wantFailure(t, run(t, tool, p{"operation": "read", "path": "large"}), "1638400 bytes", "with offset and limit")
	cut := run(t, tool, window("long", 1, 1)).(tools.Success).Output
	if !utf8.ValidString(cut) || !strings.HasSuffix(cut, "\n[line 1 of 2 is 204801 bytes long, of which these are the first 49152; to go on, use offset 2]") {
		t.Fatalf("%.20q … %q", cut, cut[len(cut)-120:])
	}
}

func window(path string, offset, limit int) p {
	params := p{"operation": "read", "path": path}
	if offset != 0 {
		params["offset"] = offset
	}
	if limit != 0 {
		params["limit"] = limit
	}
	return params
}

// TestFileReadGoesOn: whoever does what the last line says reads all of a file,
// each line once.
func TestFileReadGoesOn(t *testing.T) {
	dir := realDir(t)
	var all strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&all, "%d %s\n", i, strings.Repeat("x", i%300))
	}
	put(t, dir+"/a.txt", all.String())
	tool := fileTools(t, dir)["file_read"]
	next := regexp.MustCompile(`\[lines? [0-9 to]+ of 5000; to go on, use offset (\d+)\]$`)
	var read strings.Builder
	for offset, calls := 1, 0; ; calls++ {
		if calls > 100 {
			t.Fatal("it does not come to an end")
		}
		out := run(t, tool, p{"operation": "read", "path": "a.txt", "offset": offset}).(tools.Success).Output
		if len(out) > 50<<10 {
			t.Fatalf("%d bytes at once", len(out))
		}
		read.WriteString(out[:strings.LastIndex(out, "[line")])
		m := next.FindStringSubmatch(out)
		if m == nil {
			break
		}
		if _, err := fmt.Sscan(m[1], &offset); err != nil {
			t.Fatal(err)
		}
	}
	if read.String() != all.String() {
		t.Fatalf("read %d bytes of %d", read.Len(), all.Len())
	}
}

func TestFileReadEncodings(t *testing.T) {
	dir := realDir(t)
	tool := fileTools(t, dir)["file_read"]
	for _, c := range []struct {
		name, data, encoding, shown string // shown: what read answers; "": it refuses
	}{
		{"ascii", "a\n", "UTF-8", "a\n"},
		{"utf8", "ä€🙂\n", "UTF-8", "ä€🙂\n"},
		{"bom", "\uFEFFa\n", "UTF-8 with a byte order mark", "a\n[encoding: UTF-8 with a byte order mark, which stays when the file is changed]"},
		{"utf16le", "\xff\xfea\x00\xac\x20\n\x00", "UTF-16 LE", "a€\n[encoding: UTF-16 LE; shown as UTF-8]"},
		{"utf16be", "\xfe\xff\x00a\x20\xac\x00\n", "UTF-16 BE", "a€\n[encoding: UTF-16 BE; shown as UTF-8]"},
		{"utf16 with half a unit", "\xff\xfea\x00\n", "binary", ""},
		{"utf16 with half a pair", "\xff\xfe\x00\xd8a\x00", "binary", ""},
		{"utf32", "\xff\xfe\x00\x00a\x00\x00\x00", "binary", ""},
		{"latin1", "gr\xfc\xdfe\x80", "unknown, 8 bits a character", "grüße\\x80\n[encoding: unknown, 8 bits a character; shown as UTF-8]"},
		{"broken", "äöü\xff\n", "UTF-8 with invalid bytes", "äöü\\xff\n[encoding: UTF-8 with invalid bytes; shown as UTF-8]"},
		{"nul", "a\x00b", "binary", ""},
		{"controls", "\x01\x02\x03abc", "binary", ""},
		{"colours", "\x1b[31mred\x1b[0m\n", "UTF-8", "\x1b[31mred\x1b[0m\n"},
		{"png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "binary", ""},
		{"pages", "a\fb\n", "UTF-8", "a\fb\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			put(t, dir+"/x", c.data)
			stat := run(t, tool, p{"operation": "stat", "path": "x"}).(tools.Success)
			if !strings.Contains(stat.Output, "\nencoding: "+c.encoding+"\n") {
				t.Fatalf("stat %q", stat.Output)
			}
			r := run(t, tool, p{"operation": "read", "path": "x"})
			if c.shown == "" {
				wantFailure(t, r, fmt.Sprintf("x is binary (%d bytes", len(c.data)))
				return
			}
			wantSuccess(t, r, c.shown)
			if got := r.(tools.Success).Metadata["encoding"]; got != c.encoding {
				t.Fatalf("metadata has %q", got)
			}
		})
	}
}

func TestFileStat(t *testing.T) {
	dir := realDir(t)
	put(t, dir+"/a.txt", "one\r\ntwo\r\nthree")
	put(t, dir+"/mixed", "one\r\ntwo\nthree\n")
	if err := os.Chmod(dir+"/a.txt", 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.txt", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	tool := fileTools(t, dir)["file_read"]
	got := run(t, tool, p{"operation": "stat", "path": "link"}).(tools.Success)
	want := regexp.MustCompile(`^path: link\nleads to: ` + regexp.QuoteMeta(dir) + `/a.txt\nkind: file\nmode: 0640\nchanged: 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\n` +
		`size: 15 bytes\nlines: 3\nencoding: UTF-8\nline ends: CR LF\nsha256: [0-9a-f]{64}$`)
	if !want.MatchString(got.Output) {
		t.Fatalf("got %s", got.Output)
	}
	for path, part := range map[string]string{"mixed": "line ends: mixed: 2 LF, 1 CR LF\n", ".": "kind: directory\n"} {
		if out := run(t, tool, p{"operation": "stat", "path": path}).(tools.Success).Output; !strings.Contains(out, part) {
			t.Errorf("%s: %q", path, out)
		}
	}
	huge, err := os.Create(dir + "/huge")
	if err != nil {
		t.Fatal(err)
	}
	defer huge.Close()
	if err := huge.Truncate(1 << 40); err != nil {
		t.Fatal(err)
	}
	if out := run(t, tool, p{"operation": "stat", "path": "huge"}).(tools.Success).Output; !strings.Contains(out, "size: 1099511627776 bytes\ncontent: not looked at") {
		t.Errorf("huge: %q", out)
	}
	wantFailure(t, run(t, tool, p{"operation": "stat", "path": "none"}), "there is no file or directory none", "a.txt")
}

func TestFileListPages(t *testing.T) {
	dir := realDir(t)
	for i := range 1002 {
		put(t, fmt.Sprintf("%s/d/%04d", dir, i), "")
	}
	tool := fileTools(t, dir)["file_read"]
	all := run(t, tool, p{"operation": "list", "path": "d"}).(tools.Success)
	if n := strings.Count(all.Output, "(file, 0 bytes)"); n != 1000 || !strings.HasSuffix(all.Output, "\n[entries 1 to 1000 of 1002; to go on, use offset 1001]") {
		t.Fatalf("%d entries, %q", n, all.Output[len(all.Output)-80:])
	}
	wantSuccess(t, run(t, tool, p{"operation": "list", "path": "d", "offset": 1001}), "1000 (file, 0 bytes)\n1001 (file, 0 bytes)\n[entries 1001 to 1002 of 1002, the end]")
	wantSuccess(t, run(t, tool, p{"operation": "list", "path": "d", "offset": 2, "limit": 1}), "0001 (file, 0 bytes)\n[entries 2 to 2 of 1002; to go on, use offset 3]")
	wantFailure(t, run(t, tool, p{"operation": "list", "path": "d", "offset": 2000}), "has 1002 entries; offset 2000 is behind them")
}

// TestFileNames: each name in a listing can be given back as a path.
func TestFileNames(t *testing.T) {
	dir := realDir(t)
	set := fileTools(t, dir)
	names := map[string]string{
		"plain": "plain", "with blank": "with blank", "ümlaut": "ümlaut", `back\slash`: `back\slash`,
		"latin\xfc1": `latin\xfc1`, "\xff\xfe": `\xff\xfe`, "new\nline": `new\x0aline`, "esc\x1b[31m": `esc\x1b[31m`, "del\x7f": `del\x7f`,
		`looks\xff`: `looks\x5cxff`, `\x`: `\x5cx`, "half\xc3": `half\xc3`, "\xc3\xa9": "é",
	}
	for name := range names {
		put(t, filepath.Join(dir, name), "one\n")
	}
	list := run(t, set["file_read"], p{"operation": "list", "path": "."}).(tools.Success).Output
	if !utf8.ValidString(list) {
		t.Fatalf("listed %q", list)
	}
	for name, shown := range names {
		if !strings.Contains("\n"+list+"\n", "\n"+shown+" (file, 4 bytes)\n") {
			t.Errorf("%q is not listed as %s:\n%s", name, shown, list)
		}
		wantSuccess(t, run(t, set["file_read"], p{"operation": "read", "path": shown}), "one\n")
		wantSuccess(t, run(t, set["file_read"], p{"operation": "exists", "path": shown}), "true")
	}
	for _, path := range []string{`latin\xfc1`, `\xff\xfe`, `new\xff`} {
		wantRefused(t, map[string]tools.Tool{"file_write": set["file_write"], "file_edit": set["file_edit"]}, path, "is not UTF-8")
	}
	wantFailure(t, run(t, set["file_write"], p{"operation": "write", "path": `no\x0asuch`, "content": ""}), "control character")
	wantFailure(t, run(t, set["file_write"], p{"operation": "write", "path": "no\nsuch", "content": ""}), `is to be written "no\\x0asuch"`)
	wantSuccess(t, run(t, set["file_write"], p{"operation": "delete", "path": `new\x0aline`}), `deleted new\x0aline`)
	for _, path := range []string{`caf\xc3\xa9`, `\x5cy`, `a\xbad`, "tab\there"} { // another spelling of a name is none
		f := run(t, set["file_read"], p{"operation": "exists", "path": path})
		if s, ok := f.(tools.Success); ok && path != `a\xbad` {
			t.Errorf("%s: %+v", path, s)
		}
	}
	wantFailure(t, run(t, set["file_read"], p{"operation": "read", "path": `\xff\xfd`}), `there is no file \xff\xfd`, `\xff\xfe`)
}
