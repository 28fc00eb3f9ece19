package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"correx/internal/access"
	"correx/internal/auditor"
	"correx/internal/cli"
	"correx/internal/projection"
	"correx/pkg/events"
)

func newAudit(a *app) *cobra.Command {
	cmd := cli.Group("audit", "what the log said, proved", `Audit holds the log against what the projector has signed of it, and makes of both
what can be shown to others. docs/audit.md says what is signed, and how anybody can
check it without this program.`)
	cmd.AddCommand(newAuditVerify(a), newAuditCheckpoints(a), newAuditProve(a), newAuditExtend(a), newAuditCheck(a), newAuditReport(a))
	return cmd
}

// An evidence says where an audit reads, and whom it believes.
type evidence struct {
	db   string
	keys []string
}

func (e *evidence) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&e.db, "db", "", "read this database instead of the stream; no server is needed")
	_ = cmd.MarkFlagFilename("db")
	e.addKeys(cmd)
}

func (e *evidence) addKeys(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&e.keys, "key", nil, "public NKey that is trusted to sign checkpoints, or a file with it (default: projector.pub of the state directory)")
}

// trusted are the keys themselves.
func (e *evidence) trusted(a *app) ([]string, error) {
	var all []string
	for _, k := range e.keys {
		key, err := access.ParsePublic(k)
		if err != nil {
			return nil, cli.Usage("--key %w", err)
		}
		all = append(all, key)
	}
	if len(all) > 0 {
		return all, nil
	}
	cfg, err := a.flags.Load(nil)
	if err != nil {
		return nil, err
	}
	key, err := access.ProjectorKey(cfg.State)
	if err != nil {
		return nil, fmt.Errorf("%w; or name the key with --key", err)
	}
	return []string{key}, nil
}

// A place is a source that is open.
type place struct {
	auditor.Source
	db    *auditor.Database // nil: it is the stream
	close func() error
}

// open opens the database, or connects. The caller closes the place.
func (e *evidence) open(ctx context.Context, a *app) (place, error) {
	if e.db == "" {
		c, err := a.connect(ctx)
		if err != nil {
			return place{}, err
		}
		s, err := auditor.OpenStream(ctx, c.js, access.StreamEvents)
		if err != nil {
			c.close()
			return place{}, err
		}
		return place{s, nil, func() error { c.close(); return nil }}, nil
	}
	db, err := projection.OpenReadOnly(ctx, e.db)
	if err != nil {
		return place{}, err
	}
	snap, err := db.Snapshot(ctx)
	if err != nil {
		return place{}, errors.Join(err, db.Close())
	}
	d := auditor.OfDatabase(snap)
	return place{d, d, func() error { return errors.Join(snap.Close(), db.Close()) }}, nil
}

// readCheckpoints reads what `bus audit checkpoints` wrote.
func readCheckpoints(path string) (all []events.AuditCheckpoint, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	in := bufio.NewReader(bytes.NewReader(b))
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if text = bytes.TrimSpace(text); len(text) > 0 {
			var c events.AuditCheckpoint
			if err := json.Unmarshal(text, &c); err != nil {
				return nil, fmt.Errorf("read checkpoints: %s, line %d: %w", path, n, err)
			}
			all = append(all, c)
		}
		if errors.Is(err, io.EOF) {
			break
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("read checkpoints: %s has none", path)
	}
	return all, nil
}

// checkpointThrough is the one of them through a sequence.
func checkpointThrough(all []events.AuditCheckpoint, through uint64) (events.AuditCheckpoint, bool) {
	for _, c := range all {
		if c.Through == through {
			return c, true
		}
	}
	return events.AuditCheckpoint{}, false
}
