package natsd_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"correx/internal/access"
	"correx/internal/natsd"
	"correx/internal/streams"
	"correx/internal/testenv"
)

// apply makes the product's streams, as the kernel does.
func apply(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := streams.Default()
	if err != nil {
		t.Fatal(err)
	}
	p, err := streams.MakePlan(t.Context(), js, spec, 1)
	if err == nil {
		err = streams.Apply(t.Context(), js, p, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// A shell has the variables that `bus env` prints. With them alone the real nats
// program is the operator: its common inbox prefix is the operator's too.
type shell struct {
	t   *testing.T
	env []string
}

func newShell(t *testing.T, s *natsd.Server, dir string) shell {
	t.Helper()
	return shell{t, append(os.Environ(),
		"XDG_CONFIG_HOME="+t.TempDir(), "HOME="+t.TempDir(), "NATS="+testenv.NatsCLI(t),
		"NATS_URL="+s.ClientURL(), "NATS_NKEY="+access.KeyFile(dir, access.Operator))}
}

// run returns what a script printed, and whether it succeeded.
func (s shell) run(script string) (string, bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `nats() { "$NATS" --timeout 2s "$@"; }; `+script)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestTheNatsCommandLineIsTheOperator(t *testing.T) {
	dir := t.TempDir() + "/a state"
	s := start(t, natsd.Options{StateDir: dir})
	kernel := connect(t, dir, access.Kernel)
	js := apply(t, kernel)
	svc, err := micro.AddService(kernel, micro.Config{Name: "kernel", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	err = svc.AddEndpoint("api", micro.HandlerFunc(func(r micro.Request) { r.Respond([]byte(`{"ok":true}`)) }),
		micro.WithEndpointSubject("api.*.*.*"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "evt.s1.session.main.started", []byte(`{"hello":"there"}`)); err != nil {
		t.Fatal(err)
	}
	sh := newShell(t, s, dir)
	for _, c := range []struct{ script, want string }{
		{`nats pub cmd.operator.session.start '{"task":"x"}' -J`, "Stored in Stream: COMMANDS Sequence: 1"},
		{`nats req api.operator.session.start '{"task":"x"}'`, `{"ok":true}`},
		{`nats sub 'evt.>' --all --count 1`, `{"hello":"there"}`},
		{`nats stream ls`, "EVENTS"},
		{`nats stream get EVENTS 1`, `{"hello":"there"}`},
		{`nats stream info EVENTS --json`, `"deny_purge": true`},
		{`nats consumer info COMMANDS kernel-commands --json`, `"pinned_client"`},
		{`nats consumer report COMMANDS`, "kernel-commands"},
		{`nats micro ls`, "kernel"},
		{`nats object ls`, "ARTIFACTS"},
		{`echo large | nats object put ARTIFACTS --name by-hand && nats object get ARTIFACTS by-hand --output "$HOME/got" && cat "$HOME/got"`, "large"},
	} {
		t.Run(c.script, func(t *testing.T) {
			s := sh
			s.t = t
			out, ok := s.run(c.script)
			if !ok || !strings.Contains(out, c.want) {
				t.Errorf("succeeded: %t, output lacks %s:\n%s", ok, c.want, out)
			}
		})
	}
	t.Run("decisions are not the operator's", func(t *testing.T) {
		s := sh
		s.t = t
		if out, ok := s.run(`nats pub evt.s1.tool.t1-0.approved.shell '{}' -J`); ok {
			t.Errorf("published a fact:\n%s", out)
		}
	})
	t.Run("without the environment nobody gets in", func(t *testing.T) {
		s := sh
		s.t = t
		if out, ok := s.run(`unset NATS_NKEY; nats pub cmd.operator.session.start '{}' -J`); ok || !strings.Contains(out, "Authorization Violation") {
			t.Errorf("succeeded: %t\n%s", ok, out)
		}
	})
}
