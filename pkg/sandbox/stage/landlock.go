package stage

import "correx/pkg/sandbox/stage/kernel"

// Rights of Landlock.
const (
	ReadRights  = kernel.LANDLOCK_ACCESS_FS_EXECUTE | kernel.LANDLOCK_ACCESS_FS_READ_FILE | kernel.LANDLOCK_ACCESS_FS_READ_DIR
	WriteRights = ReadRights | kernel.LANDLOCK_ACCESS_FS_WRITE_FILE | kernel.LANDLOCK_ACCESS_FS_TRUNCATE |
		kernel.LANDLOCK_ACCESS_FS_REMOVE_DIR | kernel.LANDLOCK_ACCESS_FS_REMOVE_FILE | kernel.LANDLOCK_ACCESS_FS_MAKE_DIR |
		kernel.LANDLOCK_ACCESS_FS_MAKE_REG | kernel.LANDLOCK_ACCESS_FS_MAKE_FIFO | kernel.LANDLOCK_ACCESS_FS_MAKE_SYM |
		kernel.LANDLOCK_ACCESS_FS_MAKE_SOCK | kernel.LANDLOCK_ACCESS_FS_REFER
	deviceRights = kernel.LANDLOCK_ACCESS_FS_READ_FILE | kernel.LANDLOCK_ACCESS_FS_WRITE_FILE | kernel.LANDLOCK_ACCESS_FS_TRUNCATE
	FileRights   = kernel.LANDLOCK_ACCESS_FS_EXECUTE | deviceRights
)

// allow adds a rule behind the fork.
//
//go:norace
//go:nosplit
func (n *inner) allow(fd uintptr, rights uint64) (errno uintptr) {
	n.rule = pathBeneath{allowed: rights & n.handled, parent: int32(fd)}
	_, e := sys(kernel.SYS_LANDLOCK_ADD_RULE, n.ruleset, kernel.LANDLOCK_RULE_PATH_BENEATH, ptr(&n.rule), 0, 0, 0)
	return uintptr(e)
}
