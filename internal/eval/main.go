// Eval has models do small tasks through three loops on the same llama-server
// program, and prints what share of them each did: tools handed to the server
// (native), one constrained action a turn and nothing else (constrained), and
// Correx, the whole system.
//
//	go run -tags sqlite_fts5 ./internal/eval -model FILE.gguf [-model …]
//
// A task is done if its end state is: files, calls and answers are looked at, not
// the way there. Each result is kept in a file with what the model did, so that a
// run that was ended goes on where it was. `make eval` builds and fetches what it
// needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// eval is one run.
type eval struct {
	models  []string
	loops   string
	only    string
	program string
	bin     string
	dir     string
	doc     string
	out     string
	tasks   int
	limit   time.Duration
	verbose bool

	kept    *kept
	digests map[string]string // of files, by path
}

func main() {
	var e eval
	flag.Func("model", "a GGUF `file`; may be given several times", func(s string) error { e.models = append(e.models, s); return nil })
	flag.StringVar(&e.loops, "loops", "native,constrained,correx", "which loops, separated by commas")
	flag.StringVar(&e.only, "only", "", "tasks whose kind/name matches this pattern")
	flag.StringVar(&e.program, "llama-server", os.Getenv("CORREX_LLAMA_SERVER"), "the `program`")
	flag.StringVar(&e.bin, "bin", "bin", "`directory` of the programs of Correx")
	flag.StringVar(&e.doc, "doc", "", "`file` whose table is replaced, if every task was done or tried")
	flag.StringVar(&e.out, "out", filepath.Join("bench", "eval.json"), "`file` of the results, which a later run goes on from")
	flag.IntVar(&e.tasks, "tasks", 0, "so many `tasks` alone, of each kind as many as of every other; 0: all")
	flag.DurationVar(&e.limit, "limit", time.Minute, "how long one task may take; one that takes longer is not done")
	flag.BoolVar(&e.verbose, "v", false, "show calls and answers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := e.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

func (e *eval) run(ctx context.Context) (err error) {
	if len(e.models) == 0 || e.program == "" {
		return errors.New("no -model, or no -llama-server (CORREX_LLAMA_SERVER); `make eval` gives both")
	}
	for k, path := range e.models {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("model %s is no GGUF file; give files alone", path)
		}
		if e.models[k], err = filepath.Abs(path); err != nil { // the workers run elsewhere
			return err
		}
	}
	if e.kept, err = openKept(e.out); err != nil {
		return err
	}
	e.digests = map[string]string{}
	if e.dir, err = os.MkdirTemp("", "correx-eval-"); err != nil {
		return err
	}
	defer os.RemoveAll(e.dir)
	if e.bin, err = filepath.Abs(e.bin); err != nil {
		return err
	}
	var results []result
	for _, path := range e.models {
		model := strings.TrimSuffix(filepath.Base(path), ".gguf")
		for _, name := range strings.Split(e.loops, ",") {
			of, err := e.runLoop(ctx, name, model, path)
			results = append(results, of...)
			if err != nil {
				fmt.Print("\n", table(results)) // of what was done, as when it is interrupted
				return fmt.Errorf("%s with %s: %w", name, model, err)
			}
		}
	}
	text := table(results)
	fmt.Print("\n", text)
	if e.doc == "" || e.tasks > 0 || e.only != "" {
		return nil // a sample is no table for others
	}
	return replaceTable(e.doc, text)
}

// runLoop does all tasks with one model by one loop, but those that were done with
// the same before.
func (e *eval) runLoop(ctx context.Context, name, model, path string) (results []result, err error) {
	key, err := e.key(name, path)
	if err != nil {
		return nil, err
	}
	chosen, err := chosen(e.only, e.tasks)
	if err != nil {
		return nil, err
	}
	var l loop // is started when there is something to do
	home := filepath.Join(e.dir, model+"-"+name)
	workspace := filepath.Join(home, "workspace")
	for _, t := range chosen {
		r, ok := e.kept.find(key, t.name)
		if !ok {
			if l == nil {
				var stop func()
				if l, stop, err = e.start(ctx, name, model, path, home, workspace); err != nil {
					return results, err
				}
				defer stop()
			}
			if r, err = e.one(ctx, l, t, workspace); err != nil {
				return results, err
			}
			r.Key, r.Loop, r.Model = key, name, model
			if err := e.kept.add(r); err != nil {
				return results, err
			}
			e.show(r)
		}
		results = append(results, r)
	}
	return results, nil
}

// chosen are n of the tasks whose kind/name matches, or all if n is 0. They are
// dealt by kind, so that the first ones are a sample of all.
func chosen(only string, n int) ([]task, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	byKind := map[kind][]task{}
	most := 0
	for _, t := range tasks() {
		if pattern.MatchString(string(t.kind) + "/" + t.name) {
			byKind[t.kind] = append(byKind[t.kind], t)
			most = max(most, len(byKind[t.kind]))
		}
	}
	var dealt []task
	for k := range most {
		for _, of := range kinds {
			if k < len(byKind[of]) {
				dealt = append(dealt, byKind[of][k])
			}
		}
	}
	if n > 0 {
		dealt = dealt[:min(n, len(dealt))]
	}
	return dealt, nil
}

func (e *eval) start(ctx context.Context, name, model, path, home, workspace string) (loop, func(), error) {
	if err := os.MkdirAll(workspace, 0o755); err != nil {
		return nil, nil, err
	}
	if name == "correx" {
		l, err := startCorrex(ctx, e.bin, filepath.Join(home, "state"), workspace, e.program, model, path)
		if err != nil {
			return nil, nil, err
		}
		return l, l.stop, nil
	}
	t, err := newToolset(workspace, filepath.Join(home, "tools"))
	if err != nil {
		return nil, nil, err
	}
	s, err := startServer(ctx, e.program, model, path, filepath.Join(home, "llama-server.log"))
	if err != nil {
		return nil, nil, err
	}
	switch name {
	case "native":
		return &nativeLoop{s, t}, s.stop, nil
	case "constrained":
		return &constrainedLoop{s, t}, s.stop, nil
	}
	s.stop()
	return nil, nil, fmt.Errorf("there is no loop %q", name)
}

// one does one task in a fresh workspace, and looks at its end.
func (e *eval) one(ctx context.Context, l loop, t task, workspace string) (result, error) {
	r := result{Task: t.name, Kind: t.kind}
	if err := fill(workspace, t.files); err != nil {
		return r, err
	}
	before, err := look(workspace)
	if err != nil {
		return r, err
	}
	limited, cancel := context.WithTimeout(ctx, e.limit)
	defer cancel()
	begin := time.Now()
	var failure error
	r.outcome, failure = l.do(limited, t)
	r.Seconds = time.Since(begin).Seconds()
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	after, err := look(workspace)
	if err != nil {
		return r, err
	}
	for len(r.Answers) < len(t.say) {
		r.Answers = append(r.Answers, "")
	}
	if failure == nil {
		failure = t.check(&end{before: before, after: after, answers: r.Answers, calls: r.Calls})
	}
	if r.Done = failure == nil; !r.Done {
		r.Why = strings.ReplaceAll(failure.Error(), workspace, "the workspace")
	}
	return r, nil
}

func (e *eval) show(r result) {
	verdict := "done"
	if !r.Done {
		verdict = r.Why
	}
	fmt.Printf("%-12s %-11s %-16s %5.1f s  %s\n", r.Loop, r.Kind, r.Task, r.Seconds, verdict)
	if !e.verbose {
		return
	}
	for _, c := range r.Calls {
		fmt.Printf("      %s %.200s %s\n", c.Tool, c.Parameters, map[bool]string{true: "FAILED"}[c.Failed])
	}
	for _, a := range slices.Compact(slices.Clone(r.Answers)) {
		fmt.Printf("      → %.160s\n", a)
	}
}

// Between these lines the table stands in a document.
const (
	tableBegin = "<!-- eval begin -->\n"
	tableEnd   = "<!-- eval end -->"
)

func replaceTable(path, text string) error {
	doc, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(doc), tableBegin)
	_, tail, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no %q and %q", path, tableBegin, tableEnd)
	}
	return os.WriteFile(path, []byte(head+tableBegin+text+tableEnd+tail), 0o644)
}
