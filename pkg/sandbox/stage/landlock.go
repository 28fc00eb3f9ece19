package stage

import (
	"fmt"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// configs are Landlock's versions, by ABI.
var configs = [...]landlock.Config{
	1: landlock.V1, 2: landlock.V2, 3: landlock.V3, 4: landlock.V4, 5: landlock.V5, 6: landlock.V6,
	7: landlock.V7, 8: landlock.V8, 9: landlock.V9, 10: landlock.V10, 11: landlock.V11,
}

const (
	readRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeRights = readRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_REFER
	deviceRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	fileRights   = unix.LANDLOCK_ACCESS_FS_EXECUTE | deviceRights
)

// makeRuleset makes the Landlock ruleset: exactly what this kernel's version
// knows, never less. Rules for what exists only behind the fork come there.
func (n *inner) makeRuleset(o Order) error {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return &Fault{Step: MakeRuleset, Text: "this kernel has no Landlock, or it is not turned on: " + err.Error()}
	}
	c := configs[min(abi, len(configs)-1)]
	if o.Network {
		c.HandledAccessNet = 0
	}
	n.handled = uint64(c.HandledAccessFS)
	rules := []landlock.Rule{}
	if o.Level == Full {
		rules = append(rules, landlock.PathAccess(landlock.AccessFSSet(readRights), "/"))
	}
	var opened []int
	defer func() {
		for _, fd := range opened {
			_ = unix.Close(fd)
		}
	}()
	for _, r := range o.Rules {
		if r.Write {
			fd, err := openWritable(r.Path)
			if err == unix.ENOENT {
				continue
			}
			if err != nil {
				return &Fault{Step: MakeRuleset, Path: r.Path, Errno: err.(syscall.Errno)}
			}
			opened = append(opened, fd)
			r.Path = fmt.Sprintf("/proc/self/fd/%d", fd)
		}
		rules = append(rules, rightsOf(r, c.HandledAccessFS))
	}
	fd, _, err := c.NewRulesetFD(rules...)
	if err != nil {
		return &Fault{Step: MakeRuleset, Text: fmt.Sprintf("ABI %d: %v", abi, err)}
	}
	n.ruleset = uintptr(fd)
	return nil
}

// openWritable is a descriptor of what may be written, which is reached through no
// symbolic link: a tool could just have put one there.
func openWritable(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
}

func rightsOf(r Rule, handled landlock.AccessFSSet) landlock.Rule {
	var st unix.Stat_t
	dir := unix.Stat(r.Path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
	rights := landlock.AccessFSSet(readRights)
	if r.Write {
		rights = writeRights
	}
	if !dir {
		rights &= fileRights
	}
	return landlock.PathAccess(rights&handled, r.Path).IgnoreIfMissing()
}

// allow adds a rule behind the fork.
//
//go:norace
//go:nosplit
func (n *inner) allow(fd uintptr, rights uint64) (errno uintptr) {
	n.rule = pathBeneath{allowed: rights & n.handled, parent: int32(fd)}
	_, e := sys(unix.SYS_LANDLOCK_ADD_RULE, n.ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, ptr(&n.rule), 0, 0, 0)
	return uintptr(e)
}
