// Bench measures Correx. Each figure stands beside a floor that was measured in
// the same minute on the same machine; only their ratio means anything
// elsewhere. It prints a table and writes bench/results.json.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// A row is one figure.
type row struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Floor float64 `json:"floor"`
	Ratio float64 `json:"ratio"`           // value / floor
	Added float64 `json:"added,omitempty"` // value - floor, where that is what counts
	want  string  // what the ratio should be, for people
}

// A benchmark makes one row. Run takes about the time given.
type benchmark struct {
	name, want string
	run        func(ctx context.Context, b *bench) (row, error)
}

var benchmarks = []benchmark{
	{"calls_full", "≥ 0.35", func(ctx context.Context, b *bench) (row, error) { return b.calls(ctx, "always") }},
	{"calls_relaxed", "", func(ctx context.Context, b *bench) (row, error) { return b.calls(ctx, "interval") }},
	{"latency_full", "≤ 2.5", func(ctx context.Context, b *bench) (row, error) { return b.latency(ctx) }},
	{"project", "≥ 0.7", func(ctx context.Context, b *bench) (row, error) { return b.project(ctx) }},
	{"verify", "≥ 0.5", func(ctx context.Context, b *bench) (row, error) { return b.verify(ctx) }},
	{"spawn_full", "≤ 9", func(ctx context.Context, b *bench) (row, error) { return b.spawn(ctx, "full") }},
	{"spawn_ballast", "≤ 1.2", func(ctx context.Context, b *bench) (row, error) { return b.spawn(ctx, "ballast") }},
	{"inference_latency", "≤ 8 ms more", func(ctx context.Context, b *bench) (row, error) { return b.inferenceLatency(ctx) }},
	{"inference_throughput", "≥ 0.95", func(ctx context.Context, b *bench) (row, error) { return b.inferenceThroughput(ctx) }},
}

// bench is what all benchmarks share.
type bench struct {
	root string        // of the module
	dir  string        // scratch
	span time.Duration // of one measurement

	events int   // in the log that is projected and verified
	log    *bulk // it, once it is made

	stages bool // print where the time goes
}

func main() {
	if done, err := asServer(os.Args[1:]); done {
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench server:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// asServer makes this program a server, if the arguments say so.
func asServer(args []string) (done bool, err error) {
	switch {
	case len(args) == 3 && args[0] == serverArg:
		return true, bareServer(args[1], args[2])
	case len(args) == 2 && args[0] == productArg:
		return true, productServer(args[1])
	}
	return false, nil
}

func run(ctx context.Context) error {
	only := flag.String("run", "", "rows, separated by commas (default all)")
	out := flag.String("out", filepath.Join("bench", "results.json"), "where the results go")
	span := flag.Duration("span", 8*time.Second, "length of one measurement")
	records := flag.Int("events", 1_000_000, "records in the log that is projected and verified")
	stages := flag.Bool("stages", false, "print where the time of calls goes")
	flag.Parse()
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return errors.New("run it from the top of the checkout, as make bench does")
	}
	dir, err := os.MkdirTemp("", "correx-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{root: root, dir: dir, span: *span, events: *records, stages: *stages}
	defer b.close()
	var rows []row
	for _, m := range benchmarks {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), m.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s ...\n", m.name)
		r, err := m.run(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		r.Name, r.want = m.name, m.want
		r.Ratio = r.Value / r.Floor
		rows = append(rows, r)
	}
	return errors.Join(table(rows), write(*out, rows))
}

func table(rows []row) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "name\tvalue\tfloor\tunit\tratio\twanted\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%s\t%.2f\t%s\t\n", r.Name, r.Value, r.Floor, r.Unit, r.Ratio, r.want)
	}
	return w.Flush()
}

func write(path string, rows []row) error {
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
