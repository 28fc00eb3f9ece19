package worker

import (
	"context"
	"log/slog"
)

// quiet returns a logger for Watermill's own voice: what it calls information
// is news to its developers only.
func quiet(l *slog.Logger) *slog.Logger { return slog.New(quieter{l.Handler()}) }

type quieter struct{ slog.Handler }

func (q quieter) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

func (q quieter) WithAttrs(a []slog.Attr) slog.Handler { return quieter{q.Handler.WithAttrs(a)} }
func (q quieter) WithGroup(g string) slog.Handler      { return quieter{q.Handler.WithGroup(g)} }
