package escape

import (
	"slices"
	"testing"
	"time"
)

// groups are the attempts, by theme.
func groups() []group {
	return []group{
		{"Files outside", fileAttempts()},
		{"Secrets", secretAttempts()},
		{"The environment", environmentAttempts()},
		{"Git and protected files", gitAttempts()},
		{"Sockets", socketAttempts()},
		{"Processes", processAttempts()},
		{"Privileges", privilegeAttempts()},
		{"Mounts", mountAttempts()},
		{"The kernel", kernelAttempts()},
		{"Kernel files and devices", deviceAttempts()},
		{"Shared memory and queues", ipcAttempts()},
		{"Limits", limitAttempts()},
		{"Lingering", lingeringAttempts()},
		{"Races", raceAttempts()},
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

// try makes one attempt as everybody at once, and holds what came of it against
// the documentation.
func try(t *testing.T, a attempt, all []*role) {
	row := make(verdicts, len(all))
	t.Run("as", func(t *testing.T) {
		for i, r := range all {
			if a.by == userOnly && r.uid == 0 {
				continue
			}
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				row[i] = tryAs(t, a, r)
			})
		}
	})
	if !t.Failed() {
		report(t, a, slices.DeleteFunc(row, func(v verdict) bool { return v.role == "" }))
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
		if l != a.base() && v.unprepared(a) {
			continue
		}
		t.Run(string(l), func(t *testing.T) {
			got, o := once(t, a, r, l)
			v.got[l] = got
			if l == a.base() && got == held {
				v.absent = absence(t, a, r, o)
			}
			if l == full && got == escapes && !a.mayEscape(r) {
				t.Errorf("it is not held; it said: %s", o.summary())
			}
		})
	}
	if v.unprepared(a) {
		v.absent = "it could not be prepared"
	}
	return v
}

// once makes an attempt at one level; a race is run many times.
func once(t *testing.T, a attempt, r *role, l level) (result, outcome) {
	s := r.newSite(t, l)
	if a.prepare != nil {
		a.prepare(t, s)
	}
	var o outcome
	for range max(1, a.times) {
		began := time.Now()
		o = r.run(t, l, s.command(t, a))
		o.took = time.Since(began)
		if o.Missing != "" {
			t.Skipf("this machine does not reach %s: %s", l, o.Missing)
		}
		if a.escaped != nil && a.escaped(t, s, o) || a.escaped == nil && o.did() {
			t.Logf("it escapes after %s: %s", o.took.Round(time.Millisecond), o.summary())
			return escapes, o
		}
		if o.Error != "" && a.times == 0 {
			t.Errorf("it was not even started: %s", o.Error)
		}
	}
	t.Logf("it is held after %s: %s", o.took.Round(time.Millisecond), o.summary())
	return held, o
}
