package llama

import (
	"os"
	"strconv"
	"strings"
)

// memorySigns are what llama-server prints when memory does not do, whichever
// backend says it.
var memorySigns = []string{
	"out of memory", "outofmemory", "out_of_memory", "insufficient memory", "bad_alloc", "cannot allocate memory",
	"unable to allocate", "failed to allocate", "failed to reserve", "outofdevicememory",
}

// OutOfMemory reports whether a dead process died because memory did not do: it
// said so itself, or the system killed it for that.
func (p *Process) OutOfMemory() bool {
	p.mu.Lock()
	exit := p.exit
	p.mu.Unlock()
	if exit.Signal == "killed" {
		return oomKills() > p.oomKills
	}
	if exit.Code == 0 {
		return false
	}
	for _, line := range p.Tail(crashLines) {
		line = strings.ToLower(line)
		for _, sign := range memorySigns {
			if strings.Contains(line, sign) {
				return true
			}
		}
	}
	return false
}

// oomKills is how many processes the system has killed for want of memory since
// the boot; 0 where it does not say.
func oomKills() uint64 {
	data, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(v), 10, 64)
			return n
		}
	}
	return 0
}
