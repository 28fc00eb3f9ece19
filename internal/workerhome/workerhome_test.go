package workerhome_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"correx/internal/workerhome"
	"correx/pkg/events"
)

func open(t *testing.T, state string, role events.WorkerRole, name string) *workerhome.Home {
	t.Helper()
	h, err := workerhome.Open(state, role, name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTheFirstFreeNameOfARole(t *testing.T) {
	state := t.TempDir()
	for _, role := range []events.WorkerRole{events.RoleToolWorker, events.RoleModelWorker} {
		first, second := open(t, state, role, ""), open(t, state, role, "")
		if first.Name != string(role)+"-1" || second.Name != string(role)+"-2" || first.Dir == second.Dir {
			t.Errorf("homes %+v and %+v", first, second)
		}
		if _, err := workerhome.Open(state, role, first.Name); !errors.Is(err, workerhome.ErrTaken) {
			t.Errorf("a name in use: %v", err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if again := open(t, state, role, ""); again.Dir != first.Dir {
			t.Errorf("the free home is %s, not %s", again.Dir, first.Dir)
		}
		names, err := workerhome.Names(state, role)
		if err != nil || !slices.Equal(names, []string{first.Name, second.Name}) {
			t.Errorf("names %v, %v", names, err)
		}
	}
	if names, err := workerhome.Names(state, "nobody"); names != nil || err != nil {
		t.Errorf("names of a role that never was: %v, %v", names, err)
	}
}

func TestNamesAreTokens(t *testing.T) {
	state := t.TempDir()
	for _, name := range []string{"../x", "a/b", ".", "a b", strings.Repeat("x", 65)} {
		if _, err := workerhome.Open(state, events.RoleToolWorker, name); err == nil {
			t.Errorf("took the name %q", name)
		}
	}
	h := open(t, state, events.RoleToolWorker, strings.Repeat("n", 64))
	if id := h.Worker("a.host"); events.CheckToken(string(id)) != nil || id == h.Worker("b.host") {
		t.Errorf("ids %s and %s", id, h.Worker("b.host"))
	}
}
