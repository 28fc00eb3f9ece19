package main

import (
	"strings"
	"testing"

	"correx/internal/cli"
	"correx/internal/config"
)

// What only this terminal was told, another has to be told as well.
func TestEnvCommandNamesWhatAnotherTerminalCannotKnow(t *testing.T) {
	for _, c := range []struct {
		name, flag, variable, file string
		want                       string
	}{
		{name: "nothing", want: " env --state '/x'"},
		{name: "a flag", flag: "nats://a", want: " env --state '/x' --nats 'nats://a'"},
		{name: "a variable", variable: "nats://b", want: " env --state '/x' --nats 'nats://b'"},
		{name: "the file, which it reads itself", file: "nats://c", want: " env --state '/x'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &app{flags: &cli.Flags{}}
			a.flags.NATS = c.flag
			a.env.Lookup = func(k string) (string, bool) {
				return c.variable, k == "CORREX_NATS_URL" && c.variable != ""
			}
			cfg := config.Config{State: "/x"}
			cfg.NATS.URL = c.flag + c.variable + c.file
			if got := a.envCommand(cfg); !strings.HasSuffix(got, c.want) {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}
