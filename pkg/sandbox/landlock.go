package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"correx/pkg/sandbox/stage"
)

// configs are Landlock's versions, by ABI.
var configs = [...]landlock.Config{
	1: landlock.V1, 2: landlock.V2, 3: landlock.V3, 4: landlock.V4, 5: landlock.V5, 6: landlock.V6,
	7: landlock.V7, 8: landlock.V8, 9: landlock.V9, 10: landlock.V10, 11: landlock.V11,
}

// A rule lets Landlock allow something below a path.
type rule struct {
	path  string
	write bool
}

// makeRuleset makes the Landlock ruleset that a stage enters, and says of what
// rights it speaks: exactly those that this kernel's version knows, never less.
// Rules for what exists only inside come there.
func makeRuleset(network bool, rules []rule) (*os.File, uint64, error) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		errno, _ := err.(syscall.Errno)
		return nil, 0, &stage.Fault{Step: stage.MakeRuleset, Errno: errno, Text: "this kernel has no Landlock, or it is not turned on: " + err.Error()}
	}
	c := configs[min(abi, len(configs)-1)]
	if network {
		c.HandledAccessNet = 0
	}
	var list []landlock.Rule
	for _, r := range rules {
		f, err := openRule(r)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, &stage.Fault{Step: stage.MakeRuleset, Path: r.path, Text: err.Error()}
		}
		defer f.Close()
		list = append(list, rightsOf(r, f, c.HandledAccessFS))
	}
	fd, _, err := c.NewRulesetFD(list...)
	if err != nil {
		return nil, 0, &stage.Fault{Step: stage.MakeRuleset, Text: fmt.Sprintf("ABI %d: %v", abi, err)}
	}
	return os.NewFile(uintptr(fd), "ruleset"), uint64(c.HandledAccessFS), nil
}

// openRule opens what a rule is about. What may be written must be reached through
// no symbolic link: a tool may have put it there, or put it there just now.
func openRule(r rule) (*os.File, error) {
	path := r.path
	if !r.write {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, err
		}
		path = real
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if errors.Is(err, unix.ELOOP) {
		return nil, errors.New("it is, or lies behind, a symbolic link; name what it points at")
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// rightsOf names the open file, so that it is the one that is meant.
func rightsOf(r rule, f *os.File, handled landlock.AccessFSSet) landlock.Rule {
	rights := landlock.AccessFSSet(stage.ReadRights)
	if r.write {
		rights = stage.WriteRights
	}
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= stage.FileRights
	}
	return landlock.PathAccess(rights&handled, fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
}
