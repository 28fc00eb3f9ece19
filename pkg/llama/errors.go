package llama

import (
	"errors"
	"fmt"
	"strings"

	"correx/pkg/events"
)

// ErrTruncated is returned when a stream ends without its last word: the server
// died, or its connection did.
var ErrTruncated = errors.New("llama-server ended the stream without finishing the answer")

// ErrConnection is in what is returned when the connection to llama-server could
// not be made or broke.
var ErrConnection = errors.New("no connection to llama-server")

// ErrClosed is returned by a [Manager] that was closed.
var ErrClosed = errors.New("the model manager is closed")

// ErrResting is in what is returned for a model that failed too often in a row.
var ErrResting = errors.New("the model is not tried for now")

// ErrUnloaded is the cause of work that a forced unload cut short.
var ErrUnloaded = errors.New("the model was unloaded by force")

// A LoadError says why a model could not be loaded. Log are the last lines that
// llama-server printed, for people.
type LoadError struct {
	Model       events.ModelID
	Reason      string
	Log         []string
	OutOfMemory bool  // memory did not do: a smaller context, or a smaller model, may
	Err         error // what led to it, if anything

	ran bool // a llama-server was started
}

func (e *LoadError) Error() string {
	msg := fmt.Sprintf("load model %s: %s", e.Model, e.Reason)
	if line := telling(e.Log); line != "" {
		msg += "; llama-server said: " + line
	}
	return msg
}

func (e *LoadError) Unwrap() error { return e.Err }

// telling returns the line of a log that most likely names the fault: the first
// one of level E (error), for those behind it follow from it.
func telling(log []string) string {
	for _, line := range log {
		if _, text, ok := strings.Cut(line, " E "); ok {
			return strings.TrimSpace(text)
		}
	}
	if n := len(log); n > 0 {
		return strings.TrimSpace(log[n-1])
	}
	return ""
}

// A CrashError says that llama-server died under an inference.
type CrashError struct {
	Model       events.ModelID
	Exit        Exit
	OutOfMemory bool
	Err         error // what the client saw of it
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("llama-server of %s died: %s", e.Model, e.Exit)
}

func (e *CrashError) Unwrap() error { return e.Err }
