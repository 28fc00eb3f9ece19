package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"correx/internal/config"
	"correx/pkg/events"
)

// read reads text as the file of a state directory.
func read(t *testing.T, text string, env map[string]string, flags map[string]config.Flag) (config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	if text != "" {
		if err := os.WriteFile(filepath.Join(dir, "correx.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config.Read(config.Source{
		State:  dir,
		Lookup: func(k string) (string, bool) { v, ok := env[k]; return v, ok },
		Flags:  flags,
	})
}

func mustRead(t *testing.T, text string, env map[string]string, flags map[string]config.Flag) config.Config {
	t.Helper()
	cfg, err := read(t, text, env, flags)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestDefaultsAreSafe(t *testing.T) {
	cfg := mustRead(t, "", nil, nil)
	tl := cfg.Tools
	if tl.Shell.Enabled || tl.FileRead.Enabled || tl.FileWrite.Enabled || tl.FileEdit.Enabled || tl.Echo.Enabled {
		t.Errorf("a tool is on that nobody turned on: %+v", tl)
	}
	if n := len(tl.Shell.AllowedExecutables) + len(tl.FileRead.AllowedPaths) + len(tl.FileWrite.AllowedPaths) + len(tl.FileEdit.AllowedPaths); n != 0 {
		t.Errorf("%d entries in allowlists that nobody filled", n)
	}
	if cfg.NATS.Listen != "127.0.0.1" || cfg.NATS.Sync != config.SyncAlways {
		t.Errorf("nats is %+v, want loopback and sync always", cfg.NATS)
	}
	s := cfg.Settings()
	if s.Mode != events.ModePrompt || s.Limits.Turns != 20 || s.ApprovalWait != 15*time.Minute || s.Policy.Version == "" {
		t.Errorf("settings are %+v", s)
	}
}

func TestFaultsNameTheirPlace(t *testing.T) {
	_, err := read(t, `
nats:
  port: 70000
  urll: nats://x:1
session:
  limits: {turns: many, wall_time: 3}
  limits: {}
approval:
  wait: 0s
  policy:
    - effect: alow
      tool: shell
    - effect: allow
      tool: shell
      argv: [git, status]
      match:
        - {argv: [git, push]}
tools:
  shell:
    enabled: true
  echo: {tier: T7}
worker: 4
models:
  - path: a.gguf
  - {name: b, path: b.gguf, residency: SOMETIMES, colour: red, extra_args: [--port, '1']}
`, map[string]string{"CORREX_ACK_WAIT": "soon"}, map[string]config.Flag{"nats.url": {Name: "--nats", Value: "nowhere"}})
	var faults config.Faults
	if !errors.As(err, &faults) {
		t.Fatalf("error is %v, want faults", err)
	}
	var got []string
	for _, f := range faults {
		got = append(got, regexp.MustCompile(`^\S*/`).ReplaceAllString(f.String(), ""))
	}
	for _, want := range []string{
		"correx.yaml:3: nats.port is 70000",
		"correx.yaml:4: nats.urll is not a key; here are: url, listen",
		`correx.yaml:6: session.limits.turns is "many"; write a whole number`,
		`correx.yaml:6: session.limits.wall_time is "3"; write a time with its unit`,
		"correx.yaml:7: session.limits stands twice",
		"correx.yaml:9: approval.wait is 0s",
		`correx.yaml:11: approval.policy[0] effect is "alow"`,
		`correx.yaml:13: approval.policy[1] does not match its own example {"argv":["git","push"]}`,
		"correx.yaml:20: tools.shell.enabled is true, but tools.shell.allowed_executables is empty",
		`correx.yaml:21: tools.echo.tier tier "T7" is not one of`,
		"correx.yaml:22: worker must be a section with keys",
		"correx.yaml:24: models[0].name is missing",
		`correx.yaml:25: models[1].residency is "SOMETIMES"`,
		"correx.yaml:25: models[1].colour is not a key",
		"correx.yaml:25: models[1].extra_args --port is not for extra flags",
		`CORREX_ACK_WAIT: worker.ack_wait is "soon"`,
		`--nats: nats.url has "nowhere"`,
	} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("no fault begins with %q", want)
		}
	}
	if t.Failed() {
		t.Logf("faults:\n%s", strings.Join(got, "\n"))
	}
}

func TestFilesThatAreNoConfiguration(t *testing.T) {
	for name, text := range map[string]string{
		"broken":        "nats: [",
		"a list":        "- nats",
		"two documents": "nats: {}\n---\nnats: {}\n",
		"self alias":    "models: &a [*a]\n",
		"a text":        "hello",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, text, nil, nil); err == nil || !strings.Contains(err.Error(), "correx.yaml") {
				t.Errorf("error is %v, want one that names the file", err)
			}
		})
	}
	for name, text := range map[string]string{"nothing": "\n", "comments": "# nothing\n", "keys without values": "nats:\nmodels:\n"} {
		t.Run(name, func(t *testing.T) {
			if cfg := mustRead(t, text, nil, nil); cfg.NATS != config.Default().NATS {
				t.Errorf("nats is %+v", cfg.NATS)
			}
		})
	}
}

func TestPrecedence(t *testing.T) {
	file := "worker: {ack_wait: 3s, concurrency: 3}\nnats: {url: nats://file:1}\n"
	env := map[string]string{"CORREX_WORKER_CONCURRENCY": "5", "CORREX_ACK_WAIT": "300ms", "CORREX_NATS_URL": "nats://env:1",
		"CORREX_TOOLS_FILE_READ_ALLOWED_PATHS": "/a, /b", "CORREX_WORKER_DRAIN": ""}
	flags := map[string]config.Flag{"nats.url": {Name: "--nats", Value: "nats://flag:1"}}
	cfg := mustRead(t, file, env, flags)
	if w := cfg.Worker; w.AckWait != 300*time.Millisecond || w.Concurrency != 5 || w.Drain != 30*time.Second {
		t.Errorf("worker is %+v", w)
	}
	if cfg.NATS.URL != "nats://flag:1" {
		t.Errorf("nats.url is %s", cfg.NATS.URL)
	}
	if p := cfg.Tools.FileRead.AllowedPaths; !slices.Equal(p, []string{"/a", "/b"}) {
		t.Errorf("allowed paths are %q", p)
	}
	if cfg = mustRead(t, file, nil, nil); cfg.NATS.URL != "nats://file:1" || cfg.Worker.AckWait != 3*time.Second {
		t.Errorf("the file alone gives %+v, %+v", cfg.NATS, cfg.Worker)
	}
	env["CORREX_WORKER_ACK_WAIT"] = "1s"
	if cfg = mustRead(t, file, env, nil); cfg.Worker.AckWait != time.Second {
		t.Errorf("ack wait is %v; the long name should win", cfg.Worker.AckWait)
	}
	env["CORREX_MODELS"] = "[{name: m, path: /m.gguf}]"
	if cfg = mustRead(t, file, env, nil); len(cfg.Models) != 1 || cfg.Models[0].ContextSize != 8192 || cfg.Models[0].Residency != events.Dynamic {
		t.Errorf("models are %+v", cfg.Models)
	}
}

func TestPathsAreRelativeToTheFile(t *testing.T) {
	cfg := mustRead(t, "tools: {file_read: {enabled: true, allowed_paths: [work]}}\nmodels: [{name: m, path: m.gguf}, {name: h, path: hf:a/b}]\n", nil, nil)
	dir := filepath.Dir(cfg.File)
	if got := cfg.Tools.FileRead.AllowedPaths[0]; got != filepath.Join(dir, "work") {
		t.Errorf("allowed path is %s", got)
	}
	if a, b := cfg.Models[0].Path, cfg.Models[1].Path; a != filepath.Join(dir, "m.gguf") || b != "hf:a/b" {
		t.Errorf("models are at %s and %s", a, b)
	}
}

func TestFileAndStateAreFound(t *testing.T) {
	named := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(named, []byte("worker: {concurrency: 9}"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := mustRead(t, "worker: {concurrency: 1}", map[string]string{"CORREX_CONFIG": named}, nil)
	if cfg.Worker.Concurrency != 9 || cfg.File != named {
		t.Errorf("read %s: concurrency %d", cfg.File, cfg.Worker.Concurrency)
	}
	if _, err := config.Read(config.Source{State: t.TempDir(), File: named + ".not"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that was named and is missing gives %v", err)
	}
	env := func(k string) (string, bool) { return map[string]string{"HOME": "/home/x"}[k], k == "HOME" }
	cfg, err := config.Read(config.Source{Lookup: env})
	if err != nil || cfg.State != "/home/x/.local/share/correx" {
		t.Errorf("state is %s (%v)", cfg.State, err)
	}
}

func TestPolicyKeepsNumbersAsSpelt(t *testing.T) {
	cfg := mustRead(t, `
approval:
  policy:
    - effect: ask
      tool: echo
      match: [{b: 9007199254740993, a: [1.50, "1", yes, true, ~, <x>]}]
`, nil, nil)
	got := string(cfg.Settings().Policy.Rules[0].Match[0])
	if want := `{"b":9007199254740993,"a":[1.50,"1","yes",true,null,"<x>"]}`; got != want {
		t.Errorf("match is %s, want %s", got, want)
	}
}

// TestExampleIsComplete holds correx.example.yaml against the types: as it
// stands it says the defaults, and with its examples taken in it has every key.
func TestExampleIsComplete(t *testing.T) {
	data, err := os.ReadFile("../../correx.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	example := string(data)
	got := mustRead(t, example, nil, nil)
	want := config.Default()
	got.State, got.File = "", ""
	got.Approval.Policy, got.Models, got.Session.Tools, got.Tools.MCP = nil, nil, nil, nil
	got.Tools.Shell.AllowedExecutables, got.Tools.Shell.Environment, got.Tools.Shell.Interpreters = nil, nil, nil
	got.Tools.Shell.Executables = nil
	got.Tools.FileRead.AllowedPaths, got.Tools.FileWrite.AllowedPaths, got.Tools.FileEdit.AllowedPaths = nil, nil, nil
	got.Tools.Sandbox.Hidden, got.Tools.Sandbox.Protected = nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the example says\n%+v\nthe defaults are\n%+v", got, want)
	}
	full := regexp.MustCompile(`(?m)^  policy: \[\]$`).ReplaceAllString(example, "")
	full = regexp.MustCompile(`(?m)^  mcp: \[\]$`).ReplaceAllString(full, "")
	full = regexp.MustCompile(`(?m)^models: \[\]$`).ReplaceAllString(full, "")
	full = regexp.MustCompile(`(?m)^    executables: \[\]$`).ReplaceAllString(full, "")
	full = strings.ReplaceAll(full, "#:policy", "  policy")
	full = strings.ReplaceAll(full, "#:mcp", "  mcp")
	full = strings.ReplaceAll(full, "#:models", "models")
	full = strings.ReplaceAll(full, "#:", "  ")
	cfg := mustRead(t, full, nil, nil)
	if len(cfg.Models) != 1 || len(cfg.Approval.Policy) != 2 || len(cfg.Tools.MCP) != 2 || len(cfg.Tools.Shell.Executables) != 1 {
		t.Fatalf("the examples were not read: %+v, %+v", cfg.Models, cfg.Approval.Policy)
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[config.Config](), reflect.TypeFor[config.Model](), reflect.TypeFor[config.Rule](), reflect.TypeFor[config.MCP](), reflect.TypeFor[config.Executable]()} {
		everyKey(t, typ, full)
	}
}

func everyKey(t *testing.T, typ reflect.Type, text string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		key := f.Tag.Get("yaml")
		if key == "-" {
			continue
		}
		if !regexp.MustCompile(`(?m)^[ -]*` + key + `:`).MatchString(text) {
			t.Errorf("the example lacks the key %s of %s", key, typ)
		}
		if f.Type.Kind() == reflect.Struct {
			everyKey(t, f.Type, text)
		}
	}
}

func TestModelsBecomeOffers(t *testing.T) {
	cfg := mustRead(t, `
models:
  - {name: "a:b", path: /a.gguf, threads: 2, gpu_layers: 3, extra_args: [--mlock], capabilities: {REASONING: 0.5, CODING: 1}}
  - {name: qwen-coder, path: /b.gguf}
`, nil, nil)
	d := cfg.Models[0].Descriptor()
	if want := []string{"--threads", "2", "--n-gpu-layers", "3", "--mlock"}; !slices.Equal(d.Args, want) {
		t.Errorf("args are %q, want %q", d.Args, want)
	}
	o := cfg.Offers()
	if want := []events.CapabilityScore{{Capability: events.Coding, Score: 1}, {Capability: events.Reasoning, Score: 0.5}}; !slices.Equal(o[0].Capabilities, want) {
		t.Errorf("capabilities are %v", o[0].Capabilities)
	}
	if len(o[1].Capabilities) == 0 || o[1].Capabilities[0].Capability != events.Coding {
		t.Errorf("guessed capabilities are %v", o[1].Capabilities)
	}
}
