package tools_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"correx/pkg/events"
	"correx/pkg/tools"
)

// Every example is a call that the tool takes, and no two ask for it in the same
// words.
func TestExamplesAreCallsThatTheToolTakes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"list.md", "c.txt", "state.cfg", "user.txt", "tmp.csv", "work/a.txt", "work/d.txt"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("up\nAnna\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := build(t, tools.Config{
		FileRead:  tools.FileReadConfig{Enabled: true, AllowedPaths: []string{dir}},
		FileWrite: tools.FileWriteConfig{Enabled: true, AllowedPaths: []string{dir}},
		FileEdit:  tools.FileEditConfig{Enabled: true, AllowedPaths: []string{dir}},
		Shell:     tools.ShellConfig{Enabled: true, AllowedExecutables: []string{"cat", "wc"}, WorkingDir: dir},
	})
	seen := map[string]bool{}
	for name, tool := range set {
		o := tools.Offer(tool, events.IsolationNone)
		if name != "shell_commit" && (o.Example == nil || len(o.Examples) < 2) {
			t.Errorf("%s has %d examples", name, len(o.Examples))
		}
		for _, e := range o.Examples {
			if seen[e.Task] || e.Task == "" || e.Answer == "" {
				t.Errorf("%s: %+v", name, e)
			}
			seen[e.Task] = true
			if v := tool.ValidateRequest(request(t, name, string(e.Parameters))); !v.OK() {
				t.Errorf("%s: %s: %+v", name, e.Parameters, v)
			}
			var call struct{ Argv []string }
			if json.Unmarshal(e.Parameters, &call) == nil && len(call.Argv) > 0 && call.Argv[0] != "cat" && call.Argv[0] != "wc" {
				t.Errorf("%s shows %s, which is not allowed here", name, call.Argv[0])
			}
		}
	}
}
