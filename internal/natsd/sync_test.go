package natsd

import (
	"testing"
	"time"
)

// What is acknowledged is on the disk, unless somebody asked for less.
func TestSyncIsAlwaysUnlessAskedOtherwise(t *testing.T) {
	for _, c := range []struct {
		sync   string
		always bool
		every  time.Duration
	}{
		{"", true, 2 * time.Minute}, // every is the server's default, and of no effect
		{SyncAlways, true, 2 * time.Minute},
		{SyncInterval, false, time.Second},
	} {
		s, err := Start(t.Context(), Options{StateDir: t.TempDir(), Sync: c.sync})
		if err != nil {
			t.Fatal(err)
		}
		cfg := s.nats.JetStreamConfig()
		s.Shutdown()
		if cfg.SyncAlways != c.always || cfg.SyncInterval != c.every {
			t.Errorf("sync %q: always %t, every %s; want %t, %s", c.sync, cfg.SyncAlways, cfg.SyncInterval, c.always, c.every)
		}
	}
}
