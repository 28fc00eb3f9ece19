// Package kernel has the numbers of the kernel's interface that the stages use.
//
// golang.org/x/sys/unix has them too, but as a package that is set up at the
// start: to wait for it, and for all that comes before it in the alphabet, costs
// a stage more than its own work. A test holds the numbers against that package.
package kernel

// The same on every architecture that is supported.
const (
	AT_EMPTY_PATH                  = 0x1000
	AT_FDCWD                       = -0x64
	AT_RECURSIVE                   = 0x8000
	CAP_LAST_CAP                   = 0x28
	CLONE_INTO_CGROUP              = 0x200000000
	CLONE_NEWCGROUP                = 0x2000000
	CLONE_NEWIPC                   = 0x8000000
	CLONE_NEWNET                   = 0x40000000
	CLONE_NEWNS                    = 0x20000
	CLONE_NEWPID                   = 0x20000000
	CLONE_NEWUSER                  = 0x10000000
	CLONE_NEWUTS                   = 0x4000000
	CLOSE_RANGE_CLOEXEC            = 0x4
	FSMOUNT_CLOEXEC                = 0x1
	FSOPEN_CLOEXEC                 = 0x1
	LANDLOCK_ACCESS_FS_EXECUTE     = 0x1
	LANDLOCK_ACCESS_FS_MAKE_DIR    = 0x80
	LANDLOCK_ACCESS_FS_MAKE_FIFO   = 0x400
	LANDLOCK_ACCESS_FS_MAKE_REG    = 0x100
	LANDLOCK_ACCESS_FS_MAKE_SOCK   = 0x200
	LANDLOCK_ACCESS_FS_MAKE_SYM    = 0x1000
	LANDLOCK_ACCESS_FS_READ_DIR    = 0x8
	LANDLOCK_ACCESS_FS_READ_FILE   = 0x4
	LANDLOCK_ACCESS_FS_REFER       = 0x2000
	LANDLOCK_ACCESS_FS_REMOVE_DIR  = 0x10
	LANDLOCK_ACCESS_FS_REMOVE_FILE = 0x20
	LANDLOCK_ACCESS_FS_TRUNCATE    = 0x4000
	LANDLOCK_ACCESS_FS_WRITE_FILE  = 0x2
	LANDLOCK_RULE_PATH_BENEATH     = 0x1
	LINUX_CAPABILITY_VERSION_3     = 0x20080522
	MNT_DETACH                     = 0x2
	MOUNT_ATTR_NODEV               = 0x4
	MOUNT_ATTR_NOEXEC              = 0x8
	MOUNT_ATTR_NOSUID              = 0x2
	MOUNT_ATTR_RDONLY              = 0x1
	MOVE_MOUNT_F_EMPTY_PATH        = 0x4
	MOVE_MOUNT_T_EMPTY_PATH        = 0x40
	MS_PRIVATE                     = 0x40000
	MS_REC                         = 0x4000
	OPEN_TREE_CLOEXEC              = 0x80000
	OPEN_TREE_CLONE                = 0x1
	O_CLOEXEC                      = 0x80000
	O_PATH                         = 0x200000
	O_WRONLY                       = 0x1
	POLLIN                         = 0x1
	PR_CAPBSET_DROP                = 0x18
	PR_CAPBSET_READ                = 0x17
	PR_CAP_AMBIENT                 = 0x2f
	PR_CAP_AMBIENT_CLEAR_ALL       = 0x4
	PR_SET_CHILD_SUBREAPER         = 0x24
	PR_SET_DUMPABLE                = 0x4
	PR_SET_NO_NEW_PRIVS            = 0x26
	PR_SET_PDEATHSIG               = 0x1
	PR_SET_SECUREBITS              = 0x1c
	RESOLVE_IN_ROOT                = 0x10
	RESOLVE_NO_SYMLINKS            = 0x4
	RLIMIT_AS                      = 0x9
	RLIMIT_CORE                    = 0x4
	RLIMIT_CPU                     = 0x0
	RLIMIT_FSIZE                   = 0x1
	RLIMIT_NOFILE                  = 0x7
	RLIMIT_NPROC                   = 0x6
	SECCOMP_SET_MODE_FILTER        = 0x1
	SIG_BLOCK                      = 0x0
	SIG_SETMASK                    = 0x2
	S_IFDIR                        = 0x4000
	S_IFMT                         = 0xf000
	S_IFREG                        = 0x8000
	WNOHANG                        = 0x1
)
