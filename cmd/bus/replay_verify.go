package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"correx/internal/access"
	"correx/internal/cli"
	"correx/internal/refold"
)

// errOtherRules is the error of a log with decisions that the rules do not give.
var errOtherRules = errors.New("not every decision is what the rules give")

// lastKnower is a source that knows where it ends.
type lastKnower interface {
	refold.Source
	Last(ctx context.Context) (uint64, error)
}

// replayVerify holds every decision of a log, the bus's or that of a file, against
// the rules of this program.
func (a *app) replayVerify(ctx context.Context, file string, through uint64) error {
	src, done, err := a.verified(ctx, file)
	if err != nil {
		return err
	}
	defer done()
	end, err := src.Last(ctx)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if through > end {
		return cli.Usage("--through %d is behind the end of the log, %d", through, end)
	}
	if through == 0 {
		through = end
	}
	var r refold.Result
	if through > 0 {
		progress := a.env.Progress("folding the log")
		r, err = refold.Verify(ctx, src, through, func(done uint64) {
			progress.Say(fmt.Sprintf("folding the log: %d of %d records (%d %%)", done, through, 100*done/through))
		})
		progress.Stop()
		if err != nil {
			return err
		}
	}
	if err := a.printVerified(r); err != nil {
		return err
	}
	if !r.OK() {
		return errOtherRules
	}
	return nil
}

func (a *app) verified(ctx context.Context, file string) (lastKnower, func(), error) {
	if file != "" {
		in, err := os.Open(file)
		if err != nil {
			return nil, nil, err
		}
		defer in.Close()
		src, err := refold.ReadFile(in)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		return src, func() {}, nil
	}
	c, log, err := a.connectLog(ctx)
	if err != nil {
		return nil, nil, err
	}
	src, err := refold.OpenStream(ctx, c.js, log, access.StreamCommands)
	if err != nil {
		c.close()
		return nil, nil, err
	}
	return src, c.close, nil
}

func (a *app) printVerified(r refold.Result) error {
	if a.flags.JSON {
		return cli.JSON(a.env.Stdout, struct {
			OK bool `json:"ok"`
			refold.Result
		}{r.OK(), r})
	}
	style, out := a.env.OutStyle(), a.env.Stdout
	fmt.Fprintf(out, "records    %d, %s\ndecisions  %d; %d carry out a command that was read, %d one that is not at hand\n",
		r.Records, counted(r.Sessions, "session"), r.Decisions, r.Commands, r.Assumed)
	if r.GivenUp > 0 {
		fmt.Fprintf(out, "given up   %s, because the log refused a decision\n", counted(r.GivenUp, "session"))
	}
	if r.Alarms > 0 {
		fmt.Fprintf(out, "alarms     %s that do not hold and changed nothing\n", counted(r.Alarms, "report"))
	}
	for _, f := range r.Findings {
		fmt.Fprintf(out, "%s\n", style.Red(cli.Visible(f.String())))
	}
	if r.OK() {
		fmt.Fprintln(out, style.Green("every decision is what the rules give"))
	}
	return nil
}
