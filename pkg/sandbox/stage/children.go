package stage

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// killChildren kills every child of this process.
func killChildren() {
	self := os.Getpid()
	for _, pid := range processes() {
		if parentOf(pid) == self {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it is ours until we reap it
		}
	}
}

// processes lists the process ids in /proc.
func processes() []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1) // what could be read
	var pids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf is the parent of a process, or 0. In /proc/<pid>/stat it is the second
// field after the name, which stands in parentheses and may hold some.
func parentOf(pid int) int {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	ppid, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return ppid
}
