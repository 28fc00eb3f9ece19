package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"correx/pkg/events"
	"correx/pkg/sandbox/stage"
	"correx/pkg/tools"
)

// A Probe is what this machine can confine, as trying to get out showed.
type Probe struct {
	Level    events.Isolation `json:"level"`
	Overlays bool             `json:"overlays"` // whether a Command may have any
	Cgroups  string           `json:"cgroups"`  // "v1", "v2" or empty: no limit of all processes together
	Tried    []Tried          `json:"tried"`
	Missing  []Missing        `json:"missing,omitempty"`
}

// Tried is one attempt to get out, at full isolation and at fs-only.
type Tried struct {
	Name   string `json:"name"`
	Full   string `json:"full"` // "held", "escapes", or why there is nothing to tell
	FSOnly string `json:"fs_only"`
}

// Missing is what keeps a level from being reached, and what mends it.
type Missing struct {
	Level events.Isolation `json:"level"`
	What  string           `json:"what"`
	Mend  string           `json:"mend,omitempty"`
}

// Look tries the known ways out in real confined processes, once in the life of
// this process.
var Look = sync.OnceValue(look)

func look() Probe {
	p := Probe{Level: events.IsolationNone}
	for _, a := range attempts {
		p.Tried = append(p.Tried, Tried{Name: a.name, Full: "not tried", FSOnly: "not tried"})
	}
	for _, level := range []stage.Level{stage.FSOnly, stage.Full} {
		results, err := tryAll(level)
		if err != nil {
			p.Missing = append(p.Missing, missing(level, err))
			continue
		}
		if p.judge(level, results) {
			p.Level = isolations[level]
		}
	}
	p.Overlays = p.Level == events.IsolationFull && tryOverlay() == nil
	p.Cgroups = groupsHere().String()
	return p
}

// judge notes the results of a level, and says whether all that it has to hold
// was held.
func (p *Probe) judge(level stage.Level, results []string) bool {
	all := true
	for i, a := range attempts {
		word := "held"
		if results[i] == "" {
			word = "escapes"
			if level == stage.Full || !a.full {
				all = false
				p.Missing = append(p.Missing, Missing{Level: isolations[level], What: a.name + " is not held"})
			}
		}
		if level == stage.Full {
			p.Tried[i].Full = word
		} else {
			p.Tried[i].FSOnly = word
		}
	}
	return all
}

// tryAll has a confined process try all attempts.
func tryAll(level stage.Level) ([]string, error) {
	dir, err := os.MkdirTemp("", "correx-probe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	t := target{
		Work: filepath.Join(dir, "work"), Outside: filepath.Join(dir, "outside"), Secret: filepath.Join(dir, "secret"),
		Text: "secret " + filepath.Base(dir), Socket: filepath.Join(dir, "socket"), Worker: os.Getpid(),
	}
	cmdline, err := os.ReadFile("/proc/" + strconv.Itoa(t.Worker) + "/cmdline")
	if err != nil {
		return nil, err
	}
	t.Command = string(cmdline)
	listener, err := net.Listen("unix", t.Socket)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	err = errors.Join(os.Mkdir(t.Work, 0o755), os.WriteFile(t.Outside, nil, 0o644), os.WriteFile(t.Secret, []byte(t.Text), 0o644))
	if err != nil {
		return nil, err
	}
	results, err := attempt(level, t)
	if err != nil {
		return nil, err
	}
	results[0] = "nothing changed outside" // whatever it said: it may have a directory of that name of its own
	if text, err := os.ReadFile(t.Outside); err != nil || len(text) > 0 {
		results[0] = ""
	}
	return results, nil
}

func attempt(level stage.Level, t target) ([]string, error) {
	r, err := newRunnerOf(RunnerOptions{Limits: defaultLimits, Hidden: []string{t.Secret}}, level)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	exit, err := r.Run(context.Background(), tools.Command{
		Path: r.self, Argv: []string{attemptName, string(text)}, Env: []string{}, Dir: t.Work,
		Timeout: 10 * time.Second, Writable: []string{t.Work},
	})
	if err != nil {
		return nil, err
	}
	var results []string
	if err := json.Unmarshal(exit.Stdout.Head, &results); err != nil || len(results) != len(attempts) {
		return nil, fmt.Errorf("the process that was to try did not say what came of it (exit code %d, %s): %s", exit.Code, exit.Signal, exit.Stderr.Head)
	}
	return results, nil
}

// Overlays reports why a Command cannot have overlays, or nil. It is found out
// once.
func (r *Runner) Overlays() error {
	if r.level != stage.Full {
		return fmt.Errorf("%w: isolation is %q", tools.ErrNoOverlay, r.Isolation())
	}
	return tryOverlay()
}

// tryOverlay mounts one and writes to it.
var tryOverlay = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp("", "correx-probe-")
	if err != nil {
		return err
	}
	defer removeAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	o := tools.Overlay{Dir: filepath.Join(dir, "lower"), Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work")}
	for _, d := range []string{o.Dir, o.Upper, o.Work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	r, err := newRunnerOf(RunnerOptions{Limits: defaultLimits, Scratch: dir}, stage.Full)
	if err != nil {
		return err
	}
	exit, err := r.Run(context.Background(), tools.Command{
		Path: "/bin/sh", Argv: []string{"sh", "-c", "echo changed > file"}, Env: []string{}, Dir: o.Dir,
		Timeout: 10 * time.Second, Overlays: []tools.Overlay{o},
	})
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(o.Upper, "file"))
	if exit.Code != 0 || err != nil || string(text) != "changed\n" {
		return fmt.Errorf("%w: what was written did not arrive in the upper layer (exit code %d): %s", tools.ErrNoOverlay, exit.Code, exit.Stderr.Head)
	}
	return nil
})
