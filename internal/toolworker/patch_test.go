package toolworker_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"correx/internal/toolworker"
	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

// TestRun_PreviewsThenPatches: a patch of two files is previewed with both of their
// hashes, waits, and changes both by way of the real program.
func TestRun_PreviewsThenPatches(t *testing.T) {
	p := newPlant(t, append(tokens, "file_edit")...)
	work := must(filepath.EvalSymlinks(t.TempDir()))(t)
	for name, data := range map[string]string{"a.txt": "one\n", "b.txt": "two\n"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.start("w1", func(o *toolworker.Options) {
		list := must(tools.Build(tools.Config{
			Runner: must(sandbox.NewRunner(sandbox.RunnerOptions{}))(t), Writable: []string{o.Home.Dir},
			FileEdit: tools.FileEditConfig{Enabled: true, AllowedPaths: []string{work}},
		}))(t)
		o.Tools = append(o.Tools, list...)
	})
	params, _ := json.Marshal(map[string]string{"operation": "patch", "patch": "--- a.txt\n+++ a.txt\n@@ -7 +7 @@\n-one\n+1\n--- b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-two\n"})
	c := call{id: "t1-0", tool: "file_edit", params: string(params), tier: events.T3}
	p.request(c)
	p.await("a preview", func() bool { return p.invocation("t1-0").Previewed != nil })
	v := p.invocation("t1-0").Previewed
	if !v.Valid || v.Tier != events.T3 || len(v.Base) != 2 || len(v.Affected) != 2 || !strings.Contains(v.Diff, "-one\n+1\n") || !strings.Contains(v.Diff, "-two\n") {
		t.Fatalf("preview is %s", jsonOf(v))
	}
	if names, _ := os.ReadDir(work); len(names) != 2 {
		t.Fatalf("the preview left %v", names)
	}
	p.approve(c)
	e := p.completed("t1-0")
	if got, err := os.ReadFile(filepath.Join(work, "a.txt")); err != nil || string(got) != "1\n" {
		t.Errorf("a.txt has %q, %v", got, err)
	}
	if names, _ := os.ReadDir(work); len(names) != 1 {
		t.Errorf("left %v", names)
	}
	if e.Receipt.Diff != v.Diff || len(e.Receipt.Affected) != 2 || !strings.Contains(e.Receipt.Output, "6 lines further up than it says") || e.Receipt.Isolation == "" {
		t.Errorf("receipt is %s", jsonOf(e.Receipt))
	}
}
