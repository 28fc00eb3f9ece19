// Spawn measures what the start of a confined process costs. It is a program of its
// own, built as tool-worker is: what starts itself for each process starts sooner
// without C.
//
//	spawn full | ballast
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"

	_ "correx/internal/toolworker" // as heavy as the program that this stands for
	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

// spawns is how many starts a median is of.
const spawns = 300

// ballast is how large a worker is made, to see whether a start costs more then.
const ballast = 1 << 30

func main() {
	measure := map[string]func(context.Context) (value, floor float64, err error){"full": full, "ballast": heavy}[os.Args[len(os.Args)-1]]
	if measure == nil {
		fmt.Fprintln(os.Stderr, "spawn full | ballast")
		os.Exit(2)
	}
	value, floor, err := measure(context.Background())
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(map[string]float64{"value": value, "floor": floor})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "spawn:", err)
		os.Exit(1)
	}
}

// full is a run of /bin/true at full isolation, beside a plain exec of the same
// program; one of each in turn, so that both see the same machine.
func full(ctx context.Context) (value, floor float64, err error) {
	run, err := confined(ctx)
	if err != nil {
		return 0, 0, err
	}
	return inTurn(run, func() error { return exec.CommandContext(ctx, "/bin/true").Run() })
}

// heavy is the same run in a program that is large, beside that in a small one.
func heavy(ctx context.Context) (value, floor float64, err error) {
	run, err := confined(ctx)
	if err != nil {
		return 0, 0, err
	}
	if floor, _, err = inTurn(run, func() error { return nil }); err != nil {
		return 0, 0, err
	}
	weight := make([]byte, ballast)
	for i := 0; i < len(weight); i += 4096 {
		weight[i] = 1
	}
	value, _, err = inTurn(run, func() error { return nil })
	runtime.KeepAlive(weight)
	return value, floor, err
}

// confined returns what runs /bin/true at full isolation.
func confined(ctx context.Context) (func() error, error) {
	runner, err := sandbox.NewRunner(sandbox.RunnerOptions{})
	if err != nil {
		return nil, err
	}
	if runner.Isolation() != events.IsolationFull {
		return nil, errors.New("this machine does not reach full isolation; tool-worker probe says why")
	}
	c := tools.Command{Path: "/bin/true", Argv: []string{"true"}, Env: []string{}, Dir: "/", Timeout: time.Minute}
	return func() error {
		exit, err := runner.Run(ctx, c)
		if err == nil && exit.Code != 0 {
			err = fmt.Errorf("true ended with %d", exit.Code)
		}
		return err
	}, nil
}

// inTurn returns the medians of both, in milliseconds.
func inTurn(first, second func() error) (a, b float64, err error) {
	times := [2][]float64{}
	for range spawns {
		for k, f := range []func() error{first, second} {
			begin := time.Now()
			if err := f(); err != nil {
				return 0, 0, err
			}
			times[k] = append(times[k], float64(time.Since(begin).Microseconds())/1000)
		}
	}
	return median(times[0]), median(times[1]), nil
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
