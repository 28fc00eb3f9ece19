package model

import "fmt"

// deciding emits the successors of a state of the kernels.
type deciding struct {
	m    *Kernels
	s    *ks
	emit Emit
}

// Succ implements Model.
func (m *Kernels) Succ(a any, emit Emit) {
	d := &deciding{m, a.(*ks), emit}
	d.people()
	d.worker()
	for i := range d.s.k {
		d.kernel(i)
	}
}

func (d *deciding) step(class int, good bool, label string, f func(n *ks) string) {
	n := *d.s
	v := f(&n)
	d.emit(d.m.Pack(&n), &n, uint8(class), good, v, func() string { return label })
}

func (d *deciding) people() {
	s := d.s
	for c := range uint8(commands) {
		if s.issued[c] == 0 && (c != 3 || s.issued[0] == 1) {
			d.step(2, false, "person: "+commandName[c], func(n *ks) string { n.issued[c] = 1; return "" })
		}
	}
	if s.t < 2 {
		d.step(3, true, "time passes a deadline", func(n *ks) string { n.t++; return "" })
	}
}

// worker previews, starts and ends at any time, by conditional appends.
func (d *deciding) worker() {
	writes := func(typ uint8, good bool) {
		d.step(4, good, "worker: "+factName[typ], func(n *ks) string { return n.append(typ, 0) })
	}
	switch d.s.state(d.s.n) {
	case fReq:
		writes(fPrev, false)
	case fApproved:
		if d.s.t < 2 {
			writes(fStarted, true)
		} else {
			writes(fRejected, true)
		}
	case fStarted, fCancel:
		writes(fCompleted, true)
		writes(fFailed, true)
	}
}

func (d *deciding) kernel(i int) {
	s, k := d.s, d.s.k[i]
	name := fmt.Sprintf("K%d", i+1)
	if k.pos < s.n && k.pend == 0 && k.rej == 0 {
		d.step(i, true, name+" folds "+factName[s.typ[k.pos]], func(n *ks) string { n.k[i].pos++; return "" })
	}
	if d.m.Crash {
		d.step(2, false, name+" crashes, folds from the start", func(n *ks) string { n.k[i] = kernel{min: n.n}; return "" })
	}
	switch {
	case k.pend != 0:
		d.appends(i, name)
	case k.rej != 0:
		d.step(i, true, name+": CommandRejected for "+commandName[k.rej-1]+" appended (its own aggregate)", func(n *ks) string {
			n.rejF[k.rej-1], n.k[i].rej = 1, 0
			return ""
		})
	case k.pos >= k.min: // not before the follower has passed its own last append
		d.decides(i, name)
		d.commands(i, name)
	}
}

func (d *deciding) decides(i int, name string) {
	s, k := d.s, d.s.k[i]
	decide := func(typ uint8) {
		d.step(i, true, fmt.Sprintf("%s (at %d) decides %s", name, k.pos, factName[typ]), func(n *ks) string { n.k[i].pend = typ; return "" })
	}
	switch s.state(k.pos) {
	case fNone:
		decide(fReq)
	case fReq, fPrev:
		decide(fAsk)
	case fAsk:
		if s.t >= 1 {
			decide(fExpired)
		}
	case fDenied, fExpired:
		decide(fRejected)
	case fApproved:
		if s.t >= 2 {
			decide(fRejected)
		}
	}
}

// commands are delivered to either kernel: pinning is no fence.
func (d *deciding) commands(i int, name string) {
	s, k := d.s, d.s.k[i]
	st := s.state(k.pos)
	for c := range uint8(commands) {
		if s.issued[c] == 0 || s.acked[c] == 1 {
			continue
		}
		if s.cited(k.pos, c) || s.rejF[c] == 1 {
			d.step(i, true, name+": "+commandName[c]+" was answered; acks", func(n *ks) string { n.acked[c] = 1; return "" })
			continue
		}
		switch typ := d.m.apply(st, c, s.t); {
		case typ != 0:
			d.step(i, true, fmt.Sprintf("%s (at %d) decides %s for %s", name, k.pos, factName[typ], commandName[c]), func(n *ks) string {
				n.k[i].pend, n.k[i].cite = typ, c+1
				return ""
			})
		case k.pos == s.n && st != fNone && d.m.mayReject(st, c):
			d.step(i, true, fmt.Sprintf("%s (at %d, the last) decides CommandRejected for %s", name, k.pos, commandName[c]), func(n *ks) string {
				n.k[i].rej = c + 1
				return ""
			})
		}
	}
}

func (d *deciding) appends(i int, name string) {
	k := d.s.k[i]
	if d.s.n != k.pos {
		d.step(i, true, name+": "+factName[k.pend]+" refused", func(n *ks) string { // it reads, and decides again
			n.k[i].pend, n.k[i].cite = 0, 0
			n.k[i].min = n.n
			return ""
		})
		return
	}
	accepted := func(known bool) func(n *ks) string {
		return func(n *ks) string {
			v := n.append(k.pend, k.cite)
			n.k[i].pend, n.k[i].cite = 0, 0
			if known {
				n.k[i].min = n.n
			}
			return v
		}
	}
	d.step(i, true, name+": "+factName[k.pend]+" accepted", accepted(true))
	d.step(2, false, name+": "+factName[k.pend]+" accepted, answer lost", accepted(false))
}
