package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"correx/pkg/events"
	"correx/pkg/tools"
)

func shell(t *testing.T, c tools.ShellConfig) tools.Tool {
	t.Helper()
	c.Enabled = true
	return build(t, tools.Config{Shell: c})["shell"]
}

func argv(args ...string) p { return p{"argv": args} }

// countingRunner says whether anything was started.
type countingRunner struct{ started int }

func (r *countingRunner) Run(context.Context, tools.Command) (tools.Exit, error) {
	r.started++
	return tools.Exit{}, nil
}
func (*countingRunner) Isolation() events.Isolation { return events.IsolationNone }

func TestShellTool(t *testing.T) {
	t.Run("empty allowed executables deny all commands", func(t *testing.T) {
		tool := shell(t, tools.ShellConfig{})
		for _, name := range []string{"ls", "true", "/bin/ls", "sh"} {
			if v := tool.ValidateRequest(request(t, "shell", argv(name))); v.OK() {
				t.Errorf("%s is valid", name)
			}
			wantFailure(t, run(t, tool, argv(name)), "not allowed")
		}
	})
	t.Run("an executable not in the allowlist fails before a process is spawned", func(t *testing.T) {
		runner := &countingRunner{}
		tool := build(t, tools.Config{Runner: runner, Shell: tools.ShellConfig{Enabled: true, AllowedExecutables: []string{"true"}}})["shell"]
		for _, args := range [][]string{{"ls"}, {"/usr/bin/true"}, {"./true"}, {"true ; ls"}, {"../bin/true"}, {""}} {
			wantFailure(t, run(t, tool, argv(args...)), "not", "true")
		}
		wantFailure(t, run(t, tool, p{"argv": []string{}}), "argv is empty")
		if runner.started != 0 {
			t.Fatalf("%d processes were started", runner.started)
		}
		run(t, tool, argv("true"))
		if runner.started != 1 {
			t.Fatal("the allowed one was not started")
		}
	})
	t.Run("a time-out kills the process and fails", func(t *testing.T) {
		tool := shell(t, tools.ShellConfig{AllowedExecutables: []string{"sleep"}, Timeout: 100 * time.Millisecond})
		began := time.Now()
		f, ok := run(t, tool, argv("sleep", "60")).(tools.Failure)
		if !ok || !f.Recoverable || !strings.Contains(f.Reason, "100ms") {
			t.Fatalf("got %+v", f)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("it took %s", took)
		}
	})
	t.Run("a non-zero exit fails with stderr as the reason", func(t *testing.T) {
		tool := shell(t, tools.ShellConfig{AllowedExecutables: []string{"sh"}, Mode: tools.ShellDirect})
		f := wantFailure(t, run(t, tool, argv("sh", "-c", "echo out; echo why >&2; exit 3")), "why")
		if f.Reason != "why" || f.ExitCode != 3 || f.Output != "out\n" || f.Effects != events.EffectsKept {
			t.Fatalf("got %+v", f)
		}
		var s struct {
			ExitCode       int `json:"exit_code"`
			Stdout, Stderr string
		}
		if err := json.Unmarshal(f.Structured, &s); err != nil || s.ExitCode != 3 || s.Stdout != "out\n" || s.Stderr != "why\n" {
			t.Fatalf("structured output %s: %v", f.Structured, err)
		}
	})
	t.Run("the environment is cleared", func(t *testing.T) {
		t.Setenv("CORREX_SECRET", "s3cret")
		t.Setenv("CORREX_WANTED", "handed on")
		t.Setenv("LD_PRELOAD_X", "x")
		tool := shell(t, tools.ShellConfig{AllowedExecutables: []string{"env"}, Environment: []string{"CORREX_WANTED"}})
		s, ok := run(t, tool, argv("env")).(tools.Success)
		if !ok {
			t.Fatal("env failed")
		}
		names := map[string]string{}
		for _, line := range strings.Split(strings.TrimSpace(s.Output), "\n") {
			k, v, _ := strings.Cut(line, "=")
			names[k] = v
		}
		for _, want := range []string{"PATH", "HOME", "LANG", "TMPDIR", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "CORREX_WANTED"} {
			if names[want] == "" {
				t.Errorf("%s is not set", want)
			}
			delete(names, want)
		}
		if len(names) != 0 {
			t.Errorf("inherited: %v", names)
		}
	})
}

func TestShellStreams(t *testing.T) {
	tool := shell(t, tools.ShellConfig{AllowedExecutables: []string{"sh", "cat", "pwd", "echo"}})
	t.Run("standard output is the output, standard error apart", func(t *testing.T) {
		wantSuccess(t, run(t, tool, argv("sh", "-c", "echo a; echo b >&2")), "a\n")
	})
	t.Run("arguments are not expanded", func(t *testing.T) {
		wantSuccess(t, run(t, tool, argv("echo", "$HOME", "*", "a b", ";", "ls")), "$HOME * a b ; ls\n")
	})
	t.Run("there is no standard input", func(t *testing.T) {
		wantSuccess(t, run(t, tool, argv("cat")), "")
	})
	t.Run("head and tail of much output are kept, the rest counted", func(t *testing.T) {
		s, ok := run(t, tool, argv("sh", "-c", "echo first; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last")).(tools.Success)
		if !ok {
			t.Fatal("failed")
		}
		if !strings.HasPrefix(s.Output, "first\n") || !strings.HasSuffix(s.Output, "last\n") || !strings.Contains(s.Output, "bytes left out") {
			t.Fatalf("output is %.40q … %q", s.Output, s.Output[len(s.Output)-40:])
		}
		if len(s.Output) > tools.SummarySize || len(s.Structured) > tools.SummarySize {
			t.Fatalf("output has %d bytes, structured %d", len(s.Output), len(s.Structured))
		}
		if len(s.Overflow) != 1 || s.Overflow[0].Name != "stdout" || len(s.Overflow[0].Data) < 128<<10 {
			t.Fatalf("overflow: %d", len(s.Overflow))
		}
		var o struct {
			N int64 `json:"stdout_bytes"`
		}
		if err := json.Unmarshal(s.Structured, &o); err != nil || o.N != 1000012 {
			t.Fatalf("counted %d: %v", o.N, err)
		}
	})
	t.Run("invalid UTF-8 and control characters do not reach a terminal", func(t *testing.T) {
		wantSuccess(t, run(t, tool, argv("sh", "-c", `printf 'a\377\033[2Jb'`)), "a\uFFFD\uFFFD[2Jb")
	})
	t.Run("silence with a bad status is explained", func(t *testing.T) {
		wantFailure(t, run(t, tool, argv("sh", "-c", "exit 4")), "status 4")
	})
	t.Run("a signal is told apart", func(t *testing.T) {
		f := wantFailure(t, run(t, tool, argv("sh", "-c", "kill -SEGV $$")), "signal", "segmentation fault")
		if f.ExitCode != -1 {
			t.Fatalf("exit code %d", f.ExitCode)
		}
	})
}

func TestShellDirectory(t *testing.T) {
	dir := realDir(t)
	tool := shell(t, tools.ShellConfig{AllowedExecutables: []string{"pwd", "sh"}, WorkingDir: dir})
	wantSuccess(t, run(t, tool, argv("pwd")), dir+"\n")

	tool = shell(t, tools.ShellConfig{AllowedExecutables: []string{"pwd", "sh"}})
	home := realDir(t)
	ctx := tools.WithScope(context.Background(), tools.Scope{Dir: home})
	r := tool.(tools.Executor).Execute(ctx, request(t, "shell", argv("sh", "-c", "pwd; echo $HOME")))
	wantSuccess(t, r, home+"/home\n"+home+"/home\n")
}

func TestShellTier(t *testing.T) {
	tool := shell(t, tools.ShellConfig{AllowedExecutables: []string{"ls", "env", "git", "find", "sh", "wc"}, Interpreters: []string{"wc"}})
	for name, want := range map[string]events.Tier{
		"ls": events.T2, "env": events.T3, "git": events.T3, "find": events.T3, "sh": events.T3, "wc": events.T3,
	} {
		r := request(t, "shell", argv(name))
		if got := tools.TierOf(tool, r); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
		if got := tool.(tools.Previewer).Preview(context.Background(), r); !got.Valid || got.Tier != want {
			t.Errorf("preview of %s: %+v", name, got)
		}
	}
	if got := tool.(tools.Previewer).Preview(context.Background(), request(t, "shell", argv("rm"))); got.Valid || got.Reason == "" {
		t.Errorf("preview of what is not allowed: %+v", got)
	}
}

func TestShellExecutables(t *testing.T) {
	dir := realDir(t)
	program := filepath.Join(dir, "bin", "hello")
	write := func(text string) {
		put(t, program, "#!/bin/sh\necho "+text+"\n")
		if err := os.Chmod(program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	t.Run("a program that changed is not run", func(t *testing.T) {
		tool := shell(t, tools.ShellConfig{AllowedExecutables: []string{program}})
		wantSuccess(t, run(t, tool, argv("hello")), "one\n")
		now := time.Now()
		if err := os.Chtimes(program, now, now); err != nil {
			t.Fatal(err)
		}
		wantSuccess(t, run(t, tool, argv("hello")), "one\n") // touched, and the same
		write("two")
		wantFailure(t, run(t, tool, argv("hello")), "changed since this worker started")
	})
	for name, c := range map[string]struct {
		config tools.Config
		want   string
	}{
		"missing":          {tools.Config{Shell: tools.ShellConfig{AllowedExecutables: []string{"no-such-program"}}}, "no-such-program"},
		"relative path":    {tools.Config{Shell: tools.ShellConfig{AllowedExecutables: []string{"bin/hello"}}}, "neither a bare name"},
		"in a written dir": {tools.Config{Shell: tools.ShellConfig{AllowedExecutables: []string{program}}, FileWrite: tools.FileWriteConfig{AllowedPaths: []string{dir}}}, "where tools may write"},
		"in working dir":   {tools.Config{Shell: tools.ShellConfig{AllowedExecutables: []string{program}, WorkingDir: dir}}, "where tools may write"},
		"loader variable":  {tools.Config{Shell: tools.ShellConfig{Environment: []string{"LD_PRELOAD"}}}, "LD_PRELOAD"},
		"a directory":      {tools.Config{Shell: tools.ShellConfig{AllowedExecutables: []string{filepath.Dir(program)}}}, "regular file"},
		"no working dir":   {tools.Config{Shell: tools.ShellConfig{WorkingDir: dir + "/nowhere"}}, "working_dir"},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Shell.Enabled = true
			c.config.Runner = &countingRunner{}
			if _, err := tools.Build(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestShellSchemaIsOrdered(t *testing.T) {
	tool := shell(t, tools.ShellConfig{AllowedExecutables: []string{"ls", "cat"}})
	schema := tool.ParametersSchema().String()
	if err := tool.ParametersSchema().Object(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(schema, "cat, ls") {
		t.Fatalf("the schema does not name the programs: %s", schema)
	}
	e := tool.Example()
	if e == nil || !tool.ValidateRequest(events.ToolRequest{Parameters: e.Parameters}).OK() {
		t.Fatalf("example %+v", e)
	}
	if none := shell(t, tools.ShellConfig{AllowedExecutables: []string{"true"}}).Example(); none != nil {
		t.Fatalf("example with a program that is not allowed: %s", none.Parameters)
	}
}

func TestShellLimits(t *testing.T) {
	tool := shell(t, tools.ShellConfig{AllowedExecutables: []string{"sh"}})
	s, ok := run(t, tool, argv("sh", "-c", "ulimit -n; ulimit -c; ulimit -t")).(tools.Success)
	if !ok || s.Output != "256\n0\n60\n" {
		t.Fatalf("got %+v", s)
	}
	long := make([]string, 65)
	for i := range long {
		long[i] = fmt.Sprint(i)
	}
	wantFailure(t, run(t, tool, argv(append([]string{"sh"}, long...)...)), "66 items")
}
