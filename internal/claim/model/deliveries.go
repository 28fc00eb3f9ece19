package model

import "fmt"

// process is what happens to worker w, and what it does.
func (t *steps) process(w int) {
	s, g := t.s, t.g
	name := fmt.Sprintf("W%d", w+1)
	switch s.ws[w] {
	case up:
		if g.Freeze {
			t.may(name+": SIGSTOP", func(n *inv) { n.ws[w] = frozen })
		}
	case frozen:
		t.may(name+": SIGCONT", func(n *inv) { n.ws[w] = up })
		for i := range int(s.nc) { // its tool may go on
			if int(s.c[i].w) == w && s.c[i].ph == pJrn && g.Files {
				t.claim(i).apply()
			}
		}
	case dead:
		t.may(name+": restarts with its journal", func(n *inv) { n.restart(w) })
	}
	if s.ws[w] != dead && s.crashes < g.Crashes {
		t.may(name+": SIGKILL", func(n *inv) { n.kill(w, g.Orphan && !g.Orph) })
	}
	if s.ws[w] == up {
		t.works(w, name)
	}
}

func (s *inv) restart(w int) {
	s.ws[w] = up
	for i := range int(s.nc) {
		c := &s.c[i]
		if int(c.w) != w || c.ph != pGone {
			continue
		}
		switch c.j {
		case jRun:
			c.ph = pRB
		case jC:
			c.ph = pResC
		case jF:
			c.ph = pResF
		}
		if c.ph != pGone {
			c.recov = 1
		}
	}
}

func (s *inv) kill(w int, orphans bool) {
	s.ws[w] = dead
	s.crashes++
	s.sl[w] = [2]uint8{}
	for i := range int(s.nc) {
		c := &s.c[i]
		if int(c.w) != w || c.ph == pGone {
			continue
		}
		if orphans && c.ph == pJrn {
			c.orph = 1
		}
		c.ph, c.recov = pGone, 0
	}
}

// works is what a living worker does next.
func (t *steps) works(w int, name string) {
	s := t.s
	if s.st == fReq && s.auto == 0 {
		t.may(name+": previewed", func(n *inv) { n.st = fPrev; n.appended() })
	}
	if s.st >= fApproved && s.acked == 0 && !t.m.holds(s, w) {
		for i := range s.sl[w] {
			if s.sl[w][i] == sIdle {
				t.do(clsSlot, true, name+": gets the approved message", func(n *inv) string { n.sl[w][i] = sRead; return "" })
				break
			}
		}
	}
	t.slot(w, 0, name)
	if s.sl[w][1] != s.sl[w][0] {
		t.slot(w, 1, name)
	}
	for i := range int(s.nc) {
		if int(s.c[i].w) == w && s.c[i].ph != pGone {
			t.claim(i).goOn()
		}
	}
}

// holds reports whether worker w has the invocation in its registry.
func (m *Invocation) holds(s *inv, w int) bool {
	for i := range int(s.nc) {
		c := &s.c[i]
		if int(c.w) != w || c.ph == pGone || m.Config.LateReg && c.ph == pUnk {
			continue
		}
		if !m.Config.Step5 || c.ph != pFenced && c.ph != pFRB {
			return true
		}
	}
	return false
}

// answers is what w says when it is asked about the latest started.
func (m *Invocation) answers(s *inv, w int) bool {
	c := &s.c[s.nc-1]
	return int(c.w) == w && c.ph != pGone && !(m.Config.LateReg && c.ph == pUnk)
}

func (t *steps) slot(w, i int, name string) {
	d := delivery{t, w, i, name}
	switch t.s.sl[w][i] {
	case sRead:
		d.read()
	case sCheck:
		d.check()
	case sClaim:
		d.append(flStarted, "started{attempt 1}", func(n *inv) string {
			v := ""
			if n.st != fApproved || n.nc != 0 {
				v = "V2 started not allowed by the table"
			}
			n.claimed(w, pUnk)
			n.sl[w][i] = sBusy
			return v
		})
	case sAsk:
		d.ask()
	case sFence:
		d.fence()
	case sSelf:
		d.step("failed{no effects} accepted (started, not journalled)", func(n *inv) string {
			n.st, n.endC, n.endEff, n.endKind = fFailed, n.nc-1, effNone, bySelf
			if n.nc > 1 && t.g.Files {
				n.endEff = effUnknown
			}
			n.appended()
			n.sl[w][i] = sRead
			return ""
		})
	}
}

// A delivery is a message in slot i of worker w.
type delivery struct {
	*steps
	w, i int
	name string
}

func (d delivery) step(label string, f func(n *inv) string) {
	d.do(clsSlot, true, d.name+": "+label, f)
}

func (d delivery) goes(label string, to uint8) {
	d.step(label, func(n *inv) string { n.sl[d.w][d.i] = to; return "" })
}

func (d delivery) read() {
	s := d.s
	switch {
	case s.ended():
		d.step("reads: an end is last; acks (clause 6)", func(n *inv) string {
			n.sl[d.w][d.i], n.acked = sIdle, 1
			return ""
		})
	case s.st == fApproved:
		d.goes("reads: approved is last", sCheck)
	case s.st == fCancel && !d.g.CancelFence:
		d.goes("reads cancel_requested: no clause fits; drops", sIdle)
	case s.st != fStarted && s.st != fCancel:
		d.goes("reads nothing to do; drops", sIdle)
	case int(s.c[s.nc-1].w) == d.w:
		d.readsOwn(&s.c[s.nc-1])
	default:
		o := s.c[s.nc-1].w + 1
		d.goes(fmt.Sprintf("reads W%d's %s; asks wrk.W%d.running", o, factName[s.st], o), sAsk)
	}
}

func (d delivery) readsOwn(o *claim) {
	switch {
	case d.m.answers(d.s, d.w):
		d.goes("reads its own started, runs it; drops the delivery", sIdle)
	case o.j != jNone:
		d.goes("reads its own started, the journal has it; drops the delivery", sIdle)
	case d.g.SelfAgain && d.again():
		d.goes("reads its own started of an earlier life; repeats it", sFence)
	default:
		d.goes("reads its own started of an earlier life, not in the journal", sSelf)
	}
}

func (d delivery) check() {
	if d.s.t < 2 && d.s.file == fileO {
		d.goes("checks the approval: holds", sClaim)
		return
	}
	d.step("checks the approval: does not hold; rejected", func(n *inv) string {
		n.st = fRejected
		n.appended()
		n.sl[d.w][d.i] = sRead
		return ""
	})
}

func (d delivery) ask() {
	o := d.s.c[d.s.nc-1].w
	if d.s.ws[o] != up || !d.m.answers(d.s, int(o)) {
		d.goes("no answer, or a denial, for a whole ack wait", sFence)
		return
	}
	d.goes("is answered: it runs; drops the delivery", sIdle)
	d.may(d.name+": no answer for a whole ack wait (partition)", func(n *inv) { n.sl[d.w][d.i] = sFence })
}

// again reports whether the work may be started once more.
func (d delivery) again() bool {
	return d.g.Idem && d.s.st == fStarted && int(d.s.nc) < d.m.attempts() && !(d.g.NoIdemFiles && d.g.Files)
}

func (d delivery) fence() {
	if d.again() {
		d.append(flAgain, fmt.Sprintf("started{attempt %d}", d.s.nc+1), func(n *inv) string {
			n.claimed(d.w, pUnk)
			n.sl[d.w][d.i] = sBusy
			return ""
		})
		return
	}
	d.append(flLost, "failed{worker lost, effects unknown}", func(n *inv) string {
		n.fence()
		n.sl[d.w][d.i] = sRead
		return ""
	})
}

// append is a conditional append that succeeds, gets lost, or is given up while
// it is still under way.
func (d delivery) append(flight uint8, what string, accepted func(n *inv) string) {
	d.step(what+" accepted", accepted)
	d.may(d.name+": publish of "+what+" lost; reads again", func(n *inv) { n.sl[d.w][d.i] = sRead })
	if !d.g.Delay || d.s.infl != noFlight {
		return
	}
	d.may(d.name+": gives up the publish of "+what+", which is still under way", func(n *inv) {
		n.sl[d.w][d.i] = sRead
		n.infl, n.inflP = flight, uint8(d.w)
		if flight == flLost {
			n.inflP = 0
		}
	})
}
