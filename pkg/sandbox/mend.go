package sandbox

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"correx/pkg/sandbox/stage"
)

// missing says what keeps a level from being reached, and what mends it.
func missing(level stage.Level, err error) Missing {
	m := Missing{Level: isolations[level], What: err.Error()}
	var f *stage.Fault
	if errors.As(err, &f) {
		m.Mend = mend(f, sysctl)
	}
	return m
}

// mend says what is to be done about a fault. read reads a kernel's setting.
func mend(f *stage.Fault, read func(name string) string) string {
	switch {
	case f.Errno == syscall.ENOSYS:
		return "this kernel is too old; Linux 5.14 or newer is needed (6.13 for overlays)"
	case f.Step == stage.MakeNamespaces && f.Errno == syscall.ENOSPC, read("user/max_user_namespaces") == "0":
		return "allow user namespaces: sysctl -w user.max_user_namespaces=10000"
	case f.Step == stage.MakeNamespaces || f.Step == stage.MapUser || f.Step == stage.PrivateMounts:
		switch {
		case read("kernel/unprivileged_userns_clone") == "0":
			return "allow user namespaces to users: sysctl -w kernel.unprivileged_userns_clone=1"
		case read("kernel/apparmor_restrict_unprivileged_userns") == "1":
			return "AppArmor restricts user namespaces: give tool-worker a profile that has the line \"userns,\", or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
		}
		return "something above refuses namespaces: in a container, allow the system calls clone, unshare and mount (docker run --security-opt seccomp=unconfined), or run tool-worker outside"
	case f.Step == stage.MountProc:
		return "a container masks /proc: run it with --security-opt systempaths=unconfined, or run tool-worker outside"
	case f.Step == stage.MakeRuleset || f.Step == stage.Landlock:
		return "turn Landlock on: build the kernel with CONFIG_SECURITY_LANDLOCK, and start it with landlock in its lsm= list"
	case f.Step == stage.Seccomp:
		return "build the kernel with CONFIG_SECCOMP_FILTER"
	case f.Step == stage.MountOverlay:
		return "load the overlay module; for the layers' attributes their file system must take user.* ones, and Linux be 6.13 or newer"
	}
	return ""
}

func sysctl(name string) string {
	text, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
