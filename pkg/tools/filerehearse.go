package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"correx/pkg/events"
	"correx/pkg/tools/patch"
	"correx/pkg/tools/workspace"
)

// patchTimeout is how long the program patch may take; it needs milliseconds.
const patchTimeout = 10 * time.Second

// A patcher has the program patch make changes on copies. It reads what package
// patch rendered, and works on files called f0, f1, …, so that neither a name nor a
// line that a model wrote reaches it as anything but content.
type patcher struct {
	program executable
	runner  Runner
	least   events.Isolation
	off     string // why there is none; empty if there is
}

func newPatcher(c Config) patcher {
	p := patcher{runner: c.Runner, least: c.MinIsolation}
	if c.Runner == nil {
		p.off = "nothing was given that starts processes"
		return p
	}
	if p.off = p.tooOpen(); p.off != "" {
		return p
	}
	var err error
	if p.program, err = findExecutable("patch", writableDirs(c, ""), nil); err != nil {
		p.off = err.Error()
	}
	return p
}

// tooOpen says that processes are not confined as well as they must be.
func (p patcher) tooOpen() string {
	if have := p.runner.Isolation(); have.Rank() < p.least.Rank() {
		return fmt.Sprintf("this machine confines processes by %q, and at least %q is configured", have, p.least)
	}
	return ""
}

// A patchCopy is a file for the program to work on.
type patchCopy struct {
	before  []byte
	existed bool
	result  patch.Result // what must come of it
}

// A rehearsal is a patch with the copies that it is for.
type rehearsal struct {
	copies []patchCopy
	input  bytes.Buffer
}

func copyName(i int) string { return fmt.Sprintf("f%d", i) }

func (j *rehearsal) add(f patch.File, c patchCopy) {
	j.input.Write(f.Render(c.result, copyName(len(j.copies))))
	j.copies = append(j.copies, c)
}

// rehearse runs the program on copies, and makes sure that it makes of them
// exactly what is about to be made of the files.
func (p patcher) rehearse(ctx context.Context, j rehearsal) (events.Isolation, error) {
	if why := p.tooOpen(); why != "" {
		return "", errors.New(why)
	}
	if err := p.program.check(); err != nil {
		return "", err
	}
	dir := ScopeOf(ctx).Dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "correx-"); err != nil {
			return "", fmt.Errorf("make directory: %w", err)
		}
		defer os.RemoveAll(dir)
	}
	if err := j.lay(dir); err != nil {
		return "", fmt.Errorf("copy files: %w", err)
	}
	exit, err := p.runner.Run(ctx, p.command(dir))
	if err != nil {
		return "", fmt.Errorf("start the program patch: %w", err)
	}
	if err := told(exit); err != nil {
		return exit.Isolation, err
	}
	return exit.Isolation, j.compare(dir)
}

func (p patcher) command(dir string) Command {
	input := inputOf(dir)
	return Command{
		Path: p.program.path,
		Argv: []string{"patch", "-p0", "--binary", "--forward", "--batch", "--fuzz=0", "--no-backup-if-mismatch", "-r", "-", "-i", input},
		Env:  []string{"PATH=" + filepath.Join(dir, "bin"), "HOME=" + dir, "TMPDIR=" + dir, "LANG=C", "LC_ALL=C"}, // no program is to be found: patch knows ed
		Dir:  copiesOf(dir), Timeout: patchTimeout, Writable: []string{dir}, ReadOnly: []string{input},
	}
}

func copiesOf(dir string) string { return filepath.Join(dir, "files") }
func inputOf(dir string) string  { return filepath.Join(dir, "patch") }

// lay writes the patch and the copies.
func (j *rehearsal) lay(dir string) error {
	if err := os.Mkdir(copiesOf(dir), 0o700); err != nil {
		return err
	}
	for i, c := range j.copies {
		if !c.existed {
			continue
		}
		if err := os.WriteFile(filepath.Join(copiesOf(dir), copyName(i)), c.before, 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(inputOf(dir), j.input.Bytes(), 0o400)
}

// A passingError may be gone at the next try.
type passingError struct{ reason string }

func (e *passingError) Error() string { return e.reason }

// told is the error of a run that did not end well.
func told(exit Exit) error {
	switch {
	case exit.Cancelled:
		return &passingError{"stopped while the program patch was at work; nothing was changed"}
	case exit.TimedOut:
		return &passingError{fmt.Sprintf("the program patch took longer than %s; nothing was changed", patchTimeout)}
	case exit.Lost, exit.OutOfMemory, exit.Signal != "":
		return &passingError{"the program patch was killed; nothing was changed"}
	case exit.Code != 0:
		said := strings.TrimSpace(Summary(string(exit.Stdout.Head)+string(exit.Stderr.Head), 1000))
		return fmt.Errorf("the program patch ended with %d, and nothing was changed; it said: %s", exit.Code, said)
	}
	return nil
}

// compare holds what the program left against what is to come of the files. One
// file more or less, or one byte, and nothing is done.
func (j *rehearsal) compare(dir string) error {
	roots, err := workspace.Open([]string{copiesOf(dir)})
	if err != nil {
		return err
	}
	defer roots.Close()
	left := 0
	for i, c := range j.copies {
		place, err := roots.Find(copyName(i))
		if err != nil {
			return err
		}
		file, err := place.Look(workspace.MaxSize)
		if err != nil {
			return fmt.Errorf("the program patch left something else than a file: %w; nothing was changed", err)
		}
		if file.Exists {
			left++
		}
		if file.Exists != c.result.Exists || c.result.Exists && !bytes.Equal(file.Data, c.result.Data) {
			return errors.New("the program patch makes something else of these files than the hunks say; nothing was changed")
		}
	}
	entries, err := os.ReadDir(copiesOf(dir))
	if err != nil {
		return err
	}
	if len(entries) != left {
		return fmt.Errorf("the program patch left %d files where %d were expected; nothing was changed", len(entries), left)
	}
	return nil
}
