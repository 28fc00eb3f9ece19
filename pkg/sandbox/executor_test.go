package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"correx/pkg/events"
	"correx/pkg/tools"
	"correx/pkg/tools/toolstest"
	"correx/pkg/tools/workspace"
)

// outsideTool changes files as somebody else's tool may: in place, and without
// telling.
type outsideTool struct {
	tools.Tool
	paths []string
	run   func(context.Context) tools.ToolResult
	asked atomic.Int32
}

func (o *outsideTool) Name() string { return "outside" }
func (o *outsideTool) RequiredCapabilities() []events.ToolCapability {
	return []events.ToolCapability{events.FileWrite}
}
func (o *outsideTool) AffectedPaths(events.ToolRequest) []string { o.asked.Add(1); return o.paths }
func (o *outsideTool) Execute(ctx context.Context, _ events.ToolRequest) tools.ToolResult {
	return o.run(ctx)
}

func newOutside() *outsideTool { return &outsideTool{Tool: toolstest.NewEchoTool()} }

func TestSandboxedToolExecutor(t *testing.T) {
	t.Run("approval rejected: rejected, and the delegate is not called", func(t *testing.T) {
		tool := newOutside()
		called := false
		tool.run = func(context.Context) tools.ToolResult { called = true; return tools.Success{} }
		b := newBench(t, func(o *ExecutorOptions, _ *tools.Registry) {
			o.Approve = func(Call) error { return errors.New("a person said no") }
		}, tool)
		out := b.executor.Run(background, callOf("outside", events.T3, p{}))
		if out.Status != Rejected || !strings.Contains(out.Reason, "a person said no") || out.Effects != events.EffectsNone {
			t.Fatalf("got %+v", out)
		}
		if f, ok := b.executor.Execute(background, requestOf("outside", p{})).(tools.Failure); !ok || f.Recoverable {
			t.Fatalf("got %+v", f)
		}
		if called {
			t.Fatal("the delegate was called")
		}
		b.wantClean(t)
	})
	t.Run("the delegate fails: files are restored, the working directory is deleted", func(t *testing.T) {
		tool := newOutside()
		b := newBench(t, nil, tool)
		b.put(t, "a.txt", "before")
		b.put(t, "gone.txt", "was here")
		tool.paths = []string{b.path("a.txt"), b.path("new.txt"), b.path("gone.txt")}
		var dir string
		tool.run = func(ctx context.Context) tools.ToolResult {
			dir = tools.ScopeOf(ctx).Dir
			put(t, filepath.Join(dir, "scratch", "x"), "x")
			if err := os.Chmod(filepath.Join(dir, "scratch"), 0); err != nil {
				t.Error(err)
			}
			b.put(t, "a.txt", "after")
			b.put(t, "new.txt", "new")
			if err := os.Remove(b.path("gone.txt")); err != nil {
				t.Error(err)
			}
			return tools.Failure{Reason: "it went wrong"}
		}
		out := b.executor.Run(background, callOf("outside", events.T2, p{}))
		if out.Status != Failed || out.Reason != "it went wrong" || out.Effects != events.EffectsRolledBack || len(out.Files) != 3 {
			t.Fatalf("got %+v", out)
		}
		if want := filepath.Join(b.dir, "sandbox", "s1", "t1-0"); dir != want {
			t.Fatalf("it ran in %s, want %s", dir, want)
		}
		wantContent(t, b.path("a.txt"), "before")
		wantContent(t, b.path("new.txt"), absent)
		wantContent(t, b.path("gone.txt"), "was here")
		if err := b.journal.Clear(callOf("outside", 0, p{}).Key); err != nil {
			t.Fatal(err)
		}
		if n := tool.asked.Load(); n != 1 {
			t.Fatalf("affected paths were computed %d times", n)
		}
		b.wantClean(t)
	})
	t.Run("a backup that fails is a failure before the delegate is called", func(t *testing.T) {
		tool := newOutside()
		called := false
		tool.run = func(context.Context) tools.ToolResult { called = true; return tools.Success{} }
		b := newBench(t, nil, tool)
		b.put(t, "large.bin", strings.Repeat("x", 2*inlineBackup))
		tool.paths = []string{b.path("large.bin")}
		// The directory of backups is in the way of itself.
		put(t, filepath.Join(b.dir, "backups", callOf("outside", 0, p{}).Key.name()), "")
		out := b.executor.Run(background, callOf("outside", events.T2, p{}))
		if out.Status != Failed || !strings.Contains(out.Reason, "back up") || !out.Recoverable || out.Effects != events.EffectsNone {
			t.Fatalf("got %+v", out)
		}
		tool.paths = []string{b.work} // a directory cannot be backed up
		if out := b.executor.Run(background, callOf("outside", events.T2, p{})); out.Status != Failed {
			t.Fatalf("got %+v", out)
		}
		if called {
			t.Fatal("the delegate was called")
		}
		if b.journal.Has(callOf("outside", 0, p{}).Key) {
			t.Fatal("the journal has an entry of what never ran")
		}
	})
	t.Run("backups are cleaned up on success", func(t *testing.T) {
		tool := newOutside()
		b := newBench(t, nil, tool)
		b.put(t, "large.bin", strings.Repeat("x", 2*inlineBackup))
		tool.paths = []string{b.path("large.bin")}
		backups := func() int {
			names, err := os.ReadDir(filepath.Join(b.dir, "backups"))
			if err != nil {
				t.Error(err)
			}
			return len(names) - 1 // of those that are kept
		}
		tool.run = func(context.Context) tools.ToolResult {
			if backups() != 1 {
				t.Error("it runs without a backup")
			}
			b.put(t, "large.bin", "after")
			return tools.Success{Output: "done"}
		}
		call := callOf("outside", events.T2, p{})
		out := b.executor.Run(background, call)
		if out.Status != Completed || out.Receipt.Output != "done" || !slices.Equal(out.Receipt.Affected, tool.paths) {
			t.Fatalf("got %+v", out)
		}
		if backups() != 1 {
			t.Fatal("the backup is gone before the result is published")
		}
		if err := errors.Join(b.journal.Result(call.Key, []byte("end")), b.journal.Clear(call.Key)); err != nil {
			t.Fatal(err)
		}
		wantContent(t, b.path("large.bin"), "after")
		b.wantClean(t)
		b.put(t, "large.bin", strings.Repeat("y", 2*inlineBackup))
		if _, ok := b.executor.Execute(background, requestOf("outside", p{})).(tools.Success); !ok {
			t.Fatal("the second run failed")
		}
		b.wantClean(t) // Execute clears by itself
	})
}

func TestExecutorReceipt(t *testing.T) {
	b := newBench(t, nil)
	b.put(t, "a.txt", "one\ntwo\n")
	out := b.executor.Run(background, callOf("file_edit", events.T3, p{"operation": "replace", "path": "a.txt", "target": "two", "replacement": "2"}))
	r := out.Receipt
	path := b.path("a.txt")
	if out.Status != Completed || r.ExitCode != 0 || r.Tier != events.T3 || r.Isolation != events.IsolationNone || r.Time.IsZero() || r.Duration <= 0 {
		t.Fatalf("got %+v", out)
	}
	if want := fmt.Sprintf("--- %[1]s\n+++ %[1]s\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n", path); r.Diff != want || !slices.Equal(r.Affected, []string{path}) {
		t.Fatalf("diff %s, affected %v", r.Diff, r.Affected)
	}
	if r.Metadata["sha256"] != workspace.Hash([]byte("one\n2\n")) {
		t.Fatalf("metadata %v", r.Metadata)
	}
	b.wantClean(t)
}

func TestExecutorOverflow(t *testing.T) {
	b := newBench(t, nil)
	long := strings.Repeat("0123456789abcde\n", 10000)
	b.put(t, "long.txt", long)
	out := b.executor.Run(background, callOf("file_read", events.T1, p{"operation": "read", "path": "long.txt"}))
	if out.Status != Completed || len(out.Receipt.Output) > tools.SummarySize || len(out.Overflow) != 1 || string(out.Overflow[0].Data) != long {
		t.Fatalf("output %d bytes, overflow %d", len(out.Receipt.Output), len(out.Overflow))
	}
	text, err := json.Marshal(out.Receipt)
	if err != nil || len(text) > 100<<10 {
		t.Fatalf("a receipt of %d bytes, %v", len(text), err)
	}
}

func TestExecutorAdmit(t *testing.T) {
	b := newBench(t, nil, toolstest.NewFailingTool(), toolstest.NewRejectedTool())
	for _, c := range []struct {
		name string
		call Call
		want string // empty: it may run
	}{
		{"valid", callOf("file_read", events.T1, p{"operation": "exists", "path": "x"}), ""},
		{"more was approved than it needs", callOf("echo", events.T3, p{"text": "x"}), ""},
		{"less was approved than it needs", callOf("file_edit", events.T2, p{}), "T3 for this request, and T2 was approved"},
		{"never", callOf("rejected", events.T3, p{}), "never run"},
		{"never, whatever was approved", callOf("rejected", events.T4, p{}), "never run"},
		{"invalid", callOf("failing", events.T2, p{}), "simulated validation failure"},
		{"unknown", callOf("nobody", events.T3, p{}), `no tool "nobody"`},
		{"denied path", callOf("file_read", events.T1, p{"operation": "read", "path": "../x"}), "not allowed"},
		{"a session that is a path", Call{Key: Key{Session: "..", Invocation: "x"}, Request: requestOf("echo", p{"text": "x"})}, "session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := b.executor.Admit(c.call)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if out := b.executor.Run(background, c.call); (out.Status == Rejected) != (c.want != "") {
				t.Fatalf("ran: %+v", out)
			}
		})
	}
}

func TestExecutorApprovedBase(t *testing.T) {
	b := newBench(t, nil)
	b.put(t, "a.txt", "approved")
	call := callOf("file_write", events.T2, p{"operation": "write", "path": "a.txt", "content": "after"})
	call.Base = b.executor.Preview(background, call.Request).Base
	if len(call.Base) != 1 {
		t.Fatalf("base %v", call.Base)
	}
	t.Run("a file that moved since is not written", func(t *testing.T) {
		b.put(t, "a.txt", "moved")
		out := b.executor.Run(background, call)
		if out.Status != Failed || !strings.Contains(out.Reason, "changed since this call was approved") || !out.Recoverable || out.Effects != events.EffectsNone {
			t.Fatalf("got %+v", out)
		}
		wantContent(t, b.path("a.txt"), "moved")
	})
	t.Run("a path that was not named is not written", func(t *testing.T) {
		other := call
		other.Base = []events.BaseHash{{Path: b.path("b.txt")}}
		if out := b.executor.Run(background, other); out.Status != Failed || !strings.Contains(out.Reason, "does not name it") {
			t.Fatalf("got %+v", out)
		}
	})
	t.Run("one that was absent must be absent", func(t *testing.T) {
		fresh := callOf("file_write", events.T2, p{"operation": "write", "path": "new.txt", "content": "x"})
		fresh.Base = b.executor.Preview(background, fresh.Request).Base
		b.put(t, "new.txt", "somebody was faster")
		if out := b.executor.Run(background, fresh); out.Status != Failed || !strings.Contains(out.Reason, "did not exist") {
			t.Fatalf("got %+v", out)
		}
	})
	t.Run("what was approved is written", func(t *testing.T) {
		b.put(t, "a.txt", "approved")
		if out := b.executor.Run(background, call); out.Status != Completed {
			t.Fatalf("got %+v", out)
		}
		wantContent(t, b.path("a.txt"), "after")
	})
}

func TestExecutorBrokenTool(t *testing.T) {
	tool := newOutside()
	b := newBench(t, nil, tool)
	b.put(t, "a.txt", "before")
	tool.paths = []string{b.path("a.txt")}
	tool.run = func(context.Context) tools.ToolResult {
		b.put(t, "a.txt", "half")
		panic("broken")
	}
	out := b.executor.Run(background, callOf("outside", events.T2, p{}))
	if out.Status != Failed || !strings.Contains(out.Reason, "broken") || out.Effects != events.EffectsRolledBack {
		t.Fatalf("got %+v", out)
	}
	wantContent(t, b.path("a.txt"), "before")
}

func TestExecutorConflict(t *testing.T) {
	b := newBench(t, func(o *ExecutorOptions, r *tools.Registry) { o.Delegate = failAfter{tools.NewDispatcher(r), nil} })
	b.put(t, "a.txt", "before")
	// Somebody writes the same bytes between the tool's change and its failure.
	b.executor.o.Delegate = failAfter{tools.NewDispatcher(b.executor.o.Registry), func() {
		if err := os.Remove(b.path("a.txt")); err != nil {
			t.Error(err)
		}
		b.put(t, "a.txt", "after")
	}}
	call := callOf("file_write", events.T2, p{"operation": "write", "path": "a.txt", "content": "after"})
	out := b.executor.Run(background, call)
	if out.Status != Failed || out.Effects != events.EffectsConflict || len(out.Files) != 1 || !strings.Contains(out.Reason, "somebody else") {
		t.Fatalf("got %+v", out)
	}
	wantContent(t, b.path("a.txt"), "after")
	if err := b.journal.Clear(call.Key); err != nil {
		t.Fatal(err)
	}
	wantContent(t, out.Files[0].Backup, "before") // kept
	journal := reopen(t, b)
	defer journal.Close()
	wantContent(t, out.Files[0].Backup, "before") // also by the next process
}

// failAfter runs a delegate and fails all the same.
type failAfter struct {
	delegate tools.Executor
	between  func()
}

func (f failAfter) Execute(ctx context.Context, r events.ToolRequest) tools.ToolResult {
	result := f.delegate.Execute(ctx, r)
	if fail, ok := result.(tools.Failure); ok {
		return fail
	}
	if f.between != nil {
		f.between()
	}
	return tools.Failure{Invocation: r.Invocation, Reason: "failed on purpose"}
}

func TestExecutorParallel(t *testing.T) {
	b := newBench(t, nil)
	b.put(t, "shared.txt", "")
	const n = 16
	var wg sync.WaitGroup
	outs := make([]Outcome, 2*n)
	for i := range outs {
		wg.Go(func() {
			call := callOf("file_edit", events.T3, p{"operation": "append", "path": "shared.txt", "content": fmt.Sprintf("line %d\n", i)})
			if i%2 == 1 {
				call = callOf("file_write", events.T2, p{"operation": "write", "path": fmt.Sprintf("d/%d.txt", i), "content": fmt.Sprint(i)})
			}
			call.Key.Invocation = events.ToolInvocationID(fmt.Sprintf("t1-%d", i))
			outs[i] = b.executor.Run(background, call)
			if err := errors.Join(b.journal.Result(call.Key, []byte("end")), b.journal.Clear(call.Key)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, out := range outs {
		if out.Status != Completed {
			t.Fatalf("%d: %+v", i, out)
		}
	}
	if got := strings.Count(content(b.path("shared.txt")), "\n"); got != n {
		t.Fatalf("%d of %d lines arrived", got, n)
	}
	b.wantClean(t)
}

func TestExecutorPreview(t *testing.T) {
	b := newBench(t, nil, toolstest.NewFailingTool())
	if pv := b.executor.Preview(background, requestOf("failing", p{})); pv.Valid || pv.Reason != "simulated validation failure" || pv.Tier != events.T2 {
		t.Fatalf("got %+v", pv)
	}
	if pv := b.executor.Preview(background, requestOf("nobody", p{})); pv.Valid || pv.Reason == "" {
		t.Fatalf("got %+v", pv)
	}
	b.wantClean(t)
}
