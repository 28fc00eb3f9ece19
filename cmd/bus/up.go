package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"correx/internal/access"
	"correx/internal/cli"
	"correx/internal/config"
	"correx/pkg/events"
)

const upHelp = `Up runs bus serve, projector, tool-worker and model-worker on this machine, starts
again whichever dies, and prints how to go on. A worker that has nothing to
offer, for no tool is enabled or no model is named, is not started.

Ctrl-C stops all: workers first, which end or give back what they have, the
server last. Nothing stays behind, whatever ends this process.

The other programs are looked for beside bus itself.`

func newUp(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "up", Short: "run everything on this machine", Long: upHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.flags.Load(cli.Changed(cmd, serveFlags))
			if err != nil {
				return err
			}
			log, err := a.flags.Logger(slog.LevelInfo)
			if err != nil {
				return err
			}
			return a.up(cmd.Context(), cfg, a.serveArgs(cmd), log)
		},
	}
	addServeFlags(cmd)
	return cmd
}

// serveArgs are the flags of up that serve gets as well.
func (a *app) serveArgs(cmd *cobra.Command) []string {
	var args []string
	for _, name := range []string{"listen", "port", "sync", "replicas"} {
		if f := cmd.Flags().Lookup(name); f.Changed {
			args = append(args, "--"+name+"="+f.Value.String())
		}
	}
	return args
}

func (a *app) up(ctx context.Context, cfg config.Config, serveArgs []string, log *slog.Logger) error {
	if running(ctx, cfg) {
		return fmt.Errorf("a kernel is already running for %s; stop it, or choose another --state", cfg.State)
	}
	processes, err := a.processes(cfg, serveArgs)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.env.Stderr, "starting ...")
	s := cli.Supervisor{Output: a.env.Stderr, Style: a.env.ErrStyle(), Logger: log}
	ctx, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	return s.Run(ctx, func() { work.Go(func() { a.greet(ctx, cfg) }) }, processes...)
}

// processes lists what up runs, in the order of their starts.
func (a *app) processes(cfg config.Config, serveArgs []string) ([]cli.Process, error) {
	common := []string{"--state", cfg.State}
	if cfg.File != "" {
		common = append(common, "--config", cfg.File)
	}
	if a.flags.NATS != "" {
		common = append(common, "--nats", a.flags.NATS)
	}
	if a.flags.Level != "" {
		common = append(common, "--log-level", a.flags.Level)
	}
	all := []cli.Process{
		{Name: "bus", Args: append(append([]string{"serve"}, common...), serveArgs...),
			Grace: 20 * time.Second, Ready: func(ctx context.Context) error { return awaitKernel(ctx, cfg) }},
		{Name: "projector", Args: common, Grace: 20 * time.Second},
	}
	for _, role := range workerRoles(cfg) {
		all = append(all, cli.Process{Name: string(role), Args: common, Grace: cfg.Worker.Drain + 10*time.Second})
	}
	for i := range all {
		path, err := cli.Sibling(all[i].Name)
		if err != nil {
			return nil, err
		}
		all[i].Path = path
	}
	return all, nil
}

// workerRoles lists the workers that have something to offer.
func workerRoles(cfg config.Config) []events.WorkerRole {
	var roles []events.WorkerRole
	if cfg.Tools.AnyEnabled() {
		roles = append(roles, events.RoleToolWorker)
	}
	if len(cfg.Models) > 0 {
		roles = append(roles, events.RoleModelWorker)
	}
	return roles
}

// awaitKernel waits until the kernel answers.
func awaitKernel(ctx context.Context, cfg config.Config) error {
	for ctx.Err() == nil {
		if running(ctx, cfg) {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return ctx.Err()
}

// running reports whether a kernel answers on the server of this state directory.
func running(ctx context.Context, cfg config.Config) bool {
	if cfg.NATS.URL == "" {
		if _, err := access.URL(cfg.State); err != nil {
			return false
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := access.Connect(ctx, access.Dial{StateDir: cfg.State, URL: cfg.NATS.URL, Name: "bus up", Role: access.Operator})
	if err != nil {
		return false
	}
	defer conn.Close()
	_, err = conn.RequestWithContext(ctx, "$SRV.PING.kernel", nil)
	return err == nil
}
