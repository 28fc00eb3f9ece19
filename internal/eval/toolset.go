package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"correx/internal/schema"
	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

// executables are those that the tool shell allows in every loop.
var executables = []string{"cat", "date", "echo", "grep", "head", "ls", "sort", "tail", "wc"}

// turns is how often a model is asked after each thing that is said.
const turns = 8

// threads is how many a llama-server gets: Correx leaves a core to others.
func threads() int { return max(1, runtime.NumCPU()-1) }

// A toolset is the tools for the loops that are not Correx: the same ones, run by
// the same executor, without a log.
type toolset struct {
	executor *sandbox.Executor
	offers   []events.ToolOffer
	n        int
}

func newToolset(workspace, state string) (*toolset, error) {
	runner, err := sandbox.NewRunner(sandbox.RunnerOptions{})
	if err != nil {
		return nil, err
	}
	dirs := []string{workspace}
	list, err := tools.Build(tools.Config{
		FileRead:  tools.FileReadConfig{Enabled: true, AllowedPaths: dirs},
		FileWrite: tools.FileWriteConfig{Enabled: true, AllowedPaths: dirs},
		FileEdit:  tools.FileEditConfig{Enabled: true, AllowedPaths: dirs},
		Shell:     tools.ShellConfig{Enabled: true, AllowedExecutables: executables, WorkingDir: workspace},
		Runner:    runner,
	})
	if err != nil {
		return nil, err
	}
	registry, err := tools.NewRegistry(list...)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, err
	}
	journal, _, err := sandbox.OpenJournal(state, sandbox.JournalOptions{})
	if err != nil {
		return nil, err
	}
	x, err := sandbox.NewExecutor(sandbox.ExecutorOptions{Registry: registry, Journal: journal, Dir: state, Isolation: runner.Isolation()})
	if err != nil {
		return nil, err
	}
	t := &toolset{executor: x}
	for _, tool := range registry.All() {
		t.offers = append(t.offers, tools.Offer(tool, runner.Isolation()))
	}
	return t, nil
}

// run runs a call and returns what the model is told.
func (t *toolset) run(ctx context.Context, name string, parameters events.Raw) (string, call) {
	t.n++
	c := call{Tool: name, Parameters: string(parameters)}
	if !json.Valid(parameters) {
		c.Failed = true
		return name + " failed: the arguments are not JSON", c
	}
	r := t.executor.Execute(ctx, events.ToolRequest{
		Invocation: events.ToolInvocationID(fmt.Sprint("e", t.n)), Session: "eval", Stage: "turn", Tool: name, Parameters: parameters,
	})
	switch v := r.(type) {
	case tools.Success:
		if v.Output == "" {
			v.Output = "done"
		}
		return name + " succeeded: " + clip(v.Output), c
	case tools.Failure:
		c.Failed = true
		return name + " failed: " + clip(v.Reason), c
	}
	c.Failed = true
	return name + " failed", c
}

// valid reports whether each of the calls names a tool and meets its schema.
func (t *toolset) valid(calls []nativeCall) bool {
	for _, c := range calls {
		k := slices.IndexFunc(t.offers, func(o events.ToolOffer) bool { return o.Name == c.Function.Name })
		if k < 0 || schema.Validate(t.offers[k].Schema, events.Raw(c.Function.Arguments)) != nil {
			return false
		}
	}
	return true
}

// clip is the one cut that every loop makes: without it a long file ends them all.
func clip(s string) string {
	const most = 4000
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// describe is the system prompt of the constrained loop.
func (t *toolset) describe() string {
	var b strings.Builder
	b.WriteString("You are an agent that does the user's task with tools. In each turn you answer with one action as JSON: " +
		"a tool call or the final answer. Tools:")
	for _, o := range t.offers {
		fmt.Fprintf(&b, "\n- %s: %s Parameters: %s", o.Name, o.Description, o.Schema)
	}
	return b.String()
}

var errTurns = errors.New("no answer within the turns")
