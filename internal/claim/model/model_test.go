package model_test

import (
	"os"
	"strings"
	"testing"

	"correx/internal/claim/model"
)

// check searches a model and returns what went wrong, safety and liveness.
func check(t *testing.T, m model.Model) []model.Violation {
	t.Helper()
	c := model.NewChecker(m)
	found := c.Search()
	if c.Truncated() {
		t.Fatalf("given up at %d states", c.States())
	}
	for _, goal := range []model.Goal{model.EndReached, model.Settled} {
		found = append(found, c.Liveness(goal)...)
	}
	t.Logf("%d states, %d violations", c.States(), len(found))
	return found
}

func wantNone(t *testing.T, m model.Model) {
	t.Helper()
	for _, v := range check(t, m) {
		var b strings.Builder
		v.Print(&b)
		t.Errorf("%s", b.String())
	}
}

func TestDesign(t *testing.T) {
	calm := model.Design
	calm.Noise, calm.Delay = false, false
	t.Run("files", func(t *testing.T) {
		c := calm.WithFiles()
		c.Crashes = 1
		wantNone(t, &model.Invocation{Config: c})
	})
	t.Run("idempotent", func(t *testing.T) {
		c := calm
		c.Idem, c.Attempts = true, 2
		wantNone(t, &model.Invocation{Config: c})
	})
	t.Run("nothing touched, not repeated", func(t *testing.T) {
		c := calm
		c.Noise, c.Delay = true, true
		c.Attempts = 1
		wantNone(t, &model.Invocation{Config: c})
	})
}

// TestEveryClauseCloses takes the clauses away one by one: each search must find
// what the clause is there for. A model that finds nothing proves nothing.
func TestEveryClauseCloses(t *testing.T) {
	for _, change := range model.Changes() {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			c := model.Design.Without(change)
			c.Delay = false
			switch change {
			case "Step5":
				c.Idem, c.Attempts = true, 2
			case "NoIdemFiles":
				c.Idem, c.Attempts = true, 2
				c = c.WithFiles()
				c.Noise, c.Ext, c.Aba, c.Orphan = false, false, false, false
			case "CancelFence":
				c.Noise = false
			default:
				c = c.WithFiles()
				c.Noise = change == "NoiseOK"
				c.Aba = change == "Ident"
				c.Ext = change == "Base" || change == "Apply"
				c.Orphan = change == "Orph"
			}
			if change == "Orph" || change == "CancelRes" {
				c.Crashes = 1
			}
			found := check(t, &model.Invocation{Config: c})
			if len(found) == 0 {
				t.Fatalf("nothing goes wrong without it (%s)", c)
			}
			for _, v := range found {
				t.Logf("%s, after %d steps", v.Code, v.Steps)
			}
		})
	}
}

// TestReadings: how the protocol must not be read.
func TestReadings(t *testing.T) {
	c := model.Design.WithFiles()
	c.Noise, c.Delay, c.Ext, c.Aba, c.Orphan = false, false, false, false, false
	c.Naive5 = true
	if len(check(t, &model.Invocation{Config: c})) == 0 {
		t.Error("an end that is refused may be my own")
	}
}

// TestSoak searches far: up to three kills in the worst weather, and the kernels.
// It takes minutes and up to 6 GB, and runs with CORREX_SOAK=1 alone.
func TestSoak(t *testing.T) {
	if os.Getenv("CORREX_SOAK") == "" {
		t.Log("not asked for: set CORREX_SOAK=1")
		return
	}
	files, idem, kills := model.Design.WithFiles(), model.Design, model.Design.WithFiles()
	files.Crashes, kills.Crashes, idem.Crashes = 3, 3, 2
	kills.Idem, idem.Idem = true, true
	for name, c := range map[string]model.Config{"files": files, "idempotent files": kills, "idempotent": idem} {
		t.Run(name, func(t *testing.T) { wantNone(t, &model.Invocation{Config: c}) })
	}
	t.Run("kernels", func(t *testing.T) { wantNone(t, &model.Kernels{Grounds: true}) })
	t.Run("kernels that reject commands too early", func(t *testing.T) {
		found := check(t, &model.Kernels{})
		for _, v := range found {
			if !strings.HasPrefix(v.Code, "VK1") {
				t.Errorf("%s, and only VK1 is expected", v.Code)
			}
		}
		if len(found) == 0 {
			t.Error("grounds would not matter")
		}
	})
}
