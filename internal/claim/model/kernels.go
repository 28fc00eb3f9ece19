package model

import (
	"fmt"
	"slices"
	"strings"
)

// Kernels is the model of two kernels with an explicit log and explicit prefixes:
// who decides, and what becomes of a person's commands. The worker is abstract.
type Kernels struct {
	Crash   bool // kernels crash and fold again
	Grounds bool // a command is rejected only on grounds that the log holds and that cannot change
}

const commands = 4

var commandName = []string{"approve", "reject", "cancel", "approve#2"}

// A kernel is how far one has folded, and what it is about to append.
type kernel struct {
	pos, min, pend, cite, rej uint8 // cite, rej: command+1
}

// A ks is the state of log, kernels and commands.
type ks struct {
	n      uint8
	typ    [8]uint8
	cit    [8]uint8
	k      [2]kernel
	issued [commands]uint8
	acked  [commands]uint8
	rejF   [commands]uint8
	t      uint8
}

func (s *ks) visit(f field, x uint8) {
	f(&s.n, 4)
	for i := range s.typ {
		f(&s.typ[i], 4)
		f(&s.cit[i], 3)
	}
	for i := range uint8(2) {
		k := &s.k[i^x]
		f(&k.pos, 4)
		f(&k.min, 4)
		f(&k.pend, 4)
		f(&k.cite, 3)
		f(&k.rej, 3)
	}
	for i := range commands {
		f(&s.issued[i], 1)
		f(&s.acked[i], 1)
		f(&s.rejF[i], 1)
	}
	f(&s.t, 2)
}

// Pack implements Model: the two kernels are alike.
func (m *Kernels) Pack(a any) Key {
	var p, q bits
	a.(*ks).visit(p.packing, 0)
	a.(*ks).visit(q.packing, 1)
	if less(q.k, p.k) {
		return q.k
	}
	return p.k
}

// Unpack implements Model.
func (m *Kernels) Unpack(key Key) any {
	s, b := &ks{}, bits{k: key}
	s.visit(b.unpacking, 0)
	return s
}

// Init implements Model.
func (m *Kernels) Init() []any { return []any{&ks{}} }

// Classes implements Model.
func (m *Kernels) Classes() int { return 5 }

// state is the last fact of a prefix.
func (s *ks) state(pos uint8) uint8 {
	if pos == 0 {
		return fNone
	}
	return s.typ[pos-1]
}

func (s *ks) cited(pos, c uint8) bool { return slices.Contains(s.cit[:pos], c+1) }

// table is what may follow what.
var table = map[uint8][]uint8{
	fNone: {fReq}, fReq: {fPrev, fAsk, fApproved, fRejected}, fPrev: {fAsk, fApproved, fRejected},
	fAsk: {fApproved, fDenied, fExpired, fRejected}, fDenied: {fRejected}, fExpired: {fRejected},
	fApproved: {fStarted, fRejected}, fStarted: {fCompleted, fFailed, fCancel}, fCancel: {fCompleted, fFailed},
}

func (s *ks) append(typ, cite uint8) string {
	v := ""
	if !slices.Contains(table[s.state(s.n)], typ) {
		v = fmt.Sprintf("V2 %s after %s", factName[typ], factName[s.state(s.n)])
	}
	if cite != 0 && s.cited(s.n, cite-1) {
		v = "VK2 a command carried out twice"
	}
	s.typ[s.n], s.cit[s.n] = typ, cite
	s.n++
	return v
}

// apply is the fact by which a command is carried out in a state; 0: it does not
// apply.
func (m *Kernels) apply(st, c, t uint8) uint8 {
	switch c {
	case 0, 3: // approve, with the digest of what was, or will be, shown
		if st == fAsk && t < 1 {
			return fApproved
		}
	case 1:
		switch st {
		case fReq, fPrev, fApproved:
			return fRejected
		case fAsk:
			return fDenied
		}
	case 2:
		switch st {
		case fReq, fPrev, fAsk, fApproved:
			return fRejected
		case fStarted:
			return fCancel
		}
	}
	return 0
}

// mayReject: may a command that does nothing in st be rejected now?
func (m *Kernels) mayReject(st, c uint8) bool {
	if !m.Grounds || st >= fCompleted {
		return true
	}
	over := st == fDenied || st == fExpired
	switch c {
	case 0, 3: // at the question, or before it, something may still make it apply
		return st > fAsk
	case 1:
		return st >= fStarted || over
	case 2:
		return st >= fCancel || over
	}
	return false
}

// Invariant implements Model.
func (m *Kernels) Invariant(key Key) string {
	s := m.Unpack(key).(*ks)
	var started, approved, against, ends int
	for _, f := range s.typ[:s.n] {
		switch f {
		case fStarted:
			started++
		case fApproved:
			approved++
		case fDenied, fExpired, fRejected:
			against++
		}
		if f >= fCompleted {
			ends++
		}
	}
	switch {
	case started > 0 && (against > 0 || approved == 0):
		return "V6 started beside denied, expired or rejected, or without approved"
	case ends > 1:
		return "V2 two ends"
	}
	for c := range uint8(commands) {
		if s.rejF[c] == 1 && s.cited(s.n, c) {
			return "VK1 a command was carried out and rejected: " + commandName[c]
		}
	}
	return ""
}

// Assume implements Model.
func (m *Kernels) Assume(Key) bool { return true }

// Goal implements Model.
func (m *Kernels) Goal(key Key, which Goal) bool {
	s := m.Unpack(key).(*ks)
	return s.state(s.n) >= fCompleted && (which == EndReached || s.issued == s.acked)
}

// Show implements Shower.
func (m *Kernels) Show(a any) string {
	s := a.(*ks)
	var l []string
	for i, f := range s.typ[:s.n] {
		x := factName[f]
		if s.cit[i] != 0 {
			x += "(" + commandName[s.cit[i]-1] + ")"
		}
		l = append(l, x)
	}
	for c := range s.rejF {
		if s.rejF[c] == 1 {
			l = append(l, "CommandRejected("+commandName[c]+")")
		}
	}
	return fmt.Sprintf("| %s t%d", strings.Join(l, " "), s.t)
}
