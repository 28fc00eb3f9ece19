package kernel

// Numbers of system calls.
const (
	SYS_CAPSET                 = 91
	SYS_CHDIR                  = 49
	SYS_CLONE                  = 220
	SYS_CLONE3                 = 435
	SYS_CLOSE                  = 57
	SYS_CLOSE_RANGE            = 436
	SYS_EXECVE                 = 221
	SYS_EXIT_GROUP             = 94
	SYS_FCHDIR                 = 50
	SYS_FSCONFIG               = 431
	SYS_FSMOUNT                = 432
	SYS_FSOPEN                 = 430
	SYS_LANDLOCK_ADD_RULE      = 445
	SYS_LANDLOCK_RESTRICT_SELF = 446
	SYS_MKDIRAT                = 34
	SYS_MKNODAT                = 33
	SYS_MOUNT                  = 40
	SYS_MOUNT_SETATTR          = 442
	SYS_MOVE_MOUNT             = 429
	SYS_OPENAT                 = 56
	SYS_OPENAT2                = 437
	SYS_OPEN_TREE              = 428
	SYS_PIVOT_ROOT             = 41
	SYS_PPOLL                  = 73
	SYS_PRCTL                  = 167
	SYS_PRLIMIT64              = 261
	SYS_RT_SIGACTION           = 134
	SYS_RT_SIGPROCMASK         = 135
	SYS_SECCOMP                = 277
	SYS_SETGROUPS              = 159
	SYS_SETSID                 = 157
	SYS_SYMLINKAT              = 36
	SYS_UMASK                  = 166
	SYS_UMOUNT2                = 39
	SYS_WAIT4                  = 260
	SYS_WRITE                  = 64
	SYS_PIDFD_OPEN             = 434
)
