package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Ids are subject tokens (see [CheckToken]) unless their comment says otherwise.
type (
	// SessionID names a session. [System] is the session of facts that belong
	// to none.
	SessionID string
	// StageID names a turn of a session ("turn-3"), or whatever whoever asked
	// for a tool calls the occasion.
	StageID string
	// ToolInvocationID names one wish to run one tool: "t7-0" is the first call
	// of the inference t7.
	ToolInvocationID string
	// InferenceID names one request to a model: "t7" is the seventh of its session.
	InferenceID string
	// WorkerID names a worker process across restarts.
	WorkerID string
	// ActorID names who wishes: the second token of a command's subject.
	ActorID string
	// CommandID identifies a command: see [CommandIDOf].
	CommandID string
	// ModelID is a model's raw name, with dots, colons and slashes. It is no
	// token; [Token] derives one.
	ModelID string
	// ProviderID is "llama-cpp:" and a [ModelID]. It is no token.
	ProviderID string
)

// System is the session of the facts of no session. No session may be called so.
const System SessionID = "system"

// Main is the id of the one aggregate of kind session that each session has.
const Main = "main"

// Limits of names on the wire (design: subjects).
const (
	MaxToken   = 64  // bytes of one token
	MaxSubject = 255 // bytes of a whole subject
)

// CommandIDOf names the command at sequence seq of a stream made at created:
// "2-tpcele", the time in seconds to the base 36.
func CommandIDOf(seq uint64, created time.Time) CommandID {
	return CommandID(strconv.FormatUint(seq, 10) + "-" + strconv.FormatInt(created.Unix(), 36))
}

// CheckToken reports why s cannot be a token of a subject: tokens are
// [A-Za-z0-9_-]{1,64}. It returns nil when it can.
func CheckToken(s string) error {
	if s == "" {
		return fmt.Errorf("is empty; use 1 to %d of A-Z a-z 0-9 _ -", MaxToken)
	}
	if len(s) > MaxToken {
		return fmt.Errorf("%q… is %d bytes long; use at most %d", s[:16], len(s), MaxToken)
	}
	for i := 0; i < len(s); i++ {
		if !tokenByte(s[i]) {
			return fmt.Errorf("%q has %q at byte %d; use only A-Z a-z 0-9 _ -", s, s[i:i+1], i)
		}
	}
	return nil
}

func tokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// Token derives a subject token from a raw name such as a model's. A name that
// is a token is its own; any other keeps its readable part and gets eight hex
// digits of its SHA-256, so that two names never share a token by accident.
func Token(raw string) string {
	if CheckToken(raw) == nil {
		return raw
	}
	var b strings.Builder
	for i := 0; i < len(raw) && b.Len() < MaxToken-9; i++ {
		c := raw[i]
		if !tokenByte(c) {
			c = '-'
		}
		b.WriteByte(c)
	}
	sum := sha256.Sum256([]byte(raw))
	readable := strings.Trim(b.String(), "-")
	if readable == "" {
		readable = "x"
	}
	return readable + "-" + hex.EncodeToString(sum[:4])
}
