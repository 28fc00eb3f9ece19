package toolworker

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"correx/internal/eventlog"
	"correx/pkg/events"
)

// What is remembered of requests that may be approved soon.
const (
	maxRequests     = 1024
	maxRequestBytes = 16 << 20
)

// A log is EVENTS for claims: the request of a fresh approval is known already if
// it was heard as it was published, which saves the read between an approval and
// its claim. What was heard proves nothing; that the kernel signed the digest of
// it does.
type log struct {
	*eventlog.Log
	heard *requests
}

// First is the log's own, or what was heard, which has no sequence.
func (l log) First(ctx context.Context, a events.Aggregate) (events.Record, error) {
	if m := l.heard.take(a); m != nil {
		return l.Judge(0, m.Subject, events.Header(m.Header), m.Data), nil
	}
	return l.Log.First(ctx, a)
}

// requests are the latest that were heard, each until it is taken.
type requests struct {
	mu    sync.Mutex
	of    map[events.Aggregate]*nats.Msg
	order []events.Aggregate // oldest first; may have some that were taken
	bytes int
}

// hear remembers the requests of a tool from now on.
func (q *requests) hear(nc *nats.Conn, token string) (*nats.Subscription, error) {
	subject := events.PrefixFact + ".*." + string(events.KindTool) + ".*." + events.ToolInvocationRequested{}.FactName().Token() + "." + token
	s, err := nc.Subscribe(subject, q.put)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return s, nil
}

func (q *requests) put(m *nats.Msg) {
	a, _, _, err := events.ParseSubject(m.Subject)
	if err != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of == nil {
		q.of = map[events.Aggregate]*nats.Msg{}
	}
	q.drop(a)
	q.of[a] = m
	q.order = append(q.order, a)
	q.bytes += len(m.Data)
	for len(q.order) > maxRequests || q.bytes > maxRequestBytes {
		q.drop(q.order[0])
		q.order = q.order[1:]
	}
}

// take returns what was heard of a, once, or nil.
func (q *requests) take(a events.Aggregate) *nats.Msg {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.of[a]
	q.drop(a)
	return m
}

func (q *requests) drop(a events.Aggregate) {
	if m := q.of[a]; m != nil {
		q.bytes -= len(m.Data)
		delete(q.of, a)
	}
}
