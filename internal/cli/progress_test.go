package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgress(t *testing.T) {
	for _, c := range []struct {
		name     string
		terminal bool
		takes    time.Duration
		want     string
	}{
		{"short", true, 900 * time.Millisecond, ""},
		{"short, in a file", false, 900 * time.Millisecond, ""},
		{"long", true, 2500 * time.Millisecond, "\r\x1b[Kload \\x1bm … 1s\r\x1b[Kload \\x1bm … 2s\r\x1b[K"},
		{"long, in a file", false, 2500 * time.Millisecond, "load \\x1bm ...\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b bytes.Buffer
				p := Env{Stderr: &b, ErrTerminal: c.terminal}.Progress("load \x1bm")
				time.Sleep(c.takes) // of the bubble's clock
				p.Stop()
				if b.String() != c.want {
					t.Errorf("printed %q, want %q", b.String(), c.want)
				}
			})
		})
	}
}
