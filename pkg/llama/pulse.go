package llama

import (
	"sync"
	"time"
)

// A pulse says whether the inferences of a client get on.
type pulse struct {
	mu      sync.Mutex
	running int
	last    time.Time // when one began, or had something to say
}

// begin counts an inference until the function it returns is called.
func (p *pulse) begin() (end func()) {
	p.mu.Lock()
	p.running++
	p.mu.Unlock()
	p.beat()
	return func() {
		p.mu.Lock()
		p.running--
		p.mu.Unlock()
	}
}

func (p *pulse) beat() {
	p.mu.Lock()
	p.last = time.Now()
	p.mu.Unlock()
}

// since is when an inference last had something to say; false: none runs.
func (p *pulse) since() (last time.Time, running bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last, p.running > 0
}
