package toolworker_test

import (
	"fmt"
	"sync"
	"testing"

	"correx/internal/access"
	"correx/internal/toolworker"
	"correx/pkg/events"
)

// BenchmarkCalls measures how fast approved calls of a tool that does nothing
// come to their end, on a server that syncs every write. Approving them is not
// counted.
func BenchmarkCalls(b *testing.B) {
	for _, tool := range []string{"peek", "count"} {
		for _, slots := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/slots=%d", tool, slots), func(b *testing.B) {
				p := newPlant(b, tokens...)
				p.askMany(b.N, tool)
				b.ResetTimer()
				p.start("w1", func(o *toolworker.Options) { o.Concurrency = slots })
				p.settled(access.ToolDurable(tool))
				b.StopTimer()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
				if i := p.invocation("t0-0"); !i.Status().Ended() {
					b.Errorf("first call is %s", i.Status())
				}
			})
		}
	}
}

// BenchmarkAsked is the same while somebody asks and approves them, 64 at a time.
func BenchmarkAsked(b *testing.B) {
	p := newPlant(b, tokens...)
	w := p.start("w1", func(o *toolworker.Options) { o.Concurrency = 64 })
	p.announced(string(w.id))
	b.ResetTimer()
	p.askMany(b.N, "peek")
	p.settled(access.ToolDurable("peek"))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func (p *plant) askMany(n int, tool string) {
	var wg sync.WaitGroup
	ids := make(chan int)
	for range 64 {
		wg.Go(func() {
			for i := range ids {
				p.ask(call{id: callID(i), tool: tool, params: `{}`, tier: events.T0})
			}
		})
	}
	for i := range n {
		ids <- i
	}
	close(ids)
	wg.Wait()
}

// BenchmarkFloor is what four appends cost, which every call is at least.
func BenchmarkFloor(b *testing.B) {
	p := newPlant(b, tokens...)
	b.ResetTimer()
	var wg sync.WaitGroup
	ids := make(chan int)
	for range 64 {
		wg.Go(func() {
			for i := range ids {
				c := call{id: callID(i), tool: "peek", params: `{}`}
				last := p.request(c)
				for range 3 {
					last = p.append(last, p.grant(c, "d"))
				}
			}
		})
	}
	for i := range b.N {
		ids <- i
	}
	close(ids)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
