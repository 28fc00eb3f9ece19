package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"correx/internal/cli"
)

// A point is a place in the log that a user named: a sequence of EVENTS, or a time.
type point struct {
	text string
	seq  uint64    // 0: a time
	time time.Time // when it is no sequence
}

// parsePoint reads a sequence, or what parseTime reads.
func parsePoint(text string, now time.Time) (point, error) {
	seq, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err == nil && seq > 0:
		return point{text: text, seq: seq}, nil
	case err == nil:
		return point{}, cli.Usage("point 0: the first sequence of EVENTS is 1")
	}
	t, err := parseTime(text, now)
	if err != nil {
		return point{}, cli.Usage("point %q %w, or a sequence (120)", text, err)
	}
	return point{text: text, time: t}, nil
}

// localTimes are the layouts of times that name no zone, which are those of now.
var localTimes = []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", "2006-01-02T15:04:05"}

// parseTime reads a time, a day, or how long before now it is. An error goes on
// from the text that was named.
func parseTime(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		if ago < 0 {
			return time.Time{}, fmt.Errorf("lies ahead; write how long ago it is (%s)", -ago)
		}
		return now.Add(-ago), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	for _, layout := range localTimes {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("is none; write a time (2026-01-31T15:04:05Z, or 2026-01-31 15:04 in local time), a day (2026-01-31) or how long ago it is (90m)")
}

// after reports whether p lies behind q, as far as that can be told without a log:
// of two sequences, or two times.
func (p point) after(q point) bool {
	if p.seq > 0 && q.seq > 0 {
		return p.seq > q.seq
	}
	return p.seq == 0 && q.seq == 0 && p.time.After(q.time)
}
