package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"correx/internal/access"
	"correx/internal/cli"
	"correx/internal/config"
	"correx/internal/session"
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

// greetFor is how long the summary waits for workers to announce themselves.
const greetFor = 10 * time.Second

// errAll ends a follow when everybody has announced themselves.
var errAll = errors.New("all are there")

// greet prints how to go on, once the workers have said what they offer.
func (a *app) greet(ctx context.Context, cfg config.Config) {
	c, err := a.connect(ctx)
	if err != nil {
		if ctx.Err() == nil {
			fmt.Fprintln(a.env.Stderr, cli.Visible(err.Error()))
		}
		return
	}
	defer c.close()
	world, err := c.awaitWorkers(ctx, workerRoles(cfg))
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		fmt.Fprintln(a.env.Stderr, cli.Visible(err.Error()))
		return
	}
	fmt.Fprint(a.env.Stderr, summary(a.env.ErrStyle(), cfg, self(), a.envCommand(cfg), c.conn.ConnectedUrlRedacted(), world))
}

// awaitWorkers folds what processes announce until a worker of each role runs.
func (c *client) awaitWorkers(ctx context.Context, roles []events.WorkerRole) (session.World, error) {
	var world session.World
	if len(roles) == 0 {
		return world, nil
	}
	log, err := c.openLog(ctx)
	if err != nil {
		return world, err
	}
	ctx, cancel := context.WithTimeout(ctx, greetFor)
	defer cancel()
	all := func(r events.Record) bool {
		world = session.EvolveWorld(world, r)
		if f, ok := r.Fact.(events.WorkerStarted); ok && f.Role == events.RoleKernel {
			world.Workers = map[events.WorkerID]session.Worker{} // those are of a former run
		}
		return !slices.ContainsFunc(roles, func(role events.WorkerRole) bool { return !hasRole(world, role) })
	}
	workers := events.KindFilter(events.System, events.KindWorker)
	records, err := log.ReadFilter(ctx, workers, 1, 0)
	if err != nil {
		return world, err
	}
	next, there := uint64(1), false
	for _, r := range records {
		next, there = r.Seq+1, all(r)
	}
	if there {
		return world, nil
	}
	err = log.Follow(ctx, workers, next, func(r events.Record) error {
		if all(r) {
			return errAll
		}
		return nil
	})
	if errors.Is(err, errAll) {
		err = nil
	}
	return world, err
}

func hasRole(world session.World, role events.WorkerRole) bool {
	for _, w := range world.Workers {
		if w.Role == role && !w.Stopped {
			return true
		}
	}
	return false
}

// summary says what runs and how to go on.
func summary(s cli.Style, cfg config.Config, bus, env, url string, w session.World) string {
	var b strings.Builder
	row := func(name, text string) { fmt.Fprintf(&b, "  %s %s\n", s.Dim(fmt.Sprintf("%-8s", name)), text) }
	fmt.Fprintf(&b, "\n%s\n", s.Bold("Correx is up."))
	row("server", url)
	row("state", cli.Visible(cfg.State))
	file := cfg.File
	if file == "" {
		file = "none; correx.example.yaml shows every key"
	}
	row("config", cli.Visible(file))
	var tools, models []string
	for _, t := range w.Tools() {
		tools = append(tools, t.What.Name+" "+t.What.Tier.String())
	}
	for _, m := range w.Models() {
		models = append(models, string(m.What.Name))
	}
	row("tools", listed(tools, "none; turn one on in the configuration"))
	row("models", listed(models, "none; name one in the configuration"))
	fmt.Fprintf(&b, "\nIn another terminal:\n  eval \"$(%s)\"\n  %s run \"<task>\"\n\nCtrl-C stops everything.\n\n", env, bus)
	return b.String()
}

// self is how another terminal calls this program.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return "bus"
	}
	if found, err := exec.LookPath("bus"); err == nil {
		if real, err := filepath.EvalSymlinks(found); err == nil && real == path {
			return "bus"
		}
	}
	return cli.Word(path)
}

// envCommand is how another terminal finds this state directory.
func (a *app) envCommand(cfg config.Config) string {
	if usual, err := config.DefaultState(a.env.Lookup); err == nil && usual == cfg.State {
		return self() + " env"
	}
	return self() + " env --state " + shellQuote(cfg.State)
}

func listed(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return cli.Visible(strings.Join(names, ", "))
}
