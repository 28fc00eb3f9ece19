// Package testenv finds what tests need outside Go: the real llama-server and
// nats programs, what runs in the sandbox, and Correx's own commands.
//
// A program that cannot be had fails the test and never skips it: a suite that
// passes without its subjects proves nothing.
package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Root is the module's root directory.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// LlamaServer is the path of a llama-server: $CORREX_LLAMA_SERVER, else the one
// on PATH, else the one under .cache, which is fetched if need be.
func LlamaServer(t testing.TB) string {
	t.Helper()
	return must(t, llamaServer)
}

// NatsCLI is the path of the nats command line: $CORREX_NATS, else the one on
// PATH, else the one under .cache, which is built if need be.
func NatsCLI(t testing.TB) string {
	t.Helper()
	return must(t, natsCLI)
}

// Program is the path of a program that tests run in the sandbox, such as rg: the
// one in the directory $CORREX_PROGRAMS, else the one in that of scripts/programs,
// which fetches what this machine lacks.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(filepath.Join(must(t, programs), name))
	if err != nil {
		t.Fatal(err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Bin is a directory with Correx's commands, brought up to date once in a test
// process.
func Bin(t testing.TB) string {
	t.Helper()
	return must(t, commands)
}

func must(t testing.TB, find func() (string, error)) string {
	t.Helper()
	path, err := find()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	llamaServer = sync.OnceValues(func() (string, error) {
		return program("CORREX_LLAMA_SERVER", "llama-server")
	})
	natsCLI = sync.OnceValues(func() (string, error) {
		return program("CORREX_NATS", "nats")
	})
	programs = sync.OnceValues(func() (string, error) {
		if dir := os.Getenv("CORREX_PROGRAMS"); dir != "" {
			return dir, nil
		}
		out, err := run(filepath.Join(Root(), "scripts", "programs"))
		return strings.TrimSpace(out), err
	})
	commands = sync.OnceValues(build)
)

// program finds a program by a variable, on PATH, or by the script of its name.
func program(variable, name string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		return exec.LookPath(path)
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	out, err := run(filepath.Join(Root(), "scripts", name))
	return strings.TrimSpace(out), err
}

// Tags are the build tags of Correx's commands, as in the Makefile.
const Tags = "sqlite_fts5"

// build brings .cache/test-bin up to date: what has not changed is not linked
// again. A lock keeps other test processes from building at the same time; one
// that runs a former program keeps it, for go build replaces files whole.
func build() (string, error) {
	dir := filepath.Join(Root(), ".cache", "test-bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	_, err = run("go", "build", "-tags", Tags, "-buildvcs=false", "-o", dir+string(filepath.Separator), "./cmd/...")
	return dir, err
}

// run answers with stdout; an error carries stderr, whose last line says how to
// mend it.
func run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = Root()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", errors.Join(err, errors.New(strings.TrimSpace(stderr.String())))
	}
	return stdout.String(), nil
}
