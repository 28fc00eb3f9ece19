package escape

import (
	"testing"
	"time"
)

// groups are the attempts, by theme.
func groups() []group {
	return []group{
		{"Files outside", fileAttempts()},
	}
}

// TestEscape makes every attempt, without a sandbox and at every level.
func TestEscape(t *testing.T) {
	all := roles(t)
	for _, g := range groups() {
		t.Run(g.name, func(t *testing.T) {
			for _, a := range g.attempts {
				t.Run(a.name, func(t *testing.T) { try(t, a, all) })
			}
		})
	}
}

// try makes one attempt as everybody, and holds what came of it against the
// documentation.
func try(t *testing.T, a attempt, all []*role) {
	var row verdicts
	for _, r := range all {
		if a.by == userOnly && r.uid == 0 {
			continue
		}
		t.Run(r.name, func(t *testing.T) { row = append(row, tryAs(t, a, r)) })
	}
	if !t.Failed() {
		report(t, a, row)
	}
}

// tryAs makes an attempt as one role: first where it must succeed, then at the
// levels above.
func tryAs(t *testing.T, a attempt, r *role) verdict {
	v := verdict{role: r.name, got: map[level]result{}}
	for _, l := range levels {
		if l == plain && a.from == none {
			continue
		}
		t.Run(string(l), func(t *testing.T) {
			got, said := once(t, a, r, l)
			v.got[l] = got
			if l == a.base() && got == held {
				v.absent = absence(t, a, r, said)
			}
			if l == full && got == escapes && a.open == "" {
				t.Errorf("it is not held; it said: %s", said)
			}
		})
	}
	return v
}

// once makes an attempt once.
func once(t *testing.T, a attempt, r *role, l level) (result, string) {
	s := r.newSite(t, l)
	if a.prepare != nil {
		a.prepare(t, s)
	}
	began := time.Now()
	o := r.run(t, l, s.command(t, a))
	o.took = time.Since(began)
	said := o.summary()
	t.Logf("after %s: %s", o.took.Round(time.Millisecond), said)
	switch {
	case o.Missing != "":
		t.Skipf("this machine does not reach %s: %s", l, o.Missing)
	case a.escaped != nil && a.escaped(t, s, o), a.escaped == nil && o.did():
		return escapes, said
	}
	return held, said
}
