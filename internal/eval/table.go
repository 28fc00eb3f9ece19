package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A result is one task done, or not, by one loop.
type result struct {
	task    task
	loop    string
	model   string
	err     error // why it does not count as done
	outcome outcome
	seconds float64
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
		at := slices.IndexFunc(groups, func(g []result) bool { return g[0].model == r.model && g[0].loop == r.loop })
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
		n := byKind[r.task.kind]
		n[1]++
		if r.err == nil {
			n[0]++
			done++
		}
		byKind[r.task.kind] = n
		actions, invalid, tokens, seconds = actions+r.outcome.actions, invalid+r.outcome.invalid, tokens+r.outcome.tokens, seconds+r.seconds
	}
	low, high := wilson(done, len(of))
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %s | %d of %d (%.0f %%) | %.0f–%.0f %% |", of[0].model, of[0].loop, done, len(of),
		100*float64(done)/float64(len(of)), 100*low, 100*high)
	for _, k := range kinds {
		fmt.Fprintf(&b, " %d/%d |", byKind[k][0], byKind[k][1])
	}
	fmt.Fprintf(&b, " %d of %d | %d | %.1f |\n", actions-invalid, actions, tokens/len(of), seconds/float64(len(of)))
	return b.String()
}
