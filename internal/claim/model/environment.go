package model

import "fmt"

// Invocation is the model of one tool invocation.
//
// A conditional append succeeds iff nothing was appended since the read that it
// rests on. So a pending append is kept only while it can still succeed: every
// append resets those of others to what a refusal leads to.
type Invocation struct{ Config Config }

// Classes of fairness.
const (
	clsKernel = iota
	clsTime
	clsSlot
	clsC0
	clsC1
	clsC2
	clsOther
	classes
)

// Classes implements Model.
func (m *Invocation) Classes() int { return classes }

// Init implements Model: an invocation that a person is asked about, and one that
// policy allows.
func (m *Invocation) Init() []any { return []any{&inv{}, &inv{auto: 1}} }

func (m *Invocation) attempts() int {
	if m.Config.Attempts == 0 {
		return 3
	}
	return m.Config.Attempts
}

// steps emits the successors of one state.
type steps struct {
	m    *Invocation
	g    *Config
	s    *inv
	emit Emit
}

// Succ implements Model.
func (m *Invocation) Succ(a any, emit Emit) {
	t := &steps{m, &m.Config, a.(*inv), emit}
	t.kernel()
	t.people()
	t.server()
	for w := range 2 {
		t.process(w)
	}
}

func (t *steps) out(n *inv, class uint8, good bool, violation string, label func() string) {
	for i := range int(n.nc) { // what no longer matters
		if c := &n.c[i]; c.ph >= pJrn || c.ph == pGone {
			c.late = 0
		}
	}
	t.emit(t.m.Pack(n), n, class, good, violation, label)
}

// do emits one step.
func (t *steps) do(class uint8, good bool, label string, f func(n *inv) string) {
	n := *t.s
	v := f(&n)
	t.out(&n, class, good, v, func() string { return label })
}

// may emits a step that nobody may rely upon.
func (t *steps) may(label string, f func(n *inv)) {
	t.do(clsOther, false, label, func(n *inv) string { f(n); return "" })
}

// appended is what every append does to those that were to come.
func (s *inv) appended() {
	s.inv, s.pendA = 0, 0
	s.infl, s.inflP = noFlight, 0
	for w := range s.sl {
		for i := range s.sl[w] {
			if x := s.sl[w][i]; x >= sCheck && x <= sSelf {
				s.sl[w][i] = sIdle
			}
		}
	}
	if s.st >= fApproved {
		s.auto, s.A = 0, 0
	}
	if s.st >= fStarted {
		s.R = 0
	}
	if s.st >= fCancel {
		s.C = 0
	}
}

func (s *inv) ended() bool { return s.st >= fCompleted }

// kernel is either of two: it decides at any time, conditionally.
func (t *steps) kernel() {
	s := t.s
	decide := func(label string, to uint8) {
		t.do(clsKernel, true, "kernel: "+label, func(n *inv) string { n.decide(s, to); return "" })
	}
	switch s.st {
	case fNone:
		decide("requested", fReq)
	case fReq, fPrev:
		t.asks(decide)
	case fAsk:
		if s.A == 1 && s.t < 1 && s.pendA == 0 {
			t.may("kernel: decides approved (not yet appended)", func(n *inv) { n.pendA = 1 })
		}
		if s.pendA == 1 {
			decide("approved", fApproved)
		}
		if s.R == 1 {
			decide("denied", fDenied)
		}
		if s.t >= 1 {
			decide("expired", fExpired)
		}
		if s.C == 1 {
			decide("rejected (cancelled)", fRejected)
		}
	case fDenied, fExpired:
		decide("rejected", fRejected)
	case fApproved:
		if s.C == 1 || s.R == 1 {
			decide("rejected (cancelled)", fRejected)
		}
		if s.t >= 2 {
			decide("rejected (approval ended)", fRejected)
		}
	case fStarted:
		if s.C == 1 {
			decide("cancel_requested", fCancel)
		}
	}
}

func (s *inv) decide(before *inv, to uint8) {
	s.st = to
	s.appended()
	if to == fRejected && before.st != fApproved {
		s.acked = 1 // no approved message was ever sent
	}
}

func (t *steps) asks(decide func(string, uint8)) {
	s := t.s
	if s.auto == 0 {
		decide("approval_requested", fAsk)
	} else {
		decide("approved (policy)", fApproved)
	}
	t.may("kernel: rejected (invalid or cancelled)", func(n *inv) { n.decide(s, fRejected) })
	if s.A == 0 || s.auto == 1 || s.st != fPrev {
		return
	}
	// an early approval with the right digest, honoured
	if s.t < 1 && s.pendA == 0 {
		t.may("kernel: decides approved early (not yet appended)", func(n *inv) { n.pendA = 1 })
	}
	if s.pendA == 1 {
		t.may("kernel: approved", func(n *inv) { n.decide(s, fApproved) })
	}
}

// people is a person, time, a stranger, and who else edits the file.
func (t *steps) people() {
	s, g := t.s, t.g
	if s.A == 0 && s.auto == 0 && (s.st == fAsk || s.st == fPrev) {
		t.may("person: approves", func(n *inv) { n.A = 1 })
	}
	if s.R == 0 && s.st <= fApproved && s.auto == 0 {
		t.may("person: rejects", func(n *inv) { n.R = 1 })
	}
	if s.C == 0 && s.st <= fStarted {
		t.may("person: cancels", func(n *inv) { n.C = 1 })
	}
	if s.t < 2 {
		label := []string{"time: the question's deadline passes", "time: the approval's end passes"}[s.t]
		t.do(clsTime, true, label, func(n *inv) string { n.t++; return "" })
	}
	if g.Noise && s.nu == 0 && s.st >= fApproved && s.st <= fCancel {
		t.may("stranger: a record that does not hold", func(n *inv) { n.appended(); n.inv, n.nu = 1, 1 })
	}
	if g.Ext && s.ext == 0 && s.st >= fApproved {
		t.may("editor: changes the file", func(n *inv) { n.ext, n.file = 1, fileE })
	}
	if g.Aba && s.ext == 0 && s.nc > 0 {
		t.may("another invocation: writes the same bytes to the file", func(n *inv) { n.ext, n.file = 1, fileY })
	}
}

// server is acks that get lost, publishes that arrive late, and orphans.
func (t *steps) server() {
	s := t.s
	if s.acked == 1 && s.st >= fApproved && s.st != fRejected {
		t.may("server: a crash loses the ack", func(n *inv) { n.acked = 0 })
	}
	switch s.infl {
	case flStarted, flAgain:
		t.lateStarted(int(s.inflP))
	case flCompleted, flFailed:
		t.may(fmt.Sprintf("late end of claim %d reaches the log", s.inflP+1), func(n *inv) {
			t.m.end(n, s.inflP, s.infl == flCompleted)
		})
	case flLost:
		t.may("late failed{worker lost} reaches the log", func(n *inv) { n.fence() })
	}
	for i := range int(s.nc) {
		if s.c[i].orph == 1 {
			t.may("orphan: the dead worker's tool applies the effect", func(n *inv) {
				n.c[i].orph, n.c[i].eff, n.file = 0, eApplied, fileX
			})
		}
	}
}

func (t *steps) lateStarted(w int) {
	label := fmt.Sprintf("late started of W%d reaches the log; it ", w+1)
	t.may(label+"has dropped it", func(n *inv) { n.claimed(w, pGone) })
	if t.s.ws[w] == dead {
		return
	}
	for i := range t.s.sl[w] {
		if t.s.sl[w][i] == sRead {
			t.may(label+"still waits for it", func(n *inv) { n.claimed(w, pUnk); n.sl[w][i] = sBusy })
			return
		}
	}
}

// claimed appends a started of worker w.
func (s *inv) claimed(w int, ph uint8) {
	i := s.nc
	s.nc++
	s.st = fStarted
	s.appended()
	late := uint8(0)
	if s.t >= 2 {
		late = 1
	}
	s.c[i] = claim{ph: ph, w: uint8(w), late: late}
}

// fence appends failed{worker lost, effects unknown}.
func (s *inv) fence() {
	s.st, s.endC, s.endEff, s.endKind = fFailed, s.nc-1, effUnknown, byFencer
	s.appended()
}
