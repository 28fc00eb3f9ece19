package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/eventlog"
	"correx/pkg/events"
)

// A replay is what `bus replay` was asked for.
type replay struct {
	filter
	facts   []string // names; empty: all
	from    string   // a point; empty: the beginning
	until   string   // a point; empty: the last record now
	through uint64   // a sequence; 0: until says it
	format  string
	follow  bool
	to      republish
}

func newReplay(a *app) *cobra.Command {
	var r replay
	var rerun, file string
	var verify bool
	cmd := &cobra.Command{
		Use: "replay", Short: "facts that are stored, from the beginning",
		Long: `Replay prints stored facts in the order of the log. A point is a sequence of
EVENTS, a time (2026-01-02T15:04:05Z, or 2026-01-02 15:04 in local time), the
beginning of a day (2026-01-02), or how long ago it is (10m).

Formats: story, for people; jsonl, a lossless object a line, each with its hash, and
of the whole stream with a head and an end that hold its identity and its chain;
cloudevents, structured CloudEvents 1.0, one a line; atif, one session as one
trajectory of the Agent Trajectory Interchange Format. --json is jsonl without hash,
head and end: seq, time, subject, headers, body.

With --follow it goes on with what is stored from now on, until Ctrl-C, also across
a restart of the bus; nothing is left out or comes twice.

With --to-prefix the facts are published again, under that prefix in place of evt, on
another server or on this one below replay; nobody acts on them. Nothing is printed.

With --verify nothing is printed. Each session is folded again, and every decision
of a kernel is held against what the rules of this program give for the state, the
world and the time that it names. The first of each session that differs is named
(exit status 1). --file verifies the lines of --json or --format jsonl, which know
no commands: what was wished is then told from the facts.

With plain NATS: nats sub 'evt.<session>.>' --all.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case cmd.Flags().Changed("rerun"):
				return a.rerun(cmd.Context(), events.SessionID(rerun))
			case verify:
				return a.replayVerify(cmd.Context(), file, r.through)
			case file != "":
				return cli.Usage("--file goes with --verify")
			}
			return a.replay(cmd.Context(), r)
		},
	}
	r.add(cmd)
	f := cmd.Flags()
	f.StringVar(&rerun, "rerun", "", "ask the models of this `session` again what they were asked, and say where the texts part")
	f.StringSliceVar(&r.facts, "fact", nil, "these facts only, such as tool.completed (bus schema lists them)")
	f.StringVar(&r.from, "from", "", "begin at this point")
	f.StringVar(&r.until, "until", "", "end at this point (default: the last record now)")
	f.Uint64Var(&r.through, "through", 0, "end at this sequence")
	f.StringVar(&r.format, "format", "", "story, jsonl, cloudevents or atif (default story)")
	f.BoolVar(&r.follow, "follow", false, "go on with what comes")
	f.BoolVar(&verify, "verify", false, "hold every decision against the rules, and print what differs")
	f.StringVar(&file, "file", "", "with --verify: a log as lines of JSON instead of the bus's")
	_ = cmd.MarkFlagFilename("file")
	f.StringVar(&r.to.prefix, "to-prefix", "", "publish the facts again under this prefix, such as replay")
	f.StringVar(&r.to.server, "to-server", "", "`URL` of the server to publish to (default: the bus's own)")
	f.StringVar(&r.to.creds, "to-creds", "", "credentials file for that server")
	f.StringVar(&r.to.speed, "speed", "", "full, original, or so many times as fast as it happened: 10x (default full)")
	cmd.MarkFlagsMutuallyExclusive("to-prefix", "format")
	cmd.MarkFlagsMutuallyExclusive("to-prefix", "verify")
	cmd.MarkFlagsMutuallyExclusive("to-prefix", "rerun")
	cmd.MarkFlagsMutuallyExclusive("until", "through", "follow")
	for _, other := range []string{"session", "kind", "fact", "from", "until", "through", "format", "follow"} {
		cmd.MarkFlagsMutuallyExclusive("rerun", other)
		if other != "through" {
			cmd.MarkFlagsMutuallyExclusive("verify", other)
		}
	}
	cmd.MarkFlagsMutuallyExclusive("verify", "rerun")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(replayFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) replay(ctx context.Context, r replay) error {
	sel, err := r.selection()
	if err != nil {
		return err
	}
	out, err := a.replayPrinter(r)
	if err != nil {
		return err
	}
	if err := r.to.check(); err != nil {
		return err
	}
	c, log, err := a.connectLog(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if r.to.prefix != "" {
		to, done, err := a.publisher(ctx, c.conn, r.to)
		if err != nil {
			return err
		}
		defer done()
		out = to
	}
	if r.follow {
		return log.Follow(ctx, sel.subject, sel.first(), sel.only(out.record))
	}
	last, err := log.Last(ctx)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if sel.whole() {
		if err := out.begin(log.Identity(), sel.last(last)); err != nil {
			return err
		}
	}
	if err := eachSelected(ctx, log, sel, sel.last(last), out.record); err != nil {
		return err
	}
	return out.end()
}

// eachSelected hands over what stands from the beginning of sel through last.
func eachSelected(ctx context.Context, log *eventlog.Log, sel selection, last uint64, fn func(events.Record) error) error {
	if last == 0 || sel.first() > last {
		return nil
	}
	return log.Each(ctx, sel.subject, sel.first(), last, sel.only(fn))
}

// check finds combinations that mean nothing.
func (r replay) check() error {
	switch {
	case r.format == formatATIF && r.session == "":
		return cli.Usage("--format atif tells one session: name it with --session")
	case r.format == formatATIF && r.session == string(events.System):
		return cli.Usage("--format atif tells a session, and system is none")
	case r.format == formatATIF && (r.follow || r.kind != "" || len(r.facts) > 0 || r.from != ""):
		return cli.Usage("--format atif tells a session from its beginning: leave --from, --kind, --fact and --follow out")
	}
	return nil
}
