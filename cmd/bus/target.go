package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"correx/internal/cli"
	"correx/internal/session"
	"correx/pkg/events"
)

// A target names one invocation.
type target struct {
	session    events.SessionID // empty: whichever it is
	invocation events.ToolInvocationID
}

func (t target) String() string { return string(t.session) + "/" + string(t.invocation) }

// parseTarget reads "<session>/<invocation>" or "<invocation>".
func parseTarget(arg string) (target, error) {
	s, i, ok := strings.Cut(arg, "/")
	if !ok {
		s, i = "", arg
	}
	if err := events.CheckToken(i); err != nil {
		return target{}, cli.Usage("invocation %w; write <session>/<invocation>", err)
	}
	if ok {
		if err := events.CheckToken(s); err != nil {
			return target{}, cli.Usage("session %w; write <session>/<invocation>", err)
		}
	}
	return target{events.SessionID(s), events.ToolInvocationID(i)}, nil
}

// invocation reads one from the log.
func invocation(ctx context.Context, log reader, t target) (session.Invocation, error) {
	a := events.Aggregate{Session: t.session, Kind: events.KindTool, ID: string(t.invocation)}
	records, err := log.ReadFilter(ctx, a.Filter(), 1, 0)
	if err != nil {
		return session.Invocation{}, fmt.Errorf("read %s: %w", t, err)
	}
	return session.FoldInvocation(records), nil
}

// waiting finds the invocation that an argument names and that waits for an
// answer. An id without its session will do as long as one alone waits.
func waiting(ctx context.Context, log reader, arg string) (session.Invocation, error) {
	records, err := storiesOf(ctx, log, arg)
	if err != nil {
		return session.Invocation{}, err
	}
	return pick(arg, records)
}

// storiesOf reads all invocations that an argument may name, one of each session.
func storiesOf(ctx context.Context, log reader, arg string) ([]events.Record, error) {
	t, err := parseTarget(arg)
	if err != nil {
		return nil, err
	}
	s := string(t.session)
	if s == "" {
		s = "*"
	}
	filter := strings.Join([]string{events.PrefixFact, s, string(events.KindTool), string(t.invocation), ">"}, ".")
	records, err := log.ReadFilter(ctx, filter, 1, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", arg, err)
	}
	return records, nil
}

func pick(arg string, records []events.Record) (session.Invocation, error) {
	stories := map[events.SessionID][]events.Record{}
	for _, r := range records {
		stories[r.Aggregate.Session] = append(stories[r.Aggregate.Session], r)
	}
	var found []session.Invocation
	var others []string
	for _, s := range slices.Sorted(maps.Keys(stories)) {
		i := session.FoldInvocation(stories[s])
		i.Session = s
		if i.Status() == session.ApprovalRequested {
			found = append(found, i)
		}
		text := fmt.Sprintf("%s/%s is %s", s, i.ID, i.Status())
		if i.FollowUp() != nil {
			text += fmt.Sprintf(" (its review is %s/%s)", s, session.FollowUpID(i.ID))
		}
		others = append(others, text)
	}
	switch {
	case len(records) == 0:
		return session.Invocation{}, fmt.Errorf("%s: there is no such invocation; bus approvals lists what waits", arg)
	case len(found) == 0:
		return session.Invocation{}, fmt.Errorf("%s does not wait for an answer: %s", arg, strings.Join(others, ", "))
	case len(found) > 1:
		return session.Invocation{}, cli.Usage("%s waits in several sessions; write <session>/<invocation>: %s", arg, strings.Join(others, ", "))
	}
	return found[0], nil
}
