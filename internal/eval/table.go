package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A result is one task done, or not, by one loop.
type result struct {
	Key     string  `json:"key"` // of what it was measured with: see [eval.key]
	Model   string  `json:"model"`
	Loop    string  `json:"loop"`
	Kind    kind    `json:"kind"`
	Task    string  `json:"task"`
	Done    bool    `json:"done"`
	Why     string  `json:"why,omitempty"` // it does not count as done
	Seconds float64 `json:"seconds"`
	outcome
}

// wilson is the 95 % confidence interval of a share (Wilson's score interval).
func wilson(done, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.96
	p, m := float64(done)/float64(n), float64(n)
	mid := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, mid-half), min(1, mid+half)
}

// table is Markdown: a line for each model and loop.
func table(results []result) string {
	var b strings.Builder
	b.WriteString("| model | loop | done | 95 % |")
	for _, k := range kinds {
		b.WriteString(" " + string(k) + " |")
	}
	b.WriteString(" valid actions | tokens a task | s a task |\n|---|---|---|---|" + strings.Repeat("---|", len(kinds)+3) + "\n")
	for _, of := range grouped(results) {
		b.WriteString(line(of))
	}
	return b.String()
}

// grouped are the results of one model and loop each, in the order of the runs.
func grouped(results []result) [][]result {
	var groups [][]result
	for _, r := range results {
		at := slices.IndexFunc(groups, func(g []result) bool { return g[0].Model == r.Model && g[0].Loop == r.Loop })
		if at < 0 {
			groups = append(groups, nil)
			at = len(groups) - 1
		}
		groups[at] = append(groups[at], r)
	}
	return groups
}

func line(of []result) string {
	var done, actions, invalid, tokens int
	var seconds float64
	byKind := map[kind][2]int{}
	for _, r := range of {
		n := byKind[r.Kind]
		n[1]++
		if r.Done {
			n[0]++
			done++
		}
		byKind[r.Kind] = n
		actions, invalid, tokens, seconds = actions+r.Actions, invalid+r.Invalid, tokens+r.Tokens, seconds+r.Seconds
	}
	low, high := wilson(done, len(of))
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %s | %d of %d (%s) | %.0f–%.0f %% |", of[0].Model, of[0].Loop, done, len(of), share(done, len(of)), 100*low, 100*high)
	for _, k := range kinds {
		fmt.Fprintf(&b, " %d/%d |", byKind[k][0], byKind[k][1])
	}
	fmt.Fprintf(&b, " %d of %d (%s) | %d | %.1f |\n", actions-invalid, actions, share(actions-invalid, actions), tokens/len(of), seconds/float64(len(of)))
	return b.String()
}

func share(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(of))
}
