package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"correx/internal/cli"
	"correx/internal/config"
	"correx/internal/session"
	"correx/pkg/events"
)

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
		if f, ok := r.Fact.(events.WorkerStarted); ok && session.SettingsOf(f) != nil {
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

// envCommand is how another terminal finds this state directory, and a server
// that only this terminal was told of.
func (a *app) envCommand(cfg config.Config) string {
	text := self() + " env"
	if usual, err := config.DefaultState(a.env.Lookup); err != nil || usual != cfg.State {
		text += " --state " + shellQuote(cfg.State)
	}
	if a.flags.NATS != "" || a.env.Getenv("CORREX_NATS_URL") != "" {
		text += " --nats " + shellQuote(cfg.NATS.URL)
	}
	return text
}

func listed(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return cli.Visible(strings.Join(names, ", "))
}
