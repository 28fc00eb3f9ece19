package escape

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

// workerName is what this program is called when it is the worker that runs
// attempts: a process that has what a tool-worker has, and something to lose.
const workerName = "correx-escape-worker"

// A level is an isolation, or plain: no sandbox at all.
type level string

const (
	plain  level = "plain"
	none         = level(events.IsolationNone)
	fsOnly       = level(events.IsolationFSOnly)
	full         = level(events.IsolationFull)
)

var levels = []level{plain, none, fsOnly, full}

// A greeting tells a worker what it needs.
type greeting struct {
	Secret string
	Home   string
	State  string
	Env    map[string]string // its own, which no tool may see
}

// A hello is a worker's answer.
type hello struct {
	PID     int
	Address uintptr // of the secret, in its memory
	Length  int
	CapEff  string
}

// A request asks a worker to run something.
type request struct {
	ID      int
	Level   level
	Command tools.Command
}

// work is the main function of a worker.
func work() int {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var g greeting
	if err := in.Decode(&g); err != nil {
		return 1
	}
	for name, value := range g.Env {
		os.Setenv(name, value)
	}
	secret := []byte(g.Secret) // stays in memory
	h := hello{PID: os.Getpid(), Address: uintptr(unsafe.Pointer(&secret[0])), Length: len(secret), CapEff: capEff()}
	if out.Encode(h) != nil {
		return 1
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	for {
		var r request
		if in.Decode(&r) != nil {
			break
		}
		running.Go(func() {
			o := runAt(g, r)
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(o) // the test sees that nothing came
		})
	}
	running.Wait()
	runtime.KeepAlive(secret)
	return 0
}

func runAt(g greeting, r request) outcome {
	if r.Level == plain {
		return runPlain(r)
	}
	runner, err := runnerAt(g, r.Level)
	if err != nil {
		return outcome{ID: r.ID, Missing: err.Error()}
	}
	exit, err := runner.Run(context.Background(), r.Command)
	o := outcome{ID: r.ID, Exit: exit}
	if err != nil {
		o.Error = err.Error()
	}
	return o
}

// runnerAt makes the Runner of a level, or says why this machine has none.
func runnerAt(g greeting, l level) (*sandbox.Runner, error) {
	runner, err := sandbox.NewRunner(sandbox.RunnerOptions{
		Level: events.Isolation(l), Hidden: []string{g.State}, Scratch: filepath.Join(g.State, "sandbox"),
	})
	if err != nil {
		return nil, err
	}
	if got := level(runner.Isolation()); got != l {
		return nil, fmt.Errorf("it reaches %s", got)
	}
	return runner, nil
}

func capEff() string {
	for line := range strings.Lines(content("/proc/self/status")) {
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
