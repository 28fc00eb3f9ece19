package toolworker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"correx/internal/toolworker"
	"correx/internal/workerhome"
	"correx/pkg/events"
)

// The test binary is its own worker process: with this variable it is one.
const workerEnv = "CORREX_TEST_WORKER" // its name

func TestMain(m *testing.M) {
	if name := os.Getenv(workerEnv); name != "" {
		if err := workerMain(name); err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func workerMain(name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	home, err := workerhome.Open(os.Getenv("CORREX_TEST_STATE"), events.RoleToolWorker, name)
	if err != nil {
		return err
	}
	list, err := toolset(os.Getenv("CORREX_TEST_DIR"))
	if os.Getenv(toolsEnv) == "files" {
		list, err = fileTools(os.Getenv("CORREX_TEST_DIR"), home.Dir)
	}
	if err != nil {
		return err
	}
	return toolworker.Run(ctx, toolworker.Options{
		StateDir: os.Getenv("CORREX_TEST_STATE"), Home: home, Host: "host", Tools: list, AckWait: ackWait,
		Drain: 10 * time.Second, Concurrency: 4, Fault: dieAt(os.Getenv(faultEnv)),
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
}

// faultEnv names a point of the journal at which a worker process dies, or says
// "nth N M POINT": M µs after it comes for the Nth time to one that begins so, or
// to "any".
const faultEnv = "CORREX_TEST_FAULT"

func dieAt(point string) func(string) {
	var nth, micros int
	var prefix string
	if n, _ := fmt.Sscanf(point, "nth %d %d %s", &nth, &micros, &prefix); n == 3 {
		return dieAfter(nth, micros, prefix)
	}
	return func(p string) {
		if p == point {
			die()
		}
	}
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}

// A child is a worker in a process of its own, which can be killed and frozen.
type child struct {
	p    *plant
	name string
	dir  string // of the tool set; all children share it
	cmd  *exec.Cmd
	log  *os.File
}

func (p *plant) child(name, dir string, env ...string) *child {
	p.Helper()
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.Fatal(err)
	}
	c := &child{p: p, name: name, dir: dir, log: log}
	c.start(env...)
	p.Cleanup(func() {
		if c.cmd != nil {
			_ = c.cmd.Process.Kill()
			_ = c.cmd.Wait()
		}
		log.Close()
	})
	return c
}

func (c *child) start(env ...string) {
	c.p.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), env...), workerEnv+"="+c.name, "CORREX_TEST_STATE="+c.p.state, "CORREX_TEST_DIR="+c.dir)
	cmd.Stdout, cmd.Stderr = c.log, c.log
	if err := cmd.Start(); err != nil {
		c.p.Fatal(err)
	}
	c.cmd = cmd
}

// kill ends the process at once, wherever it is.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

func (c *child) signal(s os.Signal) {
	c.p.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.p.Fatal(err)
	}
}

// stop asks the process to end and returns how it did.
func (c *child) stop() error {
	c.p.Helper()
	c.signal(syscall.SIGTERM)
	err := c.cmd.Wait()
	c.cmd = nil
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		text, _ := os.ReadFile(c.log.Name())
		return fmt.Errorf("%s: %w\n%s", c.name, err, text[max(0, len(text)-2000):])
	}
	return err
}
