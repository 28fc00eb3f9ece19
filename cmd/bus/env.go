package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"correx/internal/access"
	"correx/internal/cli"
)

func newEnv(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "env", Short: "what the nats program needs, for eval \"$(bus env)\"",
		Long: `Env prints the variables by which the nats program finds the server and the
operator's key, and by which other shells find this state directory:

    eval "$(bus env)"
    nats sub 'evt.>' --all`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.printEnv() },
	}
}

func (a *app) printEnv() error {
	cfg, err := a.flags.Load(nil)
	if err != nil {
		return err
	}
	url := cfg.NATS.URL
	if url == "" {
		if url, err = access.URL(cfg.State); err != nil {
			return err
		}
	}
	if _, err := access.PublicKey(cfg.State, access.Operator); err != nil {
		return err
	}
	vars := []struct{ name, value string }{
		{"NATS_URL", url},
		{"NATS_NKEY", access.KeyFile(cfg.State, access.Operator)},
		{"CORREX_STATE", cfg.State},
	}
	if cfg.NATS.URL != "" {
		vars = append(vars, struct{ name, value string }{"CORREX_NATS_URL", cfg.NATS.URL})
	}
	if a.flags.JSON {
		all := map[string]string{}
		for _, v := range vars {
			all[v.name] = v.value
		}
		return cli.JSON(a.env.Stdout, all)
	}
	for _, v := range vars {
		fmt.Fprintf(a.env.Stdout, "export %s=%s\n", v.name, shellQuote(v.value))
	}
	return nil
}

// shellQuote makes one word of s for a shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
