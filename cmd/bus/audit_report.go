package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"correx/internal/access"
	"correx/internal/approval"
	"correx/internal/auditor"
	"correx/internal/cli"
	"correx/internal/eventlog"
	"correx/internal/report"
	"correx/pkg/audit"
	"correx/pkg/events"
)

func newAuditReport(a *app) *cobra.Command {
	var e evidence
	var page, unverified bool
	var output string
	cmd := &cobra.Command{
		Use: "report <session>", Short: "who asked, who approved what, what ran and what changed",
		Long: `Report tells a session from the log: who asked for it, each call with its
parameters and diff, who approved exactly that (the digest is computed anew and the
kernel's signature checked), where it ran under which isolation, and what changed.
The log is held against its checkpoints first. Calls of no session are those of
"system".

    bus audit report s1                          as text
    bus audit report s1 --html -o report.html    one page that needs nothing else, and prints
    bus audit report s1 --json                   for programs

A report that says that something is wrong with the log ends with 1.`,
		Args: cli.Args("the session"), ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.auditReport(cmd.Context(), e, events.SessionID(args[0]), page, unverified, output)
		},
	}
	e.addKeys(cmd)
	cmd.Flags().BoolVar(&page, "html", false, "as an HTML page")
	cmd.Flags().BoolVar(&unverified, "unverified", false, "do not hold the log against its checkpoints, which reads all of it")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file")
	_ = cmd.MarkFlagFilename("output")
	return cmd
}

func (a *app) auditReport(ctx context.Context, e evidence, id events.SessionID, page, unverified bool, output string) error {
	if err := events.CheckToken(string(id)); err != nil {
		return cli.Usage("session %w", err)
	}
	if page && a.flags.JSON {
		return cli.Usage("--html and --json are two forms; choose one")
	}
	c, log, err := a.connectLog(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	r, err := a.makeReport(ctx, c, log, id, e, unverified)
	if err != nil {
		return fmt.Errorf("report on session %s: %w", id, err)
	}
	var b bytes.Buffer
	switch {
	case page:
		err = r.HTML(&b)
	case a.flags.JSON:
		err = cli.JSON(&b, r)
	default:
		style := a.env.OutStyle()
		if output != "" {
			style = cli.Coloured(false)
		}
		err = r.Text(&b, style)
	}
	if err == nil {
		err = a.put(output, b.Bytes())
	}
	if err == nil && len(r.Evidence.Findings) > 0 {
		err = errNotSound
	}
	return err
}

// put writes to a file, or to stdout.
func (a *app) put(path string, text []byte) error {
	if path == "" {
		_, err := a.env.Stdout.Write(text)
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(text))
	return errors.Join(err, f.Close())
}

func (a *app) makeReport(ctx context.Context, c *client, log *eventlog.Log, id events.SessionID, e evidence, unverified bool) (r report.Report, err error) {
	key, err := access.KernelKey(c.cfg.State)
	if err != nil {
		return r, err
	}
	verifier, err := approval.NewVerifier(approval.StreamIdentity(log.Identity()), key)
	if err != nil {
		return r, err
	}
	o := report.Options{Stream: audit.Identity(log.Identity()), Session: id, Verify: verifier.Verify}
	if !unverified {
		if o.Evidence, err = a.evidenceOf(ctx, c, e); err != nil {
			return r, err
		}
	}
	wait := a.env.Progress("reading session " + string(id))
	records, err := recordsOf(ctx, log, id)
	wait.Stop()
	if err != nil {
		return r, err
	}
	if len(records) == 0 {
		return r, errors.New("the log has nothing of it; `bus sessions` lists those that it has")
	}
	return report.Build(records, o), nil
}

// recordsOf reads a session; of what belongs to none, the calls and inferences.
func recordsOf(ctx context.Context, log *eventlog.Log, id events.SessionID) (all []events.Record, err error) {
	if id != events.System {
		return log.ReadFilter(ctx, events.SessionFilter(id), 1, 0)
	}
	for _, k := range []events.Kind{events.KindInference, events.KindTool} {
		records, err := log.ReadFilter(ctx, events.KindFilter(id, k), 1, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	return all, nil
}

// evidenceOf holds the whole log against its checkpoints.
func (a *app) evidenceOf(ctx context.Context, c *client, e evidence) (report.Evidence, error) {
	var out report.Evidence
	keys, err := e.trusted(a)
	if err != nil {
		return out, err
	}
	stream, err := auditor.OpenStream(ctx, c.js, access.StreamEvents)
	if err != nil {
		return out, err
	}
	progress := a.env.Progress("verifying the log")
	found, err := auditor.Verify(ctx, stream, auditor.Options{Keys: keys, Progress: func(done, last uint64) {
		progress.Say(fmt.Sprintf("verifying the log: %d of %d events (%d %%)", done, last, 100*done/last))
	}})
	progress.Stop()
	if err != nil {
		return out, err
	}
	out = report.Evidence{Checked: true, Keys: keys, Covered: found.Covered, Findings: []string{}}
	for _, f := range found.Findings {
		out.Findings = append(out.Findings, f.String())
	}
	return out, nil
}
