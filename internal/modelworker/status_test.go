package modelworker_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"correx/internal/access"
	"correx/internal/modelworker"
	"correx/pkg/events"
	"correx/pkg/llama"
)

// Whoever asks a worker is told what it announced of its models, and what goes on
// with each: by a question of its own, and in the statistics of the service.
func TestStatus(t *testing.T) {
	p := newPlant(t)
	w := p.start("m1", func(o *modelworker.Options) { o.Models[1].Parallel, o.Drain = 2, 100*time.Millisecond })
	op := p.connect(access.Operator)
	status := func() map[events.ModelID]modelworker.Status {
		m := must(op.RequestWithContext(p.ctx, events.ModelsSubject(w.id), nil))(t)
		return byName(t, m.Data)
	}
	p.await("the answer", func() bool { _, err := op.Request(events.ModelsSubject(w.id), nil, ackWait); return err == nil })
	if s := status(); s[endless].State != llama.StandsUnloaded || s[script].Slots != 1 || s[endless].Slots != 2 || s[endless].Token != endless {
		t.Errorf("at the start: %+v", s)
	}
	begun := p.begin("s1", "Go on for ever.")
	for _, id := range []string{"t1", "t2", "t3"} {
		p.ask(events.InferenceRequested{Ref: ref("s1", id), Through: begun, Generation: events.GenerationConfig{MaxTokens: 4000}}, endless)
	}
	p.await("two at work", func() bool { s := status()[endless]; return s.State == llama.StandsLoaded && s.Busy == 2 })
	// A model that takes turns with it waits; it has nothing in memory itself.
	p.ask(events.InferenceRequested{Ref: ref("s1", "t4"), Through: begun}, script)
	p.await("one to wait", func() bool {
		s := status()[script]
		return s.Waiting == 1 && s.Busy == 0 && s.State == llama.StandsUnloaded
	})

	var stats micro.Stats
	m := must(op.RequestWithContext(p.ctx, "$SRV.STATS.model-worker", nil))(t)
	if err := json.Unmarshal(m.Data, &stats); err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, e := range stats.Endpoints {
		if e.Name != "models" {
			continue
		}
		told++
		if s := byName(t, e.Data); s[endless].Busy != 2 || s[script].Waiting != 1 {
			t.Errorf("the statistics say %s", e.Data)
		}
	}
	if told != 1 {
		t.Errorf("%d endpoints tell of models: %s", told, m.Data)
	}
}

func byName(t *testing.T, data []byte) map[events.ModelID]modelworker.Status {
	t.Helper()
	var all []modelworker.Status
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	m := map[events.ModelID]modelworker.Status{}
	for _, s := range all {
		m[s.Name] = s
	}
	return m
}
