package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"correx/internal/session"
	"correx/pkg/events"
)

// A fork goes on where the other session stood, across kernels that start anew
// and so read its past from the log, and so does a fork of it.
func TestForkGoesOnAcrossKernels(t *testing.T) {
	b := start(t, settings())
	b.offer(events.T0)
	b.api("session.start", `{"session":"s1","task":"say hi"}`)
	b.reply("s1", "t1", events.Reply{Calls: []events.ToolCall{{Tool: "echo", Arguments: events.Raw(`{"text":"hi"}`)}}, Text: "call"})
	b.perform("s1", "t1-0")
	s := b.until(session.Key{Session: "s1"}, "the second turn", func(s session.State) bool { return len(s.Inferences) == 2 })
	call, _ := s.Tool("t1-0")
	second, _ := s.Inference("t2")

	wrong := []struct{ body, want string }{
		{fmt.Sprintf(`{"session":"s1","at":%d}`, call.EndSeq-1), "t1-0 is STARTED; fork it at"},
		{fmt.Sprintf(`{"session":"s1","at":%d}`, second.RequestedSeq), "t2 is REQUESTED"},
		{fmt.Sprintf(`{"session":"s1","at":%d,"new":"s1"}`, call.EndSeq), "exists"},
		{`{"session":"s1","at":1}`, "had not begun"},
	}
	for _, c := range wrong {
		if a := b.api("session.fork", c.body); a.OK || !strings.Contains(a.Error, c.want) {
			t.Errorf("%s answered %+v, want %q", c.body, a, c.want)
		}
	}
	a := b.api("session.fork", fmt.Sprintf(`{"session":"s1","at":%d,"new":"f1","say":"rather ho"}`, call.EndSeq))
	if !a.OK || a.Session != "f1" || a.Fact != "session.started" {
		t.Fatalf("session.fork answered %+v", a)
	}
	b.stop()
	b.stop = b.kernel("kernel", settings())
	b.reply("f1", "t2", events.Reply{Calls: []events.ToolCall{{Tool: "echo", Arguments: events.Raw(`{"text":"ho"}`)}}, Text: "call"})
	b.perform("f1", "t2-0")
	final := "ho"
	b.reply("f1", "t3", events.Reply{Final: &final, Text: "final"})
	s = b.until(session.Key{Session: "f1"}, "its end", func(s session.State) bool { return s.Status == session.SessionCompleted })
	if len(s.Inferences) != 2 || len(s.Tools) != 1 || len(s.Alarms) != 0 {
		t.Errorf("of its own the fork has %d inferences, %d tools, alarms %v", len(s.Inferences), len(s.Tools), s.Alarms)
	}
	// A fork of the fork, without an id: the kernel gives one.
	if a = b.api("session.fork", fmt.Sprintf(`{"session":"f1","at":%d,"say":"more"}`, s.MainSeq)); !a.OK || a.Session == "" {
		t.Fatalf("fork of a fork answered %+v", a)
	}
	b.reply(a.Session, "t4", events.Reply{Final: &final, Text: "final"})
	b.until(session.Key{Session: a.Session}, "its end", func(s session.State) bool { return s.Status == session.SessionCompleted })
	if s := b.until(session.Key{Session: "s1"}, "as it was", func(session.State) bool { return true }); len(s.Inferences) != 2 || len(s.Tools) != 1 || s.Status != session.Running {
		t.Errorf("the first session is %s, with %d inferences, %d tools", s.Status, len(s.Inferences), len(s.Tools))
	}
}
