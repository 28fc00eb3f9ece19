// Eval has models do small tasks through three loops on the same llama-server
// program, and prints what share of them each did: tools handed to the server
// (native), one constrained action a turn and nothing else (constrained), and
// Correx, the whole system.
//
//	go run -tags sqlite_fts5 ./internal/eval -model FILE.gguf [-model …]
//
// A task is done if its end state is: files, calls and answers are looked at, not
// the way there. `make eval` builds and fetches what it needs.
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
	verbose bool
}

func main() {
	var e eval
	flag.Func("model", "a GGUF `file`; may be given several times", func(s string) error { e.models = append(e.models, s); return nil })
	flag.StringVar(&e.loops, "loops", "native,constrained,correx", "which loops, separated by commas")
	flag.StringVar(&e.only, "only", "", "tasks whose kind/name matches this pattern")
	flag.StringVar(&e.program, "llama-server", os.Getenv("CORREX_LLAMA_SERVER"), "the `program`")
	flag.StringVar(&e.bin, "bin", "bin", "`directory` of the programs of Correx")
	flag.StringVar(&e.doc, "doc", "", "`file` whose table is replaced")
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
	if e.doc == "" {
		return nil
	}
	return replaceTable(e.doc, text)
}

// runLoop does all tasks with one model by one loop.
func (e *eval) runLoop(ctx context.Context, name, model, path string) ([]result, error) {
	home := filepath.Join(e.dir, model+"-"+name)
	workspace := filepath.Join(home, "workspace")
	if err := os.MkdirAll(workspace, 0o755); err != nil {
		return nil, err
	}
	l, stop, err := e.start(ctx, name, model, path, home, workspace)
	if err != nil {
		return nil, err
	}
	defer stop()
	only, err := regexp.Compile(e.only)
	if err != nil {
		return nil, err
	}
	var results []result
	for _, t := range tasks() {
		if !only.MatchString(string(t.kind) + "/" + t.name) {
			continue
		}
		r, err := e.one(ctx, l, t, workspace)
		if err != nil {
			return results, err
		}
		r.loop, r.model = name, model
		results = append(results, r)
		e.show(r)
	}
	return results, nil
}

func (e *eval) start(ctx context.Context, name, model, path, home, workspace string) (loop, func(), error) {
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

// limit is how long one task may take; one that takes longer is not done.
const limit = time.Minute

// one does one task in a fresh workspace, and looks at its end.
func (e *eval) one(ctx context.Context, l loop, t task, workspace string) (result, error) {
	r := result{task: t}
	if err := fill(workspace, t.files); err != nil {
		return r, err
	}
	before, err := look(workspace)
	if err != nil {
		return r, err
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begin := time.Now()
	r.outcome, r.err = l.do(limited, t)
	r.seconds = time.Since(begin).Seconds()
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	after, err := look(workspace)
	if err != nil {
		return r, err
	}
	end := end{before: before, after: after, answers: r.outcome.answers, calls: r.outcome.calls}
	for len(end.answers) < len(t.say) {
		end.answers = append(end.answers, "")
	}
	if r.err == nil {
		r.err = t.check(&end)
	}
	return r, nil
}

func (e *eval) show(r result) {
	verdict := "done"
	if r.err != nil {
		verdict = r.err.Error()
	}
	fmt.Printf("%-12s %-11s %-16s %5.1f s  %s\n", r.loop, r.task.kind, r.task.name, r.seconds, verdict)
	if !e.verbose {
		return
	}
	for _, c := range r.outcome.calls {
		fmt.Printf("      %s %.200s %s\n", c.tool, c.parameters, map[bool]string{true: "FAILED"}[c.failed])
	}
	for _, a := range slices.Compact(r.outcome.answers) {
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
