package claim_test

import (
	"strings"

	"correx/internal/session"
	"correx/pkg/events"
)

// judge holds what a call did against what its log says.
func (s *sim) judge(c *simCall, sum map[string]int) {
	i := session.FoldInvocation(s.log.read(c.a))
	fault := func(format string, a ...any) {
		s.t.Errorf("%s (kind %d): "+format+"; ran at %v; log: %v; end: %+v",
			append(append([]any{c.a, c.kind}, a...), c.ran, s.story(c), i.End)...)
	}
	if !i.Status().Ended() {
		fault("has no end")
		return
	}
	if i.Alarms != c.noise {
		fault("%d records do not hold, and strangers wrote %d", i.Alarms, c.noise)
	}
	most := 1
	if c.kind == idempotent {
		most = 3
	}
	if len(c.ran) > most {
		fault("ran %d times, at most %d are allowed", len(c.ran), most)
	}
	for _, f := range c.ran {
		if at := s.record(c, f).Time; at.After(c.until) {
			fault("the run at %d started after the approval's end", f)
		}
	}
	s.judgeEffects(c, i, fault)
	count(sum, i)
}

func (s *sim) judgeEffects(c *simCall, i session.Invocation, fault func(string, ...any)) {
	var inPlace []uint64
	for _, w := range s.workers {
		inPlace = append(inPlace, w.disk.effects(c.a)...)
	}
	switch e := i.End.(type) {
	case events.ToolExecutionCompleted:
		if len(c.ran) == 0 {
			fault("completed without having run")
		}
		if c.kind == touches && (len(inPlace) != 1 || inPlace[0] != e.Started) {
			fault("completed at %d, and the effects in place are of %v", e.Started, inPlace)
		}
	default:
		if len(inPlace) != 0 {
			fault("did not complete, and the effects of %v are in place (recovered: %+v)", inPlace, i.Recovered)
		}
	}
	if f, ok := i.End.(events.ToolExecutionFailed); ok && c.kind == touches && f.Effects == events.EffectsUnknown &&
		len(c.ran) == 1 && i.Recovered == nil && s.began(c) {
		fault("effects are unknown, and nothing says what became of them")
	}
	if i.Recovered != nil && c.kind != touches {
		fault("recovered what touches nothing")
	}
}

// began reports whether a run of c got as far as its journal.
func (s *sim) began(c *simCall) bool {
	for _, w := range s.workers {
		w.disk.mu.Lock()
		_, ok := w.disk.inPlace[c.a]
		w.disk.mu.Unlock()
		if ok {
			return true
		}
	}
	return false
}

func (s *sim) record(c *simCall, seq uint64) events.Record {
	for _, r := range s.log.read(c.a) {
		if r.Seq == seq {
			return r
		}
	}
	return events.Record{}
}

func count(sum map[string]int, i session.Invocation) {
	sum[string(i.Status())]++
	if i.Recovered != nil {
		sum["recovered"]++
	}
	if i.Started != nil && i.Started.Attempt > 1 {
		sum["attempt 2"]++
	}
	if f, ok := i.End.(events.ToolExecutionFailed); ok {
		for word, text := range map[string]string{
			"worker_lost": "was lost", "cancelled": "cancelled", "approval ended": "approval ended", "no effects": "before it began",
		} {
			if strings.Contains(f.Reason, text) {
				sum[word]++
			}
		}
		if f.Effects == events.EffectsRolledBack {
			sum["rolled back"]++
		}
	}
}
