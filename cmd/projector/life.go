package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"time"

	"correx/internal/cli"
	"correx/internal/eventlog"
	"correx/pkg/events"
)

// A life is one process's announcements.
type life struct {
	log    *eventlog.Log
	logger *slog.Logger
	id     string
	boot   string
	begun  bool
}

func newLife(id string, log *eventlog.Log, logger *slog.Logger) *life {
	return &life{log: log, logger: logger, id: id, boot: rand.Text()}
}

func (l *life) ref() events.Ref { return events.Ref{Session: events.System, ID: l.id} }

// begin announces the projector. It tries again until either context ends: a
// server that restarts is no reason to give up.
func (l *life) begin(ctx, asked context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(asked, cancel)()
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	f := events.WorkerStarted{Ref: l.ref(), Role: events.RoleProjector, Boot: l.boot, Host: host, PID: os.Getpid(), Version: cli.Version}
	switch _, err := l.log.Report(ctx, f); {
	case err == nil:
		l.begun = true
		return nil
	case ctx.Err() != nil:
		return nil
	default:
		return err
	}
}

// end announces that the projector stops, and waits until its own database has
// that, too, which it reports. It takes at most two seconds; what fails is only
// logged.
func (l *life) end(ctx context.Context, wait func(context.Context, uint64) error, reason string) bool {
	if !l.begun {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	l.begun = false
	seq, err := l.log.Report(ctx, events.WorkerStopped{Ref: l.ref(), Boot: l.boot, Reason: reason})
	if err == nil && wait != nil {
		err = wait(ctx, seq)
	}
	if err != nil {
		l.logger.Warn("announce the projector's stop", "error", err)
	}
	return err == nil
}
