package llama

import (
	"bytes"
	"encoding/json"
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

// ErrUnloaded is the cause of work that a forced unload cut short.
var ErrUnloaded = errors.New("the model was unloaded by force")

// Types of error that llama-server reports and that callers branch on.
const (
	typeOverflow    = "exceed_context_size_error"
	typeUnavailable = "unavailable_error"
)

// A StatusError is llama-server's own refusal: a status other than 2xx, or an
// error in the middle of a stream.
type StatusError struct {
	Code         int    // HTTP status, also of an error in mid-stream; 0: it named none
	Type         string // "invalid_request_error", "exceed_context_size_error", …
	Message      string
	PromptTokens int // of an overflow
	ContextSize  int // of an overflow
}

func (e *StatusError) Error() string {
	msg := fmt.Sprintf("llama-server answered %d", e.Code)
	if e.Type != "" {
		msg += " " + e.Type
	}
	if e.Message != "" {
		msg += ": " + e.Message
	}
	return msg
}

// Overflow reports whether the prompt was larger than the context.
func (e *StatusError) Overflow() bool { return e.Type == typeOverflow }

// Loading reports whether the server is up but has its model not in memory yet.
func (e *StatusError) Loading() bool { return e.Code == 503 && e.Type == typeUnavailable }

// BadOutput reports whether the server could not read what the model wrote:
// another seed may do better.
func (e *StatusError) BadOutput() bool {
	return e.Code == 500 && strings.Contains(e.Message, "output does not match the expected")
}

// IsOverflow reports whether err is a prompt larger than the context.
func IsOverflow(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Overflow()
}

// statusError reads an error's body, {"error":{…}}; any other text is the
// message.
func statusError(code int, body []byte) *StatusError {
	var answer struct {
		Error *errorBody `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error == nil {
		return &StatusError{Code: code, Message: string(bytes.TrimSpace(body[:min(len(body), 500)]))}
	}
	return answer.Error.status(code)
}

// An errorBody is an error as llama-server spells it.
type errorBody struct {
	Code         int    `json:"code"`
	Message      string `json:"message"`
	Type         string `json:"type"`
	PromptTokens int    `json:"n_prompt_tokens"`
	ContextSize  int    `json:"n_ctx"`
}

// status returns b; code is that of the response.
func (b errorBody) status(code int) *StatusError {
	if code/100 == 2 {
		code = b.Code // in mid-stream the response's own is long past
	}
	return &StatusError{Code: code, Type: b.Type, Message: b.Message, PromptTokens: b.PromptTokens, ContextSize: b.ContextSize}
}

// A LoadError says why a model could not be loaded. Log are the last lines that
// llama-server printed, for people.
type LoadError struct {
	Model  events.ModelID
	Reason string
	Log    []string
	Err    error // what led to it, if anything
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
	Model events.ModelID
	Exit  Exit
	Err   error // what the client saw of it
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("llama-server of %s died: %s", e.Model, e.Exit)
}

func (e *CrashError) Unwrap() error { return e.Err }
