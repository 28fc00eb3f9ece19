package main

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// stages is where the time of calls goes: the mean from each step that a client
// can see to the next. A fact is seen when it is published, not when it is safe.
type stages struct {
	mu    sync.Mutex
	last  map[string]mark
	order []string
	sum   map[string]time.Duration
	n     map[string]int
}

type mark struct {
	name string
	at   time.Time
}

func (s *stages) reached(id, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if before, ok := s.last[id]; ok {
		key := before.name + " → " + name
		if s.n[key] == 0 {
			s.order = append(s.order, key)
		}
		s.sum[key] += now.Sub(before.at)
		s.n[key]++
	}
	s.last[id] = mark{name, now}
	if name == "completed" {
		delete(s.last, id)
	}
}

func (s *stages) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.order, s.sum, s.n = map[string]mark{}, nil, map[string]time.Duration{}, map[string]int{}
}

func (s *stages) print() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.order {
		fmt.Fprintf(os.Stderr, "  %8.3f ms  %s\n", float64(s.sum[key].Microseconds())/1000/float64(s.n[key]), key)
	}
}
