package main

import (
	"context"
	"errors"
	"fmt"

	"correx/internal/cli"
	"correx/internal/eventlog"
	"correx/internal/session"
	"correx/pkg/events"
)

// A pastPrompt is what an inference was told, packed again from the log.
type pastPrompt struct {
	inference session.Inference
	state     session.State // of its session, as far as it could read
	offers    []events.ToolOffer
	session.Prompt
}

// done is what the model answered; nil: nothing, so that nothing is recorded of
// the prompt.
func (p pastPrompt) done() *events.InferenceCompleted { return p.inference.Done }

// check holds the prompt against the digest that was recorded.
func (p pastPrompt) check() error {
	done := p.done()
	if done == nil || done.PromptDigest == p.Digest {
		return nil
	}
	why := "the log was altered since, or the prompt was not packed as this program does it"
	if done.Pack != session.PackVersion {
		why = fmt.Sprintf("it was packed by layout %d, this program knows %d: take the version of Correx that ran it", done.Pack, session.PackVersion)
	}
	return fmt.Errorf("THE PROMPT OF %s IS NOT WHAT THE MODEL WAS TOLD: packed again it has the digest %s, recorded is %s; %s",
		p.inference.ID, p.Digest, done.PromptDigest, why)
}

// repack reads an inference of a session and packs its prompt again.
func repack(ctx context.Context, log *eventlog.Log, of events.SessionID, id events.InferenceID) (p pastPrompt, err error) {
	a := events.Aggregate{Session: of, Kind: events.KindInference, ID: string(id)}
	records, err := log.Read(ctx, a)
	if err != nil {
		return p, err
	}
	p.inference = session.FoldInference(records)
	asked := p.inference.Requested
	if asked == nil {
		return p, fmt.Errorf("session %s has no inference %s; bus show %s lists them", of, id, of)
	}
	p.state = session.State{ID: of}
	if of != events.System {
		if p.state, err = session.Read(eventlog.Sessions(ctx, log), of, asked.Through); err != nil {
			return p, err
		}
	}
	if p.offers, err = offersOf(ctx, log, asked.Tools, p.inference.RequestedSeq); err != nil {
		return p, err
	}
	var lost session.Loss
	if d := p.done(); d != nil {
		lost = session.Loss{Cut: d.Cut, Shortened: d.Shortened, Merged: d.Merged}
	}
	p.Prompt = session.Repack(p.state, p.offers, *asked, lost)
	return p, nil
}

// offersOf finds the tools that a request names, as workers had announced them.
func offersOf(ctx context.Context, log *eventlog.Log, refs []events.ToolRef, through uint64) ([]events.ToolOffer, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	records, err := log.ReadFilter(ctx, events.KindFilter(events.System, events.KindWorker), 1, through)
	if err != nil {
		return nil, err
	}
	known := map[events.ToolRef]events.ToolOffer{}
	for _, r := range records {
		if f, ok := r.Fact.(events.WorkerStarted); ok {
			for _, o := range session.ToolsOf(f) {
				known[events.ToolRef{Name: o.Name, Digest: o.Digest}] = o
			}
		}
	}
	var found []events.ToolOffer
	for _, ref := range refs {
		o, ok := known[ref]
		if !ok {
			return nil, fmt.Errorf("no worker announced the tool %s as %.12s, which the request offers: the log is not whole", ref.Name, ref.Digest)
		}
		found = append(found, o)
	}
	return found, nil
}

// promptJSON is a prompt as JSON.
type promptJSON struct {
	Session   events.SessionID        `json:"session"`
	Inference events.InferenceID      `json:"inference"`
	Model     events.ModelID          `json:"model"`
	State     session.InferenceStatus `json:"state"`
	Digest    string                  `json:"prompt_sha256"`
	Recorded  string                  `json:"recorded_sha256,omitempty"` // empty: there was no answer
	Same      *bool                   `json:"same,omitempty"`
	Cut       int                     `json:"cut"`
	Shortened int                     `json:"shortened_bytes"`
	Messages  []events.ChatMessage    `json:"messages"`
}

// showPrompt prints what an inference was told.
func (a *app) showPrompt(ctx context.Context, of events.SessionID, id events.InferenceID) error {
	for name, token := range map[string]string{"session": string(of), "--prompt": string(id)} {
		if err := events.CheckToken(token); err != nil {
			return cli.Usage("%s %w", name, err)
		}
	}
	c, log, err := a.connectLog(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	p, err := repack(ctx, log, of, id)
	if err != nil {
		return fmt.Errorf("show the prompt of %s: %w", id, err)
	}
	return errors.Join(a.printPrompt(p), p.check())
}

func (a *app) printPrompt(p pastPrompt) error {
	i, done := p.inference, p.done()
	if a.flags.JSON {
		j := promptJSON{i.Session, i.ID, i.Requested.Model, i.Status(), p.Digest, "", nil, p.Cut, p.Shortened, p.Messages}
		if done != nil {
			same := done.PromptDigest == p.Digest
			j.Recorded, j.Same = done.PromptDigest, &same
		}
		return cli.JSON(a.env.Stdout, j)
	}
	style, out := a.env.OutStyle(), a.env.Stdout
	fmt.Fprintf(out, "%s  %s  %s\n", style.Bold(string(i.ID)), cli.Visible(string(i.Requested.Model)), i.Status())
	for _, m := range p.Messages {
		fmt.Fprintf(out, "\n%s\n%s\n", style.Cyan("── "+string(m.Role)), a.env.OutText(m.Content))
	}
	fmt.Fprintf(out, "\n%d messages, %d entries cut, %d bytes of results shortened\n", len(p.Messages), p.Cut, p.Shortened)
	verdict := style.Yellow("; nothing is recorded to hold it against: the model has not answered")
	if done != nil && done.PromptDigest == p.Digest {
		verdict = style.Green(", as recorded")
	} else if done != nil {
		verdict = style.Red(", recorded is " + done.PromptDigest)
	}
	_, err := fmt.Fprintf(out, "sha256 %s%s\n", p.Digest, verdict)
	return err
}
