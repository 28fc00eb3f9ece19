package workspace

import "sync"

// Steps finds the step that a [Recorder] is told of, where one path may have
// several, one after the other: those of one path are taken in their order.
type Steps struct {
	mu     sync.Mutex
	byPath map[string][]int // numbers of its steps
	at     map[string]int   // how many of them are staged
}

// NewSteps takes the path of every step.
func NewSteps(paths []string) *Steps {
	s := &Steps{byPath: make(map[string][]int, len(paths)), at: make(map[string]int)}
	for i, p := range paths {
		s.byPath[p] = append(s.byPath[p], i)
	}
	return s
}

// Next is the step of a path that comes next: after its last one, the last again.
func (s *Steps) Next(path string) (n int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.byPath[path]
	if len(all) == 0 {
		return 0, false
	}
	return all[min(s.at[path], len(all)-1)], true
}

// Stage is Next, and the one that is staged from now on.
func (s *Steps) Stage(path string) (n int, ok bool) {
	n, ok = s.Next(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok {
		s.at[path]++
	}
	return n, ok
}

// Staged is the step of a path that was staged last.
func (s *Steps) Staged(path string) (n int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, at := s.byPath[path], s.at[path]
	if len(all) == 0 {
		return 0, false
	}
	return all[max(0, min(at, len(all))-1)], true
}

// First is the first step of a path that has one.
func (s *Steps) First(path string) int {
	if all := s.byPath[path]; len(all) > 0 {
		return all[0]
	}
	return 0
}
