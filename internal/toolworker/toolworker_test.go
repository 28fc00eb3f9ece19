package toolworker_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"correx/internal/access"
	"correx/internal/artifacts"
	"correx/internal/claim"
	"correx/internal/session"
	"correx/internal/toolworker"
	"correx/internal/workerhome"
	"correx/pkg/events"
)

var tokens = []string{"count", "peek", "file_write", "scribble"}

// A running worker of this process.
type running struct {
	id   events.WorkerID
	dir  string // of the tool set
	stop func() error
}

func (p *plant) start(name string, change ...func(*toolworker.Options)) running {
	p.Helper()
	dir := p.TempDir()
	home := must(workerhome.Open(p.state, events.RoleToolWorker, name))(p)
	o := toolworker.Options{
		StateDir: p.state, Home: home, Host: "host", Tools: must(toolset(dir))(p), AckWait: ackWait,
		Drain: 10 * time.Second, Concurrency: 8, Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&o)
	}
	ctx, cancel := context.WithCancel(p.ctx)
	done := make(chan error, 1)
	go func() { done <- toolworker.Run(ctx, o) }()
	r := running{id: home.Worker("host"), dir: dir}
	over := false
	r.stop = func() error {
		if over {
			return nil
		}
		over = true
		cancel()
		return errors.Join(<-done, home.Close())
	}
	p.Cleanup(func() {
		if err := r.stop(); err != nil {
			p.Errorf("worker %s stops with %v", name, err)
		}
	})
	return r
}

func TestRun_AnnouncesItsTools(t *testing.T) {
	p := newPlant(t, tokens...)
	w := p.start("w1")
	s := p.announced(string(w.id))
	if s.Role != events.RoleToolWorker || s.Host != "host" || s.Boot == "" || s.Concurrency != 8 || len(s.Tools) != 4 {
		t.Fatalf("announced %s", jsonOf(s))
	}
	for _, o := range s.Tools {
		if o.Digest == "" || o.Isolation == "" || o.Previews != (o.Name == "file_write") || o.Idempotent != (o.Name == "peek") {
			t.Errorf("offer is %s", jsonOf(o))
		}
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	facts := p.workerFacts()
	if last, ok := facts[len(facts)-1].(events.WorkerStopped); !ok || last.Boot != s.Boot {
		t.Errorf("last fact is %#v", facts[len(facts)-1])
	}
}

func TestRun_RunsWhatWasApproved(t *testing.T) {
	p := newPlant(t, tokens...)
	w := p.start("w1")
	p.ask(call{id: "t1-0", tool: "count", params: `{}`})
	e := p.completed("t1-0")
	if e.Receipt.Output != "ran count" || e.Receipt.Isolation == "" || e.Receipt.Time.IsZero() {
		t.Errorf("receipt is %s", jsonOf(e.Receipt))
	}
	if n := runs(t, filepath.Join(w.dir, "ledger")); n["t1-0"] != 1 {
		t.Errorf("ran %d times", n["t1-0"])
	}
	if i := p.invocation("t1-0"); i.Started.Worker != w.id || i.Started.Isolation != events.IsolationNone || i.Alarms != 0 {
		t.Errorf("started is %s, %d alarms", jsonOf(i.Started), i.Alarms)
	}
	p.settled(access.ToolDurable("count"))
}

func TestRun_AFailureIsAFactWithAReceipt(t *testing.T) {
	p := newPlant(t, tokens...)
	p.start("w1")
	p.ask(call{id: "t1-0", tool: "peek", params: `{"fail":"no such luck"}`})
	p.ask(call{id: "t1-1", tool: "peek", params: `{"panic":true}`})
	if e := p.failed("t1-0"); e.Reason != "no such luck" || e.Recoverable || e.Effects != events.EffectsNone || e.Receipt.Output != "partial" {
		t.Errorf("end is %s", jsonOf(e))
	}
	if e := p.failed("t1-1"); !strings.Contains(e.Reason, "as asked") {
		t.Errorf("end is %s", jsonOf(e))
	}
	p.settled(access.ToolDurable("peek"))
}

func TestRun_WhatDoesNotHoldIsNotRun(t *testing.T) {
	p := newPlant(t, tokens...)
	w := p.start("w1")
	p.ask(call{id: "forged", tool: "count", params: `{}`, forge: func(g *events.ApprovalGranted) { g.Until = g.Until.Add(time.Hour) }})
	p.ask(call{id: "unsigned", tool: "count", params: `{}`, forge: func(g *events.ApprovalGranted) { g.Key, g.Signature = "", "" }})
	p.settled(access.ToolDurable("count"))
	p.ask(call{id: "ended", tool: "count", params: `{}`, until: -time.Second})
	p.ask(call{id: "invalid", tool: "count", params: `{"bad":true}`})
	if e := p.rejected("ended"); e.Worker != w.id || !strings.Contains(e.Reason, "ended") {
		t.Errorf("end is %s", jsonOf(e))
	}
	if e := p.rejected("invalid"); e.Worker != w.id || e.Reason != "these parameters are bad" {
		t.Errorf("end is %s", jsonOf(e))
	}
	for _, id := range []string{"forged", "unsigned"} {
		if recs := must(p.log.Read(p.ctx, call{id: id}.aggregate()))(t); len(recs) != 2 {
			t.Errorf("%s has %d records, want the request and the approval", id, len(recs))
		}
	}
	if n := runs(t, filepath.Join(w.dir, "ledger")); len(n) != 0 {
		t.Errorf("ran %v", n)
	}
}

func TestRun_TooLittleIsolation_Rejected(t *testing.T) {
	p := newPlant(t, tokens...)
	p.start("w1", func(o *toolworker.Options) {
		o.Least = events.IsolationFull
		o.Tools = append(o.Tools[:0:0], spawning{o.Tools[1].(testTool)})
	})
	p.ask(call{id: "t1-0", tool: "count", params: `{}`})
	if e := p.rejected("t1-0"); !strings.Contains(e.Reason, "full") {
		t.Errorf("end is %s", jsonOf(e))
	}
}

// spawning is a tool that starts processes.
type spawning struct{ testTool }

func (spawning) RequiredCapabilities() []events.ToolCapability {
	return []events.ToolCapability{events.ShellExec, events.ProcessSpawn}
}

func TestRun_PreviewsThenWrites(t *testing.T) {
	p := newPlant(t, tokens...)
	w := p.start("w1")
	path := filepath.Join(w.dir, "files", "a.txt")
	params, _ := json.Marshal(map[string]string{"operation": "write", "path": path, "content": "hello\n"})
	c := call{id: "t1-0", tool: "file_write", params: string(params), tier: events.T2}
	p.request(c)
	p.await("a preview", func() bool { return p.invocation("t1-0").Previewed != nil })
	v := p.invocation("t1-0").Previewed
	if !v.Valid || v.Worker != w.id || v.Tier != events.T2 || !strings.Contains(v.Diff, "+hello") || len(v.Base) != 1 {
		t.Fatalf("preview is %s", jsonOf(v))
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("the preview wrote the file")
	}
	p.approve(c)
	e := p.completed("t1-0")
	if got, err := os.ReadFile(path); err != nil || string(got) != "hello\n" {
		t.Errorf("file has %q, %v", got, err)
	}
	if !strings.Contains(e.Receipt.Diff, "+hello") || len(e.Receipt.Affected) != 1 {
		t.Errorf("receipt is %s", jsonOf(e.Receipt))
	}
	p.settled(access.PreviewDurable("file_write"))
	p.settled(access.ToolDurable("file_write"))
	if all := must(toolworker.ListPending(p.state, "", "", slog.New(slog.DiscardHandler)))(t); len(all) != 1 || !all[0].InUse {
		t.Errorf("journals: %s", jsonOf(all))
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if all := must(toolworker.ListPending(p.state, "", "w1", slog.New(slog.DiscardHandler)))(t); len(all[0].Entries) != 0 {
		t.Errorf("journal still has %s", jsonOf(all))
	}
}

func TestRun_AnInvalidRequestIsPreviewedAsSuch(t *testing.T) {
	p := newPlant(t, tokens...)
	p.start("w1")
	p.request(call{id: "t1-0", tool: "file_write", params: `{"operation":"write","path":"/etc/passwd","content":"x"}`})
	p.await("a preview", func() bool { return p.invocation("t1-0").Previewed != nil })
	if v := p.invocation("t1-0").Previewed; v.Valid || v.Reason == "" {
		t.Errorf("preview is %s", jsonOf(v))
	}
}

func TestRun_APreviewThatComesTooLateIsNone(t *testing.T) {
	p := newPlant(t, tokens...)
	c := call{id: "t1-0", tool: "file_write", params: `{"operation":"delete","path":"/nowhere"}`}
	p.request(c)
	i := p.invocation("t1-0")
	p.append(i.LastSeq, events.ToolExecutionRejected{Ref: c.aggregate().Ref(), Reason: "the kernel went on"})
	p.start("w1")
	p.settled(access.PreviewDurable("file_write"))
	if recs := must(p.log.Read(p.ctx, c.aggregate()))(t); len(recs) != 2 {
		t.Errorf("log has %d records", len(recs))
	}
}

func TestRun_TheFileChangedSinceTheApproval_NotTouched(t *testing.T) {
	p := newPlant(t, tokens...)
	w := p.start("w1")
	path := filepath.Join(w.dir, "files", "a.txt")
	params, _ := json.Marshal(map[string]string{"operation": "write", "path": path, "content": "mine"})
	c := call{id: "t1-0", tool: "file_write", params: string(params), tier: events.T2}
	p.request(c)
	p.await("a preview", func() bool { return p.invocation("t1-0").Previewed != nil })
	if err := os.WriteFile(path, []byte("yours"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.approve(c)
	if e := p.failed("t1-0"); e.Effects != events.EffectsNone {
		t.Errorf("end is %s", jsonOf(e))
	}
	if got, _ := os.ReadFile(path); string(got) != "yours" {
		t.Errorf("file has %q", got)
	}
}

func TestRun_LargeOutputIsAnArtifact(t *testing.T) {
	p := newPlant(t, tokens...)
	p.start("w1")
	p.ask(call{id: "t1-0", tool: "peek", params: `{"size":300000}`})
	e := p.completed("t1-0")
	if len(e.Receipt.Artifacts) != 1 || len(e.Receipt.Output) > 64<<10 {
		t.Fatalf("%d artifacts, output of %d bytes", len(e.Receipt.Artifacts), len(e.Receipt.Output))
	}
	data := must(artifacts.New(p.js).Get(p.ctx, e.Receipt.Artifacts[0].SHA256))(t)
	if string(data) != strings.Repeat("x", 300000) {
		t.Errorf("artifact has %d bytes", len(data))
	}
}

func TestRun_CancelStopsWhatRuns(t *testing.T) {
	p := newPlant(t, tokens...)
	p.start("w1")
	c := call{id: "t1-0", tool: "count", params: `{"millis":60000}`}
	p.ask(c)
	p.await("the start", func() bool { return p.invocation("t1-0").Status() == session.Started })
	p.append(p.invocation("t1-0").LastSeq, events.CancelRequested{Ref: c.aggregate().Ref(), Reason: "enough"})
	if e := p.failed("t1-0"); e.Reason != "cancelled: enough" || e.Recoverable {
		t.Errorf("end is %s", jsonOf(e))
	}
}

func TestRun_LongWorkIsKeptAlive(t *testing.T) {
	p := newPlant(t, tokens...)
	w := p.start("w1")
	p.start("w2", func(o *toolworker.Options) { o.Tools = must(toolset(w.dir))(t) })
	p.ask(call{id: "t1-0", tool: "count", params: `{"millis":1500}`}) // five ack waits
	p.completed("t1-0")
	if n := runs(t, filepath.Join(w.dir, "ledger")); n["t1-0"] != 1 {
		t.Errorf("ran %d times", n["t1-0"])
	}
	if i := p.invocation("t1-0"); i.Alarms != 0 || i.Started.Attempt != 1 {
		t.Errorf("%d alarms, attempt %d", i.Alarms, i.Started.Attempt)
	}
	p.settled(access.ToolDurable("count"))
}

func TestRun_DrainFinishesWhatRunsAndStops(t *testing.T) {
	p := newPlant(t, tokens...)
	w := p.start("w1")
	p.ask(call{id: "t1-0", tool: "count", params: `{"millis":600}`})
	p.await("the start", func() bool { return p.invocation("t1-0").Status() == session.Started })
	if _, err := p.nc.RequestWithContext(p.ctx, events.DrainSubject(w.id), nil); err != nil {
		t.Fatal(err)
	}
	p.completed("t1-0")
	p.await("the farewell", func() bool {
		facts := p.workerFacts()
		_, ok := facts[len(facts)-1].(events.WorkerStopped)
		return ok
	})
}

func TestRun_StopsWhatOutlastsTheDrain(t *testing.T) {
	p := newPlant(t, tokens...)
	w := p.start("w1", func(o *toolworker.Options) { o.Drain = 50 * time.Millisecond })
	p.ask(call{id: "t1-0", tool: "count", params: `{"millis":60000}`})
	p.await("the start", func() bool { return p.invocation("t1-0").Status() == session.Started })
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if e := p.failed("t1-0"); !e.Recoverable || !strings.Contains(e.Reason, "stopped") {
		t.Errorf("end is %s", jsonOf(e))
	}
}

func TestRun_IsAMicroService(t *testing.T) {
	p := newPlant(t, tokens...)
	w := p.start("w1")
	p.announced(string(w.id))
	op := must(access.Connect(p.ctx, access.Dial{StateDir: p.state, Role: access.Operator, Name: "op"}))(t)
	defer op.Close()
	m := must(op.RequestWithContext(p.ctx, "$SRV.INFO.tool-worker", nil))(t)
	var info micro.Info
	if err := json.Unmarshal(m.Data, &info); err != nil || info.Name != "tool-worker" || info.Metadata["worker"] != string(w.id) || len(info.Endpoints) != 3 {
		t.Errorf("info is %s, %v", m.Data, err)
	}
	offered := p.announced(string(w.id)).Tools
	if text := info.Metadata["tool.count"]; !strings.HasPrefix(text, "count T0, isolation none, digest "+offered[1].Digest[:12]) {
		t.Errorf("the service says of count %q, the log %s", text, jsonOf(offered[1]))
	}
	m = must(op.RequestWithContext(p.ctx, events.ToolsSubject(w.id), nil))(t)
	var told []events.ToolOffer
	if err := json.Unmarshal(m.Data, &told); err != nil || jsonOf(told) != jsonOf(offered) {
		t.Errorf("the service offers %s, the log has %s, %v", m.Data, jsonOf(offered), err)
	}
	q, _ := json.Marshal(claim.Question{Session: "s1", Kind: events.KindTool, ID: "t1-0", Started: 7})
	m = must(op.RequestWithContext(p.ctx, events.RunningSubject(w.id), q))(t)
	var a claim.Answer
	if err := json.Unmarshal(m.Data, &a); err != nil || a.Running || a.Worker != w.id {
		t.Errorf("answer is %s, %v", m.Data, err)
	}
}

func TestOpenHome_FirstFreeName(t *testing.T) {
	state := t.TempDir()
	a := must(workerhome.Open(state, events.RoleToolWorker, ""))(t)
	b := must(workerhome.Open(state, events.RoleToolWorker, ""))(t)
	if a.Name != "tool-worker-1" || b.Name != "tool-worker-2" {
		t.Errorf("names are %s and %s", a.Name, b.Name)
	}
	if _, err := workerhome.Open(state, events.RoleToolWorker, "tool-worker-1"); !errors.Is(err, workerhome.ErrTaken) {
		t.Errorf("taken twice: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if c := must(workerhome.Open(state, events.RoleToolWorker, ""))(t); c.Name != "tool-worker-1" {
		t.Errorf("a free name is %s", c.Name)
	}
	if _, err := workerhome.Open(state, events.RoleToolWorker, "../x"); err == nil {
		t.Error("a name that leaves the directory was taken")
	}
}
