package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// spawn has the program of that name measure one of its rows.
func (b *bench) spawn(ctx context.Context, what string) (row, error) {
	program := filepath.Join(b.dir, "spawn")
	build := exec.CommandContext(ctx, "go", "build", "-tags", "sqlite_fts5", "-buildvcs=false", "-o", program, "./internal/bench/spawn")
	build.Dir, build.Env = b.root, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return row{}, fmt.Errorf("build the program that is measured: %w: %s", err, text)
	}
	cmd := exec.CommandContext(ctx, program, what)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return row{}, fmt.Errorf("measure %s: %w", what, err)
	}
	var r struct{ Value, Floor float64 }
	if err := json.Unmarshal(text, &r); err != nil {
		return row{}, fmt.Errorf("measure %s: %w", what, err)
	}
	return row{Value: r.Value, Unit: "ms", Floor: r.Floor}, nil
}
