package main

import (
	"context"
	"fmt"
	"time"

	"correx/internal/eventlog"
	"correx/internal/session"
	"correx/pkg/events"
)

// A pause is what a session that runs waits for. The kernel finds it by the same
// function, and does not put it on the log.
type pause struct {
	For   string    `json:"for"`
	Until time.Time `json:"until,omitzero"` // then something else is decided
}

// pauseOf finds what s waits for, given what workers announced; nil: for nothing,
// or the kernel is about to go on.
func pauseOf(ctx context.Context, log *eventlog.Log, s session.State, now time.Time) (*pause, error) {
	if s.Status != session.Running {
		return nil, nil
	}
	records, err := log.ReadFilter(ctx, events.KindFilter(events.System, events.KindWorker), 1, 0)
	if err != nil {
		return nil, fmt.Errorf("read what workers announced: %w", err)
	}
	var w session.World
	for _, r := range records {
		w = session.EvolveWorld(w, r)
	}
	next := session.React(s, w, now)
	if next.Waiting == "" || len(next.Decisions) > 0 {
		return nil, nil
	}
	return &pause{For: next.Waiting, Until: next.Wake}, nil
}

// String is the pause for people.
func (p pause) String() string {
	text := "waits for " + p.For
	if !p.Until.IsZero() {
		text += ", until " + p.Until.Local().Format("15:04:05")
	}
	return text
}
