package modelworker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"correx/pkg/events"
	"correx/pkg/llama"
)

// A shelf is a log in memory that counts what is read.
type shelf struct {
	recs []events.Record
	read int
}

func (s *shelf) Each(_ context.Context, filter string, from, through uint64, fn func(events.Record) error) error {
	for _, r := range s.recs {
		if strings.HasPrefix(r.Subject, strings.TrimSuffix(filter, ">")) && r.Seq >= from && r.Seq <= through {
			s.read++
			if err := fn(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *shelf) add(t *testing.T, f events.Fact) uint64 {
	t.Helper()
	subject, h, data, err := events.Encode(f, events.Source{Name: "test"}, 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	seq := uint64(len(s.recs) + 1)
	s.recs = append(s.recs, events.Decode(seq, time.Now(), subject, h, data))
	return seq
}

func TestSessionsAreReadOnce(t *testing.T) {
	log := &shelf{}
	s := newSessions(log)
	log.add(t, events.SessionStarted{Ref: events.Ref{Session: "s", ID: events.Main}, Task: "x"})
	at := func(through uint64) int {
		t.Helper()
		state, err := s.at(context.Background(), "s", through)
		if err != nil || state.Started == nil {
			t.Fatalf("state is %+v, %v", state, err)
		}
		return len(state.Messages)
	}
	for i := range 5 {
		seq := log.add(t, events.MessageAdded{Ref: events.Ref{Session: "s", ID: events.Main}, Role: events.RoleUser, Text: "y"})
		if n := at(seq); n != i+1 {
			t.Errorf("at %d there are %d messages", seq, n)
		}
	}
	if log.read != 6 {
		t.Errorf("%d records were read, want each once", log.read)
	}
	if n := at(3); n != 2 {
		t.Errorf("at 3 there are %d messages", n)
	}
	if n := at(6); n != 5 || log.read != 9 {
		t.Errorf("at 6 there are %d messages, %d records read: the older turn took the place of the newer", n, log.read)
	}
}

func TestForksHaveThePastOfTheOther(t *testing.T) {
	log := &shelf{}
	s := newSessions(log)
	main := func(id events.SessionID) events.Ref { return events.Ref{Session: id, ID: events.Main} }
	say := func(id events.SessionID, text string) uint64 {
		return log.add(t, events.MessageAdded{Ref: main(id), Role: events.RoleUser, Text: text})
	}
	log.add(t, events.SessionStarted{Ref: main("a"), Task: "x"})
	shared := say("a", "one")
	say("a", "not for b")
	log.add(t, events.SessionStarted{Ref: main("b"), Task: "x", ForkOf: &events.Fork{Session: "a", At: shared}, Say: "two"})
	twice := say("b", "three")
	say("b", "not for c")
	log.add(t, events.SessionStarted{Ref: main("c"), Task: "x", ForkOf: &events.Fork{Session: "b", At: twice}})
	last := say("c", "four")
	for range 2 { // read, and then kept
		state, err := s.at(context.Background(), "c", last)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, m := range state.Messages {
			texts = append(texts, m.Text)
		}
		if got := strings.Join(texts, " "); got != "one two three four" {
			t.Errorf("the fork of a fork was told %q", got)
		}
	}
}

func TestSessionsAreForgotten(t *testing.T) {
	log := &shelf{}
	s := newSessions(log)
	for i := range 3 * maxSessions {
		id := events.SessionID(fmt.Sprintf("s%d", i))
		seq := log.add(t, events.SessionStarted{Ref: events.Ref{Session: id, ID: events.Main}, Task: "x"})
		for _, id := range []events.SessionID{id, "s0"} {
			if _, err := s.at(context.Background(), id, seq); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, kept := s.kept["s0"]; len(s.kept) != maxSessions || !kept {
		t.Errorf("%d are kept; the one in use: %v", len(s.kept), kept)
	}
}

func TestOffersByDigest(t *testing.T) {
	log := &shelf{}
	o := newOffers(log)
	worker := func(digest string) uint64 {
		return log.add(t, events.WorkerStarted{Ref: events.Ref{Session: events.System, ID: "w"}, Role: events.RoleToolWorker,
			Tools: []events.ToolOffer{{Name: "echo", Digest: digest, Description: digest}}})
	}
	before := worker("old")
	after := worker("new")
	find := func(digest string, through uint64) error {
		got, err := o.find(context.Background(), []events.ToolRef{{Name: "echo", Digest: digest}}, through)
		if err == nil && (len(got) != 1 || got[0].Description != digest) {
			t.Errorf("found %+v", got)
		}
		return err
	}
	if err := find("new", before); err == nil {
		t.Error("found before it was announced")
	}
	for _, digest := range []string{"new", "old"} {
		if err := find(digest, after); err != nil {
			t.Error(err)
		}
	}
	if log.read != 2 {
		t.Errorf("%d records were read", log.read)
	}
}

func TestStory(t *testing.T) {
	load, unload := events.ModelLoadRequested{}, events.ModelUnloadRequested{}
	loaded, unloaded, crashed, failed := events.ModelLoaded{}, events.ModelUnloaded{}, events.ModelCrashed{}, events.ModelLoadFailed{}
	for _, tt := range []struct {
		name   string
		facts  []events.Fact
		wish   events.Fact
		loaded bool
	}{
		{"nothing", nil, nil, false},
		{"asked", []events.Fact{load}, load, false},
		{"done", []events.Fact{load, loaded}, nil, true},
		{"asked again", []events.Fact{load, loaded, load}, load, true},
		{"failed", []events.Fact{load, failed}, nil, false},
		{"a swap is no answer to a load", []events.Fact{loaded, load, unloaded}, load, false},
		{"a load is no answer to an unload", []events.Fact{unload, loaded}, unload, true},
		{"a crash is one", []events.Fact{loaded, unload, crashed}, nil, false},
		{"only the latest counts", []events.Fact{load, unload}, unload, false},
		{"and is answered", []events.Fact{load, unload, unloaded}, nil, false},
		{"by itself", []events.Fact{loaded, unloaded}, nil, false},
	} {
		var recs []events.Record
		for i, f := range tt.facts {
			recs = append(recs, events.Record{Seq: uint64(i + 1), Fact: f})
		}
		if got := storyOf(append(recs, events.Record{Seq: 99})); got.wish != tt.wish || got.loaded != tt.loaded {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func TestModelsAreChecked(t *testing.T) {
	model := func(id string) Model {
		return Model{Descriptor: llama.Descriptor{ModelID: events.ModelID(id), Path: "/m"}}
	}
	for _, tt := range []struct {
		models []Model
		want   string
	}{
		{nil, "no model to offer"},
		{[]Model{model("a"), model("a")}, "rename one"},
		{[]Model{model("")}, "has no name"},
		{[]Model{{Descriptor: llama.Descriptor{ModelID: "a"}}}, "has no path"},
	} {
		if err := (Options{Models: tt.models}).checkModels(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error is %v, want %q", tt.models, err, tt.want)
		}
	}
	if err := (Options{Models: []Model{model("a"), model("a.b")}}).checkModels(); err != nil {
		t.Error(err)
	}
	parallel := model("b")
	parallel.Parallel = 4
	if n := (Options{Models: []Model{model("a"), parallel}}).slots(); n != 5 {
		t.Errorf("%d slots", n)
	}
}
