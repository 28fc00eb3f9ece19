package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// short are the variables that have a name besides their long one, which wins.
var short = map[string]string{
	"worker.ack_wait":   "CORREX_ACK_WAIT",
	"llama_server.path": "CORREX_LLAMA_SERVER",
}

// EnvName returns the variable that sets a key: CORREX_NATS_URL for nats.url.
func EnvName(key string) string {
	return "CORREX_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// environment lets variables override what the file said. An empty variable
// counts as not set.
func (r *reader) environment(cfg *Config, lookup func(string) (string, bool)) {
	for _, key := range Keys() {
		for _, name := range []string{short[key], EnvName(key)} {
			if name == "" {
				continue
			}
			if value, ok := lookup(name); ok && value != "" {
				r.override(cfg, key, name, value)
			}
		}
	}
}

// flags lets flags override everything.
func (r *reader) flags(cfg *Config, flags map[string]Flag) {
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		r.override(cfg, key, flags[key].Name, flags[key].Value)
	}
}

// override sets a key from a text: a list of texts is separated by commas, or
// YAML when it begins with a bracket; a list of sections is YAML.
func (r *reader) override(cfg *Config, key, place, value string) {
	v := configValue(cfg)
	for name := range strings.SplitSeq(key, ".") {
		var ok bool
		if v, ok = field(v, name); !ok {
			r.fault(key, place, "is not a key")
			return
		}
	}
	r.places[key] = origin{place: place}
	var n yaml.Node
	switch {
	case v.Kind() == reflect.String:
		n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	case v.Type() == reflect.TypeFor[[]string]() && !strings.HasPrefix(value, "["):
		n.Kind = yaml.SequenceNode
		for e := range strings.SplitSeq(value, ",") {
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.TrimSpace(e)})
		}
	default:
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(value), &doc); err != nil || len(doc.Content) == 0 {
			r.fault(key, place, "is %q, which cannot be read", value)
			return
		}
		n = *doc.Content[0]
	}
	r.fill(&n, v, key, func(*yaml.Node) origin { return origin{place: place} })
}

// resolve makes the paths of a file absolute: they are relative to its
// directory, those of flags and variables to the working directory.
func (r *reader) resolve(cfg *Config) {
	abs := func(key string, path *string) {
		if *path == "" || filepath.IsAbs(*path) {
			return
		}
		base := "."
		if r.origin(key).inFile {
			base = filepath.Dir(cfg.File)
		}
		if p, err := filepath.Abs(filepath.Join(base, *path)); err == nil {
			*path = p
		}
	}
	all := func(key string, paths []string) {
		for i := range paths {
			abs(key, &paths[i])
		}
	}
	t := &cfg.Tools
	abs("tools.shell.working_dir", &t.Shell.WorkingDir)
	for i := range t.Shell.Executables {
		e := &t.Shell.Executables[i]
		all("tools.shell.executables", e.Writable)
		all("tools.shell.executables", e.ReadOnly)
		all("tools.shell.executables", e.Readable)
	}
	all("tools.file_read.allowed_paths", t.FileRead.AllowedPaths)
	all("tools.file_write.allowed_paths", t.FileWrite.AllowedPaths)
	all("tools.file_edit.allowed_paths", t.FileEdit.AllowedPaths)
	for i, m := range t.MCP {
		all(fmt.Sprintf("tools.mcp[%d].writable", i), m.Writable)
		all(fmt.Sprintf("tools.mcp[%d].readable", i), m.Readable)
	}
	abs("projector.db", &cfg.Projector.DB)
	for i := range cfg.Models {
		if !strings.HasPrefix(cfg.Models[i].Path, "hf:") {
			abs("models", &cfg.Models[i].Path)
		}
	}
	if strings.ContainsRune(cfg.LlamaServer.Path, filepath.Separator) {
		abs("llama_server.path", &cfg.LlamaServer.Path)
	}
}
