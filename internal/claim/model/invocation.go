package model

// The last fact that holds.
const (
	fNone = iota
	fReq
	fPrev
	fAsk
	fDenied
	fExpired
	fApproved
	fStarted
	fCancel
	fCompleted
	fFailed
	fRejected
)

var factName = []string{
	"-", "requested", "previewed", "approval_requested", "denied", "expired",
	"approved", "started", "cancel_requested", "completed", "failed", "rejected",
}

// A slot: a delivery in the hands of a worker.
const (
	sIdle  = iota
	sRead  // has a delivery, will read the log
	sCheck // read: approved is last
	sClaim // checked, will append started
	sAsk   // read: somebody else's started, or a cancel after it
	sFence // no answer for a whole ack wait: will append failed, or started{+1}
	sSelf  // read: started of an earlier life of this worker, not in the journal
	sBusy  // runs it
)

// The phase of a claim.
const (
	pGone   = iota // nobody runs it now
	pUnk           // started is on the log, the answer not yet seen
	pOwn           // knows that it owns it
	pJrn           // journal: running, with the backup
	pApp           // effect applied
	pRB            // rolling back before it reports failed
	pRBD           // rolled back, journal not yet
	pResC          // journal: completed; publishing
	pResF          // journal: failed; publishing
	pEndUnk        // end is on the log, its answer lost
	pFenced        // my end was refused: fenced off
	pFRB           // fenced off and rolled back
	pRecUnk        // recovered is on the log, its answer lost
	pDone          // ack, forget the journal entry
)

var phaseName = []string{
	"gone", "in doubt", "owner", "journalled", "applied", "rolling back", "rolled back", "result=completed",
	"result=failed", "end in doubt", "fenced", "fenced+rolled back", "recovered in doubt", "done",
}

// The journal.
const (
	jNone = iota
	jRun
	jC
	jF
	jGone
)

var journalName = []string{"none", "running", "completed", "failed", "cleared"}

// The effect of a claim.
const (
	eNone = iota
	eApplied
	eUndone
	eConflict
)

// What is in the file.
const (
	fileO = iota // as approved
	fileX        // as this invocation leaves it
	fileE        // somebody else's edit
	fileY        // somebody else's, with the same bytes
)

// What the end says of effects.
const (
	effNone = iota // none in place
	effUnknown
	effConflict // a restore met another's work
)

// Who wrote the end.
const (
	byOwner = iota
	byFencer
	bySelf
)

// Whether a worker lives.
const (
	up = iota
	frozen
	dead
)

// A publish that was given up and is still under way.
const (
	noFlight = iota
	flStarted
	flCompleted
	flFailed
	flLost
	flAgain
)

// A claim is one started, and what its owner is about.
type claim struct {
	ph, j, eff, bk, w, late, rec, orph, recov uint8
}

// An inv is the state of everything.
type inv struct {
	st, inv, nu, nc           uint8 // last fact; last record does not hold; stranger used up; claims
	endC, endEff, endKind     uint8
	t, acked                  uint8 // deadlines that passed
	A, R, C, auto, pendA, ext uint8 // a person's approval, rejection, cancel; by policy; decided; edited
	file                      uint8
	ws                        [2]uint8
	crashes                   uint8
	sl                        [2][2]uint8
	infl, inflP               uint8
	c                         [3]claim
}

// visit packs or unpacks a state; x is 1 to swap the workers.
func (s *inv) visit(f field, x uint8) {
	for _, v := range []struct {
		p *uint8
		n uint
	}{
		{&s.st, 4}, {&s.inv, 1}, {&s.nu, 1}, {&s.nc, 2}, {&s.endC, 2}, {&s.endEff, 2}, {&s.endKind, 2},
		{&s.t, 2}, {&s.acked, 1}, {&s.A, 1}, {&s.R, 1}, {&s.C, 1}, {&s.auto, 1}, {&s.pendA, 1}, {&s.ext, 1},
		{&s.file, 2}, {&s.crashes, 2},
	} {
		f(v.p, v.n)
	}
	for w := range uint8(2) {
		f(&s.ws[w^x], 2)
		f(&s.sl[w^x][0], 3)
		f(&s.sl[w^x][1], 3)
	}
	f(&s.infl, 3)
	f(&s.inflP, 2)
	for i := range s.c {
		s.c[i].visit(f)
	}
}

func (c *claim) visit(f field) {
	f(&c.ph, 4)
	f(&c.j, 3)
	f(&c.eff, 2)
	f(&c.bk, 2)
	f(&c.w, 1)
	f(&c.late, 1)
	f(&c.rec, 2)
	f(&c.orph, 1)
	f(&c.recov, 1)
	pad := uint8(0)
	f(&pad, 1)
}

func (s *inv) pack(x uint8) Key {
	n := *s
	for w := range n.sl {
		if n.sl[w][0] > n.sl[w][1] { // slots of one worker are alike
			n.sl[w][0], n.sl[w][1] = n.sl[w][1], n.sl[w][0]
		}
	}
	if n.infl == flStarted || n.infl == flAgain {
		n.inflP ^= x
	}
	for i := range n.c {
		if i >= int(n.nc) {
			n.c[i] = claim{}
		} else {
			n.c[i].w ^= x
		}
	}
	var b bits
	n.visit(b.packing, x)
	return b.k
}

// Pack implements Model: the two workers are alike.
func (m *Invocation) Pack(a any) Key {
	p, q := a.(*inv).pack(0), a.(*inv).pack(1)
	if less(q, p) {
		return q
	}
	return p
}

// Unpack implements Model.
func (m *Invocation) Unpack(k Key) any {
	s, b := &inv{}, bits{k: k}
	s.visit(b.unpacking, 0)
	return s
}
