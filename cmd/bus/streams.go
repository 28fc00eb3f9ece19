package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"correx/internal/access"
	"correx/internal/cli"
	"correx/internal/streams"
)

// streamFlags are those of streams plan and streams apply.
type streamFlags struct {
	file     string
	replicas int
	force    bool
}

func newStreams(a *app) *cobra.Command {
	root := cli.Group("streams", "hold the server's streams against streams.yaml", `
Streams compares what streams.yaml declares with what the server has. A change
that the server would refuse, or that would lose messages, is named as such
before anything is done. bus serve applies the file that is part of the program.`)
	plan, apply := newStreamsPlan(a), newStreamsApply(a)
	root.AddCommand(plan, apply, newStreamsConfig(a))
	return root
}

func (f *streamFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "file", "", "streams.yaml (default: the one that is part of the program)")
	cmd.Flags().IntVar(&f.replicas, "replicas", 0, "copies of each stream (default: nats.replicas)")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml")
}

func newStreamsPlan(a *app) *cobra.Command {
	var f streamFlags
	cmd := &cobra.Command{
		Use: "plan", Short: "show what would change",
		Long: "Plan shows what apply would do. Exit status: 0 it could be applied, 1 something\nwould be refused or would lose messages.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.streamsPlan(cmd.Context(), f) },
	}
	f.add(cmd)
	return cmd
}

func newStreamsApply(a *app) *cobra.Command {
	var f streamFlags
	cmd := &cobra.Command{
		Use: "apply", Short: "bring the server to what the file declares", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.streamsApply(cmd.Context(), f) },
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.force, "force", false, "also make changes that lose messages")
	return cmd
}

func newStreamsConfig(a *app) *cobra.Command {
	var tools, models []string
	cmd := &cobra.Command{
		Use: "server-config", Short: "print the roles for a NATS server of your own",
		Long: `Server-config prints the authorization block for a NATS server of your own: the
public key of each role in the state directory, and what it may do. Name the
tokens of all tools and models, for permissions know no wildcard within a name.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.flags.Load(nil)
			if err != nil {
				return err
			}
			if err := access.EnsureKeys(cfg.State); err != nil {
				return err
			}
			text, err := access.ServerConfig(cfg.State, tools, models)
			if err != nil {
				return err
			}
			a.warnUnnamed("tools", "tool-worker", tools)
			a.warnUnnamed("models", "model-worker", models)
			_, err = fmt.Fprintln(a.env.Stdout, text)
			return err
		},
	}
	cmd.Flags().StringSliceVar(&tools, "tools", nil, "tokens of tools")
	cmd.Flags().StringSliceVar(&models, "models", nil, "tokens of models")
	return cmd
}

// warnUnnamed says what a worker may not do when none of its tokens are named.
func (a *app) warnUnnamed(flag, role string, tokens []string) {
	if len(tokens) == 0 {
		fmt.Fprintf(a.env.Stderr, "%s\n", a.env.ErrStyle().Yellow("no --"+flag+" are named: with this block a "+role+
			" can take no work; name the tokens of all "+flag+" that will ever be offered"))
	}
}

// plan compares the file with the server.
func (a *app) plan(ctx context.Context, c *client, f streamFlags) (streams.Plan, error) {
	spec, err := f.spec()
	if err != nil {
		return streams.Plan{}, err
	}
	replicas := f.replicas
	if replicas == 0 {
		replicas = c.cfg.NATS.Replicas
	}
	return streams.MakePlan(ctx, c.js, spec, replicas)
}

func (f streamFlags) spec() (streams.Spec, error) {
	if f.file == "" {
		return streams.Default()
	}
	data, err := os.ReadFile(f.file)
	if err != nil {
		return streams.Spec{}, fmt.Errorf("read streams: %w", err)
	}
	return streams.Load(data)
}

func (a *app) streamsPlan(ctx context.Context, f streamFlags) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	p, err := a.plan(ctx, c, f)
	if err != nil {
		return err
	}
	if err := a.printPlan(p); err != nil {
		return err
	}
	if p.Blocked(false) != nil {
		return cli.Exit(cli.StatusFailed, nil) // the plan has said why
	}
	return nil
}

func (a *app) streamsApply(ctx context.Context, f streamFlags) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	p, err := a.plan(ctx, c, f)
	if err != nil {
		return err
	}
	if err := streams.Apply(ctx, c.js, p, f.force); err != nil {
		return err
	}
	return a.printPlan(p)
}

func (a *app) printPlan(p streams.Plan) error {
	if a.flags.JSON {
		return cli.JSON(a.env.Stdout, p)
	}
	_, err := fmt.Fprint(a.env.Stdout, cli.Visible(p.String()))
	return err
}
