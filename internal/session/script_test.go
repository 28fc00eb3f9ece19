package session_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"correx/internal/session"
	"correx/pkg/events"
)

// A script is outside inputs, one a line:
//
//	settings {…}                      a kernel announces settings, over the defaults
//	offer <worker> <tool or model:m>… a worker announces what it offers; shown:<tool> has an example, small:m is guided,
//	                                  model:m,CODING=0.9,slots=2 says more of a model
//	model <worker> <m> <what>         what becomes of a model: loaded, unloaded, crashed, load_failed
//	stop <worker>
//	cmd <verb> {…}                    a command; DIGEST(t1-0) is that of the open question of s1
//	wait 30s                          time goes by
//	usage 700                         the tokens of each inference from here on
//	infer <id> start | call <tool> {…} [& call …] | final <text> | fail <code> [again] | lost
//	tool <id> preview {…} | start | done <output> | fail {…} | reject <reason> | lost | recovered
//	tool <id> asks <tool> {…}         it is done, and asks for a follow-up
//	forge <subject> {…}               a stranger's record
//
// An id is of session s1 unless it is written session/id.
func (s *sim) input(line string) {
	s.t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "settings":
		s.announce(rest)
	case "offer":
		s.offer(strings.Fields(rest))
	case "model":
		s.becomes(strings.Fields(rest))
	case "stop":
		s.report(events.WorkerStopped{Ref: events.Ref{Session: events.System, ID: rest}, Boot: "b"})
	case "cmd":
		v, body, _ := strings.Cut(rest, " ")
		s.wish(v, s.digests(body))
	case "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			s.t.Fatal(err)
		}
		s.pass(d)
	case "usage":
		if _, err := fmt.Sscan(rest, &s.tokens); err != nil {
			s.t.Fatal(err)
		}
	case "infer":
		s.infer(split3(rest))
	case "tool":
		s.tool(split3(rest))
	case "forge":
		subject, body, _ := strings.Cut(rest, " ")
		s.log.put(s.now, subject, nil, []byte(s.digests(body)))
		s.settle()
	default:
		s.t.Fatalf("no input is called %q", verb)
	}
}

func split3(text string) (ref events.Ref, what, rest string) {
	id, text, _ := strings.Cut(text, " ")
	what, rest, _ = strings.Cut(text, " ")
	ref = events.Ref{Session: "s1", ID: id}
	if before, after, ok := strings.Cut(id, "/"); ok {
		ref = events.Ref{Session: events.SessionID(before), ID: after}
	}
	return ref, what, rest
}

var digestOf = regexp.MustCompile(`DIGEST\(([^)]+)\)`)

func (s *sim) digests(text string) string {
	return digestOf.ReplaceAllStringFunc(text, func(m string) string {
		ref, _, _ := split3(digestOf.FindStringSubmatch(m)[1])
		return s.invocation(ref).Digest("v1")
	})
}

func (s *sim) key(ref events.Ref, kind events.Kind) session.Key {
	k, _ := session.KeyOfRecord(events.Record{Aggregate: events.Aggregate{Session: ref.Session, Kind: kind, ID: ref.ID}})
	return k
}

func (s *sim) invocation(ref events.Ref) session.Invocation {
	i, _ := s.states[s.key(ref, events.KindTool)].Tool(events.ToolInvocationID(ref.ID))
	return i
}

func (s *sim) inference(ref events.Ref) session.Inference {
	i, _ := s.states[s.key(ref, events.KindInference)].Inference(events.InferenceID(ref.ID))
	return i
}

func defaults() events.Settings {
	return events.Settings{
		Mode: events.ModePrompt, Policy: events.Policy{Version: "v1"},
		Limits:      events.Limits{Turns: 8, ToolCalls: 12, Tokens: 10000, WallTime: time.Hour},
		PreviewWait: 5 * time.Second, ApprovalWait: 10 * time.Minute, ApprovalTTL: time.Minute, OfferWait: 2 * time.Minute,
		RuleTTL: time.Hour, CommandWait: 30 * time.Second, Retries: 2, Withdraw: 2, Stop: 3,
	}
}

func (s *sim) announce(patch string) {
	s.t.Helper()
	set := defaults()
	if patch != "" {
		if err := json.Unmarshal([]byte(patch), &set); err != nil {
			s.t.Fatal(err)
		}
	}
	s.report(events.WorkerStarted{Ref: events.Ref{Session: events.System, ID: "kernel"}, Role: events.RoleKernel, Boot: "b", Settings: &set})
}

const (
	textSchema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`
	pathSchema = `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path"],"additionalProperties":false}`
)

// catalogue is what workers may offer.
var catalogue = map[string]events.ToolOffer{
	"echo":  {Tier: events.T0, Schema: events.Raw(textSchema)},
	"read":  {Tier: events.T1, Schema: events.Raw(pathSchema), Capabilities: []events.ToolCapability{events.FileRead}},
	"write": {Tier: events.T2, Schema: events.Raw(pathSchema), Previews: true, Capabilities: []events.ToolCapability{events.FileWrite}},
	"shell": {Tier: events.T2, Schema: events.Raw(textSchema)},
	"edit":  {Tier: events.T3, Schema: events.Raw(pathSchema), Previews: true},
	"bomb":  {Tier: events.T4, Schema: events.Raw(textSchema)},
	"sum":   {Tier: events.T0, Schema: events.Raw(textSchema), Idempotent: true},
	"run": {Tier: events.T3, Schema: events.Raw(textSchema), Isolation: events.IsolationFSOnly,
		Capabilities: []events.ToolCapability{events.ShellExec}},
	"commit": {Tier: events.T2, Schema: events.Raw(textSchema), Previews: true, FollowUpOnly: true},
}

func (s *sim) offer(words []string) {
	s.t.Helper()
	f := events.WorkerStarted{Ref: events.Ref{Session: events.System, ID: words[0]}, Role: events.RoleToolWorker, Boot: "b"}
	for _, w := range words[1:] {
		if m, ok := strings.CutPrefix(w, "model:"); ok {
			f.Role = events.RoleModelWorker
			f.Models = append(f.Models, s.model(m))
			continue
		}
		if m, ok := strings.CutPrefix(w, "small:"); ok {
			f.Role = events.RoleModelWorker
			f.Models = append(f.Models, events.ModelOffer{Name: events.ModelID(m), Token: events.Token(m), ContextSize: 4096, Small: true})
			continue
		}
		w, shown := strings.CutPrefix(w, "shown:")
		o, ok := catalogue[w]
		if !ok {
			s.t.Fatalf("no tool is called %q", w)
		}
		o.Name, o.Token, o.Digest = w, w, "digest-of-"+w
		if shown {
			o.Example = exampleOf[w]
		}
		f.Tools = append(f.Tools, o)
	}
	s.report(f)
}

func (s *sim) infer(ref events.Ref, what, rest string) {
	s.t.Helper()
	i := s.inference(ref)
	fence := events.Fence{Started: i.StartedSeq}
	attempt := 1
	if i.Started != nil {
		fence.Nonce, attempt = i.Started.Nonce, i.Started.Attempt+1
	}
	usage := events.TokenUsage{Total: s.tokens}
	done := events.InferenceCompleted{Ref: ref, Fence: fence, Usage: usage, Finish: events.FinishStop}
	switch what {
	case "start":
		s.report(events.InferenceStarted{Ref: ref, Claim: s.claim("m1", attempt)})
	case "call":
		var said []string
		for _, c := range strings.Split(rest, " & call ") {
			tool, args, _ := strings.Cut(c, " ")
			done.Reply.Calls = append(done.Reply.Calls, events.ToolCall{Tool: tool, Arguments: events.Raw(args)})
			said = append(said, session.Call(tool, events.Raw(args)))
		}
		done.Reply.Text = strings.Join(said, "")
		s.report(done)
	case "final":
		done.Reply = events.Reply{Final: &rest, Text: session.Final(rest)}
		s.report(done)
	case "fail":
		code, again, _ := strings.Cut(rest, " ")
		s.report(events.InferenceFailed{Ref: ref, Fence: fence, Usage: usage, Code: events.InferenceFailure(code), Reason: "it did not work", Recoverable: again != ""})
	case "lost":
		fence.Nonce = ""
		s.report(events.InferenceFailed{Ref: ref, Fence: fence, Code: events.FailWorkerLost, Reason: "worker lost", Recoverable: true})
	default:
		s.t.Fatalf("no inference does %q", what)
	}
}

func (s *sim) claim(w events.WorkerID, attempt int) events.Claim {
	return events.Claim{Worker: w, Boot: "b", Nonce: fmt.Sprintf("n%d", len(s.log.recs)+1), Attempt: attempt}
}

func (s *sim) tool(ref events.Ref, what, rest string) {
	s.t.Helper()
	i := s.invocation(ref)
	fence := events.Fence{Started: i.StartedSeq}
	attempt := 1
	if i.Started != nil {
		fence.Nonce, attempt = i.Started.Nonce, i.Started.Attempt+1
	}
	switch what {
	case "preview":
		f := events.ToolPreviewed{Ref: ref, Worker: "w1", Valid: true}
		if rest != "" {
			if err := json.Unmarshal([]byte(rest), &f); err != nil {
				s.t.Fatal(err)
			}
		}
		s.report(f)
	case "start":
		s.report(events.ToolExecutionStarted{Ref: ref, Claim: s.claim("w1", attempt), Isolation: events.IsolationFSOnly})
	case "done":
		s.report(events.ToolExecutionCompleted{Ref: ref, Fence: fence, Receipt: events.ToolReceipt{Output: rest, Tier: i.Tier()}})
	case "asks":
		tool, args, _ := strings.Cut(rest, " ")
		s.report(events.ToolExecutionCompleted{Ref: ref, Fence: fence, Receipt: events.ToolReceipt{
			Output: "1 file would be changed", Tier: i.Tier(), FollowUp: &events.FollowUp{Tool: tool, Parameters: events.Raw(args)}}})
	case "fail":
		f := events.ToolExecutionFailed{Ref: ref, Fence: fence, Reason: "it broke", Effects: events.EffectsNone}
		if rest != "" {
			if err := json.Unmarshal([]byte(rest), &f); err != nil {
				s.t.Fatal(err)
			}
		}
		s.report(f)
	case "lost":
		fence.Nonce = ""
		s.report(events.ToolExecutionFailed{Ref: ref, Fence: fence, Reason: "worker lost", Effects: events.EffectsUnknown, Recoverable: true})
	case "reject":
		s.report(events.ToolExecutionRejected{Ref: ref, Reason: rest, Worker: "w1"})
	case "recovered":
		s.report(events.Recovered{Ref: ref, Fence: fence, Worker: "w1", Files: []events.RecoveredFile{{Path: "a.txt", Effects: events.EffectsRolledBack}}})
	default:
		s.t.Fatalf("no tool does %q", what)
	}
}
