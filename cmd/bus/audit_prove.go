package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"correx/internal/auditor"
	"correx/internal/cli"
	"correx/pkg/audit"
)

func newAuditCheckpoints(a *app) *cobra.Command {
	var e evidence
	cmd := &cobra.Command{
		Use: "checkpoints", Short: "the signed checkpoints, to give away",
		Long: `Checkpoints prints every checkpoint that the trusted key signed, one JSON object a
line. Keep them where nobody who can write here can write, and give them to whoever
is to check proofs.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.auditCheckpoints(cmd.Context(), e) },
	}
	e.add(cmd)
	return cmd
}

func (a *app) auditCheckpoints(ctx context.Context, e evidence) error {
	at, good, err := a.openTrusted(ctx, e)
	if err != nil {
		return err
	}
	for _, c := range good {
		if err := cli.JSONLine(a.env.Stdout, c.AuditCheckpoint); err != nil {
			return errors.Join(err, at.close())
		}
	}
	if len(good) == 0 {
		fmt.Fprintln(a.env.Stderr, "there are none yet; a projector that runs signs one before long")
	}
	return at.close()
}

// openTrusted opens a source and reads its checkpoints that hold.
func (a *app) openTrusted(ctx context.Context, e evidence) (place, []auditor.Checkpoint, error) {
	keys, err := e.trusted(a)
	if err != nil {
		return place{}, nil, err
	}
	at, err := e.open(ctx, a)
	if err != nil {
		return place{}, nil, err
	}
	good, _, err := auditor.Checkpoints(ctx, at, keys...)
	if err != nil {
		return place{}, nil, errors.Join(fmt.Errorf("read checkpoints: %w", err), at.close())
	}
	return at, good, nil
}

func newAuditProve(a *app) *cobra.Command {
	var e evidence
	var through uint64
	cmd := &cobra.Command{
		Use: "prove <sequence>", Short: "a proof that an event is in the log",
		Long: `Prove writes a proof that the event at a sequence of EVENTS is in the log. Whoever
has the checkpoint that it is for, and the key, checks it with no more than that:

    bus audit prove 1234 > proof.json
    bus audit check proof.json --checkpoint checkpoints.jsonl --key UB…

The proof holds the event as it is, with its body.`,
		Args: cli.Args("the sequence of the event"),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := sequence(args[0])
			if err != nil {
				return err
			}
			return a.auditProve(cmd.Context(), e, seq, through)
		},
	}
	e.add(cmd)
	cmd.Flags().Uint64Var(&through, "through", 0, "for the checkpoint through this sequence (default: the first that has the event)")
	return cmd
}

func sequence(s string) (uint64, error) {
	seq, err := strconv.ParseUint(s, 10, 64)
	if err != nil || seq == 0 {
		return 0, cli.Usage("%q is no sequence; give a number from 1 on", s)
	}
	return seq, nil
}

func (a *app) auditProve(ctx context.Context, e evidence, seq, through uint64) error {
	at, good, err := a.openTrusted(ctx, e)
	if err != nil {
		return err
	}
	proof, err := prove(ctx, at, good, seq, through)
	if err := errors.Join(err, at.close()); err != nil {
		return fmt.Errorf("prove event %d: %w", seq, err)
	}
	return cli.JSON(a.env.Stdout, proof)
}

// prove makes a proof, and checks it before it is given away.
func prove(ctx context.Context, s auditor.Source, good []auditor.Checkpoint, seq, through uint64) (p audit.Proof, err error) {
	c, ok := covering(good, seq, through)
	if !ok {
		return p, errors.New("no checkpoint has it yet; `bus audit checkpoints` lists those that there are")
	}
	all, err := auditor.Hashes(ctx, s, c.Through)
	if err != nil {
		return p, err
	}
	e, err := auditor.One(ctx, s, seq)
	if err != nil {
		return p, err
	}
	if p, err = audit.Prove(e, all); err != nil {
		return p, err
	}
	if err := p.Check(c.AuditCheckpoint); err != nil {
		return p, fmt.Errorf("the log is not what it was; `bus audit verify` says where: %w", err)
	}
	return p, nil
}

// covering is the first checkpoint that has seq, or the one through a sequence.
func covering(good []auditor.Checkpoint, seq, through uint64) (auditor.Checkpoint, bool) {
	for _, c := range good {
		if c.Through >= seq && (through == 0 || c.Through == through) {
			return c, true
		}
	}
	return auditor.Checkpoint{}, false
}

func newAuditExtend(a *app) *cobra.Command {
	var e evidence
	cmd := &cobra.Command{
		Use: "extend <from> <through>", Short: "a proof that one checkpoint continues another",
		Long: `Extend writes a proof that the log of the checkpoint through one sequence is the
beginning of the log of the checkpoint through another: nothing was changed
between them, only added. bus audit check checks it.`,
		Args: cli.Args("what the earlier checkpoint is through", "what the later one is through"),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := sequence(args[0])
			if err != nil {
				return err
			}
			through, err := sequence(args[1])
			if err != nil {
				return err
			}
			return a.auditExtend(cmd.Context(), e, from, through)
		},
	}
	e.add(cmd)
	return cmd
}

func (a *app) auditExtend(ctx context.Context, e evidence, from, through uint64) error {
	at, err := e.open(ctx, a)
	if err != nil {
		return err
	}
	all, err := auditor.Hashes(ctx, at, through)
	if err := errors.Join(err, at.close()); err != nil {
		return fmt.Errorf("extend: %w", err)
	}
	x, err := audit.Extend(from, all)
	if err != nil {
		return err
	}
	return cli.JSON(a.env.Stdout, x)
}
