package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"correx/internal/access"
	"correx/internal/cli"
	"correx/internal/config"
	"correx/internal/kernel"
	"correx/internal/natsd"
	"correx/internal/signedlog"
	"correx/internal/streams"
	"correx/pkg/events"
	"correx/pkg/tools"
)

const serveHelp = `Serve runs the NATS server and the kernel: the log, and who decides. With --nats
it uses a server of your own instead (bus streams server-config prints the roles
that it needs). bus up runs it, and all else that is needed on one machine.

It makes what is missing in the state directory: a key for each role, the store,
nats.url. It ends on SIGTERM or Ctrl-C.`

// serveFlags are the flags of serve and up that set a key of the configuration.
var serveFlags = map[string]string{
	"listen": "nats.listen", "port": "nats.port", "sync": "nats.sync", "replicas": "nats.replicas",
}

func addServeFlags(cmd *cobra.Command) {
	d := config.Default().NATS
	cmd.Flags().String("listen", d.Listen, "address that the server listens on")
	cmd.Flags().Int("port", d.Port, "port that it listens on; 0 is a free one, kept over restarts")
	cmd.Flags().String("sync", d.Sync, "always: on the disk before it is acknowledged; interval: a power cut loses the last second")
	cmd.Flags().Int("replicas", d.Replicas, "copies of each stream, on a cluster of your own")
	_ = cmd.RegisterFlagCompletionFunc("sync", cobra.FixedCompletions([]string{config.SyncAlways, config.SyncInterval}, cobra.ShellCompDirectiveNoFileComp))
}

func newServe(a *app) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "serve", Short: "run the NATS server and the kernel", Long: serveHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.flags.Load(cli.Changed(cmd, serveFlags))
			if err != nil {
				return err
			}
			log, err := a.flags.Logger(slog.LevelInfo)
			if err != nil {
				return err
			}
			if !events.WorkerID(name).IsKernel() {
				return cli.Usage("--name is %q; kernels are called %v, for nobody else may announce these", name, events.KernelNames())
			}
			return serve(cmd.Context(), cfg, events.WorkerID(name), log)
		},
	}
	addServeFlags(cmd)
	cmd.Flags().StringVar(&name, "name", "kernel", "name of the kernel; several on one log need one each")
	return cmd
}

// serve runs server and kernel until ctx ends.
func serve(ctx context.Context, cfg config.Config, name events.WorkerID, log *slog.Logger) error {
	url, permit, shutdown, err := startServer(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer shutdown()
	conn, err := access.Connect(ctx, access.Dial{
		StateDir: cfg.State, URL: url, Name: string(name), Role: access.Kernel, Logger: log,
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	k, err := newKernel(ctx, cfg, conn, name, permit, log)
	if err != nil {
		return err
	}
	log.Info("serving", "url", url, "state", cfg.State)
	return k.Run(ctx)
}

// startServer starts the embedded server, or finds the one that is configured.
// Permit lets workers use the consumers of tools and models; it is nil where
// that is the server's own configuration.
func startServer(ctx context.Context, cfg config.Config, log *slog.Logger) (url string, permit func(tools, models []string) error, shutdown func(), err error) {
	if cfg.NATS.URL != "" {
		return cfg.NATS.URL, nil, func() {}, access.EnsureKeys(cfg.State)
	}
	var models []string
	for _, m := range cfg.Models {
		models = append(models, events.Token(m.Name))
	}
	server, err := natsd.Start(ctx, natsd.Options{
		StateDir: cfg.State, Host: cfg.NATS.Listen, Port: cfg.NATS.Port, Sync: cfg.NATS.Sync, Logger: log,
		Tools: tools.BuiltIn(), Models: models, // others are permitted when workers announce them
	})
	var inUse *natsd.InUseError
	if errors.As(err, &inUse) {
		return "", nil, nil, cli.Exit(cli.StatusUsage, err) // to start it again mends nothing
	}
	if err != nil {
		return "", nil, nil, err
	}
	if cfg.NATS.Sync == config.SyncInterval {
		log.Warn("the server syncs at intervals: a power cut loses what it acknowledged in the last second")
	}
	return server.ClientURL(), server.AllowOffers, server.Shutdown, nil
}

// newKernel brings the streams up to date and makes the kernel.
func newKernel(ctx context.Context, cfg config.Config, conn *nats.Conn, name events.WorkerID, permit func(tools, models []string) error, log *slog.Logger) (*kernel.Kernel, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	spec, err := streams.Default()
	if err != nil {
		return nil, err
	}
	plan, err := streams.MakePlan(ctx, js, spec, cfg.NATS.Replicas)
	if err != nil {
		return nil, err
	}
	if err := streams.Apply(ctx, js, plan, false); err != nil {
		return nil, err
	}
	eventLog, err := signedlog.Open(ctx, js, cfg.State, "kernel/"+string(name), log)
	if err != nil {
		return nil, err
	}
	signer, err := access.Signer(cfg.State)
	if err != nil {
		return nil, err
	}
	return kernel.New(kernel.Options{
		Conn: conn, JS: js, Log: eventLog, Signer: signer, Settings: cfg.Settings(),
		Worker: name, Version: cli.Version, Logger: log, Permit: permit,
		Consumer: func(kind, token string) (jetstream.ConsumerConfig, error) {
			return streams.Consumer(spec, kind, token, cfg.Worker.AckWait), nil
		},
	})
}
