package stage

// A Step is one thing a stage does, for saying what went wrong.
type Step int

// The steps.
const (
	ReadOrder Step = iota
	PrepareStage
	EnterCgroup
	MakeRuleset
	MakeNamespaces
	MapUser
	WatchParent
	PrivateMounts
	OpenSource
	CloneSource
	MountOverlay
	CloneRoot
	MountMemory
	MakeNode
	MountProc
	FindTarget
	Attach
	AddRule
	PivotRoot
	DropCapabilities
	Fork
	LimitProcess
	NoNewPrivileges
	Landlock
	Seccomp
	EnterDirectory
	Execute
)

var steps = [...]string{
	ReadOrder: "read order", PrepareStage: "prepare stage", EnterCgroup: "enter cgroup", MakeRuleset: "make Landlock ruleset",
	MakeNamespaces: "make namespaces", MapUser: "map user", WatchParent: "watch the parent",
	PrivateMounts: "make mounts private", OpenSource: "open", CloneSource: "clone mount of", MountOverlay: "mount overlay at",
	CloneRoot: "clone the root's mounts", MountMemory: "mount file system in memory", MakeNode: "make mount point",
	MountProc: "mount /proc", FindTarget: "find mount point", Attach: "mount at", AddRule: "add Landlock rule for",
	PivotRoot: "pivot root", DropCapabilities: "drop capabilities", Fork: "fork", LimitProcess: "limit process",
	NoNewPrivileges: "set no_new_privs", Landlock: "enter Landlock", Seccomp: "enter seccomp",
	EnterDirectory: "enter directory", Execute: "execute",
}

func (s Step) String() string {
	if s < 0 || int(s) >= len(steps) {
		return "do something unknown"
	}
	return steps[s]
}
