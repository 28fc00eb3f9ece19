package modelworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"correx/pkg/events"
	"correx/pkg/llama"
)

// A fleet is the llama-servers of a worker. Each PERSISTENT model has one of its
// own, so that it stays whatever else is asked for; all others take turns in one.
type fleet struct {
	managers map[events.ModelID]*llama.Manager
	all      []*llama.Manager
	keep     []llama.Descriptor    // the PERSISTENT ones
	lost     chan llama.Descriptor // of keep, when it crashed
	logger   *slog.Logger
}

// newFleet makes the managers. It first ends every llama-server that a former
// life of this worker left, whatever its models were.
func newFleet(o Options, observe llama.Observer) (*fleet, error) {
	f := &fleet{
		managers: map[events.ModelID]*llama.Manager{}, lost: make(chan llama.Descriptor, len(o.Models)), logger: o.Logger,
	}
	if err := f.reap(o.Home.Dir); err != nil {
		return nil, err
	}
	told := func(e llama.ModelEvent) {
		observe(e)
		f.miss(e)
	}
	var shared *llama.Manager
	for _, m := range o.Models {
		own := m.ResidencyMode == events.Persistent
		if !own && shared != nil {
			f.managers[m.ModelID] = shared
			continue
		}
		name := "llama-server"
		if own {
			name += "-" + events.Token(string(m.ModelID))
			f.keep = append(f.keep, m.Descriptor)
		}
		manager, err := llama.NewManager(o.manager(name, told))
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.managers[m.ModelID], f.all = manager, append(f.all, manager)
		if !own {
			shared = manager
		}
	}
	return f, nil
}

// reap ends what pid files name.
func (f *fleet) reap(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "llama-server*.pid"))
	if err != nil {
		return fmt.Errorf("look for llama-servers left behind: %w", err)
	}
	for _, path := range files {
		pid, err := llama.Reap(path)
		if err != nil {
			return err
		}
		if pid != 0 {
			f.logger.Warn("killed a llama-server that was left behind", slog.Int("pid", pid))
		}
	}
	return nil
}

// of is the manager of a model.
func (f *fleet) of(m events.ModelID) *llama.Manager { return f.managers[m] }

// miss hears of a crash, and never waits.
func (f *fleet) miss(e llama.ModelEvent) {
	crash, ok := e.(llama.Crashed)
	if !ok || crash.Descriptor.ResidencyMode != events.Persistent {
		return
	}
	select {
	case f.lost <- crash.Descriptor:
	default:
	}
}

// stay loads what is to stay, one after another, and what of it has crashed
// again, until ctx is done. What cannot be loaded is tried again by the next
// inference.
func (f *fleet) stay(ctx context.Context) {
	for _, d := range f.keep {
		f.load(ctx, d)
	}
	for {
		select {
		case d := <-f.lost:
			f.load(ctx, d)
		case <-ctx.Done():
			return
		}
	}
}

func (f *fleet) load(ctx context.Context, d llama.Descriptor) {
	if _, err := f.of(d.ModelID).Load(ctx, d); err != nil && ctx.Err() == nil {
		f.logger.Warn("model is not loaded; the next inference tries again", slog.String("model", string(d.ModelID)), slog.Any("error", err))
	}
}

// close ends every llama-server.
func (f *fleet) close() error {
	errs := make([]error, len(f.all))
	var ends sync.WaitGroup
	for i, m := range f.all {
		ends.Go(func() { errs[i] = m.Close() })
	}
	ends.Wait()
	return errors.Join(errs...)
}
