package modelworker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"correx/internal/modelworker"
	"correx/internal/testenv"
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
	o, err := options(os.Getenv("CORREX_TEST_STATE"), os.Getenv("CORREX_TEST_MODELS"), name, os.Getenv("CORREX_TEST_SERVER"))
	if err != nil {
		return err
	}
	return modelworker.Run(ctx, o)
}

// child starts a worker in a process of its own, which can be killed and frozen.
func (p *plant) child(name string) *exec.Cmd {
	p.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), workerEnv+"="+name, "CORREX_TEST_STATE="+p.state, "CORREX_TEST_MODELS="+p.models,
		"CORREX_TEST_SERVER="+testenv.LlamaServer(p))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// running waits until an inference has its claim, and the model's process runs.
func (p *plant) running(id string, attempt int, worker events.WorkerID) (pid int) {
	p.Helper()
	p.await("attempt of "+id, func() bool {
		i := p.inference("s1", id)
		return i.Started != nil && i.Started.Attempt == attempt && i.Started.Worker == worker
	})
	p.await("the load", func() bool { return len(modelFacts[events.ModelLoaded](p, worker, endless)) > 0 })
	return modelFacts[events.ModelLoaded](p, worker, endless)[0].PID
}

func dead(p *plant, pid int) {
	p.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000); n == 0 {
		p.Errorf("process %d is alive: %v", pid, err)
	}
}

// A worker dies in the middle of an answer: its llama-server is gone, another
// worker makes the next attempt, and when the first is back it says what became
// of its model.
func TestKilledWorker(t *testing.T) {
	p := newPlant(t)
	first := p.child("m1")
	begun := p.begin("s1", "Go on for ever.")
	p.ask(events.InferenceRequested{Ref: ref("s1", "t1"), Through: begun, Generation: events.GenerationConfig{MaxTokens: 80}}, endless)
	pid := p.running("t1", 1, "host-m1")
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	dead(p, pid)

	second := p.start("m2")
	p.running("t1", 2, second.id)
	if f := p.failed("s1", "t1"); f.Code != events.FailModelOutput || f.Usage.Completion != 80 {
		t.Errorf("the second attempt ended with %+v", f)
	}
	p.settled(endless)
	p.child("m1")
	p.await("the word on the lost model", func() bool { return len(modelFacts[events.ModelUnloaded](p, "host-m1", endless)) == 1 })
}

// A worker that is frozen for longer than the ack wait is fenced off.
func TestFrozenWorker(t *testing.T) {
	p := newPlant(t)
	first := p.child("m1")
	begun := p.begin("s1", "Go on for ever.")
	p.ask(events.InferenceRequested{Ref: ref("s1", "t1"), Through: begun, Generation: events.GenerationConfig{MaxTokens: 80}}, endless)
	p.running("t1", 1, "host-m1")
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	second := p.start("m2")
	p.running("t1", 2, second.id)
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	i := p.end("s1", "t1")
	if i.Failure == nil || i.Failure.Started != i.StartedSeq || i.Alarms != 0 {
		t.Errorf("ended with %+v, %d alarms", i.Failure, i.Alarms)
	}
	p.settled(endless)
}

// llama-server dies in the middle of an answer: both facts say so, and the next
// inference has a new one.
func TestKilledServer(t *testing.T) {
	p := newPlant(t)
	w := p.start("m1")
	begun := p.begin("s1", "Go on for ever.")
	p.ask(events.InferenceRequested{Ref: ref("s1", "t1"), Through: begun, Generation: events.GenerationConfig{MaxTokens: 4000}}, endless)
	if err := syscall.Kill(p.running("t1", 1, w.id), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if f := p.failed("s1", "t1"); f.Code != events.FailServer || !f.Recoverable {
		t.Errorf("failed with %+v", f)
	}
	p.await("the crash", func() bool { return len(modelFacts[events.ModelCrashed](p, w.id, endless)) == 1 })
	if c := modelFacts[events.ModelCrashed](p, w.id, endless)[0]; c.Signal != "killed" || c.ExitCode != -1 || len(c.Log) == 0 {
		t.Errorf("crashed with %+v", c)
	}
	p.ask(events.InferenceRequested{Ref: ref("s1", "t2"), Through: begun, Generation: events.GenerationConfig{MaxTokens: 5}}, endless)
	if f := p.failed("s1", "t2"); f.Code != events.FailModelOutput {
		t.Errorf("the next one failed with %+v", f)
	}
}

func TestOneWorkerOfAName(t *testing.T) {
	p := newPlant(t)
	begun := time.Now()
	p.start("m1")
	if _, err := workerhome.Open(p.state, events.RoleModelWorker, "m1"); !errors.Is(err, workerhome.ErrTaken) {
		t.Errorf("error is %v after %v", err, time.Since(begun))
	}
	home, err := workerhome.Open(p.state, events.RoleModelWorker, "")
	if err != nil || home.Name != "model-worker-1" {
		t.Errorf("the first free name is %+v, %v", home, err)
	}
	home.Close()
	if _, err := workerhome.Open(p.state, events.RoleModelWorker, "../m1"); err == nil {
		t.Error("a name that is a path is taken")
	}
}

// firstChild is a child of a process that is no longer the program it was forked
// from; 0: there is none.
func firstChild(pid int) int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		data, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(data)) {
			line, _ := os.ReadFile("/proc/" + field + "/cmdline")
			if child, err := strconv.Atoi(field); err == nil && strings.Contains(string(line), "--model\x00") {
				return child
			}
		}
	}
	return 0
}
