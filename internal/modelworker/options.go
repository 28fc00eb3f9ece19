package modelworker

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"correx/internal/config"
	"correx/internal/workerhome"
	"correx/pkg/events"
	"correx/pkg/llama"
)

// A Model is what a worker offers.
type Model struct {
	llama.Descriptor
	Capabilities []events.CapabilityScore // nil: guessed from the name
}

// Options are what a worker runs on. Fields without a default are required.
type Options struct {
	StateDir string
	Home     *workerhome.Home
	URL      string // of the NATS server; empty: what the state directory says
	Host     string // default: the machine's name
	Version  string // semantic
	Models   []Model
	AckWait  time.Duration // default 30 s
	Drain    time.Duration // default 30 s
	Limit    time.Duration // of one inference, with the load before it; default 30 min
	Logger   *slog.Logger

	// Of llama-server; see llama.Config, which has the defaults.
	Executable   string
	StallTimeout time.Duration
	LoadTimeout  time.Duration
	Hold         time.Duration
}

func (o Options) withDefaults() (Options, error) {
	if o.StateDir == "" || o.Home == nil || o.Logger == nil {
		return o, errors.New("state directory, home and logger are required")
	}
	if o.Host == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("name of this machine: %w", err)
		}
		o.Host = host
	}
	if o.Version == "" {
		o.Version = "0.0.0"
	}
	if o.AckWait <= 0 {
		o.AckWait = 30 * time.Second
	}
	if o.Drain <= 0 {
		o.Drain = 30 * time.Second
	}
	if o.Limit <= 0 {
		o.Limit = 30 * time.Minute
	}
	return o, o.checkModels()
}

// checkModels names every fault of the models.
func (o Options) checkModels() error {
	if len(o.Models) == 0 {
		return errors.New("no model to offer; name one under models in the configuration")
	}
	var faults []error
	seen := map[string]events.ModelID{}
	for _, m := range o.Models {
		faults = append(faults, m.Validate())
		token := events.Token(string(m.ModelID))
		if other, twice := seen[token]; twice {
			faults = append(faults, fmt.Errorf("models %q and %q are both %s in subjects; rename one", other, m.ModelID, token))
		}
		seen[token] = m.ModelID
	}
	return errors.Join(faults...)
}

// slots is how many inferences are taken on at once: of each model, what it does
// in parallel. What is not taken on is for other workers.
func (o Options) slots() int {
	n := 0
	for _, m := range o.Models {
		n += max(1, m.Parallel)
	}
	return n
}

// manager is how a llama-server is run whose files have this name.
func (o Options) manager(name string, observe llama.Observer) llama.Config {
	return llama.Config{
		Executable: o.Executable, StallTimeout: o.StallTimeout, LoadTimeout: o.LoadTimeout, Hold: o.Hold,
		PIDFile:  filepath.Join(o.Home.Dir, name+".pid"),
		Socket:   filepath.Join(o.Home.Dir, name+".sock"),
		LogFile:  filepath.Join(o.StateDir, "logs", "llama-server.log"),
		Observer: observe, Logger: o.Logger,
	}
}

// FromConfig takes over what a configuration says about model-workers.
func FromConfig(cfg config.Config, home *workerhome.Home, logger *slog.Logger) Options {
	o := Options{
		StateDir: cfg.State, Home: home, URL: cfg.NATS.URL,
		AckWait: cfg.Worker.AckWait, Drain: cfg.Worker.Drain, Logger: logger,
		Executable: cfg.LlamaServer.Path, StallTimeout: cfg.LlamaServer.StallTimeout, LoadTimeout: cfg.LlamaServer.LoadTimeout,
	}
	for _, m := range cfg.Models {
		o.Models = append(o.Models, Model{Descriptor: m.Descriptor(), Capabilities: m.Scores()})
	}
	return o
}
