package natstest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// Restart stops every server in an orderly way and starts it again on the same
// address and store. It returns when JetStream answers.
func (b *Bus) Restart() {
	b.t.Helper()
	for i := range b.nodes {
		b.Stop(i)
	}
	for i := range b.nodes {
		b.start(i)
	}
	for i := range b.nodes {
		b.awaitReady(i)
	}
}

// RestartNode is [Bus.Restart] of server i alone.
func (b *Bus) RestartNode(i int) {
	b.t.Helper()
	b.Stop(i)
	b.Start(i)
}

// Stop stops server i; [Bus.Start] starts it again.
func (b *Bus) Stop(i int) { b.nodes[i].stop() }

// Start starts server i and waits until it is ready.
func (b *Bus) Start(i int) {
	b.t.Helper()
	b.start(i)
	b.awaitReady(i)
}

// StoreDir is where server i keeps its streams.
func (b *Bus) StoreDir(i int) string { return b.nodes[i].opts.StoreDir }

// Server returns the running server i, or nil.
func (b *Bus) Server(i int) *server.Server {
	n := b.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.srv
}

func (b *Bus) start(i int) {
	b.t.Helper()
	n := b.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.srv != nil {
		return
	}
	o := n.opts // NewServer changes what it is given
	srv, err := server.NewServer(&o)
	if err != nil {
		b.t.Fatalf("make server %d: %v", i, err)
	}
	n.srv = srv
	srv.Start()
}

func (n *node) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.srv == nil {
		return
	}
	n.srv.Shutdown()
	n.srv.WaitForShutdown()
	n.srv = nil
}

func (b *Bus) awaitReady(i int) {
	b.t.Helper()
	srv := b.Server(i)
	if !srv.ReadyForConnections(Patience) {
		b.t.Fatalf("server %d takes no connections within %v", i, Patience)
	}
	if len(b.nodes) == 1 {
		return
	}
	b.Await(fmt.Sprintf("JetStream of server %d to join the cluster", i), func() bool {
		return srv.JetStreamIsCurrent() && len(srv.ActivePeers()) == len(b.nodes)
	})
}

// Await polls until ok, and fails the test after [Patience].
func (b *Bus) Await(what string, ok func() bool) {
	b.t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			b.t.Fatalf("waited %v for %s", Patience, what)
		}
	}
}

// Leader is the number of the server that leads a stream, or -1.
func (b *Bus) Leader(stream string) int {
	if len(b.nodes) == 1 {
		return 0
	}
	for i := range b.nodes {
		if srv := b.Server(i); srv != nil && srv.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream) {
			return i
		}
	}
	return -1
}

// LeaderStepDown makes a stream's leader give up and waits for the next one.
func (b *Bus) LeaderStepDown(js jetstream.JetStream, stream string) {
	b.t.Helper()
	old := b.Leader(stream)
	reply, err := js.Conn().Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, Patience)
	if err != nil {
		b.t.Fatalf("ask the leader of %s to step down: %v", stream, err)
	}
	var answer struct {
		Success bool                `json:"success"`
		Error   *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil || !answer.Success {
		b.t.Fatalf("ask the leader of %s to step down: %s", stream, reply.Data)
	}
	b.Await("a new leader of "+stream, func() bool {
		l := b.Leader(stream)
		return l >= 0 && l != old
	})
}
