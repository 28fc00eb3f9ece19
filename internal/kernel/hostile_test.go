package kernel_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"correx/internal/approval"
	"correx/internal/session"
	"correx/pkg/events"
)

// A hostile command and what must come of it: a rejection whose reasons contain
// want, or, for one that is only early, the fact carried.
type hostile struct {
	name    string
	subject string // behind cmd.operator.
	body    string
	want    string
	carried events.FactName
}

// bad bodies that every verb must refuse, with what the refusal says.
var badBodies = []struct{ name, body, want string }{
	{"empty", "", "not a JSON object"},
	{"spaces", "   ", "not a JSON object"},
	{"text", "hello", "not a JSON object"},
	{"number", "42", "not a JSON object"},
	{"array", `[{"task":"x"}]`, "not a JSON object"},
	{"null", "null", "not a JSON object"},
	{"torn", `{"task":"x"`, "unexpected EOF"},
	{"trailing", `{} {}`, "something behind"},
	{"unknown field", `{"colour":"red"}`, `unknown field "colour"`},
	{"invalid UTF-8", "{\"task\":\"\xff\xfe\"}", "UTF-8"},
}

// names that cannot be a token.
var badNames = []string{"*", ">", "a.b", "a b", "ä", "a\nb", "a/b", strings.Repeat("x", 65), "$JS"}

func hostiles(b *bench) []hostile {
	var all []hostile
	add := func(name, subject, body, want string) {
		all = append(all, hostile{name: name, subject: subject, body: body, want: want})
	}
	for _, c := range events.CommandTypes() {
		v := string(c.Verb())
		for _, bad := range badBodies {
			add(v+" "+bad.name, v, bad.body, bad.want)
		}
	}
	for n, name := range badNames {
		q := strconv.Quote(name)
		add(fmt.Sprintf("bad session id %d", n), "session.start", `{"task":"x","session":`+q+`}`, "session")
		add(fmt.Sprintf("bad session to say to %d", n), "session.say", `{"text":"x","session":`+q+`}`, "session")
		add(fmt.Sprintf("bad invocation %d", n), "tool.approve", `{"digest":"x","invocation":`+q+`}`, "invocation")
		add(fmt.Sprintf("bad invocation to run %d", n), "tool.request", `{"tool":"echo","parameters":{},"invocation":`+q+`}`, "invocation")
	}
	for _, s := range []string{"nonsense", "session", "session.destroy", "tool.approve.now", "session.*", "session.>", "Session.Start", "a.b"} {
		want := "no command is called"
		if strings.Count(s, ".") != 1 {
			want = "is not cmd.<actor>.<noun>.<verb>"
		}
		add("subject "+s, s, `{"task":"x"}`, want)
	}
	for _, v := range []string{"say", "pause", "resume", "cancel"} {
		add("unknown session "+v, "session."+v, `{"session":"nobody"`+map[bool]string{true: `,"text":"x"`}[v == "say"]+`}`, `"nobody" does not exist`)
		add("the system's session "+v, "session."+v, `{"session":"system"`+map[bool]string{true: `,"text":"x"`}[v == "say"]+`}`, "no session may be called")
	}
	all = append(all, wrongValues()...)
	return append(all, wrongMoments(b)...)
}

func wrongValues() []hostile {
	var all []hostile
	add := func(name, subject, body, want string) {
		all = append(all, hostile{name: name, subject: subject, body: body, want: want})
	}
	big := `{"task":"` + strings.Repeat("x", 600<<10) + `"}`
	add("600 KB", "session.start", big, "at most 262144")
	add("600 KB of parameters", "tool.request", `{"tool":"echo","parameters":{"text":"`+strings.Repeat("y", 600<<10)+`"}}`, "at most 262144")
	add("one byte over", "session.say", `{"session":"s","text":"`+strings.Repeat("z", 256<<10-22)+`"}`, "at most 262144")
	add("session is a number", "session.say", `{"session":1,"text":"x"}`, "session")
	add("task is an object", "session.start", `{"task":{}}`, "task")
	add("tools is a string", "session.start", `{"task":"x","tools":"echo"}`, "tools")
	add("an empty tool", "session.start", `{"task":"x","tools":[""]}`, "tools[0]")
	add("mode is unknown", "session.start", `{"task":"x","mode":"yolo"}`, "prompt, auto or deny")
	add("negative limit", "session.start", `{"task":"x","limits":{"turns":-1}}`, "limits")
	add("unknown limit", "session.start", `{"task":"x","limits":{"lives":9}}`, `"lives"`)
	add("temperature", "session.start", `{"task":"x","generation":{"temperature":99}}`, "temperature")
	add("capability", "session.start", `{"task":"x","capability":"MAGIC"}`, "capability")
	add("no task", "session.start", `{}`, "task is missing")
	add("twice the same field", "session.start", `{"task":"x","task":"y"}`, "task stands twice")
	add("twice, deeper", "tool.request", `{"tool":"echo","parameters":{"text":"a","text":"b"}}`, "text stands twice")
	add("deep nesting", "tool.request", `{"tool":"echo","parameters":`+strings.Repeat(`{"a":`, 20000)+"1"+strings.Repeat("}", 20000)+`}`, "body")
	add("parameters is a list", "tool.request", `{"tool":"echo","parameters":[1]}`, "not a JSON object")
	add("parameters is missing", "tool.request", `{"tool":"echo"}`, "parameters is missing")
	add("no tool", "tool.request", `{"parameters":{}}`, "tool is missing")
	add("a tool's name without end", "tool.request", `{"tool":"`+strings.Repeat("t", 300)+`","parameters":{}}`, "at most 256")
	add("tier T9", "tool.request", `{"tool":"echo","parameters":{},"tier":"T9"}`, "T9")
	add("tier is a number", "tool.request", `{"tool":"echo","parameters":{},"tier":0}`, "tier")
	add("no digest", "tool.approve", `{"invocation":"x"}`, "digest is missing")
	add("scope is unknown", "tool.approve", `{"invocation":"x","digest":"d","scope":"forever"}`, "once or session")
	add("two worlds at once", "model.unload", `{"model":"m","drain":true,"force":true}`, "at most one")
	add("unknown model", "model.load", `{"model":"nobody/knows:it"}`, "nobody/knows:it")
	add("unknown worker", "model.load", `{"model":"m","worker":"w99"}`, "w99")
	add("task and messages", "inference.request", `{"task":"x","messages":[{"role":"user","content":"y"}]}`, "exactly one")
	add("a role that is none", "inference.request", `{"messages":[{"role":"tool","content":"y"}]}`, "messages[0].role")
	add("fork of a session that is not there", "session.fork", `{"session":"nobody","at":1}`, "does not exist")
	add("fork of what has not happened", "session.fork", `{"session":"nobody","at":999999999}`, "EVENTS ends at sequence")
	add("fork of the system", "session.fork", `{"session":"system","at":1}`, "no session may be called")
	add("fork with a wrong mode", "session.fork", `{"session":"s1","at":1,"mode":"never"}`, "mode is")
	add("a tool for a session that is not there", "tool.request", `{"tool":"echo","parameters":{},"session":"nobody"}`, "does not exist")
	return all
}

// wrongMoments are sound commands at the wrong time.
func wrongMoments(b *bench) []hostile {
	var all []hostile
	add := func(name, subject, body, want string) {
		all = append(all, hostile{name: name, subject: subject, body: body, want: want})
	}
	digest := func(text string) string {
		return approval.Digest("echo", events.Raw(`{"text":"`+text+`"}`), nil, "v1")
	}
	approve := func(id, d string) string { return `{"invocation":"` + id + `","digest":"` + d + `"}` }
	add("a wrong digest", "tool.approve", approve("waits", "0000"), "the question about \"waits\" is for")
	add("the digest of another call", "tool.approve", approve("waits", digest("other")), "the question about")
	add("a digest without end", "tool.approve", approve("waits", strings.Repeat("d", 5000)), "the question about")
	add("approve what is approved", "tool.approve", approve("granted", digest("granted")), "approved already")
	add("approve what was denied", "tool.approve", approve("denied", digest("denied")), "does not wait")
	add("reject what was denied", "tool.reject", `{"invocation":"denied"}`, "is REJECTED")
	add("cancel what was denied", "tool.cancel", `{"invocation":"denied"}`, "is REJECTED")
	add("ask for the same again", "tool.request", `{"tool":"echo","parameters":{"text":"x"},"invocation":"waits"}`, "exists")
	add("start the same session again", "session.start", `{"session":"over","task":"x"}`, "exists")
	for _, v := range []string{"say", "pause", "resume", "cancel"} {
		add("to a cancelled session "+v, "session."+v, `{"session":"over"`+map[bool]string{true: `,"text":"x"`}[v == "say"]+`}`, "CANCELLED")
	}
	add("a tool for a cancelled session", "tool.request", `{"session":"over","tool":"echo","parameters":{}}`, "CANCELLED")
	add("approve in a cancelled session", "tool.approve", `{"session":"over","invocation":"t1-0","digest":"x"}`, "CANCELLED")
	add("approve in an unknown session", "tool.approve", `{"session":"nobody","invocation":"t1-0","digest":"x"}`, "does not exist")
	for n := range 6 {
		id := fmt.Sprintf("early-%d", n)
		all = append(all,
			hostile{name: "approval that arrives first " + id, subject: "tool.approve", body: approve(id, digest(id)), carried: "tool.approved"},
			hostile{name: "the request behind it " + id, subject: "tool.request", body: `{"tool":"echo","parameters":{"text":"` + id + `"},"invocation":"` + id + `"}`, carried: "tool.requested"})
	}
	return all
}

// prepare brings the log to where the wrong moments are wrong.
func prepare(b *bench) {
	b.offer(events.T2)
	for _, id := range []string{"waits", "granted", "denied"} {
		if a := b.api("tool.request", `{"tool":"echo","parameters":{"text":"`+id+`"},"invocation":"`+id+`"}`); !a.OK {
			b.t.Fatalf("request %s: %+v", id, a)
		}
		b.invocation(id, session.ApprovalRequested)
	}
	d := approval.Digest("echo", events.Raw(`{"text":"granted"}`), nil, "v1")
	b.must(b.api("tool.approve", `{"invocation":"granted","digest":"`+d+`"}`).OK, "approve")
	b.must(b.api("tool.reject", `{"invocation":"denied"}`).OK, "reject")
	b.invocation("denied", session.Rejected)
	b.must(b.api("session.start", `{"session":"over","task":"x","tools":["never"]}`).OK, "start")
	b.must(b.api("session.cancel", `{"session":"over"}`).OK, "cancel")
}

func (b *bench) must(ok bool, what string) {
	b.t.Helper()
	if !ok {
		b.t.Fatalf("%s did not succeed", what)
	}
}

func TestHostileCommands(t *testing.T) {
	s := settings()
	s.CommandWait = time.Minute
	b := start(t, s)
	prepare(b)
	all := hostiles(b)
	if len(all) < 200 {
		t.Fatalf("%d hostile commands, want at least 200", len(all))
	}
	facts := b.follow()
	stream, err := b.js.Stream(b.ctx, "COMMANDS")
	if err != nil {
		t.Fatal(err)
	}
	created := strconv.FormatInt(stream.CachedInfo().Created.Unix(), 36)
	ids := make([]events.CommandID, len(all))
	for n, h := range all { // all at once: none may hold up the next
		ack, err := b.js.Publish(b.ctx, "cmd.operator."+h.subject, []byte(h.body))
		if err != nil {
			t.Fatalf("%s: %v", h.name, err)
		}
		ids[n] = events.CommandID(strconv.FormatUint(ack.Sequence, 10) + "-" + created)
	}
	for n, h := range all {
		t.Run(h.name, func(t *testing.T) {
			f := facts.of(t, ids[n])
			rejected, ok := f.(events.CommandRejected)
			switch {
			case h.carried != "":
				if f.FactName() != h.carried {
					t.Errorf("came of it: %s %+v, want %s", f.FactName(), f, h.carried)
				}
			case !ok:
				t.Errorf("came of it: %s, want a rejection", f.FactName())
			case !strings.Contains(strings.Join(rejected.Reasons, "; "), h.want):
				t.Errorf("reasons %q do not contain %q", rejected.Reasons, h.want)
			case rejected.Actor != "operator" || rejected.Subject == "":
				t.Errorf("rejection does not say whose command it was: %+v", rejected)
			}
		})
	}
}
