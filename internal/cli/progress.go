package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A Progress is a line on stderr that appears when something takes over a
// second: on a terminal it counts and vanishes, elsewhere it is printed once.
type Progress struct {
	mu   sync.Mutex
	text string
	stop chan struct{}
	done sync.WaitGroup
}

// Progress begins one. The caller stops it.
func (e Env) Progress(text string) *Progress {
	p := &Progress{text: text, stop: make(chan struct{})}
	p.done.Go(func() { p.run(e.Stderr, e.ErrTerminal) })
	return p
}

// Say changes the text.
func (p *Progress) Say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
}

// Stop takes the line away. It may be called once.
func (p *Progress) Stop() {
	close(p.stop)
	p.done.Wait()
}

func (p *Progress) run(w io.Writer, terminal bool) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	start, said := time.Now(), ""
	for {
		select {
		case <-p.stop:
			if terminal && said != "" {
				fmt.Fprint(w, "\r\x1b[K")
			}
			return
		case <-tick.C:
		}
		p.mu.Lock()
		text := Line(p.text, 100)
		p.mu.Unlock()
		switch {
		case terminal:
			fmt.Fprintf(w, "\r\x1b[K%s … %ds", text, int(time.Since(start).Seconds()))
		case text != said:
			fmt.Fprintf(w, "%s ...\n", text)
		}
		said = text
	}
}
