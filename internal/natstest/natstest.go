// Package natstest starts real NATS servers inside a test's process.
//
// [Server] is one server, [Cluster] several; both come as a [Bus], so that one
// suite runs against a stream of one replica and a replicated one. Every write
// is synced, as in production. All of it ends with the test.
package natstest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Patience is how long a helper waits for a server before the test fails.
const Patience = 30 * time.Second

// A Bus is the servers of one test. Its addresses stay the same across restarts.
type Bus struct {
	t     testing.TB
	nodes []*node
}

// A node is one server; opts are what it is started with each time.
type node struct {
	mu   sync.Mutex
	opts server.Options
	srv  *server.Server // nil: stopped
}

// Server starts one server with JetStream; change alters its options first.
func Server(t testing.TB, change ...func(*server.Options)) *Bus {
	t.Helper()
	o := options(t, freePort(t))
	for _, c := range change {
		c(&o)
	}
	b := &Bus{t: t, nodes: []*node{{opts: o}}}
	b.startAll()
	return b
}

// Cluster starts n servers that form one JetStream cluster.
func Cluster(t testing.TB, n int) *Bus {
	t.Helper()
	b := &Bus{t: t}
	var routes []string
	ports := make([]int, n)
	for i := range ports {
		ports[i] = freePort(t)
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	for i := range n {
		o := options(t, freePort(t))
		o.ServerName = fmt.Sprintf("n%d", i)
		o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[i]}
		o.Routes = server.RoutesFromStr(strings.Join(routes, ","))
		b.nodes = append(b.nodes, &node{opts: o})
	}
	b.startAll()
	return b
}

// Fleet is [Server] for one and [Cluster] for more.
func Fleet(t testing.TB, n int) *Bus {
	t.Helper()
	if n == 1 {
		return Server(t)
	}
	return Cluster(t, n)
}

func options(t testing.TB, port int) server.Options {
	return server.Options{
		Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 8 << 30,
	}
}

// freePort finds a port below those that the system gives to outgoing
// connections: a server that restarts must find its port free again.
func freePort(t testing.TB) int {
	t.Helper()
	const lowest, highest = 10_000, 32_000
	var err error
	for range 100 {
		port := lowest + rand.IntN(highest-lowest)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatalf("find a free port: %v", err)
	return 0
}

func (b *Bus) startAll() {
	b.t.Helper()
	b.t.Cleanup(func() {
		for _, n := range b.nodes {
			n.stop()
		}
	})
	for i := range b.nodes {
		b.start(i)
	}
	for i := range b.nodes {
		b.awaitReady(i)
	}
}

// Size is the number of servers, and the replicas that its streams can have.
func (b *Bus) Size() int { return len(b.nodes) }

// URL names all servers.
func (b *Bus) URL() string {
	urls := make([]string, len(b.nodes))
	for i := range b.nodes {
		urls[i] = b.NodeURL(i)
	}
	return strings.Join(urls, ",")
}

// ClientURL is another name of [Bus.URL].
func (b *Bus) ClientURL() string { return b.URL() }

// NodeURL is the address of server i.
func (b *Bus) NodeURL(i int) string {
	o := &b.nodes[i].opts
	return fmt.Sprintf("nats://%s:%d", o.Host, o.Port)
}

// Connect returns a connection as the product makes them: it reconnects for
// ever and buffers nothing meanwhile.
func (b *Bus) Connect(t testing.TB, opts ...nats.Option) *nats.Conn {
	t.Helper()
	return connect(t, b.URL(), opts...)
}

// ConnectNode is like [Bus.Connect] to server i alone.
func (b *Bus) ConnectNode(t testing.TB, i int, opts ...nats.Option) *nats.Conn {
	t.Helper()
	return connect(t, b.NodeURL(i), append(opts, nats.IgnoreDiscoveredServers())...)
}

func connect(t testing.TB, url string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	opts = append([]nats.Option{
		nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, opts...)
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		t.Fatalf("connect to %s: %v", url, err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// JetStream returns JetStream on a connection of its own.
func (b *Bus) JetStream(t testing.TB) jetstream.JetStream {
	t.Helper()
	return JetStream(t, b.Connect(t))
}

// JetStream returns JetStream on nc.
func JetStream(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatalf("open JetStream: %v", err)
	}
	return js
}

// Context ends with the test, and after [Patience] at the latest.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}
