package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"correx/internal/testmodel"
)

// TestRerunSaysWhereTextsPart: the same model says the same again, byte by byte,
// one that was changed does not; and the log has not a word of it.
func TestRerunSaysWhereTextsPart(t *testing.T) {
	s := newSystem(t, natsScript())
	s.start("bus", "serve")
	s.start("tool-worker")
	s.start("model-worker")
	if a := s.api("session.start", `{"session":"rw","task":"write and read [task:rw]","mode":"auto"}`); !a.OK {
		t.Fatalf("start: %+v", a)
	}
	st := s.await("rw", "its end", completed)
	s.stopAll()
	s.start("bus", "serve")
	s.conn, s.log = nil, nil
	stored := func() uint64 {
		n, err := s.events().Last(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	s.events()
	if status, _, errs := s.exits("bus", "replay", "--rerun", "nobody"); status != 1 || !strings.Contains(errs, "no inference of it") {
		t.Errorf("of no session: %d, %s", status, errs)
	}
	before := stored()
	out := s.run("bus", "replay", "--rerun", "rw")
	if n := len(st.Inferences); strings.Count(out, "  the same\n") != n || !strings.Contains(out, fmt.Sprintf("%d answers are the same again", n)) {
		t.Errorf("of %d inferences: %s", n, out)
	}

	changed := natsScript()
	changed.Tasks["rw"][2] = testmodel.Final("It says ho.")
	model := filepath.Join(s.dir, "scripted.gguf")
	if err := testmodel.Scripted(model, changed); err != nil {
		t.Fatal(err)
	}
	status, out, errs := s.exits("bus", "replay", "--rerun", "rw")
	at := len(`{"kind":"final","text":"It says h`)
	for _, want := range []string{fmt.Sprintf("parts at byte %d\n", at), "It says hi.", "It says ho."} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	if n := len(st.Inferences) - 1; status != 1 || strings.Count(out, "  the same\n") != n || !strings.Contains(errs, fmt.Sprintf("1 of %d answers are not the same", n+1)) {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	if status, out, _ = s.exits("bus", "replay", "--rerun", "rw", "--json"); status != 1 || !strings.Contains(out, fmt.Sprintf(`"same":false,"at":%d,`, at)) {
		t.Errorf("as JSON: status %d, %s", status, out)
	}
	if now := stored(); now != before {
		t.Errorf("the log has grown from %d to %d", before, now)
	}
}
