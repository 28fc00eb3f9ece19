package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// SearchPath is where executables are looked up by their bare name, and the PATH
// of every process that a tool starts.
const SearchPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

// An executable is a program as it was when the tool was built.
type executable struct {
	name        string // argv[0]
	path        string // real
	stamp       fileStamp
	sha256      string
	interpreter bool
}

// A fileStamp tells whether a file may have changed without reading it.
type fileStamp struct {
	dev, inode   uint64
	size         int64
	mtime, ctime int64
}

// findExecutable resolves what the configuration names: a bare name along
// [SearchPath], or an absolute path.
func findExecutable(entry string, writable []string, interpreters map[string]bool) (executable, error) {
	path := entry
	if !filepath.IsAbs(entry) {
		if strings.ContainsRune(entry, '/') || entry == "" || entry == "." || entry == ".." {
			return executable{}, fmt.Errorf("executable %q is neither a bare name nor an absolute path", entry)
		}
		var err error
		if path, err = lookUp(entry); err != nil {
			return executable{}, err
		}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return executable{}, fmt.Errorf("executable %q: %w", entry, err)
	}
	for _, dir := range writable {
		if inside(dir, real) || inside(dir, path) {
			return executable{}, fmt.Errorf("executable %q is %s, below %s, where tools may write; it could be replaced by what it is asked to run", entry, real, dir)
		}
	}
	x := executable{name: filepath.Base(entry), path: real}
	if x.stamp, x.sha256, err = fingerprint(real); err != nil {
		return executable{}, fmt.Errorf("executable %q: %w", entry, err)
	}
	x.interpreter = isInterpreter(x.name, interpreters) || isInterpreter(filepath.Base(real), interpreters)
	return x, nil
}

func lookUp(name string) (string, error) {
	for _, dir := range filepath.SplitList(SearchPath) {
		path := filepath.Join(dir, name)
		if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("executable %q is not in %s; install it, or give its absolute path", name, SearchPath)
}

// inside compares whole components, never string prefixes.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func fingerprint(path string) (fileStamp, string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fileStamp{}, "", err
	}
	defer f.Close()
	stamp, err := stampOf(f)
	if err != nil {
		return fileStamp{}, "", err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fileStamp{}, "", err
	}
	return stamp, hex.EncodeToString(h.Sum(nil)), nil
}

func stampOf(f *os.File) (fileStamp, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fileStamp{}, err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fileStamp{}, errors.New("is no regular file")
	case st.Mode&0o111 == 0:
		return fileStamp{}, errors.New("is not executable")
	case st.Mode&0o002 != 0:
		return fileStamp{}, errors.New("may be written by everybody")
	}
	return fileStamp{st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}, nil
}

// check makes sure that the program is the one that was found at the start. Only
// if something about it moved is it read again.
func (x executable) check() error {
	f, err := os.OpenFile(x.path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("executable %s is not there any more: %w", x.name, err)
	}
	stamp, err := stampOf(f)
	f.Close()
	if err != nil {
		return fmt.Errorf("executable %s (%s) %w", x.name, x.path, err)
	}
	if stamp == x.stamp {
		return nil
	}
	if stamp.dev == x.stamp.dev && stamp.inode == x.stamp.inode {
		if _, sum, err := fingerprint(x.path); err == nil && sum == x.sha256 {
			return nil
		}
	}
	return fmt.Errorf("executable %s (%s) changed since this worker started; restart it to accept the new one", x.name, x.path)
}

// interpreters run other programs, or code that they are given: allowing one is
// allowing everything. What they do is for the sandbox to bound; the list makes
// a person look.
var interpreters = set(`
	sh bash dash zsh fish ksh mksh csh tcsh busybox toybox env xargs find parallel nohup nice ionice chrt taskset
	timeout time setsid stdbuf script watch flock sudo su doas runuser setpriv unshare nsenter chroot ld.so
	start-stop-daemon systemd-run systemctl crontab at batch strace ltrace gdb perf valgrind
	python pypy perl ruby node nodejs deno bun lua luajit php tclsh wish expect Rscript R java groovy scala kotlin julia
	ocaml ghc runghc erl elixir racket guile awk gawk mawk nawk sed ed ex vi vim nvim emacs nano less more man m4 bc dc
	make gmake cmake ninja meson bazel go cargo rustc npm npx yarn pnpm pip pipx uv gem bundle mvn gradle dotnet
	gcc cc g++ c++ clang clang++ tcc ld as git hg svn tar cpio zip rsync ssh scp sftp sort split patch
	docker podman kubectl apt apt-get dpkg rpm dnf yum snap flatpak nc ncat socat sqlite3 psql mysql openssl
`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// isInterpreter knows a program under its versions too: python3.11, gcc-12.
func isInterpreter(name string, more map[string]bool) bool {
	plain := strings.TrimRight(name, "0123456789.-_")
	return interpreters[name] || interpreters[plain] || more[name]
}
