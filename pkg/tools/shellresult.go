package tools

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"correx/pkg/events"
)

// streamSize is how much of one stream stands in a structured output, in bytes
// as JSON; what is longer is an artifact.
const streamSize = 24 << 10

// A shellOutput is the structured output of a run.
type shellOutput struct {
	ExitCode    int    `json:"exit_code"` // -1: by a signal
	Signal      string `json:"signal,omitempty"`
	TimedOut    bool   `json:"timed_out,omitempty"`
	Cancelled   bool   `json:"cancelled,omitempty"`
	Overflowed  bool   `json:"overflowed,omitempty"`
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	StdoutBytes int64  `json:"stdout_bytes"`
	StderrBytes int64  `json:"stderr_bytes"`
	StdoutSHA   string `json:"stdout_sha256,omitempty"`
	StderrSHA   string `json:"stderr_sha256,omitempty"`
}

// result makes of an exit what the model, the receipt and the store are told.
func (t *ShellTool) result(r events.ToolRequest, name string, e Exit) ToolResult {
	stdout, stderr := e.Stdout.Text(), e.Stderr.Text()
	structured, _ := json.Marshal(shellOutput{ // plain fields always encode
		ExitCode: e.Code, Signal: e.Signal, TimedOut: e.TimedOut, Cancelled: e.Cancelled, Overflowed: e.Overflowed,
		Stdout: Summary(stdout, streamSize), Stderr: Summary(stderr, streamSize),
		StdoutBytes: e.Stdout.Total, StderrBytes: e.Stderr.Total, StdoutSHA: e.Stdout.SHA256, StderrSHA: e.Stderr.SHA256,
	})
	detail := Detail{ExitCode: e.Code, Structured: structured, Isolation: e.Isolation}
	for _, s := range []struct {
		name, text string
	}{{"stdout", stdout}, {"stderr", stderr}} {
		if Summary(s.text, streamSize) != s.text {
			detail.Overflow = append(detail.Overflow, Blob{Name: s.name, MediaType: "application/octet-stream", Data: []byte(s.text)})
		}
	}
	meta := map[string]string{"program": name, "exit_code": strconv.Itoa(e.Code)}
	output := Summary(stdout, SummarySize)
	reason, recoverable := t.reason(name, stderr, e)
	if reason == "" {
		return Success{Invocation: r.Invocation, Output: output, Metadata: meta, Detail: detail}
	}
	detail.Effects = events.EffectsKept
	return Failure{Invocation: r.Invocation, Reason: reason, Recoverable: recoverable, Output: output, Metadata: meta, Detail: detail}
}

// reason says why a run failed; it is empty when it did not.
func (t *ShellTool) reason(name, stderr string, e Exit) (reason string, recoverable bool) {
	printed := strings.TrimRight(stderr, "\n")
	switch {
	case e.TimedOut:
		return also(fmt.Sprintf("%s was stopped after %s, with all that it had started", name, t.timeout), printed), true
	case e.Cancelled:
		return also(name+" was stopped because the call was cancelled", printed), true
	case e.Lost:
		return also(name+" was lost: what watched over it was killed", printed), true
	case e.Overflowed:
		return also(fmt.Sprintf("%s was stopped: it printed %d bytes and did not end", name, e.Stdout.Total+e.Stderr.Total), printed), false
	case e.Signal != "":
		return also(fmt.Sprintf("%s ended by signal: %s", name, e.Signal), printed), false
	case e.Code != 0 && printed == "":
		return fmt.Sprintf("%s exited with status %d and wrote nothing to standard error", name, e.Code), false
	case e.Code != 0:
		return printed, false
	}
	return "", false
}

func also(reason, printed string) string {
	if printed == "" {
		return reason
	}
	return reason + "; it wrote: " + printed
}

// Text is what was captured, with a line that counts what is missing between.
func (c Capture) Text() string {
	gone := c.Total - int64(len(c.Head)) - int64(len(c.Tail))
	if gone <= 0 {
		return string(c.Head) + string(c.Tail)
	}
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", c.Head, gone, c.Tail)
}
