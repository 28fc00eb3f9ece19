package kernel

// Numbers of system calls.
const (
	SYS_CAPSET                 = 126
	SYS_CHDIR                  = 80
	SYS_CLONE                  = 56
	SYS_CLONE3                 = 435
	SYS_CLOSE                  = 3
	SYS_CLOSE_RANGE            = 436
	SYS_EXECVE                 = 59
	SYS_EXIT_GROUP             = 231
	SYS_FCHDIR                 = 81
	SYS_FSCONFIG               = 431
	SYS_FSMOUNT                = 432
	SYS_FSOPEN                 = 430
	SYS_LANDLOCK_ADD_RULE      = 445
	SYS_LANDLOCK_RESTRICT_SELF = 446
	SYS_MKDIRAT                = 258
	SYS_MKNODAT                = 259
	SYS_MOUNT                  = 165
	SYS_MOUNT_SETATTR          = 442
	SYS_MOVE_MOUNT             = 429
	SYS_OPENAT                 = 257
	SYS_OPENAT2                = 437
	SYS_OPEN_TREE              = 428
	SYS_PIVOT_ROOT             = 155
	SYS_PPOLL                  = 271
	SYS_PRCTL                  = 157
	SYS_PRLIMIT64              = 302
	SYS_RT_SIGACTION           = 13
	SYS_RT_SIGPROCMASK         = 14
	SYS_SECCOMP                = 317
	SYS_SETGROUPS              = 116
	SYS_SETSID                 = 112
	SYS_SYMLINKAT              = 266
	SYS_UMASK                  = 95
	SYS_UMOUNT2                = 166
	SYS_WAIT4                  = 61
	SYS_WRITE                  = 1
	SYS_PIDFD_OPEN             = 434
)
