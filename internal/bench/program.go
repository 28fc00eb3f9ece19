package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A ran is how one of the product's programs ran.
type ran struct {
	took   time.Duration
	memory int64 // bytes, at the most
	out    []byte
}

// program runs one of them to its end.
func (l *bulk) program(ctx context.Context, name string, args ...string) (ran, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(l.bin, name), args...)
	cmd.Env = append(os.Environ(), "CORREX_STATE="+l.state, "CORREX_LOG_LEVEL=warn")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return ran{}, err
	}
	memory, stop := watchMemory(cmd.Process.Pid)
	err := cmd.Wait()
	r := ran{took: time.Since(begin), out: out.Bytes()}
	stop()
	if r.memory = <-memory; err != nil {
		return r, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, r.out)
	}
	return r, nil
}

// watchMemory looks again and again how much memory a process has had at the most.
// (What wait reports of a child has its parent's in it.)
func watchMemory(pid int) (most <-chan int64, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	out := make(chan int64, 1)
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		var most int64
		for ; ctx.Err() == nil; <-tick.C {
			most = max(most, residentMost(pid))
		}
		out <- most
	}()
	return out, cancel
}

// residentMost is VmHWM of a process, in bytes, or 0.
func residentMost(pid int) (n int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscanf(rest, "%d kB", &n); err != nil {
		return 0
	}
	return n << 10
}

// maxMemory is what rebuild and verify may take, whatever the log's length.
const maxMemory = 200 << 20

func (r ran) flat(what string) error {
	fmt.Fprintf(os.Stderr, "  %s took %s and %d MiB\n", what, r.took.Round(time.Millisecond), r.memory>>20)
	if r.memory >= maxMemory {
		return fmt.Errorf("%s took %d MiB of memory, at most %d are allowed", what, r.memory>>20, maxMemory>>20)
	}
	return nil
}

// rebuild projects the whole log with the product's own program.
func (l *bulk) rebuild(ctx context.Context, db string) (ran, error) {
	r, err := l.program(ctx, "projector", "rebuild", "--json", "--db", db)
	if err != nil {
		return r, err
	}
	var said struct {
		Records uint64 `json:"records"`
		Millis  int64  `json:"duration_ms"`
	}
	if err := json.Unmarshal(r.out, &said); err != nil {
		return r, err
	}
	if said.Records < l.last {
		return r, fmt.Errorf("projector rebuilt %d records of %d", said.Records, l.last)
	}
	return r, r.flat("rebuild")
}

// audit verifies the whole log with the product's own program.
func (l *bulk) audit(ctx context.Context) (ran, error) {
	r, err := l.program(ctx, "bus", "audit", "verify", "--json")
	if err != nil {
		return r, err
	}
	return r, r.flat("verify")
}
