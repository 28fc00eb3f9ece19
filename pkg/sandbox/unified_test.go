package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"correx/pkg/events"
)

// unifiedMount is where cgroups of version 2 are, wherever that is.
func unifiedMount(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1]
		}
	}
	t.Skip("there are no cgroups of version 2")
	return ""
}

// TestCommandStartsInUnifiedCgroup has a command start in a cgroup of version 2, also
// where that limits nothing.
func TestCommandStartsInUnifiedCgroup(t *testing.T) {
	r := needs(t, events.IsolationFull)
	dir := filepath.Join(unifiedMount(t), fmt.Sprintf("%stest-%d", groupPrefix, os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("no cgroup of version 2 can be made here:", err)
	}
	c := script(t.TempDir(), "sleep $MARK", time.Minute)
	rules, handled, err := makeRuleset(false, r.rules(c))
	if err != nil {
		t.Fatal(err)
	}
	p, err := startStage(rules, false)
	if err != nil {
		t.Fatal(err)
	}
	o, err := r.order(c, p)
	if err != nil {
		t.Fatal(err)
	}
	o.Handled, o.Tasks, o.Cgroup = handled, nil, dir
	if _, err := p.control.Write(o.Encode()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	done := make(chan error, 1)
	go func() { _, err := p.finish(ctx, c.Timeout); done <- err }()
	deadline := time.Now().Add(10 * time.Second)
	for len(alive(t, c.Env)) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("it does not start")
		}
	}
	where, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", alive(t, c.Env)[0]))
	if err != nil || !strings.Contains(string(where), filepath.Base(dir)) {
		t.Errorf("it is in %s, %v", where, err)
	}
	cancel()
	if err := errors.Join(<-done, os.Remove(dir)); err != nil {
		t.Fatal(err)
	}
}
