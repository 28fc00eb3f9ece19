package modelworker

import (
	"sync"
	"time"
)

// A delta is what is published of an answer while it is generated.
type delta struct {
	Attempt   int    `json:"attempt"` // whose pieces these are: another attempt begins anew
	Index     int    `json:"index"`   // of the piece, from 0
	Delta     string `json:"delta"`
	Reasoning string `json:"reasoning,omitempty"` // in place of Delta: what the model thinks before it answers
}

// breath is how often the pieces of one answer are published: what a fast model
// says in between goes out together, for nobody reads faster, and each message
// costs the server and all who listen.
const breath = 25 * time.Millisecond

// A teller publishes the pieces of an answer in order, the first at once, and
// the rest at most one a breath. It never waits.
type teller struct {
	publish func(delta)

	mu       sync.Mutex
	next     delta // not published yet
	last     time.Time
	timer    *time.Timer // nil: none is set
	finished bool
}

func newTeller(attempt int, publish func(delta)) *teller {
	return &teller{publish: publish, next: delta{Attempt: attempt}}
}

// text and reasoning take the next piece.
func (t *teller) text(s string)      { t.add(s, "") }
func (t *teller) reasoning(s string) { t.add("", s) }

func (t *teller) add(text, reasoning string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text != "" && t.next.Reasoning != "" || reasoning != "" && t.next.Delta != "" {
		t.flush() // a piece is of one kind
	}
	t.next.Delta += text
	t.next.Reasoning += reasoning
	wait := breath - time.Since(t.last)
	switch {
	case wait <= 0:
		t.flush()
	case t.timer == nil:
		t.timer = time.AfterFunc(wait, t.late)
	}
}

// late publishes what had to wait.
func (t *teller) late() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = nil
	if !t.finished {
		t.flush()
	}
}

// end publishes what is left. Nothing is published after it.
func (t *teller) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
	t.finished = true
	if t.timer != nil {
		t.timer.Stop()
	}
}

func (t *teller) flush() {
	if t.next.Delta == "" && t.next.Reasoning == "" {
		return
	}
	t.publish(t.next)
	t.next = delta{Attempt: t.next.Attempt, Index: t.next.Index + 1}
	t.last = time.Now()
}
