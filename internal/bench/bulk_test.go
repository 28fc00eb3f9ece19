package main

import (
	"fmt"
	"os"
	"testing"

	"correx/internal/testenv"
)

// TestMain lets the test program be the servers, as bench is.
func TestMain(m *testing.M) {
	if done, err := asServer(os.Args[1:]); done {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// However long the log is, the product's programs rebuild and verify it in less
// than 200 MiB.
func TestRebuildAndVerifyInFlatMemory(t *testing.T) {
	records := uint64(30_000)
	if os.Getenv("CORREX_SOAK") == "1" {
		records = 1_000_000
	}
	l, err := newBulk(t.Context(), t.TempDir(), testenv.Bin(t), records)
	if err != nil {
		t.Fatal(err)
	}
	defer l.stop()
	rebuilt, err := l.rebuild(t.Context(), l.database())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.sign(t.Context(), l.database()); err != nil {
		t.Fatal(err)
	}
	verified, err := l.audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	alone, err := l.program(t.Context(), "bus", "audit", "verify", "--db", l.database(), "--json")
	if err == nil {
		t.Error("a database without a checkpoint was called sound")
	}
	compared, err := l.program(t.Context(), "projector", "verify", "--db", l.database(), "--json")
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]ran{"rebuild": rebuilt, "verify": verified, "verify --db": alone, "projector verify": compared} {
		if r.memory == 0 {
			t.Errorf("the memory of %s was not seen", name)
		}
		if err := r.flat(name); err != nil {
			t.Error(err)
		}
	}
}
