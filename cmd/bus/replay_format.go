package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"correx/internal/cli"
	"correx/internal/eventlog"
	"correx/internal/transfer"
	"correx/pkg/audit"
	"correx/pkg/events"
)

const (
	formatStory       = "story"
	formatJSONL       = "jsonl"
	formatCloudEvents = "cloudevents"
	formatATIF        = "atif"
)

var replayFormats = []string{formatStory, formatJSONL, formatCloudEvents, formatATIF}

// A replayPrinter writes records in one format. Begin is called for a whole stream
// alone, end when nothing more comes.
type replayPrinter struct {
	begin  func(id eventlog.Identity, last uint64) error
	record func(events.Record) error
	end    func() error
}

func (a *app) replayPrinter(r replay) (replayPrinter, error) {
	p := replayPrinter{begin: func(eventlog.Identity, uint64) error { return nil }, end: func() error { return nil }}
	switch {
	case r.format != "" && !slices.Contains(replayFormats, r.format):
		return p, cli.Usage("--format %q is none of %s", r.format, strings.Join(replayFormats, ", "))
	case r.format != "" && r.format != formatJSONL && a.flags.JSON:
		return p, cli.Usage("--json is jsonl, and --format says %s: leave one out", r.format)
	}
	switch r.format {
	case formatJSONL:
		w := transfer.NewWriter(a.env.Stdout)
		p.begin = func(id eventlog.Identity, last uint64) error {
			return w.Begin(audit.Identity{Stream: id.Stream, Created: id.Created}, last)
		}
		p.record, p.end = w.Write, w.Finish
	case formatCloudEvents:
		a.cloudEvents(&p)
	case formatATIF:
		var all []events.Record
		p.record = func(r events.Record) error { all = append(all, r); return nil }
		p.end = func() error { return a.atif(events.SessionID(r.session), all) }
	default:
		p.record = func(rec events.Record) error { return a.replayRecord(rec, r.session == "") }
	}
	return p, nil
}

// replayRecord is a line for people, or with --json a lossless one.
func (a *app) replayRecord(r events.Record, many bool) error {
	if a.flags.JSON {
		return cli.JSONLine(a.env.Stdout, transfer.LineOf(r))
	}
	return a.printRecord(r, many)
}

// cloudEvents leaves out what is no CloudEvent, and says so in the end.
func (a *app) cloudEvents(p *replayPrinter) {
	var left []uint64
	p.record = func(r events.Record) error {
		c, err := transfer.CloudEventOf(r)
		if errors.Is(err, transfer.ErrNoCloudEvent) {
			left = append(left, r.Seq)
			return nil
		}
		if err != nil {
			return err
		}
		return cli.JSONLine(a.env.Stdout, c)
	}
	p.end = func() error {
		if len(left) > 0 {
			fmt.Fprintf(a.env.Stderr, "%s left out, for want of a CloudEvents envelope; the first is %d\n",
				counted(len(left), "record"), left[0])
		}
		return nil
	}
}

func (a *app) atif(id events.SessionID, records []events.Record) error {
	if len(records) == 0 {
		return fmt.Errorf("replay session %s: the log has nothing of it", id)
	}
	return cli.JSON(a.env.Stdout, transfer.TrajectoryOf(id, records, cli.Version))
}
