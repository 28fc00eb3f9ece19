package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/approval"
	"correx/pkg/events"
)

// A publisher is the only one of its stream, and so knows each sequence.
type publisher struct {
	js     jetstream.JetStream
	seq    uint64
	last   map[events.Aggregate]uint64
	signer *approval.Signer
	id     approval.StreamIdentity
}

func (p *publisher) add(f events.Fact) error {
	a := events.AggregateOf(f)
	subject, h, data, err := events.Encode(f, events.Source{Name: "bench"}, p.last[a], time.Now())
	if err != nil {
		return err
	}
	if _, err := p.js.PublishMsgAsync(&nats.Msg{Subject: subject, Header: nats.Header(h), Data: data}, jetstream.WithStallWait(time.Minute)); err != nil {
		return err
	}
	p.seq++
	p.last[a] = p.seq
	return nil
}

// parameters are as large as a small file that is written.
var parameters = events.Raw(`{"text":"` + strings.Repeat("x", 1000) + `"}`)

const policy = "policy1"

// A turn is what a session of an agent puts on the log to have one tool run: the
// model is asked and answers, a person approves, the tool runs.
type turn struct {
	p                 *publisher
	n                 int
	main, infer, tool events.Ref
	by                events.Decision
	until             time.Time
	digest            string
}

// turn publishes the n-th turn, ten to a session, as far as there is room.
func (p *publisher) turn(n int, most uint64) error {
	session := events.SessionID(fmt.Sprintf("s%d", n/10))
	now := time.Now()
	t := &turn{p: p, n: n, until: now.Add(time.Hour), digest: approval.Digest("echo", parameters, nil, policy),
		main: events.Ref{Session: session, ID: events.Main}, infer: events.Ref{Session: session, ID: fmt.Sprintf("t%d", n%10)},
		tool: events.Ref{Session: session, ID: fmt.Sprintf("t%d-0", n%10)},
		by:   events.Decision{DecidedAt: 1, Now: now, Actor: "operator", Command: events.CommandID(fmt.Sprintf("c%d", n))}}
	steps := []func() events.Fact{t.stage, t.asks, t.taken, t.answers, t.requested, t.asked, t.granted, t.started, t.completed}
	if n%10 == 0 {
		steps = append([]func() events.Fact{t.begins}, steps...)
	}
	for _, step := range steps {
		if p.seq == most {
			break
		}
		if err := p.add(step()); err != nil {
			return err
		}
	}
	p.forget()
	return nil
}

func (t *turn) begins() events.Fact {
	return events.SessionStarted{Ref: t.main, Decision: t.by, Task: "call echo ten times", Model: "m", Mode: events.ModePrompt}
}

func (t *turn) stage() events.Fact {
	return events.StageEntered{Ref: t.main, Decision: events.Decision{DecidedAt: 1, Now: t.by.Now}, Stage: events.StageID("turn-" + t.infer.ID)}
}

func (t *turn) asks() events.Fact {
	return events.InferenceRequested{Ref: t.infer, Decision: events.Decision{DecidedAt: 1, Now: t.by.Now}, Model: "m", ModelToken: "m", Through: t.p.seq,
		Tools: []events.ToolRef{{Name: "echo", Digest: "offer"}}, Deadline: t.until}
}

func (t *turn) taken() events.Fact {
	return events.InferenceStarted{Ref: t.infer, Claim: events.Claim{Worker: "m1", Boot: "b", Nonce: "n", Attempt: 1}}
}

func (t *turn) answers() events.Fact {
	return events.InferenceCompleted{Ref: t.infer, Fence: events.Fence{Started: t.p.seq, Nonce: "n"}, Finish: events.FinishStop,
		Reply: events.Reply{Text: string(parameters), Calls: []events.ToolCall{{Tool: "echo", Arguments: parameters}}},
		Usage: events.TokenUsage{Prompt: 900, Completion: 300, Total: 1200}, Latency: time.Second, PromptDigest: t.digest, Tokenizer: "server"}
}

func (t *turn) requested() events.Fact {
	return events.ToolInvocationRequested{Ref: t.tool, Decision: t.by, Tier: events.T2, Token: "echo", Offer: "offer",
		Request: events.ToolRequest{Invocation: events.ToolInvocationID(t.tool.ID), Session: t.tool.Session, Stage: "turn-1", Tool: "echo", Parameters: parameters}}
}

func (t *turn) asked() events.Fact {
	return events.ApprovalRequested{Ref: t.tool, Decision: t.by, Token: "echo", Tool: "echo", Tier: events.T2, Digest: t.digest, Policy: policy,
		Why: "mode prompt", Deadline: t.until}
}

func (t *turn) granted() events.Fact {
	return t.p.signer.Sign(t.p.id, events.ApprovalGranted{Ref: t.tool, Decision: t.by, Token: "echo", Tool: "echo", Tier: events.T2, Digest: t.digest,
		Policy: policy, By: "person", Scope: events.ScopeOnce, Reason: "looks fine", Until: t.until})
}

func (t *turn) started() events.Fact {
	return events.ToolExecutionStarted{Ref: t.tool, Claim: events.Claim{Worker: "w1", Boot: "b", Nonce: "n", Attempt: 1}, Isolation: events.IsolationFull}
}

func (t *turn) completed() events.Fact {
	return events.ToolExecutionCompleted{Ref: t.tool, Fence: events.Fence{Started: t.p.seq, Nonce: "n"}, Receipt: events.ToolReceipt{
		Output: "some words that can be searched for", Duration: time.Millisecond, Tier: events.T2, Time: t.until, Isolation: events.IsolationFull}}
}

// forget drops what no later record builds on.
func (p *publisher) forget() {
	if len(p.last) > 10_000 {
		clear(p.last)
	}
}
