package model

import (
	"fmt"
	"strings"
)

// Invariant implements Model: no effect stands twice, and none against the log.
func (m *Invocation) Invariant(k Key) string {
	s := m.Unpack(k).(*inv)
	applied := 0
	for i := range int(s.nc) {
		if s.c[i].eff == eApplied {
			applied++
		}
	}
	switch {
	case applied > 1:
		return "V1a two executions have effects in place"
	case !m.Config.Files:
		return ""
	case s.st == fCompleted && s.file == fileO:
		return "V3a completed, but the effect is not in place"
	case s.st == fFailed && s.endEff == effNone && applied > 0:
		return "V3b failed{rolled back or none}, but an effect is in place"
	case s.st == fRejected && applied > 0:
		return "V3c rejected, but an effect is in place"
	}
	if !s.ended() {
		return ""
	}
	for i := range int(s.nc) {
		c := &s.c[i]
		if c.rec == 1 && c.eff == eApplied {
			return "V3d recovered{restored}, but the effect is in place"
		}
		if c.eff == eApplied && c.j == jGone && s.st == fFailed && c.rec == 0 && s.endEff != effConflict {
			return "V3f journal entry cleared, effect in place, nothing says so"
		}
	}
	return ""
}

// Assume implements Model: one worker lives.
func (m *Invocation) Assume(k Key) bool {
	s := m.Unpack(k).(*inv)
	return s.ws[0] == up || s.ws[1] == up
}

// Goal implements Model.
func (m *Invocation) Goal(k Key, which Goal) bool {
	s := m.Unpack(k).(*inv)
	if which == EndReached {
		return s.ended()
	}
	if !s.ended() || s.acked == 0 {
		return false
	}
	for i := range int(s.nc) {
		if c := &s.c[i]; c.ph != pGone && s.ws[c.w] == up {
			return false
		}
	}
	return true
}

// Show implements Shower.
func (m *Invocation) Show(a any) string {
	s := a.(*inv)
	var b strings.Builder
	fmt.Fprintf(&b, "| log:%s", factName[s.st])
	if s.st == fFailed {
		fmt.Fprintf(&b, "{by %s, effects %s}", []string{"owner", "fencer", "itself"}[s.endKind], []string{"none", "unknown", "conflict"}[s.endEff])
	}
	if s.inv == 1 {
		b.WriteString("+invalid")
	}
	fmt.Fprintf(&b, " t%d", s.t)
	if m.Config.Files {
		fmt.Fprintf(&b, " file=%s", []string{"old", "NEW", "edited", "same-bytes-by-other"}[s.file])
	}
	for i := range int(s.nc) {
		c := s.c[i]
		fmt.Fprintf(&b, " [c%d W%d %s journal=%s effect=%d]", i+1, c.w+1, phaseName[c.ph], journalName[c.j], c.eff)
	}
	if s.acked == 1 && s.st >= fApproved {
		b.WriteString(" acked")
	}
	return b.String()
}
