package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Source says where a configuration comes from.
type Source struct {
	State  string                      // the state directory; empty: $CORREX_STATE, else the default
	File   string                      // empty: $CORREX_CONFIG, else correx.yaml in the state directory, if it is there
	Lookup func(string) (string, bool) // the environment; nil: none
	Flags  map[string]Flag             // by key, as in "nats.url"
}

// A Flag is a value that was given on the command line.
type Flag struct {
	Name  string // "--nats"
	Value string
}

// Read reads a configuration. Its error is [Faults] where the configuration
// itself is at fault.
func Read(src Source) (Config, error) {
	if src.Lookup == nil {
		src.Lookup = func(string) (string, bool) { return "", false }
	}
	cfg := Default()
	state, err := stateDir(src)
	if err != nil {
		return cfg, err
	}
	cfg.State = state
	r := reader{places: map[string]origin{}}
	if err := r.file(&cfg, src); err != nil {
		return cfg, err
	}
	r.environment(&cfg, src.Lookup)
	r.flags(&cfg, src.Flags)
	for i := range cfg.Models {
		cfg.Models[i] = cfg.Models[i].withDefaults()
	}
	for i := range cfg.Tools.MCP {
		cfg.Tools.MCP[i] = cfg.Tools.MCP[i].withDefaults()
	}
	r.resolve(&cfg)
	for _, f := range cfg.Validate() {
		r.fault(f.Key, r.origin(f.Key).place, "%s", f.Text)
	}
	if len(r.faults) > 0 {
		return cfg, r.faults
	}
	return cfg, nil
}

// stateDir answers with an absolute path, which need not exist.
func stateDir(src Source) (string, error) {
	dir := src.State
	if dir == "" {
		dir, _ = src.Lookup("CORREX_STATE")
	}
	if dir == "" {
		return DefaultState(src.Lookup)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the state directory: %w", err)
	}
	return abs, nil
}

// DefaultState is the state directory of whoever names none.
func DefaultState(lookup func(string) (string, bool)) (string, error) {
	if lookup != nil {
		if home, _ := lookup("HOME"); filepath.IsAbs(home) {
			return filepath.Join(home, ".local", "share", "correx"), nil
		}
	}
	return "", errors.New("find the state directory: HOME is not set; say --state DIR or set CORREX_STATE")
}

// file reads the file that src names. Only the one in the state directory may
// be missing.
func (r *reader) file(cfg *Config, src Source) error {
	path := src.File
	if path == "" {
		path, _ = src.Lookup("CORREX_CONFIG")
	}
	named := path != ""
	if !named {
		path = filepath.Join(cfg.State, "correx.yaml")
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	if cfg.File, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	r.yaml(cfg, path, data)
	return nil
}

// yaml fills cfg from the text of a file.
func (r *reader) yaml(cfg *Config, path string, data []byte) {
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case err != nil && len(strings.TrimSpace(string(data))) == 0:
		return
	case err != nil && err.Error() == "EOF": // comments alone
		return
	case err != nil:
		r.fault("", path, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return
	}
	if err := dec.Decode(new(yaml.Node)); err == nil {
		r.fault("", path, "has more than one document; keep one")
	}
	at := func(n *yaml.Node) origin { return origin{fmt.Sprintf("%s:%d", path, n.Line), true} }
	r.fill(doc.Content[0], configValue(cfg), "", at)
}
