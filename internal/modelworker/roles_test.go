package modelworker_test

import (
	"path/filepath"
	"testing"

	"correx/internal/session"
	"correx/internal/testmodel"
	"correx/pkg/events"
)

// TestTemplatesWithoutSystem: where the model's template refuses the system's
// turns, or leaves them out, the user's first begins with what they say, and the
// log says so.
func TestTemplatesWithoutSystem(t *testing.T) {
	for _, roles := range []testmodel.Roles{"", testmodel.Strict, testmodel.Deaf} {
		t.Run("template "+string(roles), func(t *testing.T) {
			p := newPlant(t)
			err := testmodel.Scripted(filepath.Join(p.models, "script.gguf"), testmodel.Script{Roles: roles, Tasks: map[string][]string{
				"hello": {testmodel.Call("echo", `{"text":"hi"}`), testmodel.Final("It said hi.")}}})
			if err != nil {
				t.Fatal(err)
			}
			p.start("m1")
			p.offerEcho()
			begun := p.begin("s1", testmodel.Task("hello", "Say hi."))
			asked := events.InferenceRequested{Ref: ref("s1", "t1"), Through: begun, Tools: []events.ToolRef{{Name: "echo", Digest: "d1"}}}
			p.ask(asked, script)
			done := p.completed("s1", "t1")
			if len(done.Reply.Calls) != 1 || done.Merged != (roles != "") {
				t.Errorf("%+v", done)
			}
			state := session.Evolve(session.State{}, must(p.log.ReadFilter(p.ctx, events.SessionFilter("s1"), 1, begun))(t)[0])
			again := session.Repack(state, []events.ToolOffer{echo}, asked, session.Loss{Merged: done.Merged})
			size := 0
			for _, m := range again.Messages {
				size += len(m.Content)
			}
			// Nearly each character is a token.
			if again.Digest != done.PromptDigest || done.Usage.Prompt < size {
				t.Errorf("of %d bytes the model was told %d tokens; digest %s, recorded %s", size, done.Usage.Prompt, again.Digest, done.PromptDigest)
			}

			given := []events.ChatMessage{{Role: events.RoleSystem, Content: "Be brief."}, {Role: events.RoleUser, Content: "Hello."}}
			asked = events.InferenceRequested{Ref: ref(events.System, "q1"), Messages: given}
			p.ask(asked, script)
			done = p.completed(events.System, "q1")
			again = session.Repack(session.State{}, nil, asked, session.Loss{Merged: done.Merged})
			if want := map[bool]int{false: 2, true: 1}[roles != ""]; len(again.Messages) != want || again.Digest != done.PromptDigest {
				t.Errorf("given messages became %+v", again.Messages)
			}
		})
	}
}
