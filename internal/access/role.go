package access

import "fmt"

// A Role is what a connection may do, and the name of its key.
type Role string

const (
	Operator    Role = "operator"     // a person at a terminal: commands, and all of the JetStream API
	Kernel      Role = "kernel"       // decides; makes streams and consumers
	ToolWorker  Role = "tool-worker"  // runs tools
	ModelWorker Role = "model-worker" // runs models
	Projector   Role = "projector"    // reads everything, answers queries
	Viewer      Role = "viewer"       // looks on
)

// Roles returns all roles.
func Roles() []Role {
	return []Role{Operator, Kernel, ToolWorker, ModelWorker, Projector, Viewer}
}

// ParseRole returns the role called s.
func ParseRole(s string) (Role, error) {
	for _, r := range Roles() {
		if string(r) == s {
			return r, nil
		}
	}
	return "", fmt.Errorf("no role is called %q; there are %v", s, Roles())
}

// InboxPrefix is where the answers to r's requests go; no other role may
// subscribe there.
func (r Role) InboxPrefix() string { return "_INBOX_" + string(r) }
