package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"correx/pkg/events"
)

// runBench is one invocation as a worker does it, without the bus.
func runBench(b *testing.B, x *bench, call Call) {
	out := x.executor.Run(background, call)
	if out.Status != Completed {
		b.Fatalf("%+v", out)
	}
	if err := errors.Join(x.journal.Result(call.Key, []byte("end")), x.journal.Clear(call.Key)); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkEcho(b *testing.B) {
	x := newBench(b, nil)
	call := callOf("echo", events.T0, p{"text": "hi"})
	for b.Loop() {
		runBench(b, x, call)
	}
}

func BenchmarkFileRead(b *testing.B) {
	x := newBench(b, nil)
	x.put(b, "a.txt", "alpha")
	call := callOf("file_read", events.T1, p{"operation": "read", "path": "a.txt"})
	for b.Loop() {
		runBench(b, x, call)
	}
}

func BenchmarkFileWrite(b *testing.B) {
	x := newBench(b, nil)
	for i := 0; b.Loop(); i++ {
		runBench(b, x, callOf("file_write", events.T2, p{"operation": "write", "path": "a.txt", "content": fmt.Sprint(i)}))
	}
}

func BenchmarkFileWriteParallel(b *testing.B) {
	x := newBench(b, nil)
	var n atomic.Int64
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := n.Add(1)
			call := callOf("file_write", events.T2, p{"operation": "write", "path": fmt.Sprintf("%d.txt", i%64), "content": fmt.Sprint(i)})
			call.Key.Invocation = events.ToolInvocationID(fmt.Sprintf("t-%d", i))
			runBench(b, x, call)
		}
	})
}

func BenchmarkDiff(b *testing.B) {
	var old, new strings.Builder
	for i := range 2000 {
		fmt.Fprintln(&old, "line", i)
		fmt.Fprintln(&new, "line", i+i%2)
	}
	for b.Loop() {
		Diff("f", []byte(old.String()), []byte(new.String()))
	}
}
