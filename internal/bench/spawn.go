package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

// spawns is how many starts a median is of.
const spawns = 300

// ballast is how large a worker is made, to see whether a start costs more then.
const ballast = 1 << 30

// spawnFull measures a run of /bin/true at full isolation, beside a plain exec of
// the same program; one of each in turn, so that both see the same machine.
func (b *bench) spawnFull(ctx context.Context) (row, error) {
	run, err := confined(ctx)
	if err != nil {
		return row{}, err
	}
	value, floor, err := inTurn(run, func() error { return exec.CommandContext(ctx, "/bin/true").Run() })
	return row{Value: value, Unit: "ms", Floor: floor}, err
}

// spawnBallast measures the same run in a worker that is large, beside that in a
// small one.
func (b *bench) spawnBallast(ctx context.Context) (row, error) {
	run, err := confined(ctx)
	if err != nil {
		return row{}, err
	}
	floor, _, err := inTurn(run, func() error { return nil })
	if err != nil {
		return row{}, err
	}
	weight := make([]byte, ballast)
	for i := 0; i < len(weight); i += 4096 {
		weight[i] = 1
	}
	value, _, err := inTurn(run, func() error { return nil })
	runtime.KeepAlive(weight)
	return row{Value: value, Unit: "ms", Floor: floor}, err
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
