package toolworker

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"correx/pkg/events"
)

func requestOf(id string, size int) *nats.Msg {
	return &nats.Msg{Subject: "evt.s1.tool." + id + ".requested.echo", Data: make([]byte, size)}
}

func idOf(id string) events.Aggregate {
	return events.Aggregate{Session: "s1", Kind: events.KindTool, ID: id}
}

func TestRequestsAreTakenOnceAndForgottenInTime(t *testing.T) {
	var q requests
	q.put(requestOf("a", 1))
	q.put(requestOf("a", 2))
	if m := q.take(idOf("a")); m == nil || len(m.Data) != 2 {
		t.Errorf("took %v, want the last that was heard", m)
	}
	if m := q.take(idOf("a")); m != nil {
		t.Errorf("took %v again", m)
	}
	q.put(&nats.Msg{Subject: "evt.s1.tool"})
	for k := range 3 * maxRequests {
		q.put(requestOf(fmt.Sprint("n", k), 10))
	}
	if q.take(idOf("n0")) != nil || q.take(idOf(fmt.Sprint("n", 3*maxRequests-1))) == nil {
		t.Error("the oldest is kept, or the latest is not")
	}
	if len(q.of) > maxRequests || len(q.order) > maxRequests {
		t.Errorf("%d requests are kept, %d of them in order", len(q.of), len(q.order))
	}
	for k := range 5 {
		q.put(requestOf(fmt.Sprint("big", k), maxRequestBytes/2))
	}
	if q.bytes > maxRequestBytes || len(q.of) > 2 {
		t.Errorf("%d requests of %d bytes are kept", len(q.of), q.bytes)
	}
	for a := range q.of {
		q.take(a)
	}
	if q.bytes != 0 {
		t.Errorf("%d bytes are counted, and nothing is kept", q.bytes)
	}
}
