package llama

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// startTime is when a process began, in clock ticks since the boot: with the
// boot's id it tells a process from a later one of the same pid. It fails for
// one that is gone, and for one that is dead and only not yet waited for.
func startTime(pid int) (uint64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is the name in parentheses, which may hold anything.
	i := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[i+1:]))
	if i < 0 || len(fields) < 20 {
		return 0, fmt.Errorf("read /proc/%d/stat: too short", pid)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return 0, fmt.Errorf("process %d is dead", pid)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// bootID is this boot of the machine.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// bytesRead is what a process has had read from disk so far, mapped files
// included; 0 where nobody says.
func bytesRead(pid int) uint64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "read_bytes: "); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(v), 10, 64)
			return n
		}
	}
	return 0
}
