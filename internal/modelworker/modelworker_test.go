package modelworker_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"correx/internal/access"
	"correx/internal/modelworker"
	"correx/internal/session"
	"correx/internal/testmodel"
	"correx/pkg/events"
)

func TestTwoTurns(t *testing.T) {
	p := newPlant(t)
	w := p.start("m1")
	viewer := p.connect(access.Viewer)
	live := must(viewer.SubscribeSync(events.LiveSubject("s1", "t1")))(t)
	if err := viewer.Flush(); err != nil {
		t.Fatal(err)
	}
	p.offerEcho()
	begun := p.begin("s1", testmodel.Task("hello", "Say hi."))
	offer := []events.ToolRef{{Name: "echo", Digest: "d1"}}
	first := events.InferenceRequested{Ref: ref("s1", "t1"), Through: begun, Tools: offer}
	p.ask(first, script)

	got := p.completed("s1", "t1")
	want := []events.ToolCall{{Tool: "echo", Arguments: events.Raw(`{"text":"hi"}`)}}
	if !reflect.DeepEqual(got.Reply.Calls, want) || got.Finish != events.FinishStop || got.Tokenizer != "server" || got.Usage.Completion == 0 || got.Latency <= 0 {
		t.Errorf("first turn: %+v", got)
	}
	state := session.Evolve(session.State{}, must(p.log.ReadFilter(p.ctx, events.SessionFilter("s1"), 1, begun))(t)[0])
	again, err := session.Pack(state, []events.ToolOffer{echo}, first, session.Room{Window: 1, Count: func([]events.ChatMessage) int { return 1 }})
	if err != nil || again.Digest != got.PromptDigest {
		t.Errorf("packed again it is %s, %v; the fact says %s", again.Digest, err, got.PromptDigest)
	}
	text, pieces := "", 0
	for text != got.Reply.Text {
		m, err := live.NextMsgWithContext(p.ctx)
		if err != nil {
			t.Fatalf("live are %q: %v", text, err)
		}
		var d struct {
			Delta          string
			Attempt, Index int
		}
		if err := json.Unmarshal(m.Data, &d); err != nil {
			t.Fatal(err)
		}
		if d.Attempt != 1 || d.Index != pieces {
			t.Errorf("piece %d is %+v", pieces, d)
		}
		text += d.Delta
		pieces++
	}

	tool := ref("s1", "t1-0")
	p.append(p.log, events.ToolInvocationRequested{Ref: tool, Token: "echo", Request: events.ToolRequest{
		Invocation: "t1-0", Session: "s1", Stage: "turn-1", Tool: "echo", Parameters: want[0].Arguments}})
	p.append(p.log, events.ApprovalGranted{Ref: tool, Token: "echo", Tool: "echo", By: "policy", Until: time.Now().Add(time.Hour)})
	claim := events.Claim{Worker: "tools", Boot: "b", Nonce: "n", Attempt: 1}
	started := p.append(p.tools, events.ToolExecutionStarted{Ref: tool, Claim: claim})
	done := p.append(p.tools, events.ToolExecutionCompleted{Ref: tool,
		Fence: events.Fence{Started: started, Nonce: "n"}, Receipt: events.ToolReceipt{Output: "hi"}})
	p.ask(events.InferenceRequested{Ref: ref("s1", "t2"), Through: done, Tools: offer}, script)
	if got := p.completed("s1", "t2"); got.Reply.Final == nil || *got.Reply.Final != "It said hi." {
		t.Errorf("second turn: %+v", got.Reply)
	}

	p.settled(script)
	w.stop()
	loaded, unloaded := modelFacts[events.ModelLoaded](p, w.id, script), modelFacts[events.ModelUnloaded](p, w.id, script)
	if len(loaded) != 1 || loaded[0].ContextSize != 8192 || loaded[0].Worker != w.id || len(unloaded) != 1 {
		t.Errorf("loaded %+v, unloaded %+v", loaded, unloaded)
	}
	announced := facts[events.WorkerStarted](p, events.KindWorker, string(w.id))[0]
	if len(announced.Models) != 2 || announced.Models[0].Name != script || announced.Models[0].Token != events.Token(script) {
		t.Errorf("announced %+v", announced)
	}
	if bye := facts[events.WorkerStopped](p, events.KindWorker, string(w.id)); len(bye) != 1 || bye[0].Boot != announced.Boot {
		t.Errorf("stopped %+v", bye)
	}
}

func TestFailures(t *testing.T) {
	p := newPlant(t)
	p.start("m1")
	p.offerEcho()
	begun := p.begin("s1", "Go on for ever.")
	long := p.begin("s2", strings.Repeat("A long task. ", 2000))
	for _, tt := range []struct {
		name        string
		request     events.InferenceRequested
		model       string
		code        events.InferenceFailure
		recoverable bool
		reason      string
	}{
		{"an answer that does not end", events.InferenceRequested{Ref: ref("s1", "t1"), Through: begun,
			Generation: events.GenerationConfig{MaxTokens: 30}}, endless, events.FailModelOutput, true, "cut off after 30 tokens"},
		{"a task that does not fit", events.InferenceRequested{Ref: ref("s2", "t1"), Through: long}, script, events.FailOverflow, false, "shorten the task"},
		{"a tool that nobody offers so", events.InferenceRequested{Ref: ref("s1", "t2"), Through: begun,
			Tools: []events.ToolRef{{Name: "echo", Digest: "other"}}}, script, events.FailServer, false, "which no worker announced"},
		{"messages that do not fit", events.InferenceRequested{Ref: ref(events.System, "i1"),
			Messages: []events.ChatMessage{{Role: events.RoleUser, Content: strings.Repeat("x ", 10_000)}}}, script, events.FailOverflow, false, "room for"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.ask(tt.request, tt.model)
			got := p.failed(tt.request.Session, tt.request.ID)
			if got.Code != tt.code || got.Recoverable != tt.recoverable || !strings.Contains(got.Reason, tt.reason) || got.Nonce == "" {
				t.Errorf("failed with %+v", got)
			}
			if overflow := tt.code == events.FailOverflow; overflow != (got.PromptTokens > got.Window) || overflow != (got.Window > 0) {
				t.Errorf("it says %d tokens of %d", got.PromptTokens, got.Window)
			}
			if tt.code == events.FailModelOutput && (got.Usage.Completion == 0 || got.Text == "") {
				t.Errorf("nothing is kept of the answer: %+v", got)
			}
			if cut := tt.code == events.FailModelOutput; cut != (got.Finish == events.FinishLength) {
				t.Errorf("it says that the model stopped for %q", got.Finish)
			}
		})
	}
	// A request whose model is not the one that its route stands for.
	wrong := events.InferenceRequested{Ref: ref("s1", "t9"), Through: begun, Model: "another", ModelToken: endless, Deadline: time.Now().Add(time.Hour)}
	p.append(p.log, wrong)
	if got := p.failed("s1", "t9"); got.Code != events.FailServer || got.Recoverable || got.Nonce != "" {
		t.Errorf("failed with %+v", got)
	}
	p.settled(script)
	p.settled(endless)
}

func TestInferenceOfNoSession(t *testing.T) {
	p := newPlant(t)
	p.start("m1")
	p.ask(events.InferenceRequested{Ref: ref(events.System, "i1"),
		Messages: []events.ChatMessage{{Role: events.RoleUser, Content: testmodel.Task("free", "Say something.")}}}, script)
	if got := p.completed(events.System, "i1"); got.Reply.Final == nil || *got.Reply.Final != "Just text." || got.Reply.Text != "Just text." || got.Tokenizer != "bytes" {
		t.Errorf("answer is %+v", got)
	}
}

// An inference that somebody else ended, as the kernel does when its session
// ends, is stopped at once, and the model is free for the next.
func TestCancel(t *testing.T) {
	p := newPlant(t)
	w := p.start("m1")
	begun := p.begin("s1", "Go on for ever.")
	p.ask(events.InferenceRequested{Ref: ref("s1", "t1"), Through: begun, Generation: events.GenerationConfig{MaxTokens: 4000}}, endless)
	p.await("the start", func() bool { return p.inference("s1", "t1").Started != nil })
	p.await("the load", func() bool { return len(modelFacts[events.ModelLoaded](p, w.id, endless)) > 0 })
	p.append(p.log, events.InferenceFailed{Ref: ref("s1", "t1"), Code: events.FailCancelled, Reason: "the session ended",
		Fence: events.Fence{Started: p.inference("s1", "t1").StartedSeq}})
	cancelled := time.Now()
	p.settled(endless)
	p.ask(events.InferenceRequested{Ref: ref("s1", "t2"), Through: begun, Generation: events.GenerationConfig{MaxTokens: 5}}, endless)
	p.failed("s1", "t2")
	t.Logf("the next answer was there %v after the cancel", time.Since(cancelled))
	if i := p.inference("s1", "t1"); i.Failure.Code != events.FailCancelled || i.Alarms != 0 {
		t.Errorf("ended with %+v, %d alarms", i.Failure, i.Alarms)
	}
	if n := len(modelFacts[events.ModelLoaded](p, w.id, endless)); n != 1 {
		t.Errorf("loaded %d times: the server was not kept", n)
	}
}

// A worker that is told to stop finishes what it has.
func TestDrain(t *testing.T) {
	p := newPlant(t)
	w := p.start("m1")
	begun := p.begin("s1", "Go on for ever.")
	p.ask(events.InferenceRequested{Ref: ref("s1", "t1"), Through: begun, Generation: events.GenerationConfig{MaxTokens: 100}}, endless)
	p.await("the start", func() bool { return p.inference("s1", "t1").Started != nil })
	w.stop()
	if f := p.inference("s1", "t1").Failure; f == nil || f.Code != events.FailModelOutput || f.Usage.Completion != 100 {
		t.Errorf("after the stop: %+v", f)
	}
}

// One that is out of patience says so, and another worker may go on.
func TestDrainOutOfPatience(t *testing.T) {
	p := newPlant(t)
	w := p.start("m1", func(o *modelworker.Options) { o.Drain = 100 * time.Millisecond })
	begun := p.begin("s1", "Go on for ever.")
	p.ask(events.InferenceRequested{Ref: ref("s1", "t1"), Through: begun, Generation: events.GenerationConfig{MaxTokens: 4000}}, endless)
	p.await("the start", func() bool { return p.inference("s1", "t1").Started != nil })
	w.stop()
	if f := p.inference("s1", "t1").Failure; f == nil || f.Code != events.FailServer || !f.Recoverable || !strings.Contains(f.Reason, "stopping") {
		t.Errorf("after the stop: %+v", f)
	}
}

func TestLimit(t *testing.T) {
	p := newPlant(t)
	p.start("m1", func(o *modelworker.Options) { o.Limit = time.Second })
	begun := p.begin("s1", "Go on for ever.")
	p.ask(events.InferenceRequested{Ref: ref("s1", "t1"), Through: begun, Generation: events.GenerationConfig{MaxTokens: 4000}}, endless)
	if f := p.failed("s1", "t1"); f.Code != events.FailServer || !f.Recoverable || !strings.Contains(f.Reason, "longer than one inference") {
		t.Errorf("failed with %+v", f)
	}
}

func TestWishes(t *testing.T) {
	p := newPlant(t)
	w := p.start("m1")
	r := ref(events.System, events.ModelAggregateID(w.id, events.Token(script)))
	load := events.ModelLoadRequested{Ref: r, Model: script, Worker: w.id}
	unload := events.ModelUnloadRequested{Ref: r, Model: script, Worker: w.id}

	p.append(p.log, load)
	p.await("the load", func() bool { return len(modelFacts[events.ModelLoaded](p, w.id, script)) == 1 })
	p.append(p.log, load) // it is there already, and says so
	p.await("the answer", func() bool { return len(modelFacts[events.ModelLoaded](p, w.id, script)) == 2 })
	loaded := modelFacts[events.ModelLoaded](p, w.id, script)
	if loaded[0].PID != loaded[1].PID {
		t.Errorf("it was loaded anew: %+v", loaded)
	}
	p.append(p.log, unload)
	p.await("the unload", func() bool { return len(modelFacts[events.ModelUnloaded](p, w.id, script)) == 1 })
	unload.Force = true
	p.append(p.log, unload)
	p.await("the answer", func() bool { return len(modelFacts[events.ModelUnloaded](p, w.id, script)) == 2 })

	// What is asked while nobody is there is done by whoever comes.
	w.stop()
	p.append(p.log, load)
	p.start("m1")
	p.await("the load", func() bool { return len(modelFacts[events.ModelLoaded](p, w.id, script)) == 3 })
}

func TestPersistentIsLoadedAtOnce(t *testing.T) {
	p := newPlant(t)
	w := p.start("m1", func(o *modelworker.Options) { o.Models[1].ResidencyMode = events.Persistent })
	p.await("the load", func() bool { return len(modelFacts[events.ModelLoaded](p, w.id, endless)) == 1 })
}

func TestLoadThatFails(t *testing.T) {
	p := newPlant(t)
	w := p.start("m1", func(o *modelworker.Options) { o.Models[0].Path = "/nowhere.gguf" })
	begun := p.begin("s1", "Anything.")
	p.ask(events.InferenceRequested{Ref: ref("s1", "t1"), Through: begun}, script)
	if f := p.failed("s1", "t1"); f.Code != events.FailServer || !strings.Contains(f.Reason, "no such file") {
		t.Errorf("failed with %+v", f)
	}
	p.await("the fact", func() bool { return len(modelFacts[events.ModelLoadFailed](p, w.id, script)) == 1 })
}
