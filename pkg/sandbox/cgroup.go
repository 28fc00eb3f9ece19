package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// cgroups are where this process may make control groups.
type cgroups struct {
	pids, memory string // version 1: a directory of each controller
	unified      string // version 2: one that has both
}

func (g cgroups) String() string {
	switch {
	case g.unified != "":
		return "v2"
	case g.pids != "" && g.memory != "":
		return "v1"
	}
	return ""
}

// groupPrefix is what directories of control groups are called: with the number
// of the worker that made them, so that another can tell whether it lives.
const groupPrefix = "correx-"

// groupsHere finds out once where control groups can be made, and removes those
// that dead workers left.
var groupsHere = sync.OnceValue(func() cgroups {
	var g cgroups
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return g
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch parts[1] {
		case "pids":
			g.pids = usable("/sys/fs/cgroup/pids", parts[2], "pids.max")
		case "memory":
			g.memory = usable("/sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes")
		case "":
			g.unified = usableUnified("/sys/fs/cgroup", parts[2])
		}
	}
	if g.pids == "" || g.memory == "" {
		g.pids, g.memory = "", ""
	}
	return g
})

// usable tries to make a group below the one that this process is in.
func usable(mount, own, file string) string {
	dir := filepath.Join(mount, own)
	sweepGroups(dir)
	try := filepath.Join(dir, groupName())
	if os.Mkdir(try, 0o755) != nil {
		return ""
	}
	defer os.Remove(try)
	if _, err := os.Stat(filepath.Join(try, file)); err != nil {
		return ""
	}
	return dir
}

// usableUnified does so beside the group that this process is in: one that has
// processes cannot have groups below it that are limited.
func usableUnified(mount, own string) string {
	for _, dir := range []string{filepath.Join(mount, own), filepath.Join(mount, filepath.Dir(own))} {
		have, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil || !strings.Contains(string(have), "pids") || !strings.Contains(string(have), "memory") {
			continue
		}
		if unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) != nil {
			continue // the kernel wants this for moving anything to below
		}
		if dir = usable(dir, "", "pids.max"); dir != "" {
			return dir
		}
	}
	return ""
}

var groupCount atomic.Uint64

func groupName() string { return fmt.Sprintf("%s%d-%d", groupPrefix, os.Getpid(), groupCount.Add(1)) }

// sweepGroups removes what workers left that are dead.
func sweepGroups(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, groupPrefix+"*")) // the pattern is right
	for _, path := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), groupPrefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && n != os.Getpid() && errors.Is(unix.Kill(n, 0), unix.ESRCH) {
			_ = os.Remove(path) // not while a process is in it
		}
	}
}

// stages is how many of the tasks in a group are not the command's.
const stages = 2

// A group is the control group of one command.
type group struct {
	dirs   []string
	memory string   // the directory that counts memory
	tasks  []string // of version 1: how a thread enters
	into   bool     // it is of version 2
}

// newGroup makes a group with limits, or nil where none can be had.
func newGroup(l Limits) (*group, error) {
	here := groupsHere()
	if here.String() == "" {
		return nil, nil
	}
	g := &group{}
	err := g.make(here, l)
	if err != nil {
		g.close()
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	return g, nil
}

func (g *group) make(here cgroups, l Limits) error {
	name := groupName()
	if here.unified != "" {
		g.into = true
		g.memory = filepath.Join(here.unified, name)
		if err := g.add(g.memory, map[string]uint64{"pids.max": l.Processes + stages, "memory.max": l.Memory}); err != nil {
			return err
		}
		_ = os.WriteFile(filepath.Join(g.memory, "memory.swap.max"), []byte("0"), 0) // not without swap accounting
		return nil
	}
	g.memory = filepath.Join(here.memory, name)
	return errors.Join(
		g.add(filepath.Join(here.pids, name), map[string]uint64{"pids.max": l.Processes + stages}),
		g.add(g.memory, map[string]uint64{"memory.limit_in_bytes": l.Memory}),
	)
}

// add makes a directory with limits.
func (g *group) add(dir string, limits map[string]uint64) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	g.dirs = append(g.dirs, dir)
	for name, value := range limits {
		if err := os.WriteFile(filepath.Join(dir, name), strconv.AppendUint(nil, value, 10), 0); err != nil {
			return err
		}
	}
	g.tasks = append(g.tasks, filepath.Join(dir, "tasks"))
	return nil
}

// killed reports whether the kernel killed anything for want of memory.
func (g *group) killed() bool {
	file := "memory.oom_control"
	if g.into {
		file = "memory.events"
	}
	text, err := os.ReadFile(filepath.Join(g.memory, file))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok && strings.TrimSpace(n) != "0" {
			return true
		}
	}
	return false
}

// close removes the group, when all in it are dead. For a moment after that the
// kernel may still say that it is busy; then it goes a little later, at the latest
// when the next worker starts.
func (g *group) close() {
	for _, dir := range g.dirs {
		if errors.Is(os.Remove(dir), unix.EBUSY) {
			go removeLater(dir)
		}
	}
}

func removeLater(dir string) {
	for pause := time.Millisecond; pause < 5*time.Second; pause *= 2 {
		time.Sleep(pause)
		if err := os.Remove(dir); !errors.Is(err, unix.EBUSY) {
			return
		}
	}
}
