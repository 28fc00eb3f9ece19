package tools

import (
	"context"
	"fmt"
	"strings"

	"correx/pkg/events"
)

// Preview implements [Previewer]. What a program will do cannot be known; but
// whether it is allowed can, and at which tier, and what it may reach. A program
// that is allowed a dry run is run on an overlay, and shows what it would change.
func (t *ShellTool) Preview(ctx context.Context, r events.ToolRequest) Preview {
	call, err := t.parse(r)
	if err != nil {
		return Preview{Reason: err.Error(), Tier: events.T2}
	}
	p := Preview{Valid: true, Tier: t.TierFor(r)}
	if call.program.DryRun && t.mode == ShellTransactional && t.runner.Isolation() == events.IsolationFull {
		p = t.dryRun(ctx, r, p.Tier)
	}
	p.Notes = append(t.notes(call), p.Notes...)
	return p
}

// dryRun previews by doing, on an overlay.
func (t *ShellTool) dryRun(ctx context.Context, r events.ToolRequest, tier events.Tier) Preview {
	run, err := t.begin(ctx, r)
	if err != nil {
		return Preview{Reason: err.Error(), Tier: tier}
	}
	defer run.drop()
	set, exit, err := run.rehearse(ctx, false)
	if err != nil {
		return Preview{Valid: true, Tier: tier, Notes: []string{"its dry run did not come to an end: " + err.Error()}}
	}
	if reason, _ := t.reason(run.argv[0], string(exit.Stderr.Head), exit); reason != "" {
		return Preview{Valid: true, Tier: tier, Notes: []string{"its dry run failed: " + Summary(reason, 500)}}
	}
	p := previewOf(set, tier)
	for k := range p.Notes {
		p.Notes[k] = "dry run: " + p.Notes[k]
	}
	return p
}

// notes are what a person who is asked should know besides the command.
func (t *ShellTool) notes(c shellCall) []string {
	dir := c.dir
	if dir == "" {
		dir = "a directory of its own, which goes when it has ended"
	}
	notes := []string{"runs in " + dir}
	switch changeable := outermost(append(append([]string(nil), t.roots...), c.program.writable...)); {
	case len(changeable) == 0:
		notes = append(notes, "may change nothing else")
	case t.mode == ShellDirect:
		notes = append(notes, fmt.Sprintf("changes what it likes in %s, at once (mode direct)", strings.Join(changeable, ", ")))
	case t.commit == CommitReview:
		notes = append(notes, fmt.Sprintf("what it changes in %s is shown to you before it counts", strings.Join(changeable, ", ")))
	default:
		notes = append(notes, fmt.Sprintf("what it changes in %s is kept if it succeeds, else none of it", strings.Join(changeable, ", ")))
	}
	if c.program.interpreter {
		notes = append(notes, c.program.name+" can run any other program or code: read its arguments as you would a script")
	}
	if c.program.Network {
		notes = append(notes, c.program.name+" may reach the network")
	}
	return notes
}
