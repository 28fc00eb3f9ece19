package session

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"correx/internal/approval"
	"correx/pkg/events"
)

// A ToolInvocationStatus is where an invocation stands.
type ToolInvocationStatus string

const (
	Requested         ToolInvocationStatus = "REQUESTED"
	Previewed         ToolInvocationStatus = "PREVIEWED"
	ApprovalRequested ToolInvocationStatus = "APPROVAL_REQUESTED"
	Denied            ToolInvocationStatus = "DENIED"
	Expired           ToolInvocationStatus = "EXPIRED"
	Approved          ToolInvocationStatus = "APPROVED"
	Started           ToolInvocationStatus = "STARTED"
	CancelRequested   ToolInvocationStatus = "CANCEL_REQUESTED"
	Completed         ToolInvocationStatus = "COMPLETED"
	Failed            ToolInvocationStatus = "FAILED"
	Rejected          ToolInvocationStatus = "REJECTED"
)

// Ended reports whether nothing but recovered may follow.
func (s ToolInvocationStatus) Ended() bool {
	return s == Completed || s == Failed || s == Rejected
}

// mayFollow is the table of what may follow the last fact that holds. A second
// started, and which claim an end belongs to, are checked besides.
var mayFollow = map[ToolInvocationStatus]string{
	"":                "requested",
	Requested:         "previewed approval_requested approved rejected",
	Previewed:         "approval_requested approved rejected",
	ApprovalRequested: "approved denied expired rejected",
	Denied:            "rejected",
	Expired:           "rejected",
	Approved:          "started rejected",
	Started:           "started cancel_requested completed failed",
	CancelRequested:   "completed failed",
	Completed:         "recovered", Failed: "recovered", Rejected: "recovered",
}

// An Invocation is the fold of one tool aggregate. The zero value is one that
// nobody asked for.
type Invocation struct {
	Session events.SessionID
	ID      events.ToolInvocationID

	Requested    *events.ToolInvocationRequested
	RequestedSeq uint64
	RequestedAt  time.Time // as stored
	Previewed    *events.ToolPreviewed
	Asked        *events.ApprovalRequested
	Granted      *events.ApprovalGranted
	GrantedSeq   uint64
	Denied       *events.ApprovalDenied
	Expired      *events.ApprovalExpired
	Started      *events.ToolExecutionStarted // the latest that holds
	StartedSeq   uint64                       // the fencing token F
	StartedAt    time.Time                    // as stored
	Cancel       *events.CancelRequested
	End          events.Fact // Completed, Failed or Rejected
	EndSeq       uint64
	EndID        string // of the record, as the follow-up cites it
	EndedAt      time.Time
	Recovered    *events.Recovered

	LastSeq  uint64 // the aggregate's last record, whatever it is
	LastHeld uint64 // the last one that holds
	Alarms   int    // records that do not hold

	status ToolInvocationStatus
}

// Status says where the invocation stands; it is empty for the zero value.
func (i Invocation) Status() ToolInvocationStatus { return i.status }

// FoldInvocation folds the records of one aggregate, oldest first.
func FoldInvocation(recs []events.Record) Invocation {
	var i Invocation
	for _, r := range recs {
		i, _ = i.Step(r)
	}
	return i
}

// Digest names what an approval of this invocation must be for.
func (i Invocation) Digest(policyVersion string) string {
	if i.Requested == nil {
		return ""
	}
	return approval.Digest(i.Requested.Request.Tool, i.Requested.Request.Parameters, i.base(), policyVersion)
}

func (i Invocation) base() []events.BaseHash {
	if i.Previewed == nil {
		return nil
	}
	return i.Previewed.Base
}

// Tier is the highest tier that a fact gives the invocation: the request, its
// preview, the question or the approval, which know the offer.
func (i Invocation) Tier() events.Tier {
	if i.Requested == nil {
		return events.T4
	}
	t := i.Requested.Tier
	if i.Previewed != nil {
		t = max(t, i.Previewed.Tier)
	}
	if i.Asked != nil {
		t = max(t, i.Asked.Tier)
	}
	if i.Granted != nil {
		t = max(t, i.Granted.Tier)
	}
	return t
}

// Step folds one more record. A record that does not hold changes nothing but
// LastSeq and Alarms, and comes back as an error that says why.
func (i Invocation) Step(r events.Record) (Invocation, error) {
	i.LastSeq = r.Seq
	f, err := held(r)
	if err == nil {
		err = i.allowed(f, r.Err == nil)
	}
	if err != nil {
		i.Alarms++
		return i, err
	}
	i.LastHeld = r.Seq
	return i.apply(f, r), nil
}

// held returns the fact of a record that can be read. An end that cannot be
// decoded is an end all the same.
func held(r events.Record) (events.Fact, error) {
	if r.Err == nil {
		return r.Fact, nil
	}
	if !errors.Is(r.Err, events.ErrUnreadable) {
		return nil, r.Err
	}
	_, name, _, err := events.ParseSubject(r.Subject)
	if err != nil {
		return nil, r.Err
	}
	reason := "unreadable: " + r.Err.Error()
	switch name {
	case "tool.completed", "tool.failed":
		return events.ToolExecutionFailed{Ref: r.Aggregate.Ref(), Reason: reason, Effects: events.EffectsUnknown}, nil
	case "tool.rejected":
		return events.ToolExecutionRejected{Ref: r.Aggregate.Ref(), Reason: reason}, nil
	case "inference.completed", "inference.failed":
		return events.InferenceFailed{Ref: r.Aggregate.Ref(), Code: events.FailServer, Reason: reason, Recoverable: true}, nil
	}
	return nil, r.Err
}

// allowed reports why f may not follow. What could not be read names no claim,
// and passes for an end of the latest.
func (i Invocation) allowed(f events.Fact, readable bool) error {
	token := f.FactName().Token()
	if !contains(mayFollow[i.status], token) {
		return fmt.Errorf("%s may not follow %s", token, orNothing(string(i.status)))
	}
	switch f := f.(type) {
	case events.ApprovalRequested:
		return i.rightDigest(f.Digest, f.Policy)
	case events.ApprovalGranted:
		if i.Asked != nil && f.Digest != i.Asked.Digest {
			return fmt.Errorf("approved digest %.12s, asked for %.12s", f.Digest, i.Asked.Digest)
		}
		return i.rightDigest(f.Digest, f.Policy)
	case events.ToolExecutionStarted:
		if want := i.attempts() + 1; f.Attempt != want {
			return fmt.Errorf("started with attempt %d, expected %d", f.Attempt, want)
		}
	case events.ToolExecutionCompleted:
		return i.fenced(f.Fence, false)
	case events.ToolExecutionFailed:
		if !readable {
			return nil
		}
		return i.fenced(f.Fence, true)
	case events.Recovered:
		if i.Recovered != nil {
			return errors.New("recovered may not follow recovered")
		}
	}
	return nil
}

func (i Invocation) rightDigest(digest, policy string) error {
	if want := i.Digest(policy); digest != want {
		return fmt.Errorf("digest is %.12s, that of the request and its preview is %.12s", digest, want)
	}
	return nil
}

func (i Invocation) attempts() int {
	if i.Started == nil {
		return 0
	}
	return i.Started.Attempt
}

// fenced checks that an end is of the latest claim. Somebody else than its owner
// may only fail it.
func (i Invocation) fenced(f events.Fence, byOthers bool) error {
	if f.Started != i.StartedSeq {
		return fmt.Errorf("end of the claim at %d, the latest is at %d", f.Started, i.StartedSeq)
	}
	if f.Nonce != i.Started.Nonce && !(byOthers && f.Nonce == "") {
		return fmt.Errorf("end with the nonce %q, the claim has %q", f.Nonce, i.Started.Nonce)
	}
	return nil
}

func (i Invocation) apply(f events.Fact, r events.Record) Invocation {
	switch f := f.(type) {
	case events.ToolInvocationRequested:
		i.Session, i.ID = f.Session, events.ToolInvocationID(f.ID)
		i.Requested, i.RequestedSeq, i.RequestedAt, i.status = &f, r.Seq, r.Time, Requested
	case events.ToolPreviewed:
		i.Previewed, i.status = &f, Previewed
	case events.ApprovalRequested:
		i.Asked, i.status = &f, ApprovalRequested
	case events.ApprovalGranted:
		i.Granted, i.GrantedSeq, i.status = &f, r.Seq, Approved
	case events.ApprovalDenied:
		i.Denied, i.status = &f, Denied
	case events.ApprovalExpired:
		i.Expired, i.status = &f, Expired
	case events.ToolExecutionStarted:
		i.Started, i.StartedSeq, i.StartedAt, i.status = &f, r.Seq, r.Time, Started
	case events.CancelRequested:
		i.Cancel, i.status = &f, CancelRequested
	case events.ToolExecutionCompleted:
		return i.ended(f, r, Completed)
	case events.ToolExecutionFailed:
		return i.ended(f, r, Failed)
	case events.ToolExecutionRejected:
		return i.ended(f, r, Rejected)
	case events.Recovered:
		i.Recovered = &f
	}
	return i
}

func (i Invocation) ended(f events.Fact, r events.Record, s ToolInvocationStatus) Invocation {
	i.End, i.EndSeq, i.EndID, i.EndedAt, i.status = f, r.Seq, r.Header.Get(events.HeaderID), r.Time, s
	return i
}

// contains reports whether word is one of words, which spaces separate.
func contains(words, word string) bool {
	return strings.Contains(" "+words+" ", " "+word+" ")
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
