package llama

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// What llama-server's types of error are to errors.Is: each *StatusError is one
// of them, or none where the server named a type that is not known here.
var (
	ErrInvalidRequest = errors.New("llama-server does not understand the request")
	ErrAuthentication = errors.New("llama-server does not know the key")
	ErrPermission     = errors.New("llama-server does not permit it")
	ErrNotFound       = errors.New("llama-server does not have it")
	ErrServer         = errors.New("llama-server failed")
	ErrNotSupported   = errors.New("llama-server does not support it")
	ErrUnavailable    = errors.New("llama-server is not ready")
	ErrOverflow       = errors.New("the prompt is larger than the context")
)

// sentinels are llama-server's types of error.
var sentinels = map[string]error{
	"invalid_request_error":     ErrInvalidRequest,
	"authentication_error":      ErrAuthentication,
	"permission_error":          ErrPermission,
	"not_found_error":           ErrNotFound,
	"server_error":              ErrServer,
	"not_supported_error":       ErrNotSupported,
	"unavailable_error":         ErrUnavailable,
	"exceed_context_size_error": ErrOverflow,
}

// A StatusError is llama-server's own refusal: a status other than 2xx, or an
// error in the middle of a stream. It is also one of [ErrInvalidRequest],
// [ErrAuthentication] and so on.
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

// Is reports whether target is what e's type stands for.
func (e *StatusError) Is(target error) bool { return target != nil && sentinels[e.Type] == target }

// Overflow reports whether the prompt was larger than the context.
func (e *StatusError) Overflow() bool { return errors.Is(e, ErrOverflow) }

// Loading reports whether the server is up but has its model not in memory yet.
func (e *StatusError) Loading() bool { return e.Code == 503 && errors.Is(e, ErrUnavailable) }

// BadOutput reports whether the server could not read what the model wrote:
// another seed may do better.
func (e *StatusError) BadOutput() bool {
	return e.Code == 500 && strings.Contains(e.Message, "output does not match the expected")
}

// An OverflowError is a prompt larger than the context, in tokens. Asked again it
// is refused again.
type OverflowError struct {
	PromptTokens int
	ContextSize  int
	Err          *StatusError // as the server said it
}

func (e *OverflowError) Error() string {
	return fmt.Sprintf("the prompt is %d tokens long, the model has room for %d", e.PromptTokens, e.ContextSize)
}

func (e *OverflowError) Unwrap() error { return e.Err }

// IsOverflow reports whether err is a prompt larger than the context.
func IsOverflow(err error) bool { return errors.Is(err, ErrOverflow) }

// refusal reads an error's body, {"error":{…}}; any other text is the message.
func refusal(code int, body []byte) error {
	var answer struct {
		Error *errorBody `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error == nil {
		return &StatusError{Code: code, Message: string(bytes.TrimSpace(body[:min(len(body), 500)]))}
	}
	return answer.Error.failure(code)
}

// An errorBody is an error as llama-server spells it.
type errorBody struct {
	Code         int    `json:"code"`
	Message      string `json:"message"`
	Type         string `json:"type"`
	PromptTokens int    `json:"n_prompt_tokens"`
	ContextSize  int    `json:"n_ctx"`
}

// failure is b as an error; code is that of the response.
func (b errorBody) failure(code int) error {
	if code/100 == 2 {
		code = b.Code // in mid-stream the response's own is long past
	}
	e := &StatusError{Code: code, Type: b.Type, Message: b.Message, PromptTokens: b.PromptTokens, ContextSize: b.ContextSize}
	if e.Overflow() {
		return &OverflowError{PromptTokens: b.PromptTokens, ContextSize: b.ContextSize, Err: e}
	}
	return e
}
