package claim

import (
	"context"
	"errors"
	"time"

	"correx/pkg/events"
)

// A Job is how one kind of thing is claimed and done.
type Job struct {
	Rules Rules
	Work  Work
	// Journal is nil for work that touches nothing: there is nothing to roll
	// back, and what a lost worker did need not be known.
	Journal Journal
	// Idempotent work whose worker is lost is done again, at most
	// [MaxAttempts] times in all, provided it keeps no journal.
	Idempotent bool
}

// MaxAttempts is how often idempotent work is started at most.
const MaxAttempts = 3

// Rules is what the facts of one kind look like. Its methods are pure.
type Rules interface {
	// Fold reads a whole aggregate. It leaves State.Aggregate to the caller.
	Fold(recs []events.Record) State
	// Check returns the end of something that must not be claimed, and nil for
	// what may be. It is called with a State that is [Ready].
	Check(s State, now time.Time) events.Fact
	// Started builds the claim.
	Started(s State, c events.Claim) events.Fact
	// Failed builds an end for work that nobody finished.
	Failed(s State, f Failure) events.Fact
}

// Work does it.
type Work interface {
	// Run does what was claimed, and returns its end: a fact that carries
	// t.Fence(). Whatever fails is such a fact too. When ctx is done Run stops
	// soon, takes its effects back, and says so in the end; context.Cause says
	// why: a [Cancelled], [ErrFenced] or [ErrStopping].
	//
	// Work that touches something has it in the journal before the first
	// change, and the end in the journal before Run returns.
	Run(ctx context.Context, t Task) events.Fact
}

// A Journal remembers, across a crash, what work may have touched. Its methods
// are safe for concurrent use on different entries.
type Journal interface {
	// Entry returns what is written about an aggregate.
	Entry(a events.Aggregate) (Entry, bool)
	// Undo takes the effects back. It may be called again for the same entry,
	// and then says the same.
	Undo(ctx context.Context, e Entry) (Undone, error)
	// Result writes the end of an entry, durably.
	Result(e Entry, end events.Fact) error
	// Forget clears an entry whose end is on the log.
	Forget(e Entry) error
}

// An Entry is what the journal holds about one claim.
type Entry struct {
	Aggregate events.Aggregate
	Fence     events.Fence
	Result    events.Fact // nil: the work had not ended
}

// Undone is what came of taking effects back.
type Undone struct {
	Files   []events.RecoveredFile // that were restored, or left alone
	Effects events.Effects         // all in all
}

// A Task is a claim that was accepted.
type Task struct {
	State   State        // with the claim in it; its Fold is of before
	Claim   events.Claim // mine
	Started uint64       // F: the sequence of my started
}

// Fence returns what the end must carry.
func (t Task) Fence() events.Fence {
	return events.Fence{Started: t.Started, Nonce: t.Claim.Nonce}
}

// A Why says why work did not come to an end of its own, for programs.
type Why string

const (
	ApprovalEnded Why = "approval_ended" // started was stored after the approval's end
	WorkerLost    Why = "worker_lost"    // its worker does not answer
	Restarted     Why = "restarted"      // its worker died and is back
	TooLarge      Why = "too_large"      // the end does not fit into a message
	Broken        Why = "broken"         // the work returned no end
)

// A Failure is what is known about work that nobody finished.
type Failure struct {
	Why         Why
	Reason      string
	Recoverable bool
	Effects     events.Effects
	Fence       events.Fence
}

// ErrFenced is the cause when somebody else ended or repeated the work.
var ErrFenced = errors.New("fenced off: the log says that somebody else ended this or took it over")

// ErrStopping is the cause when the worker has no more time to wait.
var ErrStopping = errors.New("the worker is stopping")

// Cancelled is the cause when a cancel was asked for.
type Cancelled struct{ Reason string }

func (c Cancelled) Error() string {
	if c.Reason == "" {
		return "cancelled"
	}
	return "cancelled: " + c.Reason
}
