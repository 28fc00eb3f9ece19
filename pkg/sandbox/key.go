package sandbox

import (
	"fmt"
	"path/filepath"

	"correx/pkg/events"
)

// A Key names one claim of one invocation.
type Key struct {
	Session    events.SessionID        `json:"session"`
	Invocation events.ToolInvocationID `json:"invocation"`
	Started    uint64                  `json:"started"` // sequence of its started fact
	Nonce      string                  `json:"nonce"`   // of its claim
}

func (k Key) String() string {
	return fmt.Sprintf("%s/%s at %d", k.Session, k.Invocation, k.Started)
}

// name is the key as a file name.
func (k Key) name() string {
	return fmt.Sprintf("%s.%s.%d", k.Session, k.Invocation, k.Started)
}

// check reports why the key cannot name files.
func (k Key) check() error {
	if err := events.CheckToken(string(k.Session)); err != nil {
		return fmt.Errorf("session %w", err)
	}
	if err := events.CheckToken(string(k.Invocation)); err != nil {
		return fmt.Errorf("invocation %w", err)
	}
	return nil
}

func (k Key) dir(root string) string {
	return filepath.Join(root, string(k.Session), string(k.Invocation))
}

// A Call is an invocation that may run.
type Call struct {
	Key     Key
	Request events.ToolRequest
	Tier    events.Tier       // that was approved
	Base    []events.BaseHash // that the approval rests on; nil: there was no preview
}

// A State is how far an entry of the journal got.
type State string

const (
	Running State = "running" // begun; what it changed is not known to be wanted
	Rolling State = "rolling" // being taken back, or taken back
	Result  State = "result"  // its result is written and stands
)

// An Entry is one invocation in the journal.
type Entry struct {
	Key      Key
	Tool     string
	State    State
	Result   []byte                 // opaque; set in state result
	Files    []events.RecoveredFile // what a rollback came to, once it is over
	Steps    []Step                 // of what a former process left: what it was to change
	Unlisted bool                   // it may have changed what nobody listed, as a shell command does
}
