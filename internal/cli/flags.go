package cli

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"correx/internal/config"
)

// Flags are those that every command has.
type Flags struct {
	State  string
	Config string
	NATS   string
	JSON   bool
	Level  string

	env Env
	cmd *cobra.Command
}

// NewFlags gives root the flags that every command has.
func NewFlags(env Env, root *cobra.Command) *Flags {
	f := &Flags{env: env, cmd: root}
	p := root.PersistentFlags()
	p.StringVar(&f.State, "state", "", "state directory (CORREX_STATE; default ~/.local/share/correx)")
	p.StringVar(&f.Config, "config", "", "configuration (CORREX_CONFIG; default correx.yaml in the state directory)")
	p.StringVar(&f.NATS, "nats", "", "URL of a NATS server of your own (CORREX_NATS_URL; default the embedded one's)")
	p.BoolVar(&f.JSON, "json", false, "write JSON")
	p.StringVar(&f.Level, "log-level", "", "debug, info, warn or error (CORREX_LOG_LEVEL)")
	for _, name := range []string{"state", "config"} {
		_ = root.MarkFlagFilename(name)
	}
	return f
}

// Load reads the configuration: flags over environment over file over defaults.
// Set gives further keys that flags of a subcommand have set.
func (f *Flags) Load(set map[string]config.Flag) (config.Config, error) {
	flags := map[string]config.Flag{}
	for k, v := range set {
		flags[k] = v
	}
	if f.NATS != "" {
		flags["nats.url"] = config.Flag{Name: "--nats", Value: f.NATS}
	}
	return config.Read(config.Source{State: f.State, File: f.Config, Lookup: f.env.Lookup, Flags: flags})
}

// Logger logs to stderr, from the level that was asked for on, else from usual on.
func (f *Flags) Logger(usual slog.Level) (*slog.Logger, error) {
	text := f.Level
	if text == "" {
		text = f.env.Getenv("CORREX_LOG_LEVEL")
	}
	level := usual
	if text != "" {
		if err := level.UnmarshalText([]byte(text)); err != nil {
			return nil, Usage("log level is %q; use debug, info, warn or error", text)
		}
	}
	return f.env.Logger(level), nil
}

// Changed returns the flags of cmd that were given and that set keys: a map
// from the flag's name to the key.
func Changed(cmd *cobra.Command, keys map[string]string) map[string]config.Flag {
	set := map[string]config.Flag{}
	for name, key := range keys {
		if fl := cmd.Flags().Lookup(name); fl != nil && fl.Changed {
			set[key] = config.Flag{Name: fmt.Sprintf("--%s", name), Value: fl.Value.String()}
		}
	}
	return set
}
