package changes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A bench is a directory and an upper layer over it, as the tests fill them.
type bench struct {
	*testing.T
	dir, upper string
}

func newBench(t *testing.T) bench {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := bench{t, filepath.Join(top, "dir"), filepath.Join(top, "upper")}
	b.must(os.Mkdir(b.dir, 0o755))
	return b
}

func (b bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b bench) put(path, content string, mode os.FileMode) {
	b.Helper()
	b.must(os.MkdirAll(filepath.Dir(path), 0o755))
	b.must(os.WriteFile(path, []byte(content), mode))
	b.must(os.Chmod(path, mode))
}

func (b bench) whiteout(path string) {
	b.Helper()
	b.must(os.MkdirAll(filepath.Dir(path), 0o755))
	b.must(unix.Mknod(path, unix.S_IFCHR, 0))
}

func (b bench) read() (Set, error) {
	return Read(context.Background(), []Layer{{Dir: b.dir, Upper: b.upper}}, Limits{}, nil)
}

// TestRead reads layers as overlayfs leaves them.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		name string
		fill func(b bench)
		want string // lines of kind and path
	}{
		{"nothing", func(b bench) {}, ""},
		{"new file", func(b bench) { b.put(b.upper+"/a", "1", 0o644) }, "created a"},
		{"new file in a new directory", func(b bench) { b.put(b.upper+"/d/a", "1", 0o644) }, "created d, created d/a"},
		{"copied and not changed", func(b bench) { b.put(b.upper+"/f", "old", 0o644) }, ""},
		{"changed", func(b bench) { b.put(b.upper+"/f", "new", 0o644) }, "changed f"},
		{"mode", func(b bench) { b.put(b.upper+"/f", "old", 0o755) }, "changed f"},
		{"deleted", func(b bench) { b.whiteout(b.upper + "/f") }, "deleted f"},
		{"whiteout over nothing", func(b bench) { b.whiteout(b.upper + "/none") }, ""},
		{"whiteout in a new directory", func(b bench) { b.whiteout(b.upper + "/n/none") }, "created n"},
		{"deleted tree", func(b bench) { b.whiteout(b.upper + "/t") }, "deleted t, deleted t/s, deleted t/s/g, deleted t/x"},
		{"merged directory", func(b bench) { b.put(b.upper+"/t/new", "", 0o644) }, "created t/new"},
		{"opaque directory", func(b bench) {
			b.put(b.upper+"/t/x", "x", 0o644)
			b.must(unix.Setxattr(b.upper+"/t", "user.overlay.opaque", []byte("y"), 0))
		}, "deleted t/s, deleted t/s/g"},
		{"directory in an opaque directory", func(b bench) {
			b.must(os.MkdirAll(b.upper+"/t/s", 0o755))
			b.must(unix.Setxattr(b.upper+"/t", "user.overlay.opaque", []byte("y"), 0))
		}, "deleted t/s/g, deleted t/x"},
		{"directory by file", func(b bench) { b.put(b.upper+"/t", "file", 0o644) }, "changed t, deleted t/s, deleted t/s/g, deleted t/x"},
		{"file by directory", func(b bench) { b.put(b.upper+"/f/a", "1", 0o644) }, "changed f, created f/a"},
		{"link by directory", func(b bench) { b.put(b.upper+"/l/x", "1", 0o644) }, "changed l, created l/x"},
		{"new link", func(b bench) { b.must(os.Symlink("/etc/passwd", b.upper+"/k")) }, "created k"},
		{"link to elsewhere", func(b bench) { b.must(os.Symlink("f", b.upper+"/l")) }, "changed l"},
		{"link that is the same", func(b bench) { b.must(os.Symlink("t", b.upper+"/l")) }, ""},
		{"mode of a directory", func(b bench) {
			b.must(os.Mkdir(b.upper+"/t", 0o755))
			b.must(os.Chmod(b.upper+"/t", 0o700))
		}, "changed t"},
		{"forbidden directory", func(b bench) {
			b.put(b.upper+"/n/a", "1", 0)
			b.must(os.Chmod(b.upper+"/n", 0))
		}, "created n, created n/a"},
		{"two names of one file", func(b bench) {
			b.put(b.upper+"/a", "1", 0o644)
			b.must(os.Link(b.upper+"/a", b.upper+"/b"))
		}, "created a, created b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.put(b.dir+"/f", "old", 0o644)
			b.put(b.dir+"/t/x", "x", 0o644)
			b.put(b.dir+"/t/s/g", "g", 0o644)
			b.must(os.Symlink("t", b.dir+"/l"))
			b.must(os.Mkdir(b.upper, 0o755))
			c.fill(b)
			s, err := b.read()
			b.must(err)
			var got []string
			for _, c := range s.Changes {
				got = append(got, string(c.Kind)+" "+strings.TrimPrefix(c.Path, b.dir+"/"))
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("read %q, want %q", text, c.want)
			}
			text, err := s.Encode()
			b.must(err)
			again, err := Decode(text)
			b.must(err)
			if twice, err := again.Encode(); err != nil || string(twice) != string(text) {
				t.Errorf("it is another when it was kept: %v", err)
			}
			if s.Empty() != (s.Diff(0) == "") || len(s.Base()) != len(s.Changes) {
				t.Errorf("diff %q, base %v", s.Diff(0), s.Base())
			}
		})
	}
}

// TestReadRefuses: each refusal names the path.
func TestReadRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		fill func(b bench)
		want string
	}{
		{"FIFO", func(b bench) { b.must(unix.Mkfifo(b.upper+"/p", 0o644)) }, "p is a FIFO"},
		{"socket", func(b bench) { b.must(unix.Mknod(b.upper+"/p", unix.S_IFSOCK|0o644, 0)) }, "p is a socket"},
		{"setuid", func(b bench) { b.put(b.upper+"/p", "", 0o755|os.ModeSetuid) }, "p is setuid"},
		{"hard link", func(b bench) {
			b.must(os.Link(b.dir+"/f", b.dir+"/g"))
			b.put(b.upper+"/f", "new", 0o644)
		}, "f has 2 hard links"},
		{"not UTF-8", func(b bench) { b.put(b.upper+"/\xff", "", 0o644) }, "not UTF-8"},
		{"protected", func(b bench) { b.put(b.upper+"/.git/config", "", 0o644) }, ".git is protected"},
		{"protected, deleted with its directory", func(b bench) { b.whiteout(b.upper + "/r") }, "r/.git is protected"},
		{"redirect", func(b bench) {
			b.must(os.Mkdir(b.upper+"/t", 0o755))
			b.must(unix.Setxattr(b.upper+"/t", "user.overlay.redirect", []byte("/x"), 0))
		}, "redirect_dir"},
		{"metacopy", func(b bench) {
			b.put(b.upper+"/f", "", 0o644)
			b.must(unix.Setxattr(b.upper+"/f", "user.overlay.metacopy", nil, 0))
		}, "metacopy"},
		{"too large", func(b bench) { b.must(os.WriteFile(b.upper+"/a", make([]byte, 2000), 0o644)) }, "a is 2000 bytes large"},
		{"too many", func(b bench) {
			for n := range 40 {
				b.put(b.upper+"/"+strings.Repeat("n", n+1), "", 0o644)
			}
		}, "more than 30 paths"},
		{"too much", func(b bench) {
			for _, name := range []string{"1", "2", "3", "4"} {
				b.must(os.WriteFile(b.upper+"/"+name, make([]byte, 900), 0o644))
			}
		}, "more than 3000 bytes"},
		{"too deep", func(b bench) { b.must(os.MkdirAll(b.upper+strings.Repeat("/d", 140), 0o755)) }, "nested in 128"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.put(b.dir+"/f", "old", 0o644)
			b.put(b.dir+"/r/.git/config", "", 0o644)
			b.must(os.Mkdir(b.upper, 0o755))
			c.fill(b)
			limits := Limits{Entries: 30, FileSize: 1000, Total: 3000}
			if c.name == "too deep" {
				limits = Limits{}
			}
			_, err := Read(context.Background(), []Layer{{Dir: b.dir, Upper: b.upper}}, limits, func(path string) bool {
				return strings.HasSuffix(path, "/.git") || strings.Contains(path, "/.git/")
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("read: %v, want %q", err, c.want)
			}
		})
	}
}

// TestReadKnowsWhatOthersChanged: what changed below while the command ran must
// not be lost under what it made of the file as it had been.
func TestReadKnowsWhatOthersChanged(t *testing.T) {
	b := newBench(t)
	b.put(b.dir+"/f", "old", 0o644)
	b.must(os.Mkdir(b.upper, 0o755))
	b.put(b.upper+"/f", "by the command", 0o644)
	upper, err := openTop(b.upper)
	b.must(err)
	defer upper.Close()
	for since := birth(upper); ; { // the clock of files ticks slowly
		b.put(b.dir+"/f", "by somebody else", 0o644)
		var st unix.Stat_t
		b.must(unix.Stat(b.dir+"/f", &st))
		if st.Ctim.Nano() > since {
			break
		}
	}
	_, err = b.read()
	var moved *MovedError
	if !errors.As(err, &moved) || moved.Path != b.dir+"/f" {
		t.Errorf("read: %v", err)
	}
}
