package model

import "fmt"

// An owner is a claim on its way to an end.
type owner struct {
	*steps
	i    int
	c    *claim
	name string
}

func (t *steps) claim(i int) owner {
	c := &t.s.c[i]
	name := fmt.Sprintf("W%d", c.w+1)
	if t.g.Idem {
		name += fmt.Sprintf(" (attempt %d)", i+1)
	}
	return owner{t, i, c, name}
}

func (o owner) step(good bool, label string, f func(n *inv, c *claim) string) {
	n := *o.s
	v := f(&n, &n.c[o.i])
	o.out(&n, uint8(clsC0+o.i), good, v, func() string { return o.name + ": " + label })
}

func (o owner) goes(good bool, label string, to uint8) {
	o.step(good, label, func(_ *inv, c *claim) string { c.ph = to; return "" })
}

// alive: the log still says that this claim owns it.
func (o owner) alive() bool {
	return o.i == int(o.s.nc)-1 && (o.s.st == fStarted || o.s.st == fCancel)
}

// obey: and a cancel was asked for.
func (o owner) obey() bool { return o.alive() && o.s.st == fCancel }

func (o owner) goOn() {
	switch o.c.ph {
	case pUnk:
		o.inDoubt()
	case pOwn:
		o.begin()
	case pJrn:
		o.apply()
		o.goes(true, "the tool fails before touching anything", pRB)
		if o.obey() {
			o.goes(true, "obeys the cancellation", pRB)
		}
	case pApp:
		o.step(true, "journals the result: completed", func(_ *inv, c *claim) string { o.result(c, pResC, jC); return "" })
		o.goes(true, "the tool fails after the effect", pRB)
		if o.obey() {
			o.goes(true, "obeys the cancellation after the effect", pRB)
		}
	case pRB:
		o.step(true, "rolls its change back", func(n *inv, c *claim) string { c.ph = pRBD; return o.m.rollback(n, c) })
	case pRBD:
		o.step(true, "journals the result: failed", func(_ *inv, c *claim) string { o.result(c, pResF, jF); return "" })
	case pResC, pResF:
		o.publish()
	case pEndUnk:
		if o.g.Naive5 {
			o.goes(true, "publishes its end again, refused: takes itself for fenced off", pFenced)
			return
		}
		o.goes(true, "reads again, finds its own end", pDone)
	case pFenced:
		o.step(true, "rolls its change back (clause 5)", func(n *inv, c *claim) string { c.ph = pFRB; return o.m.rollback(n, c) })
	case pFRB:
		o.recovered()
	case pRecUnk:
		o.goes(true, "reads again, finds its own recovered", pDone)
	case pDone:
		o.step(true, "acks, clears its journal entry", func(n *inv, c *claim) string {
			n.acked = 1
			if c.j != jNone {
				c.j = jGone
			}
			n.freeSlot(c)
			c.ph = pGone
			return ""
		})
	}
}

// result journals a result, if there is a journal at all.
func (o owner) result(c *claim, ph, j uint8) {
	c.ph = ph
	if o.g.Files {
		c.j = j
	}
}

func (s *inv) freeSlot(c *claim) {
	if c.recov == 1 {
		c.recov = 0
		return
	}
	for i := range s.sl[c.w] {
		if s.sl[c.w][i] == sBusy {
			s.sl[c.w][i] = sIdle
			return
		}
	}
}

func (o owner) inDoubt() {
	o.goes(true, "gets the answer to its started: runs", pOwn)
	if o.alive() {
		o.goes(false, "answer lost; reads again, finds its nonce: runs", pOwn)
		return
	}
	o.step(false, "answer lost; reads again, finds itself fenced; drops", func(n *inv, c *claim) string {
		n.freeSlot(c)
		c.ph = pGone
		return ""
	})
}

func (o owner) begin() {
	nothing := func(_ *inv, c *claim) string { o.result(c, pResF, jF); return "" }
	if o.g.Late && o.c.late == 1 {
		o.step(true, "its started was stored after the approval's end: result failed{none}", nothing)
		return
	}
	if o.obey() {
		o.step(true, "obeys the cancellation before it began", nothing)
	}
	if o.g.Files && o.g.Base && o.s.file != fileO {
		o.step(true, "the file is not as approved: result failed{none}", nothing)
		return
	}
	if !o.g.Files {
		o.step(true, "runs (touches nothing)", func(_ *inv, c *claim) string {
			v := o.lateRun(c)
			c.ph = pApp
			return v
		})
		return
	}
	o.step(true, "journals 'running' with the backup", func(n *inv, c *claim) string {
		v := o.lateRun(c)
		if n.file != fileO && v == "" {
			v = "V1c executes on a file that differs from the approved digest"
		}
		c.ph, c.j, c.bk = pJrn, jRun, n.file
		return v
	})
}

func (o owner) lateRun(c *claim) string {
	if c.late == 1 {
		return "V1b executes although the approval had ended when started was stored"
	}
	return ""
}

func (o owner) apply() {
	if o.g.Apply && o.s.file != o.c.bk {
		o.goes(true, "the file is no longer the pre-image; the tool fails", pRB)
		return
	}
	o.step(true, "applies the effect", func(n *inv, c *claim) string {
		v := ""
		if n.file != c.bk && n.file != fileX && n.file != fileO {
			v = "V3y the change overwrites what somebody else wrote after the backup"
		}
		n.file, c.eff, c.ph = fileX, eApplied, pApp
		return v
	})
}

// rollback restores only where the file is still what this claim left, or is the
// pre-image.
func (m *Invocation) rollback(s *inv, c *claim) (violation string) {
	if !m.Config.Files {
		return ""
	}
	settle := func(eff uint8) {
		if c.eff == eApplied {
			c.eff = eff
		}
	}
	switch {
	case s.file == fileX:
		if c.eff != eApplied && c.bk != fileX {
			violation = "V3e restore undoes another execution's work (the bytes were equal)"
		}
		s.file = c.bk
		settle(eUndone)
	case s.file == fileY && !m.Config.Ident:
		violation = "V3x restore erases another's work (the bytes were equal)"
		s.file = c.bk
		settle(eUndone)
	case s.file == c.bk:
		settle(eUndone)
	default:
		settle(eConflict)
	}
	return violation
}

func (o owner) publish() {
	s, completed := o.s, o.c.ph == pResC
	word := map[bool]string{true: "completed", false: "failed"}[completed]
	if !o.alive() || s.inv == 1 && !o.g.NoiseOK {
		if s.ended() && int(s.endC) == o.i && s.endKind == byOwner && !o.g.Naive5 {
			o.goes(true, word+" refused; the log has its own end already", pDone)
			return
		}
		o.goes(true, word+" refused: fenced off (clause 5)", pFenced)
		return
	}
	end := func(to uint8) func(n *inv, c *claim) string {
		return func(n *inv, c *claim) string {
			v := o.m.end(n, uint8(o.i), completed)
			c.ph = to
			return v
		}
	}
	o.step(true, word+" accepted", end(pDone))
	o.step(false, word+" accepted, answer lost", end(pEndUnk))
	if o.g.Delay && s.infl == noFlight {
		o.step(false, "gives up the publish of "+word+", still under way", func(n *inv, _ *claim) string {
			n.infl, n.inflP = flFailed, uint8(o.i)
			if completed {
				n.infl = flCompleted
			}
			return ""
		})
	}
	if o.obey() && completed && !o.g.CancelRes {
		o.goes(true, "obeys the cancellation although the result is journalled", pRB)
	}
}

// end appends the owner's end of claim i.
func (m *Invocation) end(n *inv, i uint8, completed bool) string {
	v := ""
	if n.st != fStarted && n.st != fCancel || i != n.nc-1 {
		v = "V2 end not allowed by the table"
	}
	n.endC, n.endKind, n.endEff = i, byOwner, effNone
	n.st = fCompleted
	if !completed {
		n.st = fFailed
		if n.c[i].eff == eConflict {
			n.endEff = effConflict
		}
	}
	n.appended()
	return v
}

func (o owner) recovered() {
	s := o.s
	switch {
	case o.c.rec != 0:
		o.goes(true, "finds its own recovered", pDone)
	case s.ended() && !o.g.Files && o.g.Step5:
		o.goes(true, "nothing to recover", pDone)
	case s.ended():
		o.step(true, "recovered accepted", o.tells(pDone))
		o.step(false, "recovered accepted, answer lost", o.tells(pRecUnk))
	case !o.g.Step5:
		o.step(true, "appends recovered though no end is on the log", func(n *inv, c *claim) string {
			n.appended()
			n.inv = 1
			c.ph = pDone
			return "V2a recovered follows " + factName[s.st] + ": not in the table"
		})
	case !o.g.Files:
		o.step(true, "superseded, touched nothing: drops, no ack", func(n *inv, c *claim) string {
			n.freeSlot(c)
			c.ph = pGone
			return ""
		})
	} // else it waits for an end
}

func (o owner) tells(to uint8) func(n *inv, c *claim) string {
	return func(n *inv, c *claim) string {
		v := ""
		for k := range int(n.nc) {
			if n.c[k].rec != 0 && n.st != fCompleted {
				v = "V2b recovered after recovered is not in the table"
			}
		}
		n.appended()
		c.rec, c.ph = 1, to
		if c.eff == eConflict {
			c.rec = 2
		}
		return v
	}
}
