package llama

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// defaultExecutable is looked for on PATH.
const defaultExecutable = "llama-server"

// helpTimeout bounds `llama-server --help`, which takes some 20 ms.
const helpTimeout = 20 * time.Second

// A flagSet is what flags a llama-server knows.
type flagSet map[string]bool

// flagPattern is a flag as it stands in the help or on a command line.
var flagPattern = regexp.MustCompile(`^--?[A-Za-z][A-Za-z0-9-]*$`)

// needed are the flags without which a program is no llama-server that this
// package can drive.
var needed = []string{"--model", "--host", "--port", "--ctx-size", "--parallel", "--alias", "--api-key"}

// flagCache asks each executable once.
type flagCache struct {
	mu    sync.Mutex
	known map[string]flagSet
}

// of returns the flags of the executable, or why it is none to use.
func (c *flagCache) of(ctx context.Context, exe string) (flagSet, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if set, ok := c.known[exe]; ok {
		return set, nil
	}
	ctx, cancel := context.WithTimeout(ctx, helpTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "--help")
	cmd.WaitDelay = time.Second
	help, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("run %s --help: %w", exe, orCancelled(ctx, err))
	}
	set := readFlags(string(help))
	for _, f := range needed {
		if !set[f] {
			return nil, fmt.Errorf("%s does not know %s: it is no llama-server, or too old a one", exe, f)
		}
	}
	if c.known == nil {
		c.known = map[string]flagSet{}
	}
	c.known[exe] = set
	return set, nil
}

// readFlags finds the flags in a help: they stand at the beginning of a line,
// "-np,  --parallel N   number of server slots".
func readFlags(help string) flagSet {
	set := flagSet{sockets: strings.Contains(help, ".sock")}
	for line := range strings.Lines(help) {
		for _, word := range strings.Fields(line) {
			name := strings.TrimSuffix(word, ",")
			if !flagPattern.MatchString(name) {
				break
			}
			set[name] = true
		}
	}
	return set
}

// sockets is the mark of a server that listens on a Unix socket.
const sockets = "unix"

// optional returns the arguments that make a server quieter and smaller, as far
// as it knows them, and those that d leaves to this package.
func (s flagSet) optional(d Descriptor) []string {
	var args []string
	switch {
	case s["--no-webui"]:
		args = append(args, "--no-webui")
	case s["--no-ui"]:
		args = append(args, "--no-ui")
	}
	if s["--cache-ram"] {
		args = append(args, "--cache-ram", strconv.Itoa(d.CacheRAM)) // its own default keeps up to 8 GiB of old prompts
	}
	if s["--offline"] && !d.remote() {
		args = append(args, "--offline")
	}
	return append(args, threads(runtime.NumCPU(), d.Args)...)
}

// threads leaves a core of a small machine to everything else, unless args say
// otherwise. llama-server's threads wait for each other all the time: with one on
// each core, any other work on the machine halts them all. On two cores with a
// load of 10, a model of 135M made 3 to 11 tokens a second with two threads, and
// 38 to 50 with one.
func threads(cores int, args []string) []string {
	for _, a := range args {
		if name, _, _ := strings.Cut(a, "="); name == "-t" || name == "--threads" {
			return nil
		}
	}
	if cores < 2 || cores > 4 {
		return nil
	}
	return []string{"--threads", strconv.Itoa(cores - 1)}
}

// check names every argument that looks like a flag and is none of s.
func (s flagSet) check(args []string) error {
	var faults []error
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		if flagPattern.MatchString(name) && !s[name] {
			faults = append(faults, fmt.Errorf("llama-server does not know %s; llama-server --help lists what it knows", name))
		}
	}
	return errors.Join(faults...)
}

// CheckArgs holds further flags of models against what the executable says that
// it knows, see [Descriptor.Args]. It names every fault.
func CheckArgs(ctx context.Context, executable string, models ...Descriptor) error {
	exe, err := exec.LookPath(orDefault(executable, defaultExecutable))
	if err != nil {
		return fmt.Errorf("find llama-server: %w", err)
	}
	flags, err := new(flagCache).of(ctx, exe)
	if err != nil {
		return err
	}
	var faults []error
	for _, d := range models {
		if err := flags.check(d.Args); err != nil {
			faults = append(faults, fmt.Errorf("model %s: %w", d.ModelID, err))
		}
	}
	return errors.Join(faults...)
}
