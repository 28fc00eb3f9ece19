package main

import (
	"context"
	"fmt"
	"time"

	"correx/internal/eventlog"
	"correx/internal/session"
	"correx/pkg/events"
)

// A moment is a point as it was found in a session.
type moment struct {
	Seq   uint64    `json:"seq"`   // the session's last record up to it
	Time  time.Time `json:"time"`  // of the point; that of its record, if it is a sequence
	Later int       `json:"later"` // how many records of the session came after it
	count int       // how many came up to it
}

func (m moment) String() string { return fmt.Sprintf("%d (%s)", m.Seq, stamp(m.Time)) }

// since says that a session has gone on.
func (m moment) since() string {
	if m.Later == 0 {
		return ""
	}
	return "; " + counted(m.Later, "record") + " came later"
}

// stamp is a time with its day, for people.
func stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05.000") }

// A story is all that the log has of one session.
type story struct {
	session events.SessionID
	records []events.Record // at least one
	last    uint64          // the stream's last record, when it was read
	read    time.Time
}

func (a *app) story(ctx context.Context, log *eventlog.Log, id events.SessionID) (story, error) {
	wait := a.env.Progress("reading session " + string(id))
	defer wait.Stop()
	last, err := log.Last(ctx)
	if err != nil {
		return story{}, fmt.Errorf("show session %s: %w", id, err)
	}
	s := story{session: id, last: last, read: time.Now()}
	if s.last > 0 {
		if s.records, err = log.ReadFilter(ctx, events.SessionFilter(id), 1, s.last); err != nil {
			return story{}, fmt.Errorf("show session %s: %w", id, err)
		}
	}
	if len(s.records) == 0 {
		return story{}, fmt.Errorf("show session %s: the log has nothing of it", id)
	}
	return s, nil
}

// until folds the first n records.
func (s story) until(n int) session.State {
	state := session.State{ID: s.session}
	for _, r := range s.records[:n] {
		state = session.Evolve(state, r)
	}
	return state
}

// end is the moment of the last record.
func (s story) end() moment {
	r := s.records[len(s.records)-1]
	return moment{Seq: r.Seq, Time: r.Time.UTC(), count: len(s.records)}
}

// find looks a point up. It is an error if the session had not begun by then, or
// the log does not reach so far.
func (s story) find(p point) (moment, error) {
	first := s.records[0]
	switch {
	case p.seq > s.last:
		return moment{}, fmt.Errorf("point %s: EVENTS ends at sequence %d", p.text, s.last)
	case p.seq == 0 && p.time.After(s.read) && p.time.After(s.end().Time):
		return moment{}, fmt.Errorf("point %s: that is yet to come; it is %s", p.text, s.read.UTC().Format(time.RFC3339))
	}
	m := moment{Time: p.time.UTC()}
	for _, r := range s.records {
		if p.seq > 0 && r.Seq > p.seq || p.seq == 0 && r.Time.After(p.time) {
			break
		}
		m.Seq = r.Seq
		m.count++
		if p.seq > 0 {
			m.Time = r.Time.UTC()
		}
	}
	if m.count == 0 {
		return moment{}, fmt.Errorf("point %s: session %s had not begun; its first record is %d, at %s",
			p.text, s.session, first.Seq, first.Time.UTC().Format(time.RFC3339Nano))
	}
	m.Later = len(s.records) - m.count
	return m, nil
}

// showAt shows a session as it was at a point.
func (a *app) showAt(s story, p point) error {
	m, err := s.find(p)
	if err != nil {
		return err
	}
	return a.showState(s.until(m.count), s.records[:m.count], m.Time, &m, nil)
}
