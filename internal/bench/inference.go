package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"correx/internal/testmodel"
	"correx/pkg/events"
	"correx/pkg/llama"
)

// slots is how many inferences the model of the benchmarks does at once, and
// callers how many are under way: what is not at work waits, so that no slot
// idles for want of a request.
const (
	slots   = 4
	callers = 2 * slots
)

const benchModel = "random"

const inferenceConfig = `
models:
  - {name: random, path: %s, context_size: 4096, parallel: %d, residency: PERSISTENT, extra_args: [--ignore-eos]}
`

// An engine is a system with a model-worker, and the llama-server that this one
// runs, to be asked without a bus between.
type engine struct {
	*system
	direct *llama.Client
	tokens sync.Map // that an inference through the bus generated, by its id
}

// newEngine starts a system with a tiny model of random weights.
func (b *bench) newEngine(ctx context.Context) (*engine, error) {
	path := filepath.Join(b.dir, "random.gguf")
	if err := testmodel.Random(path, 1); err != nil {
		return nil, err
	}
	s, err := b.startSystem(ctx, "always", fmt.Sprintf(inferenceConfig, path, slots), "model-worker")
	if err != nil {
		return nil, err
	}
	e := &engine{system: s}
	_, err = s.approver.Subscribe(events.KindFilter("*", events.KindInference), e.hear)
	if err == nil {
		err = s.approver.Flush()
	}
	if err == nil { // which loads it
		_, err = e.ask(ctx, "warm", 8)
	}
	if err == nil {
		e.direct, err = e.server()
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return e, nil
}

// hear tells whoever waits how an inference ended.
func (e *engine) hear(m *nats.Msg) {
	r := events.Decode(0, time.Time{}, m.Subject, events.Header(m.Header), m.Data)
	e.stages.reached(r.Aggregate.ID, strings.Split(m.Subject, ".")[4])
	switch f := r.Fact.(type) {
	case events.InferenceCompleted:
		e.tokens.Store(f.ID, f.Usage.Completion)
		e.end(f.ID, "")
	case events.InferenceFailed:
		e.end(f.ID, f.Reason)
	}
}

// generation asks for so many tokens: the model is told to come to no end.
func generation(tokens int) events.GenerationConfig {
	return events.GenerationConfig{MaxTokens: tokens}
}

const question = "Say something."

// ask has one inference done through the bus.
func (e *engine) ask(ctx context.Context, id string, tokens int) (int, error) {
	body, err := events.EncodeCommand(events.InferenceRun{
		Task: question, Model: benchModel, Inference: events.InferenceID(id), Generation: generation(tokens),
	})
	if err != nil {
		return 0, err
	}
	e.stages.reached(id, "asked for")
	if err := e.send(ctx, "cmd.operator.inference.request", id, body); err != nil {
		return 0, err
	}
	n, _ := e.tokens.Load(id)
	return n.(int), nil
}

// askDirectly has the same done by the same server over HTTP.
func (e *engine) askDirectly(ctx context.Context, tokens int) (int, error) {
	answer, err := e.direct.Infer(ctx, llama.Request{
		Messages: []events.ChatMessage{{Role: events.RoleUser, Content: question}}, Generation: generation(tokens),
	})
	return answer.Usage.Completion, err
}

// server finds the worker's llama-server: where it listens is on its command
// line, its key in its environment.
func (e *engine) server() (*llama.Client, error) {
	files, err := filepath.Glob(filepath.Join(e.state, "model-worker", "*", "llama-server*.pid"))
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("one llama-server was to run, and its pid files are %q: %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	_, digits, _ := strings.Cut(string(text), `"pid":`)
	pid, err := strconv.Atoi(digits[:max(0, strings.IndexAny(digits, ",}"))])
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", files[0], err)
	}
	args, err := list(pid, "cmdline")
	if err != nil {
		return nil, err
	}
	env, err := list(pid, "environ")
	if err != nil {
		return nil, err
	}
	base, key := "unix:"+after(args, "--host"), ""
	if port := after(args, "--port"); port != "" {
		base = "http://127.0.0.1:" + port
	}
	for _, v := range env {
		if k, ok := strings.CutPrefix(v, "LLAMA_API_KEY="); ok {
			key = k
		}
	}
	return llama.NewClient(benchModel, base, key, nil), nil
}

// list reads a list of texts about a process.
func list(pid int, name string) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	return strings.Split(string(bytes.TrimRight(data, "\x00")), "\x00"), err
}

func after(args []string, flag string) string {
	for i := range len(args) - 1 {
		if args[i] == flag {
			return args[i+1]
		}
	}
	return ""
}

// latencyTokens is how long an answer is whose latency is measured.
const latencyTokens = 32

// inferenceLatency measures one inference at a time, from the command to the
// visible fact, beside the same over HTTP.
func (b *bench) inferenceLatency(ctx context.Context) (row, error) {
	e, err := b.newEngine(ctx)
	if err != nil {
		return row{}, err
	}
	defer e.close()
	e.stages.reset()
	const turns, each = 12, 25
	var bus, direct []float64
	for turn := range turns {
		there, err := timed(each, func(k int) error {
			_, err := e.ask(ctx, fmt.Sprintf("l%d-%d", turn, k), latencyTokens)
			return err
		})
		if err != nil {
			return row{}, err
		}
		here, err := timed(each, func(int) error { _, err := e.askDirectly(ctx, latencyTokens); return err })
		if err != nil {
			return row{}, err
		}
		bus, direct = append(bus, there...), append(direct, here...)
	}
	b.explain(e.system)
	value, floor := median(bus), median(direct)
	return row{Value: value, Unit: "ms", Floor: floor, Added: value - floor}, nil
}

// A throughput is of so many answers of so many tokens, on each way, in turns.
const (
	throughputTurns   = 3
	throughputAnswers = 2 * callers
	throughputTokens  = 1000
)

// inferenceThroughput measures tokens a second with every slot at work, through
// the bus and directly, in turns.
func (b *bench) inferenceThroughput(ctx context.Context) (row, error) {
	e, err := b.newEngine(ctx)
	if err != nil {
		return row{}, err
	}
	defer e.close()
	var bus, direct rate
	for turn := range throughputTurns {
		err := bus.measure(ctx, func(ctx context.Context, k int) (int, error) {
			return e.ask(ctx, fmt.Sprintf("g%d-%d", turn, k), throughputTokens)
		})
		if err == nil {
			err = direct.measure(ctx, func(ctx context.Context, _ int) (int, error) { return e.askDirectly(ctx, throughputTokens) })
		}
		if err != nil {
			return row{}, err
		}
	}
	return row{Value: bus.perSecond(), Unit: "tokens/s", Floor: direct.perSecond()}, nil
}

// A rate is tokens in a time.
type rate struct {
	tokens int64
	took   time.Duration
}

func (r *rate) perSecond() float64 { return float64(r.tokens) / r.took.Seconds() }

// measure has all callers ask until there are throughputAnswers.
func (r *rate) measure(ctx context.Context, ask func(ctx context.Context, k int) (tokens int, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	var asked, tokens atomic.Int64
	errs := make([]error, callers)
	var work sync.WaitGroup
	begin := time.Now()
	for w := range callers {
		work.Go(func() {
			for k := asked.Add(1); k <= throughputAnswers && errs[w] == nil; k = asked.Add(1) {
				var n int
				n, errs[w] = ask(ctx, int(k))
				tokens.Add(int64(n))
			}
		})
	}
	work.Wait()
	r.took += time.Since(begin)
	r.tokens += tokens.Load()
	return errors.Join(errs...)
}
