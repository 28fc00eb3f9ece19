package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"correx/internal/auditor"
	"correx/internal/cli"
)

func newAuditVerify(a *app) *cobra.Command {
	var e evidence
	var from, to uint64
	var checkpoint string
	cmd := &cobra.Command{
		Use: "verify", Short: "hold the log against its checkpoints",
		Long: `Verify reads the stream, or with --db a database, computes its hash chain and tree
anew, and holds them against the checkpoints in it that the projector signed. The
first event that was altered, taken out, put in or moved is named. So is a
checkpoint that does not match or was not signed by the trusted key, and a stream
that is another than the checkpoints'.

With --checkpoint the log must also continue checkpoints that were kept elsewhere;
that shows a log that was cut off or written anew as a whole.

Exit status: 0 nothing is wrong, 1 something is.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.auditVerify(cmd.Context(), e, checkpoint, from, to)
		},
	}
	e.add(cmd)
	cmd.Flags().StringVar(&checkpoint, "checkpoint", "", "file of checkpoints that were kept elsewhere")
	_ = cmd.MarkFlagFilename("checkpoint")
	cmd.Flags().Uint64Var(&from, "from", 0, "begin behind the last checkpoint before this sequence")
	cmd.Flags().Uint64Var(&to, "to", 0, "end at the first checkpoint through this sequence")
	return cmd
}

// errNotSound is the error of a log in which something is wrong.
var errNotSound = errors.New("the log is not what it was")

func (a *app) auditVerify(ctx context.Context, e evidence, checkpoint string, from, to uint64) error {
	if to != 0 && to < from {
		return cli.Usage("--to %d is before --from %d", to, from)
	}
	keys, err := e.trusted(a)
	if err != nil {
		return err
	}
	o := auditor.Options{Keys: keys, From: from, To: to}
	if checkpoint != "" {
		if o.Given, err = readCheckpoints(checkpoint); err != nil {
			return err
		}
	}
	at, err := e.open(ctx, a)
	if err != nil {
		return err
	}
	if at.db != nil {
		says := at.db.Says()
		o.Says = &says
	}
	progress := a.env.Progress("verifying the log")
	o.Progress = func(done, last uint64) {
		progress.Say(fmt.Sprintf("verifying the log: %d of %d events (%d %%)", done, last, 100*done/last))
	}
	r, err := auditor.Verify(ctx, at, o)
	progress.Stop()
	if err := errors.Join(err, at.close()); err != nil {
		return err
	}
	return a.auditResult(r)
}

// auditResult prints what was found, which is an error if it is anything.
func (a *app) auditResult(r auditor.Result) error {
	if a.flags.JSON {
		if err := cli.JSON(a.env.Stdout, struct {
			OK bool `json:"ok"`
			auditor.Result
		}{r.OK(), r}); err != nil {
			return err
		}
	} else {
		a.printAudit(r)
	}
	if !r.OK() {
		return errNotSound
	}
	return nil
}

func (a *app) printAudit(r auditor.Result) {
	style, out := a.env.OutStyle(), a.env.Stdout
	fmt.Fprintf(out, "stream       %s of %s\nevents       %d to %d\ncheckpoints  %d, through %d; %s behind the last one\nchain        %s\n",
		cli.Visible(r.Stream), r.Created, r.From, r.Through, r.Checkpoints, r.Covered, counted(int(r.Uncovered), "event"), r.Chain)
	if r.Root != "" {
		fmt.Fprintf(out, "root         %s\n", r.Root)
	}
	for _, f := range r.Findings {
		fmt.Fprintf(out, "%s\n", style.Red(cli.Visible(f.String())))
	}
	if r.OK() {
		fmt.Fprintln(out, style.Green("nothing was altered, taken out, put in or moved"))
	}
}
