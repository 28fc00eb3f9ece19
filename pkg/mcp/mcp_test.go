package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

// A journal is what the log was told.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// A rig is a set of servers under test.
type rig struct {
	*testing.T
	set   *Set
	log   *journal
	dir   string
	tools map[string]tools.Tool
}

func process(t *testing.T, kind string) Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Server{
		Name: "srv", Command: []string{self, kind}, Environment: []string{"MCP_TEST_SERVER", "MCP_TEST_EXTRA"},
		Tools: []string{"*"}, StartTimeout: 30 * time.Second, Timeout: 30 * time.Second,
	}
}

func newRig(t *testing.T, servers ...Server) *rig {
	t.Helper()
	runner, err := sandbox.NewRunner(sandbox.RunnerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, log: &journal{}, dir: t.TempDir(), tools: map[string]tools.Tool{}}
	r.set = Start(t.Context(), Options{
		Servers: servers, Starter: runner, Isolation: runner.Isolation(), Dir: r.dir,
		Logger: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Lookup: func(name string) (string, bool) {
			v, ok := map[string]string{"MCP_TEST_SERVER": "yes", "MCP_TEST_EXTRA": "extra", "TOKEN": "Bearer t0p"}[name]
			return v, ok
		},
	})
	t.Cleanup(r.set.Close)
	for _, tool := range r.set.Tools() {
		r.tools[tool.Name()] = tool
	}
	return r
}

func (r *rig) tool(name string) tools.Tool {
	r.Helper()
	t, ok := r.tools["srv_"+name]
	if !ok {
		r.Fatalf("there is no tool %s; the log says\n%s", name, r.log)
	}
	return t
}

type p map[string]any

func (r *rig) run(ctx context.Context, name string, params p) tools.ToolResult {
	r.Helper()
	if params["text"] == nil {
		params["text"] = "x"
	}
	data, err := json.Marshal(params)
	if err != nil {
		r.Fatal(err)
	}
	return r.tool(name).(tools.Executor).Execute(ctx, events.ToolRequest{Invocation: "i", Session: "s", Tool: "srv_" + name, Parameters: data})
}

func (r *rig) success(name string, params p) tools.Success {
	r.Helper()
	got := r.run(r.Context(), name, params)
	s, ok := got.(tools.Success)
	if !ok {
		r.Fatalf("%s: %+v; the log says\n%s", name, got, r.log)
	}
	return s
}

func (r *rig) failure(name string, params p) tools.Failure {
	r.Helper()
	return r.fails(r.run(r.Context(), name, params))
}

func (r *rig) fails(got tools.ToolResult) tools.Failure {
	r.Helper()
	f, ok := got.(tools.Failure)
	if !ok {
		r.Fatalf("%+v", got)
	}
	return f
}

// await polls until there is such a file.
func (r *rig) await(path string) {
	r.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(end) {
			r.Fatalf("%s does not come to be", path)
		}
	}
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %q", part, text)
		}
	}
}

func TestProcess_ItsToolsRun(t *testing.T) {
	r := newRig(t, process(t, "plain"))
	if got := r.success("echo", p{"text": "hi"}); got.Output != "echo hi" || got.Metadata["mcp_server"] != "srv" || got.Metadata["mcp_tool"] != "echo" {
		t.Errorf("%+v", got)
	}
	raw := r.tool("raw").(tools.Executor).Execute(t.Context(), events.ToolRequest{Parameters: events.Raw(`{"text":"a","n":9007199254740993}`)})
	if got := raw.(tools.Success).Output; got != `{"text":"a","n":9007199254740993}` {
		t.Errorf("arguments arrived as %s", got)
	}
	env := r.success("env", p{}).Output
	has(t, env, "MCP_TEST_EXTRA=extra", "PATH="+tools.SearchPath, "HOME="+filepath.Join(r.dir, "srv"))
	if n := len(strings.Split(env, "\n")); n > 7 {
		t.Errorf("the server got\n%s", env)
	}
	offer := tools.Offer(r.tool("echo"), events.IsolationNone)
	if offer.Tier != events.T3 || offer.Idempotent || offer.Origin != "mcp:srv" || !tools.Touches(r.tool("echo")) {
		t.Errorf("an untrusted server's tool is offered as %+v", offer)
	}
}

func TestProcess_OnlyNamedToolsAreOffered(t *testing.T) {
	c := process(t, "plain")
	c.Tools = []string{"echo", "nonesuch"}
	r := newRig(t, c)
	if len(r.tools) != 1 {
		t.Errorf("offered %v", r.tools)
	}
	has(t, r.log.String(), "tool=nonesuch", "crash")
	c = process(t, "plain")
	c.Tools = nil
	if r := newRig(t, c); len(r.tools) != 0 {
		t.Errorf("with an empty list %v", r.tools)
	}
}

func TestProcess_TrustLowersTiers(t *testing.T) {
	c := process(t, "plain")
	c.Trust = true
	r := newRig(t, c)
	if e := tools.Offer(r.tool("echo"), ""); e.Tier != events.T0 || !e.Idempotent {
		t.Errorf("%+v", e)
	}
	if e := tools.Offer(r.tool("raw"), ""); e.Tier != events.T3 || e.Idempotent {
		t.Errorf("%+v", e)
	}
}

func TestProcess_ADeadServerIsStartedAgain(t *testing.T) {
	r := newRig(t, process(t, "plain"))
	f := r.failure("crash", p{})
	has(t, f.Reason, "server ended: exit code 3", "panic: out of luck")
	if f.Effects != events.EffectsUnknown || !f.Recoverable {
		t.Errorf("%+v", f)
	}
	if got := r.success("echo", p{"text": "again"}); got.Output != "echo again" {
		t.Errorf("%+v", got)
	}
	r.failure("crash", p{})
	f = r.failure("echo", p{})
	has(t, f.Reason, "ended 2 times", "is started again in")
	if f.Effects != events.EffectsNone || !f.Recoverable {
		t.Errorf("%+v", f)
	}
}

func TestProcess_ACallThatIsCancelledPoisonsNothing(t *testing.T) {
	r := newRig(t, process(t, "plain"))
	for _, name := range []string{"slow", "deaf"} {
		mark := filepath.Join(r.dir, "srv", name) // where it may write
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan tools.ToolResult, 1)
		go func() { done <- r.run(ctx, name, p{"path": mark}) }()
		r.await(mark + ".begun")
		cancel()
		f := r.fails(<-done)
		has(t, f.Reason, "cancelled")
		if f.Effects != events.EffectsUnknown {
			t.Errorf("%s: %+v", name, f)
		}
		if name == "slow" {
			r.await(mark + ".cancelled")
		}
		if got := r.success("echo", p{"text": "fine"}); got.Output != "echo fine" {
			t.Errorf("after %s: %+v", name, got)
		}
	}
	// The late answer of the deaf one is nobody's.
	if err := os.WriteFile(filepath.Join(r.dir, "srv", "deaf.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		r.success("echo", p{})
	}
}

func TestProcess_TooLateIsNotCancelled(t *testing.T) {
	c := process(t, "plain")
	c.Timeout = 300 * time.Millisecond
	r := newRig(t, c)
	f := r.failure("slow", p{"path": filepath.Join(r.dir, "srv", "m")})
	has(t, f.Reason, "no answer within the time-out")
	if !f.Recoverable || f.Effects != events.EffectsUnknown {
		t.Errorf("%+v", f)
	}
}

func TestProcess_Results(t *testing.T) {
	r := newRig(t, process(t, "plain"))
	rich := r.success("rich", p{})
	has(t, rich.Output, "seen", "artifact content-1", "file:///etc/passwd", "not followed", "artifact content-2")
	if string(rich.Structured) != `{"n":1}` || len(rich.Overflow) != 2 || rich.Overflow[0].MediaType != "image/png" || string(rich.Overflow[0].Data) != "PNG" || rich.Overflow[1].MediaType != "application/octet-stream" {
		t.Errorf("%+v", rich)
	}
	if big := r.success("big", p{}); len(big.Structured) != 0 || !strings.Contains(big.Output, "2^53") {
		t.Errorf("%+v", big)
	}
	if f := r.failure("sorry", p{}); f.Reason != "no such issue" || f.Recoverable || f.Effects != events.EffectsUnknown {
		t.Errorf("%+v", f)
	}
	f := r.failure("broken", p{})
	has(t, f.Reason, "database is down")
	if got := r.success("asks", p{}); got.Output != "elicit false, sample false, roots 0" {
		t.Errorf("%+v", got)
	}
}

func TestProcess_AHugeResultEndsTheServerAlone(t *testing.T) {
	for _, name := range []string{"huge", "flood"} {
		r := newRig(t, process(t, "plain"))
		has(t, r.failure(name, p{}).Reason, "more than 16 MiB")
		if got := r.success("echo", p{"text": "up"}); got.Output != "echo up" {
			t.Errorf("%+v", got)
		}
	}
}

func TestProcess_AChangedToolIsRefused(t *testing.T) {
	r := newRig(t, process(t, "plain"))
	r.success("raw", p{})
	r.success("turn", p{})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if strings.Contains(r.log.String(), "its tools changed") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the change was not heard of")
		}
	}
	f := r.failure("raw", p{})
	has(t, f.Reason, "changed it after it was announced")
	if f.Recoverable || f.Effects != events.EffectsNone {
		t.Errorf("%+v", f)
	}
	has(t, r.log.String(), "ALARM")
	if v := r.tool("raw").ValidateRequest(events.ToolRequest{Parameters: events.Raw(`{"text":"x"}`)}); v.OK() {
		t.Error("a changed tool takes requests")
	}
	r.success("echo", p{})
}

func TestProcess_AToolThatARestartChangesIsRefused(t *testing.T) {
	r := newRig(t, process(t, "changing"))
	r.success("echo", p{})
	r.failure("crash", p{})
	has(t, r.failure("echo", p{}).Reason, "changed it after it was announced")
	has(t, r.log.String(), "ALARM", "tool=echo")
	r.success("raw", p{})
}

func TestProcess_ThoseThatCannotBeUsedAreNamed(t *testing.T) {
	for kind, want := range map[string]string{
		"mute": "did not answer within", "absent": "no licence found", "babble": "lines that are no messages", "asides": "that nobody asked for",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := process(t, kind)
			if kind == "mute" {
				c.StartTimeout = 500 * time.Millisecond
			}
			began := time.Now()
			r := newRig(t, c)
			if len(r.tools) != 0 || time.Since(began) > 25*time.Second {
				t.Errorf("after %s: %v", time.Since(began), r.tools)
			}
			has(t, r.log.String(), "gives no tools", want)
		})
	}
}

func TestProcess_ABannerIsPassedOver(t *testing.T) {
	r := newRig(t, process(t, "banner"))
	r.success("echo", p{})
}

func TestProcess_ItWritesWhereItMay(t *testing.T) {
	runner, err := sandbox.NewRunner(sandbox.RunnerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if runner.Isolation() == events.IsolationNone {
		t.Skip("this machine does not confine processes")
	}
	outside, inside := t.TempDir(), t.TempDir()
	c := process(t, "plain")
	c.Writable = []string{inside}
	r := newRig(t, c)
	r.success("write", p{"path": filepath.Join(inside, "a")})
	if _, err := os.Stat(filepath.Join(inside, "a")); err != nil {
		t.Error(err)
	}
	r.failure("write", p{"path": filepath.Join(outside, "a")})
	if _, err := os.Stat(filepath.Join(outside, "a")); err == nil {
		t.Error("it wrote where it may not")
	}
}

func TestClose_LeavesNoProcess(t *testing.T) {
	r := newRig(t, process(t, "plain"))
	s := r.set.servers[0]
	r.set.Close()
	if s.link.alive() {
		t.Error("it lives on")
	}
	f := r.failure("echo", p{})
	has(t, f.Reason, "ended with this worker")
}
