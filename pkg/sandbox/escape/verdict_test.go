package escape

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A result is what came of an attempt at one level.
type result string

const (
	escapes result = "escapes"
	held    result = "held"
)

// A verdict is what came of an attempt as one role.
type verdict struct {
	role   string
	got    map[level]result // levels that this machine reaches
	absent string           // why it proves nothing as this role
}

// unprepared tells whether it was not even made where it must succeed.
func (v verdict) unprepared(a attempt) bool { return v.got[a.base()] == "" }

type verdicts []verdict

// allCapabilities is what root has where nothing is taken from it.
const allCapabilities = "000001ffffffffff"

// absence says why an attempt did not even succeed where nothing holds it. That
// is an error, unless there is a reason.
func absence(t *testing.T, a attempt, r *role, o outcome) string {
	t.Helper()
	switch {
	case o.printed(lacking), a.program != nil && o.Exit.Code == int(unix.ENOSYS):
		return "not on this machine"
	case a.by == rootOnly && r.uid != 0:
		return "for root only"
	case a.mayRefuse != "":
		return a.mayRefuse
	case r.uid == 0 && len(r.worker.hello.CapEff) == len(allCapabilities) && r.worker.hello.CapEff < allCapabilities:
		return "root is not allowed everything on this machine"
	}
	t.Errorf("it does not succeed even where nothing holds it, so it proves nothing; it said: %s", o.summary())
	return "it does not work"
}

// notHere is in the table where an attempt proves nothing.
const notHere = "not available here"

// cells are a row of the table, without its name: as whom it was tried, and the
// levels. A level that is not reached here is empty.
func (vs verdicts) cells() []string {
	var who []string
	var proved verdicts
	for _, v := range vs {
		if v.absent == "" {
			who, proved = append(who, v.role), append(proved, v)
		}
	}
	if len(proved) == 0 {
		return []string{"–", notHere, notHere, notHere, notHere}
	}
	row := []string{strings.Join(who, ", ")}
	for _, l := range levels {
		row = append(row, proved.at(l))
	}
	return row
}

// at is one cell.
func (vs verdicts) at(l level) string {
	var parts []string
	same := true
	for _, v := range vs {
		got, ok := v.got[l]
		if !ok && l != plain {
			return "" // not reached
		}
		if !ok {
			return "–" // aimed at the Runner: there is none
		}
		same = same && got == vs[0].got[l]
		parts = append(parts, fmt.Sprintf("%s as %s", got, v.role))
	}
	if same {
		return string(vs[0].got[l])
	}
	return strings.Join(parts, ", ")
}
