package sandbox

import (
	"bufio"
	"context"
	"errors"
	"io"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"correx/pkg/tools"
)

func talk(t *testing.T, ctx context.Context, c tools.Command) tools.Dialogue {
	t.Helper()
	d, err := newRunner(t).Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func awaitDone(t *testing.T, d tools.Dialogue) tools.Exit {
	t.Helper()
	select {
	case <-d.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the process lives")
	}
	return d.Exit()
}

func TestDialogue(t *testing.T) {
	d := talk(t, background, script(t.TempDir(), `while read x; do echo "got $x"; echo log >&2; done; echo bye; exit 3`, 0))
	lines := bufio.NewReader(d)
	for _, word := range []string{"one", "two"} {
		if _, err := io.WriteString(d, word+"\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := lines.ReadString('\n'); err != nil || line != "got "+word+"\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if err := d.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	exit := awaitDone(t, d)
	if exit.Code != 3 || string(exit.Stderr.Head) != "log\nlog\n" || exit.Stdout.Total != 0 {
		t.Fatalf("%+v", exit)
	}
	if rest, err := io.ReadAll(lines); err != nil || string(rest) != "bye\n" { // after its death
		t.Fatalf("%q, %v", rest, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDialogueEnds has the whole tree die at each of its ends.
func TestDialogueEnds(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration
		end     func(tools.Dialogue, context.CancelFunc)
		check   func(tools.Exit) bool
	}{
		"closed":    {0, func(d tools.Dialogue, _ context.CancelFunc) { d.Close() }, func(e tools.Exit) bool { return e.Cancelled }},
		"cancelled": {0, func(_ tools.Dialogue, cancel context.CancelFunc) { cancel() }, func(e tools.Exit) bool { return e.Cancelled }},
		"timed out": {time.Second, func(tools.Dialogue, context.CancelFunc) {}, func(e tools.Exit) bool { return e.TimedOut }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			cmd := script(dir, daemon+"echo up; sleep $MARK", c.timeout)
			d := talk(t, ctx, cmd)
			if line, err := bufio.NewReader(d).ReadString('\n'); err != nil || line != "up\n" {
				t.Fatalf("%q, %v", line, err)
			}
			c.end(d, cancel)
			if exit := awaitDone(t, d); !c.check(exit) || exit.Signal != "killed" {
				t.Fatalf("%+v", exit)
			}
			if left := alive(t, cmd.Env); len(left) > 0 || content(filepath.Join(dir, "pid")) == absent {
				t.Fatalf("the daemon lives, or never did: %v", left)
			}
		})
	}
}

func TestDialogueStartFails(t *testing.T) {
	c := script(t.TempDir(), "", 0)
	c.Path = "/nowhere"
	d, err := newRunner(t).Start(background, c)
	if err != nil {
		t.Fatal(err)
	}
	awaitDone(t, d)
	if err := d.Close(); !errors.Is(err, syscall.ENOENT) {
		t.Fatalf("got %v", err)
	}
}
