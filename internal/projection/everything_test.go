package projection

import (
	"errors"
	"time"

	"correx/pkg/events"
)

// everything is a log with each type of fact in it, and records that do not
// hold, beside what they would have liked to change.
func everything(s *story) {
	processes(s)
	goodSession(s)
	denials(s)
	failures(s)
	nonsense(s)
	ends(s)
	reviews(s)
	forgeries(s)
}

func processes(s *story) {
	s.add(events.WorkerStarted{Ref: ref("system", "kernel"), Role: events.RoleKernel, Boot: "k1", Host: "box", PID: 10, Version: "0.1.0",
		Settings: &events.Settings{Mode: events.ModePrompt, PreviewWait: time.Second}})
	s.add(events.WorkerStarted{Ref: ref("system", "w1"), Role: events.RoleToolWorker, Boot: "boot1", Host: "box", PID: 11, Version: "0.1.0",
		Concurrency: 4, Tools: []events.ToolOffer{
			{Name: "echo", Token: "echo", Description: "says it again", Tier: events.T0, Schema: events.Raw(`{"type":"object"}`), Digest: "offer-echo", Idempotent: true},
			{Name: "file_write", Token: "file_write", Description: "writes", Tier: events.T2, Capabilities: []events.ToolCapability{events.FileWrite},
				Schema: events.Raw(`{"type":"object"}`), Digest: "offer-file_write", Previews: true, Isolation: events.IsolationFull,
				Example: &events.ToolExample{Task: "write", Parameters: events.Raw(`{"path":"a"}`), Result: "ok", Answer: "done"}},
		}})
	s.add(events.WorkerStarted{Ref: ref("system", "m1"), Role: events.RoleModelWorker, Boot: "m1", Host: "box", PID: 12, Version: "0.1.0",
		Models: []events.ModelOffer{{Name: "smol:135m", Token: "smol", ContextSize: 2048, ResidencyMode: events.Dynamic,
			Capabilities: []events.CapabilityScore{{Capability: events.General, Score: 0.7}}}}})
	smol := ref("system", events.ModelAggregateID("m1", "smol"))
	s.add(events.ModelLoadRequested{Ref: smol, Decision: decided("c-load"), Model: "smol:135m", Worker: "m1"})
	s.add(events.ModelLoaded{Ref: smol, Model: "smol:135m", Worker: "m1", PID: 99, ContextSize: 2048, Latency: time.Second, Server: "b1"})
	bad := ref("system", events.ModelAggregateID("m1", "bad"))
	s.add(events.ModelLoadFailed{Ref: bad, Model: "bad", Worker: "m1", Reason: "no such file", Log: []string{"error"}})
	s.add(events.ModelCrashed{Ref: smol, Model: "smol:135m", Worker: "m1", ExitCode: -1, Signal: "killed", Log: []string{"one", "two"}})
	s.add(events.ModelUnloadRequested{Ref: smol, Decision: decided("c-unload"), Model: "smol:135m", Worker: "m1", Force: true})
	s.add(events.ModelUnloaded{Ref: smol, Model: "smol:135m", Worker: "m1", Reason: "asked to"})
}

// goodSession is one that goes well: a preview, an approval, a tool, an answer.
func goodSession(s *story) {
	s.add(events.SessionStarted{Ref: mainRef("s1"), Decision: decided("c-start"), Task: "write <a> & read it", System: "be brief",
		Model: "smol:135m", Tools: []string{"echo", "file_write"}, Mode: events.ModePrompt, Limits: events.Limits{Turns: 9},
		Generation: events.GenerationConfig{Seed: 7, MaxTokens: 64}})
	s.add(events.StageEntered{Ref: mainRef("s1"), Decision: decided(""), Stage: "turn-1"})
	s.add(events.InferenceRequested{Ref: ref("s1", "t1"), Decision: decided(""), Stage: "turn-1", Model: "smol:135m", ModelToken: "smol",
		Through: 11, Tools: []events.ToolRef{{Name: "echo", Digest: "offer-echo"}}, Withdrawn: []string{"shell"}, Deadline: epoch.Add(time.Hour)})
	s.add(events.InferenceStarted{Ref: ref("s1", "t1"), Claim: claimOf(1)})
	second := s.add(events.InferenceStarted{Ref: ref("s1", "t1"), Claim: claimOf(2)})
	s.add(events.InferenceCompleted{Ref: ref("s1", "t1"), Fence: events.Fence{Started: second, Nonce: "nonce2"},
		Reply: events.Reply{Text: `{"tool":"file_write"}`, Calls: []events.ToolCall{{Tool: "file_write", Arguments: events.Raw(`{"path":"a"}`)}}},
		Usage: events.TokenUsage{Prompt: 20, Completion: 5, Total: 25, Cached: 3}, Finish: events.FinishStop, Latency: time.Second,
		Timings: map[string]float64{"predicted_ms": 12.5}, PromptDigest: "d1", Cut: 1, Tokenizer: "server"})

	const call = `{"path":"a.txt","n":9007199254740993}`
	base := []events.BaseHash{{Path: "a.txt"}}
	s.requested("s1", "t1-0", "file_write", events.T2, call, "")
	s.add(events.ToolPreviewed{Ref: ref("s1", "t1-0"), Worker: "w1", Valid: true, Tier: events.T3, Diff: "+ hello", Base: base, Affected: []string{"a.txt"}})
	digest := digestOf("file_write", call, base)
	s.asked("s1", "t1-0", "file_write", events.T3, digest)
	s.granted("s1", "t1-0", "file_write", events.T3, digest, "c-approve")
	s.add(events.ApprovalRuleGranted{Ref: mainRef("s1"), Decision: decided("c-approve"), Tool: "file_write", Parameters: "ab", MaxTier: events.T3, Until: epoch.Add(time.Hour)})
	started := s.startedTool("s1", "t1-0", 1)
	s.completedTool("s1", "t1-0", started, 1, "wrote a.txt")
	s.add(events.MessageAdded{Ref: mainRef("s1"), Decision: decided("c-say"), Role: events.RoleUser, Text: "be quick"})
	s.add(events.SessionPaused{Ref: mainRef("s1"), Decision: decided("c-pause"), Reason: "lunch"})
	s.add(events.SessionResumed{Ref: mainRef("s1"), Decision: decided("c-resume"), Reason: "back"})
	answer := "all done"
	s.add(events.InferenceRequested{Ref: ref("s1", "t2"), Decision: decided(""), Stage: "turn-2", Model: "smol:135m", ModelToken: "smol", FinalOnly: true, Deadline: epoch})
	third := s.add(events.InferenceStarted{Ref: ref("s1", "t2"), Claim: claimOf(1)})
	s.add(events.InferenceCompleted{Ref: ref("s1", "t2"), Fence: events.Fence{Started: third, Nonce: "nonce1"},
		Reply: events.Reply{Final: &answer, Text: `{"final":"all done"}`}, Usage: events.TokenUsage{Prompt: 30, Completion: 4, Total: 34}, Tokenizer: "estimate"})
	s.add(events.SessionCompleted{Ref: mainRef("s1"), Decision: decided(""), Inference: "t2"})
}

// denials are a person's no, nobody's answer, and a question that came to nothing.
func denials(s *story) {
	s.add(events.SessionStarted{Ref: mainRef("s2"), Decision: decided("c-start2"), Task: "try", Mode: events.ModePrompt})
	for _, id := range []string{"no", "late", "gone", "waits"} {
		s.requested("s2", id, "shell", events.T2, `{"argv":["true"]}`, "")
		s.asked("s2", id, "shell", events.T2, digestOf("shell", `{"argv":["true"]}`, nil))
	}
	s.add(events.ApprovalDenied{Ref: ref("s2", "no"), Decision: decided("c-reject"), Reason: "not today"})
	s.add(events.ToolExecutionRejected{Ref: ref("s2", "no"), Decision: decided(""), Tier: events.T2, Reason: "a person said no: not today", Denied: true})
	s.add(events.ApprovalExpired{Ref: ref("s2", "late"), Decision: decided(""), Deadline: epoch})
	s.add(events.ToolExecutionRejected{Ref: ref("s2", "late"), Decision: decided(""), Tier: events.T2, Reason: "nobody answered", Expired: true})
	s.add(events.ToolExecutionRejected{Ref: ref("s2", "gone"), Decision: decided(""), Tier: events.T2, Reason: "the session was cancelled"})
	s.add(events.SessionFailed{Ref: mainRef("s2"), Decision: decided(""), Code: events.FailLimit, Reason: "turns: 9 of 9"})
	s.add(events.MessageAdded{Ref: mainRef("s2"), Decision: decided("c-say2"), Role: events.RoleUser, Text: "go on"})
	s.add(events.SessionCancelled{Ref: mainRef("s2"), Decision: decided("c-cancel"), Reason: "enough"})
}

// failures are tools of no session: cancelled, lost and recovered, run by policy.
func failures(s *story) {
	const call = `{"argv":["sleep","9"]}`
	for _, id := range []string{"i1", "i2"} {
		s.requested("system", id, "shell", events.T2, call, "c-"+id)
		s.granted("system", id, "shell", events.T2, digestOf("shell", call, nil), "")
	}
	first := s.startedTool("system", "i1", 1)
	s.add(events.CancelRequested{Ref: ref("system", "i1"), Decision: decided("c-stop"), Reason: "too slow"})
	s.add(events.ToolExecutionFailed{Ref: ref("system", "i1"), Fence: events.Fence{Started: first, Nonce: "nonce1"}, Reason: "cancelled",
		Effects: events.EffectsKept, Receipt: &events.ToolReceipt{ExitCode: -1, Output: "half of it", Tier: events.T2, Time: epoch}})
	second := s.startedTool("system", "i2", 1)
	s.add(events.ToolExecutionFailed{Ref: ref("system", "i2"), Fence: events.Fence{Started: second}, Reason: "worker lost", Recoverable: true, Effects: events.EffectsUnknown})
	s.add(events.Recovered{Ref: ref("system", "i2"), Fence: events.Fence{Started: second, Nonce: "nonce1"}, Worker: "w1",
		Files: []events.RecoveredFile{{Path: "a.txt", Effects: events.EffectsConflict, Backup: "backups/1"}}})
	s.add(events.InferenceRequested{Ref: ref("system", "q1"), Decision: decided("c-ask"), Model: "smol:135m", ModelToken: "smol",
		Messages: []events.ChatMessage{{Role: events.RoleUser, Content: "hello"}}, Retry: "q0", Deadline: epoch})
	s.add(events.InferenceFailed{Ref: ref("system", "q1"), Decision: decided(""), Code: events.FailNobody, Reason: "nobody took it", Recoverable: true, Text: "h", Usage: events.TokenUsage{Prompt: 1, Total: 1}})
	s.add(events.CommandRejected{Ref: ref("system", "c-bad"), Decision: decided("c-bad"), Subject: "cmd.operator.session.strat", Reasons: []string{"no command is called that", "and more"}})
	s.add(s.checkpoint(40))
}

// nonsense is what strangers write; it stands in events and nowhere else.
func nonsense(s *story) {
	s.message("evt.s1.tool.t1-0.completed", nil, []byte("not JSON"))
	s.message("evt.s1.tool.t9.requested.shell", nil, []byte{0xff, 0xfe})
	s.message("evt.s1.walrus.x.seen", nil, []byte(`{}`))
	s.message("evt.short", nil, nil)
	s.message("evt.s1.session.main.completed", events.Header{events.HeaderNatsStream: {"EVENTS"}}, []byte(`{}`))
	s.completedTool("s1", "t1-0", 19, 1, "a second end")
	s.completedTool("system", "i2", 46, 1, "an end that comes too late")
	s.add(events.SessionStarted{Ref: mainRef("s1"), Decision: decided("c-again"), Task: "a second start", Mode: events.ModeAuto})
	s.add(events.SessionStarted{Ref: mainRef("system"), Task: "called system", Mode: events.ModeAuto})
	s.add(events.MessageAdded{Ref: mainRef("s2"), Role: events.RoleUser, Text: "said to a cancelled session"})
	s.add(events.WorkerStarted{Ref: ref("s1", "w9"), Role: events.RoleToolWorker})
	s.add(events.CommandRejected{Ref: ref("system", "c-start"), Decision: decided("c-start"), Reasons: []string{"too late"}})
	s.requested("s2", "forged", "shell", events.T2, `{"argv":["rm"]}`, "")
	s.granted("s2", "forged", "shell", events.T2, digestOf("shell", `{"argv":["rm"]}`, nil), "c-forged")
	s.refuse(errors.New("approval is not signed by the kernel"))
	s.startedTool("s2", "forged", 1)
	s.requested("s2", "unreadable", "shell", events.T2, `{"argv":["ls"]}`, "")
	s.granted("s2", "unreadable", "shell", events.T2, digestOf("shell", `{"argv":["ls"]}`, nil), "")
	s.startedTool("s2", "unreadable", 1)
	s.message("evt.s2.tool.unreadable.completed", nil, []byte(`{"receipt":3}`))
}

// forgeries are checkpoints that are none, and headers that are no text.
func forgeries(s *story) {
	s.message("evt.s1.walrus.x.seen", events.Header{"x": {"\xff", "y"}}, nil)
	s.add(events.AuditCheckpoint{Ref: ref("system", "main"), Through: 40, Chain: "chain", Key: "key", Signature: "signature"})
	late := s.checkpoint(41)
	late.Through++
	s.add(late)
	foreign := s.checkpoint(41)
	foreign.Created = foreign.Created.Add(1)
	s.add(foreign)
	elsewhere := s.checkpoint(41)
	elsewhere.ID = "a1"
	s.add(elsewhere)
	s.add(s.checkpoint(uint64(len(s.recs)) + 1))
}

// ends are processes that go, and one that comes back with less.
func ends(s *story) {
	s.add(events.WorkerStopped{Ref: ref("system", "w1"), Boot: "another boot", Reason: "not this one"})
	s.add(events.WorkerStopped{Ref: ref("system", "kernel"), Boot: "k1", Reason: "asked to"})
	s.add(events.WorkerStarted{Ref: ref("system", "w1"), Role: events.RoleToolWorker, Boot: "boot2", Host: "box", PID: 21, Version: "0.1.0",
		Tools: []events.ToolOffer{{Name: "echo", Token: "echo", Tier: events.T0, Digest: "offer-echo"}}})
	s.add(events.WorkerStarted{Ref: ref("system", "m1"), Role: events.RoleModelWorker, Boot: "m2", Host: "box", PID: 22, Version: "0.1.0"})
	s.add(events.WorkerStarted{Ref: ref("system", "w8"), Role: events.RoleKernel, Boot: "b", Host: "box", PID: 23, Version: "0.1.0",
		Settings: &events.Settings{Mode: events.ModeAuto}, Tools: []events.ToolOffer{{Name: "bait", Token: "bait"}}, Models: []events.ModelOffer{{Name: "bait", Token: "bait"}}})
}

// reviews are a run that asks for a second look, which a person gives, and a
// worker that offers the tool for that otherwise.
func reviews(s *story) {
	s.add(events.WorkerStarted{Ref: ref("system", "w3"), Role: events.RoleToolWorker, Boot: "b3", Host: "box", PID: 31, Version: "0.1.0",
		Tools: []events.ToolOffer{{Name: "shell_commit", Token: "shell_commit", Tier: events.T2, Digest: "offer-commit", FollowUpOnly: true, Origin: "mcp:files"}}})
	s.add(events.WorkerStarted{Ref: ref("system", "w4"), Role: events.RoleToolWorker, Boot: "b4", Host: "box", PID: 41, Version: "0.1.0",
		Tools: []events.ToolOffer{{Name: "shell_commit", Token: "shell_commit", Tier: events.T2, Digest: "another"}, {Name: "echo", Token: "echo", Tier: events.T0, Digest: "offer-echo"}}})
	s.add(events.SessionStarted{Ref: mainRef("s3"), Decision: decided("c-start3"), Task: "review", Mode: events.ModeAuto})
	const call, set = `{"argv":["make"]}`, `{"set":"1"}`
	s.requested("s3", "t1-0", "shell", events.T2, call, "")
	s.granted("s3", "t1-0", "shell", events.T2, digestOf("shell", call, nil), "")
	started := s.startedTool("s3", "t1-0", 1)
	s.add(events.ToolExecutionCompleted{Ref: ref("s3", "t1-0"), Fence: events.Fence{Started: started, Nonce: "nonce1"},
		Receipt: events.ToolReceipt{Output: "1 file", Time: epoch, FollowUp: &events.FollowUp{Tool: "shell_commit", Parameters: events.Raw(set)}}})
	s.add(events.ToolInvocationRequested{Ref: ref("s3", "t1-0-c"), Decision: decided(""), Tier: events.T2, Token: "shell_commit", Follows: "t1-0",
		Request: events.ToolRequest{Invocation: "t1-0-c", Session: "s3", Stage: "turn-1", Tool: "shell_commit", Parameters: events.Raw(set)}})
	s.add(events.ToolPreviewed{Ref: ref("s3", "t1-0-c"), Worker: "w3", Valid: true, Tier: events.T2, Diff: "+ made", Notes: []string{"in /work"}})
	s.asked("s3", "t1-0-c", "shell_commit", events.T2, digestOf("shell_commit", set, nil))
}
