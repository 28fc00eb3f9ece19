package natsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// natsLog is the server's log. What the server calls fatal must not end this
// process: it is kept, for Start to return.
type natsLog struct {
	log *slog.Logger

	mu    sync.Mutex
	fatal []error
}

func (l *natsLog) put(level slog.Level, format string, v []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, fmt.Sprintf(format, v...))
	}
}

func (l *natsLog) Noticef(format string, v ...any) { l.put(slog.LevelDebug, format, v) }
func (l *natsLog) Warnf(format string, v ...any)   { l.put(slog.LevelWarn, format, v) }
func (l *natsLog) Errorf(format string, v ...any)  { l.put(slog.LevelError, format, v) }
func (l *natsLog) Debugf(format string, v ...any)  {}
func (l *natsLog) Tracef(format string, v ...any)  {}

func (l *natsLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fatal = append(l.fatal, fmt.Errorf(format, v...))
}

func (l *natsLog) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.fatal...)
}
