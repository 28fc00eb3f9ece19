package modelworker

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"correx/internal/config"
	"correx/internal/session"
	"correx/pkg/events"
	"correx/pkg/llama"
)

// A Rerun answers inferences that were answered before, in a llama-server of its
// own with one slot and nothing kept from prompts before. It writes to no log.
type Rerun struct {
	manager *llama.Manager
	models  map[events.ModelID]llama.Descriptor
}

// NewRerun returns one that knows the configured models and keeps its files in
// dir. The caller closes it.
func NewRerun(cfg config.Config, dir string, logger *slog.Logger) (*Rerun, error) {
	r := &Rerun{models: map[events.ModelID]llama.Descriptor{}}
	for _, m := range cfg.Models {
		d := m.Descriptor()
		d.Parallel, d.ResidencyMode = 1, events.Dynamic
		r.models[d.ModelID] = d
	}
	manager, err := llama.NewManager(llama.Config{
		Executable: cfg.LlamaServer.Path, StallTimeout: cfg.LlamaServer.StallTimeout, LoadTimeout: cfg.LlamaServer.LoadTimeout,
		PIDFile: filepath.Join(dir, "llama-server.pid"), Socket: filepath.Join(dir, "llama-server.sock"),
		LogFile: filepath.Join(dir, "llama-server.log"), Hold: -1, Logger: logger,
	})
	r.manager = manager
	return r, err
}

// Close ends the llama-server.
func (r *Rerun) Close() error { return r.manager.Close() }

// Answer asks the model of f again, with the prompt that it was told then.
func (r *Rerun) Answer(ctx context.Context, s session.State, offers []events.ToolOffer, f events.InferenceRequested, prompt []events.ChatMessage) (text string, err error) {
	d, ok := r.models[f.Model]
	if !ok {
		return "", fmt.Errorf("the model %q is not in the configuration; name it there with the file it had", f.Model)
	}
	err = r.manager.Model(d).Alone().Use(ctx, func(ctx context.Context, c *llama.Client) error {
		q := question{InferenceRequested: f, state: s, offers: offers}
		request := q.request(c.Window())
		request.Messages, request.Generation.Exact = prompt, true
		answer, err := c.Infer(ctx, request)
		text = answer.Text
		return err
	})
	return text, err
}
