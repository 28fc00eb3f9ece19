package modelworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"correx/internal/claim"
	"correx/internal/session"
	"correx/pkg/events"
	"correx/pkg/llama"
)

// work answers inferences. It is a [claim.Work].
type work struct {
	models   map[string]llama.Descriptor // by token
	fleet    *fleet
	sessions *sessions
	offers   *offers
	live     func(subject string, piece delta)
	limit    time.Duration // of one inference
	logger   *slog.Logger
}

// job is how inferences are claimed and done.
func (w *work) job() claim.Job {
	return claim.Job{Rules: claim.InferenceRules{Admit: w.admit}, Work: w, Idempotent: true}
}

// admit refuses a request that was routed to a model of ours but names another.
func (w *work) admit(i session.Inference) events.Fact {
	d, ok := w.models[i.Requested.ModelToken]
	if ok && d.ModelID == i.Requested.Model {
		return nil
	}
	return events.InferenceFailed{
		Ref: i.Requested.Ref, Code: events.FailServer,
		Reason: fmt.Sprintf("this worker has no model %q under %s", i.Requested.Model, i.Requested.ModelToken),
	}
}

// Run implements [claim.Work].
func (w *work) Run(ctx context.Context, t claim.Task) events.Fact {
	i, ok := t.State.Fold.(session.Inference)
	if !ok || i.Requested == nil {
		return nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, w.limit, errTooLong)
	defer cancel()
	q := question{InferenceRequested: *i.Requested, requested: i.RequestedSeq, attempt: t.Claim.Attempt}
	end, err := w.answer(limited, q)
	if err != nil {
		f := failure(limited, err)
		f.Ref, f.Fence = i.Requested.Ref, t.Fence()
		w.logger.Warn("inference failed", slog.String("session", string(f.Session)), slog.String("inference", f.ID),
			slog.String("code", string(f.Code)), slog.String("reason", f.Reason))
		return f
	}
	end.Ref, end.Fence = i.Requested.Ref, t.Fence()
	return end
}

// A question is an inference and what is read for it.
type question struct {
	events.InferenceRequested
	requested uint64 // its sequence
	attempt   int    // from 1
	state     session.State
	offers    []events.ToolOffer
}

// free reports whether the answer may be any text: there is no session that
// would do something with an action.
func (q question) free() bool { return q.state.Started == nil }

// request is what a model with so large a window is asked, but for the messages.
func (q question) request(window int) llama.Request {
	r := llama.Request{Generation: bounded(q.Generation, window)}
	if !q.free() {
		r.Schema = session.Allowed(q.state, q.offers, q.InferenceRequested)
	}
	return r
}

// answer reads, packs, generates and checks.
func (w *work) answer(ctx context.Context, q question) (end events.InferenceCompleted, err error) {
	if q.state, err = w.sessions.at(ctx, q.Session, q.Through); err != nil {
		return end, err
	}
	if q.offers, err = w.offers.find(ctx, q.Tools, q.requested); err != nil {
		return end, err
	}
	d := w.models[q.ModelToken]
	model := w.fleet.of(d.ModelID).Model(d)
	if q.Generation.Exact {
		model = model.Alone()
	}
	err = model.Use(ctx, func(ctx context.Context, c *llama.Client) error {
		end, err = w.generate(ctx, c, q)
		return err
	})
	return end, err
}

// generate packs the prompt for the model that is loaded, and has it answer.
func (w *work) generate(ctx context.Context, c *llama.Client, q question) (end events.InferenceCompleted, err error) {
	request := q.request(c.Window())
	tell := w.teller(q)
	defer tell.end()
	request.OnDelta, request.OnReasoning = tell.text, tell.reasoning
	room := c.Window() - request.Generation.MaxTokens
	counter := counter{ctx: ctx, tokenizer: c.Tokenizer()}
	if q.free() {
		counter.room = room
	}
	prompt, err := session.Pack(q.state, q.offers, q.InferenceRequested, session.Room{Window: room, Count: counter.count, NoSystem: c.NoSystem()})
	if err != nil {
		return end, err
	}
	request.Messages = prompt.Messages
	answer, err := c.Infer(ctx, request)
	if err != nil {
		return end, withOutput(err, answer)
	}
	reply, err := q.reply(answer)
	if err != nil {
		return end, &outputError{reason: err.Error(), answer: answer}
	}
	reply.Reasoning = head(answer.Reasoning)
	return events.InferenceCompleted{
		Reply: reply, Finish: answer.Finish, Usage: answer.Usage, Latency: answer.Latency, Timings: answer.Timings,
		PromptDigest: prompt.Digest, Pack: session.PackVersion, Cut: prompt.Cut, Shortened: prompt.Shortened, Merged: prompt.Merged,
		Tokenizer: counter.name(),
	}, nil
}

// reply takes the answer apart and holds it against what was on offer.
func (q question) reply(a llama.Response) (events.Reply, error) {
	if q.free() {
		return events.Reply{Text: a.Text, Final: &a.Text}, nil
	}
	if a.Finish == events.FinishLength {
		return events.Reply{}, fmt.Errorf("the answer was cut off after %d tokens", a.Usage.Completion)
	}
	return session.ParseReply(a.Text, q.offers, q.Withdrawn, q.FinalOnly)
}

// teller publishes the pieces of an answer, and of what was thought before it.
func (w *work) teller(q question) *teller {
	subject := events.LiveSubject(q.Session, events.InferenceID(q.ID))
	return newTeller(q.attempt, func(d delta) { w.live(subject, d) })
}

// defaultMaxTokens is what an answer may have where nothing is said.
const defaultMaxTokens = 512

// bounded says how long an answer may be, and leaves half the window to the
// prompt at least.
func bounded(g events.GenerationConfig, window int) events.GenerationConfig {
	if g.MaxTokens == 0 {
		g.MaxTokens = defaultMaxTokens
	}
	g.MaxTokens = min(g.MaxTokens, window/2)
	return g
}

// A counter counts prompts, and knows whether it ever had to guess.
type counter struct {
	ctx       context.Context // of one inference
	tokenizer *llama.Tokenizer
	guessed   bool
	counted   bool
	room      int // prompts whose bytes fit into so many tokens are not counted; 0: all are
}

// What a template adds to a prompt at most, in tokens, for the comparison with
// bytes: to each message, and once. The server refuses what is longer all the same.
const (
	perMessage = 64
	perPrompt  = 512
)

// atMost bounds the tokens of a prompt: none has less than one byte.
func atMost(messages []events.ChatMessage) int {
	n := perPrompt
	for _, m := range messages {
		n += len(m.Content) + perMessage
	}
	return n
}

func (c *counter) count(messages []events.ChatMessage) int {
	if n := atMost(messages); n <= c.room {
		return n
	}
	c.counted = true
	n, exact := c.tokenizer.CountMessages(c.ctx, messages)
	c.guessed = c.guessed || !exact
	return n
}

func (c *counter) name() string {
	switch {
	case c.guessed:
		return "estimate"
	case !c.counted:
		return "bytes"
	}
	return "server"
}

var errTooLong = errors.New("it took longer than one inference may take")
