package llama

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"sync"
	"time"
)

// helpTimeout bounds `llama-server --help`, which takes some 20 ms.
const helpTimeout = 20 * time.Second

// A flagSet is what flags a llama-server knows.
type flagSet map[string]bool

var flagPattern = regexp.MustCompile(`--?[a-z][a-z0-9-]*`)

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
	set := flagSet{}
	for _, f := range flagPattern.FindAllString(string(help), -1) {
		set[f] = true
	}
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

// optional returns the arguments that make a server quieter and smaller, as far
// as it knows them.
func (s flagSet) optional() []string {
	var args []string
	switch {
	case s["--no-webui"]:
		args = append(args, "--no-webui")
	case s["--no-ui"]:
		args = append(args, "--no-ui")
	}
	if s["--cache-ram"] {
		args = append(args, "--cache-ram", "0") // the default keeps up to 8 GiB of old prompts
	}
	return args
}
