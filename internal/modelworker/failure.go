package modelworker

import (
	"context"
	"errors"
	"strings"

	"correx/internal/claim"
	"correx/internal/session"
	"correx/pkg/events"
	"correx/pkg/llama"
)

// An outputError is an answer that is of no use.
type outputError struct {
	reason string
	answer llama.Response
}

func (e *outputError) Error() string { return e.reason }

// withOutput makes an error that blames the model's output an outputError.
func withOutput(err error, answer llama.Response) error {
	var status *llama.StatusError
	if errors.As(err, &status) && status.BadOutput() {
		return &outputError{reason: status.Error(), answer: answer}
	}
	return err
}

// maxText bounds what is kept of an answer that is of no use, in bytes.
const maxText = 16 << 10

// failure says for programs and for people why an inference failed. Ctx is the
// one it ran under.
func failure(ctx context.Context, err error) events.InferenceFailed {
	f := events.InferenceFailed{Code: events.FailServer, Reason: err.Error(), Recoverable: true}
	var (
		overflow *session.ErrOverflow
		output   *outputError
		unknown  *unknownToolError
		status   *llama.StatusError
		tooLong  *llama.OverflowError
	)
	switch {
	case ctx.Err() != nil:
		return stopped(context.Cause(ctx))
	case errors.As(err, &overflow):
		f.Code, f.Recoverable = events.FailOverflow, false
		f.PromptTokens, f.Window = overflow.Tokens, overflow.Window
	case errors.As(err, &tooLong):
		f.Code, f.Recoverable = events.FailOverflow, false
		f.PromptTokens, f.Window = tooLong.PromptTokens, tooLong.ContextSize
	case errors.As(err, &output):
		f.Code, f.Usage, f.Text = events.FailModelOutput, output.answer.Usage, output.answer.Text
		f.Text, f.Finish = head(f.Text), output.answer.Finish
	case errors.As(err, &unknown):
		f.Recoverable = false
	case errors.As(err, &status):
		f.Recoverable = status.Code/100 != 4 // the same request is refused again
	}
	return f
}

// head is the beginning of a text that is to be kept.
func head(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// stopped is the end of an inference that was told to stop.
func stopped(cause error) events.InferenceFailed {
	var cancelled claim.Cancelled
	switch {
	case errors.Is(cause, claim.ErrFenced), errors.As(cause, &cancelled):
		return events.InferenceFailed{Code: events.FailCancelled, Reason: cause.Error()}
	default: // the worker stops, or it took too long: another attempt may do
		return events.InferenceFailed{Code: events.FailServer, Reason: cause.Error(), Recoverable: true}
	}
}
