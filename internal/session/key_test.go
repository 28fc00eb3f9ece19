package session_test

import (
	"strings"
	"testing"

	"correx/internal/session"
	"correx/pkg/events"
)

func TestEveryCommandHasTheKeyOfItsFact(t *testing.T) {
	tool := func(id string) session.Key { return session.Key{Session: events.System, Kind: events.KindTool, ID: id} }
	inference := func(id string) session.Key {
		return session.Key{Session: events.System, Kind: events.KindInference, ID: id}
	}
	// What a fork looks at: s1 has begun, and no more.
	begun := events.SessionStarted{Ref: events.Ref{Session: "s1", ID: events.Main}, Task: "x"}
	others := session.Others{
		Read: func(_ events.SessionID, _ uint64, fn func(events.Record) error) error {
			return fn(events.Record{Seq: 1, Aggregate: events.AggregateOf(begun), Fact: begun})
		},
		Last: func() (uint64, error) { return 1, nil },
	}
	for _, c := range []struct {
		command events.Command
		want    session.Key
	}{
		{events.SessionStart{Task: "x"}, session.Key{Session: "s7-abc"}},
		{events.SessionStart{Task: "x", Session: "mine"}, session.Key{Session: "mine"}},
		{events.SessionSay{Session: "s1"}, s1},
		{events.SessionPause{Session: "s1"}, s1},
		{events.SessionResume{Session: "s1"}, s1},
		{events.SessionCancel{Session: "s1"}, s1},
		{events.SessionFork{Session: "s1", At: 1}, session.Key{Session: "s7-abc"}},
		{events.SessionFork{Session: "s1", At: 1, New: "s2"}, session.Key{Session: "s2"}},
		{events.ToolRun{Tool: "echo"}, tool("i7-abc")},
		{events.ToolRun{Tool: "echo", Session: events.System, Invocation: "i1"}, tool("i1")},
		{events.ToolRun{Tool: "echo", Session: "s1", Invocation: "i1"}, s1},
		{events.ToolApprove{Invocation: "i1"}, tool("i1")},
		{events.ToolApprove{Session: "s1", Invocation: "i1"}, s1},
		{events.ToolApprove{Invocation: "i1-c"}, tool("i1")}, // a follow-up has the key of what it follows
		{events.ToolApprove{Session: "s1", Invocation: "i1-c"}, s1},
		{events.ToolReject{Session: events.System, Invocation: "i1"}, tool("i1")},
		{events.ToolCancel{Session: "s1", Invocation: "i1"}, s1},
		{events.InferenceRun{Task: "x"}, inference("n7-abc")},
		{events.InferenceRun{Task: "x", Inference: "n1"}, inference("n1")},
		{events.ModelLoad{Model: "m"}, session.Key{}},
	} {
		got, ok := session.KeyOf(events.Wish{ID: "7-abc", Command: c.command})
		if got != c.want || ok != (c.want != session.Key{}) {
			t.Errorf("%+v has the key %v, %v; want %v", c.command, got, ok, c.want)
		}
		if !ok {
			continue
		}
		// What carries the command out is folded into the state of the same key.
		w := session.EvolveWorld(session.World{}, events.Record{Aggregate: events.Aggregate{Session: events.System}, Fact: events.WorkerStarted{
			Ref: events.Ref{Session: events.System, ID: "m1"}, Role: events.RoleModelWorker, Models: []events.ModelOffer{{Name: "m", Token: "m"}}}})
		a, err := session.Handle(session.State{ID: got.Session}, w, events.Wish{ID: "7-abc", Actor: "op", Command: c.command}, epoch, others)
		if err != nil {
			t.Fatal(err)
		}
		if _, forks := c.command.(events.SessionFork); forks && a.Decision == nil {
			t.Errorf("%+v is not carried out: %+v", c.command, a)
		}
		if d := a.Decision; d != nil {
			of, _ := session.KeyOfRecord(events.Record{Aggregate: events.AggregateOf(d.Fact)})
			if of != got || d.Cause != "command/7-abc" {
				t.Errorf("%+v has the key %v, its fact %v, caused by %q", c.command, got, of, d.Cause)
			}
		}
	}
}

func TestKeyFilters(t *testing.T) {
	for k, want := range map[session.Key]string{
		s1: "evt.s1.>",
		{Session: events.System, Kind: events.KindTool, ID: "i1"}:      "evt.system.tool.i1.> evt.system.tool.i1-c.>",
		{Session: events.System, Kind: events.KindInference, ID: "n1"}: "evt.system.inference.n1.>",
	} {
		if got := strings.Join(k.Filters(), " "); got != want {
			t.Errorf("filter of %v is %s", k, got)
		}
	}
	for _, a := range []events.Aggregate{{}, {Session: events.System, Kind: events.KindWorker, ID: "w1"}, {Session: events.System, Kind: events.KindCommand, ID: "1"}} {
		if k, ok := session.KeyOfRecord(events.Record{Aggregate: a}); ok {
			t.Errorf("%v has the key %v", a, k)
		}
	}
}

func TestTheAnswerIsThatOfTheInferenceThatCompletedIt(t *testing.T) {
	s := newSim(t)
	for _, l := range []string{"settings", "offer m1 model:m", `cmd session.start {"session":"s1","task":"x"}`, "infer t1 start"} {
		s.input(l)
	}
	if a, ok := s.states[s1].Answer(); ok {
		t.Errorf("answer %q before the end", a)
	}
	s.input("infer t1 final forty-two")
	if a, ok := s.states[s1].Answer(); !ok || a != "forty-two" {
		t.Errorf("answer %q, %v", a, ok)
	}
	s.input(`cmd session.say {"session":"s1","text":"and now?"}`)
	if a, ok := s.states[s1].Answer(); ok {
		t.Errorf("answer %q while it goes on", a)
	}
}

func TestModelsArePickedByNameThenByScore(t *testing.T) {
	offer := func(name string, scores ...events.CapabilityScore) events.ModelOffer {
		return events.ModelOffer{Name: events.ModelID(name), Token: name, Capabilities: scores}
	}
	score := func(c events.ModelCapability, s float64) events.CapabilityScore {
		return events.CapabilityScore{Capability: c, Score: s}
	}
	var w session.World
	if _, ok := w.Route(session.Want{}); ok {
		t.Error("a model where there is none")
	}
	w = session.EvolveWorld(w, events.Record{Seq: 1, Aggregate: events.Aggregate{Session: events.System}, Fact: events.WorkerStarted{
		Ref: events.Ref{Session: events.System, ID: "m1"}, Role: events.RoleModelWorker, Models: []events.ModelOffer{offer("zed", score(events.General, 0.7)), offer("code", score(events.Coding, 0.9)), offer("alpha", score(events.General, 0.7))}}})
	for _, c := range []struct {
		name       events.ModelID
		capability events.ModelCapability
		want       string
	}{{"", "", "alpha"}, {"", events.Coding, "code"}, {"", events.Reasoning, "alpha"}, {"zed", events.Coding, "zed"}, {"none", "", ""}} {
		got, ok := w.Route(session.Want{Model: c.name, Capability: c.capability})
		if string(got.What.Name) != c.want || ok != (c.want != "") {
			t.Errorf("%q for %q: %q, %v", c.name, c.capability, got.What.Name, ok)
		}
	}
	if len(w.Models()) != 3 {
		t.Errorf("%d models", len(w.Models()))
	}
}

// Two workers that announce one tool with different digests are an alarm; the
// latest announcement counts, and a worker of another boot cannot stop it.
func TestOffersOfSeveralWorkers(t *testing.T) {
	var w session.World
	put := func(seq uint64, f events.Fact) {
		w = session.EvolveWorld(w, events.Record{Seq: seq, Time: epoch, Aggregate: events.AggregateOf(f), Fact: f})
	}
	start := func(id, boot, digest string) events.WorkerStarted {
		return events.WorkerStarted{Ref: events.Ref{Session: events.System, ID: id}, Role: events.RoleToolWorker, Boot: boot, Tools: []events.ToolOffer{{Name: "echo", Digest: digest}}}
	}
	put(1, start("w1", "a", "d1"))
	put(2, start("w2", "b", "d1"))
	older := w
	if o, _ := w.Tool("echo"); o.Differs || len(o.Workers) != 2 {
		t.Errorf("offer = %+v", o)
	}
	put(3, start("w2", "c", "d2"))
	if o, _ := w.Tool("echo"); !o.Differs || o.What.Digest != "d2" {
		t.Errorf("offer = %+v", o)
	}
	put(4, events.WorkerStopped{Ref: events.Ref{Session: events.System, ID: "w2"}, Boot: "b"})
	if o, _ := w.Tool("echo"); len(o.Workers) != 2 {
		t.Errorf("a stop of an older boot counts: %+v", o)
	}
	put(5, events.WorkerStopped{Ref: events.Ref{Session: events.System, ID: "w2"}, Boot: "c"})
	if o, _ := w.Tool("echo"); len(o.Workers) != 1 || o.Differs || o.What.Digest != "d1" {
		t.Errorf("offer = %+v", o)
	}
	put(6, events.WorkerStopped{Ref: events.Ref{Session: events.System, ID: "w1"}, Boot: "a"})
	if o, ok := w.Tool("echo"); ok {
		t.Errorf("offer of nobody: %+v", o)
	}
	if o, _ := older.Tool("echo"); len(o.Workers) != 2 || o.Differs {
		t.Errorf("an older world was changed: %+v", o)
	}
}

// What an announcement says beyond its writer's part changes nothing but the list
// of workers.
func TestAnnouncementsBeyondTheirRoleAreNotBelieved(t *testing.T) {
	set := events.Settings{Mode: events.ModeAuto}
	start := func(id string, role events.WorkerRole) events.WorkerStarted {
		return events.WorkerStarted{
			Ref: events.Ref{Session: events.System, ID: id}, Role: role, Boot: "b", Settings: &set,
			Tools:  []events.ToolOffer{{Name: "echo", Token: "echo", Digest: "d"}},
			Models: []events.ModelOffer{{Name: "m", Token: "m"}},
		}
	}
	for _, c := range []struct {
		f                       events.WorkerStarted
		settings, tools, models bool
		claims                  int
	}{
		{start("kernel", events.RoleKernel), true, false, false, 2},
		{start("kernel-9", events.RoleKernel), true, false, false, 2},
		{start("kernel-10", events.RoleKernel), false, false, false, 4},
		{start("Kernel", events.RoleKernel), false, false, false, 4},
		{start("kernel", events.RoleToolWorker), false, true, false, 2},
		{start("w1", events.RoleToolWorker), false, true, false, 2},
		{start("w1", events.RoleModelWorker), false, false, true, 2},
		{start("w1", events.RoleProjector), false, false, false, 3},
		{start("w1", ""), false, false, false, 3},
	} {
		r := events.Record{Seq: 1, Aggregate: events.AggregateOf(c.f), Fact: c.f}
		w := session.EvolveWorld(session.World{Settings: events.Settings{Mode: events.ModePrompt}}, r)
		_, tool := w.Tool("echo")
		_, model := w.Model("m")
		if settings := w.Settings.Mode == events.ModeAuto; settings != c.settings || tool != c.tools || model != c.models {
			t.Errorf("%s as %q: settings %v, tool %v, model %v", c.f.ID, c.f.Role, settings, tool, model)
		}
		if got := session.Presumes(r); len(got) != c.claims {
			t.Errorf("%s as %q: alarms %q, want %d", c.f.ID, c.f.Role, got, c.claims)
		}
	}
	honest := start("w1", events.RoleToolWorker)
	honest.Settings, honest.Models = nil, nil
	if got := session.Presumes(events.Record{Aggregate: events.AggregateOf(honest), Fact: honest}); got != nil {
		t.Errorf("an honest worker raises %q", got)
	}
}
