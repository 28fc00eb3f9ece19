package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"unicode/utf8"

	"correx/internal/cli"
	"correx/internal/eventlog"
	"correx/internal/modelworker"
	"correx/pkg/events"
)

// An again is what came of asking a model again.
type again struct {
	Session   events.SessionID   `json:"session"`
	Inference events.InferenceID `json:"inference"`
	Model     events.ModelID     `json:"model"`
	Same      bool               `json:"same"`
	Skipped   bool               `json:"skipped,omitempty"` // there is no answer to hold another against
	At        *int               `json:"at,omitempty"`      // byte at which the texts part
	Then      string             `json:"then,omitempty"`    // the recorded text around it
	Now       string             `json:"now,omitempty"`     // the new one
	Reason    string             `json:"reason,omitempty"`  // why it was skipped, not asked, or may be another
}

// rerun asks the models of a session again what they were asked, without a word
// on the log, and says where the texts part. It fails if one does.
func (a *app) rerun(ctx context.Context, id events.SessionID) (err error) {
	if err := events.CheckToken(string(id)); err != nil {
		return cli.Usage("--rerun %w", err)
	}
	c, log, err := a.connectLog(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	ids, err := inferencesOf(ctx, log, id)
	if err != nil {
		return fmt.Errorf("rerun session %s: %w", id, err)
	}
	models, shut, err := a.models(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shut()) }()
	same, parted := 0, 0
	for _, i := range ids {
		p, err := repack(ctx, log, id, i)
		if err != nil {
			return fmt.Errorf("rerun %s: %w", i, err)
		}
		wait := a.env.Progress("asking " + string(p.inference.Requested.Model) + " again: " + string(i))
		r := ask(ctx, models, p)
		wait.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if r.Same {
			same++
		} else if !r.Skipped {
			parted++
		}
		if err := a.printAgain(r); err != nil {
			return err
		}
	}
	if parted > 0 {
		return fmt.Errorf("rerun session %s: %d of %d answers are not the same again", id, parted, parted+same)
	}
	if same == 0 {
		return fmt.Errorf("rerun session %s: no inference of it was answered, so that there is nothing to hold a new answer against", id)
	}
	if !a.flags.JSON {
		fmt.Fprintf(a.env.Stdout, "%d answers are the same again, byte by byte\n", same)
	}
	return nil
}

// inferencesOf lists the inferences of a session in the order of their requests.
func inferencesOf(ctx context.Context, log *eventlog.Log, id events.SessionID) (ids []events.InferenceID, err error) {
	records, err := log.ReadFilter(ctx, events.KindFilter(id, events.KindInference), 1, 0)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if f, ok := r.Fact.(events.InferenceRequested); ok {
			ids = append(ids, events.InferenceID(f.ID))
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("the log has no inference of it")
	}
	return ids, nil
}

// models starts what answers again, with its files in a directory of its own.
func (a *app) models(c *client) (*modelworker.Rerun, func() error, error) {
	dir, err := os.MkdirTemp("", "correx-rerun-")
	if err != nil {
		return nil, nil, fmt.Errorf("make room for a llama-server: %w", err)
	}
	remove := func() error { return os.RemoveAll(dir) }
	logger, err := a.flags.Logger(slog.LevelWarn)
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	models, err := modelworker.NewRerun(c.cfg, dir, logger)
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return models, func() error { return errors.Join(models.Close(), remove()) }, nil
}

// ask asks a model again, if it can be known what it was told.
func ask(ctx context.Context, models *modelworker.Rerun, p pastPrompt) again {
	asked := *p.inference.Requested
	r := again{Session: asked.Session, Inference: events.InferenceID(asked.ID), Model: asked.Model}
	if p.done() == nil {
		r.Skipped, r.Reason = true, "it has no answer to hold another against: "+string(p.inference.Status())
		return r
	}
	if err := p.check(); err != nil {
		r.Reason = err.Error()
		return r
	}
	now, err := models.Answer(ctx, p.state, p.offers, asked, p.Messages)
	if err != nil {
		r.Reason = err.Error()
		return r
	}
	then := p.done().Reply.Text
	if now == then {
		r.Same = true
		return r
	}
	at := 0
	for at < min(len(then), len(now)) && then[at] == now[at] {
		at++
	}
	r.At, r.Then, r.Now = &at, around(then, at), around(now, at)
	if !asked.Generation.Exact {
		r.Reason = "it was not asked with generation.exact: what ran beside it, or was kept from prompts before, can make texts part"
	}
	return r
}

// around is a text from a little before a byte to a little after it.
func around(s string, at int) string {
	from, to := max(0, at-20), min(len(s), at+40)
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to++
	}
	return s[from:to]
}

func (a *app) printAgain(r again) error {
	if a.flags.JSON {
		return cli.JSONLine(a.env.Stdout, r)
	}
	style, out := a.env.OutStyle(), a.env.Stdout
	var err error
	switch {
	case r.Same:
		_, err = fmt.Fprintf(out, "%s  %s\n", r.Inference, style.Green("the same"))
	case r.At != nil:
		_, err = fmt.Fprintf(out, "%s  %s\n    then %q\n    now  %q\n", r.Inference, style.Red(fmt.Sprintf("parts at byte %d", *r.At)), r.Then, r.Now)
		if err == nil && r.Reason != "" {
			_, err = fmt.Fprintf(out, "    %s\n", style.Dim(r.Reason))
		}
	case r.Skipped:
		_, err = fmt.Fprintf(out, "%s  %s\n", r.Inference, style.Dim("left out; "+cli.Visible(r.Reason)))
	default:
		_, err = fmt.Fprintf(out, "%s  %s\n", r.Inference, style.Red("not asked again: "+cli.Visible(r.Reason)))
	}
	return err
}
