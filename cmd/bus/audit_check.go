package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/pkg/audit"
	"correx/pkg/events"
)

func newAuditCheck(a *app) *cobra.Command {
	var e evidence
	var checkpoint string
	cmd := &cobra.Command{
		Use: "check <proof>", Short: "check a proof with a published checkpoint alone",
		Long: `Check checks what bus audit prove or bus audit extend wrote, with the checkpoints in
a file and the key that signed them. It asks no server and opens no database.

Exit status: 0 the proof holds, 1 it does not.`,
		Args: cli.Args("the file of the proof"),
		RunE: func(_ *cobra.Command, args []string) error { return a.auditCheck(e, args[0], checkpoint) },
	}
	e.addKeys(cmd)
	cmd.Flags().StringVar(&checkpoint, "checkpoint", "", "file of published checkpoints")
	_ = cmd.MarkFlagFilename("checkpoint")
	_ = cmd.MarkFlagRequired("checkpoint")
	return cmd
}

func (a *app) auditCheck(e evidence, path, checkpoint string) error {
	keys, err := e.trusted(a)
	if err != nil {
		return err
	}
	all, err := readCheckpoints(checkpoint)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("check proof: %w", err)
	}
	var kind struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return fmt.Errorf("check proof: %s: %w", path, err)
	}
	if kind.Format == audit.FormatExtension {
		return a.checkExtension(text, all, keys)
	}
	return a.checkProof(text, all, keys)
}

// signed is the checkpoint through a sequence, if a trusted key signed it.
func signed(all []events.AuditCheckpoint, through uint64, keys []string) (events.AuditCheckpoint, error) {
	c, ok := checkpointThrough(all, through)
	if !ok {
		return c, fmt.Errorf("check proof: it is for the checkpoint through %d, which the file has not", through)
	}
	if err := audit.Check(c, keys...); err != nil {
		return c, fmt.Errorf("check proof: checkpoint through %d: %w", through, err)
	}
	return c, nil
}

// A checked says what was proved, with --json.
type checked struct {
	OK      bool          `json:"ok"`
	Event   *audit.Record `json:"event,omitempty"`
	From    uint64        `json:"from,omitempty"`
	Through uint64        `json:"through"`
	Stream  string        `json:"stream"`
	Created string        `json:"stream_created"`
	Key     string        `json:"key"`
}

func checkedBy(c events.AuditCheckpoint) checked {
	return checked{OK: true, Through: c.Through, Stream: c.Stream, Created: c.Created.UTC().Format("2006-01-02T15:04:05.000000000Z"), Key: c.Key}
}

func (a *app) checkProof(text []byte, all []events.AuditCheckpoint, keys []string) error {
	var p audit.Proof
	if err := json.Unmarshal(text, &p); err != nil {
		return fmt.Errorf("check proof: %w", err)
	}
	c, err := signed(all, p.Through, keys)
	if err != nil {
		return err
	}
	if err := p.Check(c); err != nil {
		return err
	}
	if a.flags.JSON {
		j := checkedBy(c)
		j.Event = &p.Event
		return cli.JSON(a.env.Stdout, j)
	}
	fmt.Fprintf(a.env.Stdout, "%s event %d of %s\nstored   %s\nsubject  %s\nbody     %s\nby       the checkpoint through %d, signed by %s\n",
		a.env.OutStyle().Green("proved"), p.Event.Seq, cli.Visible(audit.Of(c).String()),
		p.Event.Time.UTC().Format("2006-01-02T15:04:05.000000000Z"), cli.Visible(string(p.Event.Subject)),
		cli.Line(string(p.Event.Body), textLength), c.Through, c.Key)
	return nil
}

func (a *app) checkExtension(text []byte, all []events.AuditCheckpoint, keys []string) error {
	var x audit.Extension
	if err := json.Unmarshal(text, &x); err != nil {
		return fmt.Errorf("check extension: %w", err)
	}
	from, err := signed(all, x.From, keys)
	if err != nil {
		return err
	}
	to, err := signed(all, x.Through, keys)
	if err != nil {
		return err
	}
	if err := x.Check(from, to); err != nil {
		return err
	}
	if a.flags.JSON {
		j := checkedBy(to)
		j.From = from.Through
		return cli.JSON(a.env.Stdout, j)
	}
	fmt.Fprintf(a.env.Stdout, "%s the first %d events are in both checkpoints of %s, unchanged; the later one is through %d\n",
		a.env.OutStyle().Green("proved"), x.From, cli.Visible(audit.Of(to).String()), x.Through)
	return nil
}
