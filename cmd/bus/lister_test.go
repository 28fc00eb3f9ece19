package main

import (
	"strings"
	"testing"
	"time"
)

func TestTimeOf(t *testing.T) {
	zone := time.FixedZone("there", 2*3600)
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, zone)
	for text, want := range map[string]string{
		"90m":                  "2026-01-31T08:30:00Z",
		"2026-01-30":           "2026-01-29T22:00:00Z",
		"2026-01-30 15:04":     "2026-01-30T13:04:00Z",
		"2026-01-30T15:04:05":  "2026-01-30T13:04:05Z",
		"2026-01-30T15:04:05Z": "2026-01-30T15:04:05Z",
	} {
		got, err := timeOf(text, now)
		if err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%s is %v, %v, not %s", text, got.UTC(), err, want)
		}
	}
	r := queryRequest{Until: "yesterday"}
	if err := r.times(now); err == nil || !strings.Contains(err.Error(), `--until "yesterday": use a day`) {
		t.Errorf("yesterday: %v", err)
	}
}
