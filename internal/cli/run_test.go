package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestExitStatus(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		args   []string
		err    error
		status int
		stderr string
	}{
		{"done", t.Context(), []string{"do", "x"}, nil, 0, ""},
		{"failed", t.Context(), []string{"do", "x"}, errors.New("open a\x1b: no"), 1, `prog: open a\x1b: no`},
		{"wrong use, said by the command", t.Context(), []string{"do", "x"}, fmt.Errorf("start: %w", Usage("mode is odd")), 2, "prog: start: mode is odd\nprog do --help says more"},
		{"no argument", t.Context(), []string{"do"}, nil, 2, "the thing is missing"},
		{"too many arguments", t.Context(), []string{"do", "x", "y"}, nil, 2, `"y" is too much`},
		{"unknown flag", t.Context(), []string{"do", "x", "--nope"}, nil, 2, "unknown flag: --nope"},
		{"unknown command", t.Context(), []string{"frob"}, nil, 2, `unknown command "frob"`},
		{"a status of its own", t.Context(), []string{"do", "x"}, Exit(4, errors.New("denied")), 4, "prog: denied"},
		{"a status and nothing to say", t.Context(), []string{"do", "x"}, Exit(3, nil), 3, ""},
		{"interrupted", cancelled, []string{"do", "x"}, context.Canceled, 130, "prog: interrupted"},
		{"interrupted and stopped well", cancelled, []string{"do", "x"}, nil, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			env := Env{Args: c.args, Stdout: &out, Stderr: &errs}
			status := Run(c.ctx, "prog", env, func(Env) *cobra.Command {
				root := Group("prog", "", "")
				root.AddCommand(&cobra.Command{Use: "do", Args: Args("the thing"), RunE: func(*cobra.Command, []string) error { return c.err }})
				return root
			})
			if status != c.status || !strings.Contains(errs.String(), c.stderr) {
				t.Errorf("status %d, stderr %q; want %d, %q", status, errs.String(), c.status, c.stderr)
			}
			if c.stderr == "" && errs.Len() > 0 {
				t.Errorf("stderr is %q, want nothing", errs.String())
			}
		})
	}
}

func TestColoursOnlyOnATerminal(t *testing.T) {
	vars := map[string]string{}
	env := Env{Lookup: func(k string) (string, bool) { v, ok := vars[k]; return v, ok }, OutTerminal: true}
	if got := env.OutStyle().Red("x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("on a terminal: %q", got)
	}
	if got := env.ErrStyle().Red("x"); got != "x" {
		t.Errorf("elsewhere: %q", got)
	}
	vars["NO_COLOR"] = "1"
	if got := env.OutStyle().Red("x"); got != "x" {
		t.Errorf("with NO_COLOR: %q", got)
	}
	if got := env.OutText("a\x1b"); got != `a\x1b` {
		t.Errorf("untrusted text on a terminal: %q", got)
	}
	env.OutTerminal = false
	if got := env.OutText("a\x1b"); got != "a\x1b" {
		t.Errorf("untrusted text in a pipe: %q", got)
	}
}

func TestFlagsBeatTheEnvironment(t *testing.T) {
	state := t.TempDir()
	vars := map[string]string{"CORREX_STATE": "/nowhere", "CORREX_NATS_URL": "nats://env:1", "CORREX_LOG_LEVEL": "shout"}
	env := Env{Args: []string{"--state", state, "--nats", "nats://flag:1", "--slots", "7"}, Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{},
		Lookup: func(k string) (string, bool) { v, ok := vars[k]; return v, ok }}
	status := Run(t.Context(), "prog", env, func(env Env) *cobra.Command {
		root := &cobra.Command{Use: "prog"}
		flags := NewFlags(env, root)
		root.Flags().Int("slots", 1, "")
		root.Flags().Int("other", 1, "")
		root.RunE = func(cmd *cobra.Command, _ []string) error {
			cfg, err := flags.Load(Changed(cmd, map[string]string{"slots": "worker.concurrency", "other": "projector.batch"}))
			if err != nil {
				return err
			}
			if cfg.State != state || cfg.NATS.URL != "nats://flag:1" || cfg.Worker.Concurrency != 7 || cfg.Projector.Batch != 500 {
				t.Errorf("state %s, nats %s, %d, %d", cfg.State, cfg.NATS.URL, cfg.Worker.Concurrency, cfg.Projector.Batch)
			}
			_, err = flags.Logger(0)
			return err
		}
		return root
	})
	if status != StatusUsage {
		t.Errorf("status %d: a log level that does not exist should be wrong use", status)
	}
}
