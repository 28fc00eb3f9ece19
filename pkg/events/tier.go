package events

import "fmt"

// A Tier says how dangerous a tool is. Configuration, a preview or a request
// may raise it; nothing lowers it.
type Tier uint8

// T0 and T1 run on policy, T2 and T3 wait for a person or a rule, T4 is always
// rejected.
const (
	T0 Tier = iota
	T1
	T2
	T3
	T4
)

func (t Tier) String() string { return fmt.Sprintf("T%d", uint8(t)) }

// Valid reports whether t is one of T0 to T4.
func (t Tier) Valid() bool { return t <= T4 }

// MarshalText writes "T0" to "T4".
func (t Tier) MarshalText() ([]byte, error) {
	if !t.Valid() {
		return nil, fmt.Errorf("tier %d is not one of T0 to T4", uint8(t))
	}
	return []byte(t.String()), nil
}

// UnmarshalText reads "T0" to "T4".
func (t *Tier) UnmarshalText(b []byte) error {
	if len(b) != 2 || b[0] != 'T' || b[1] < '0' || b[1] > '4' {
		return fmt.Errorf("tier %q is not one of T0, T1, T2, T3, T4", b)
	}
	*t = Tier(b[1] - '0')
	return nil
}

// An ApprovalMode is a session's answer to tools that are not harmless. T4 runs
// in none of them.
type ApprovalMode string

const (
	ModePrompt ApprovalMode = "prompt" // T0, T1 run; T2, T3 ask a person. The default.
	ModeAuto   ApprovalMode = "auto"   // T2 runs too; T3 asks
	ModeDeny   ApprovalMode = "deny"   // nothing above T1 runs, and nobody is asked
)

// Valid reports whether m is a known mode.
func (m ApprovalMode) Valid() bool { return m == ModePrompt || m == ModeAuto || m == ModeDeny }
