package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"correx/pkg/events"
)

// streamSize is how much of one stream stands in a structured output, in bytes
// as JSON; what is longer is an artifact.
const streamSize = 24 << 10

// A shellOutput is the structured output of a run.
type shellOutput struct {
	ExitCode     int    `json:"exit_code"` // -1: by a signal
	Signal       string `json:"signal,omitempty"`
	TimedOut     bool   `json:"timed_out,omitempty"`
	Cancelled    bool   `json:"cancelled,omitempty"`
	Overflowed   bool   `json:"overflowed,omitempty"`
	OutOfMemory  bool   `json:"out_of_memory,omitempty"`
	StdoutBinary bool   `json:"stdout_binary,omitempty"`
	StderrBinary bool   `json:"stderr_binary,omitempty"`
	Stdout       string `json:"stdout"`
	Stderr       string `json:"stderr"`
	StdoutBytes  int64  `json:"stdout_bytes"`
	StderrBytes  int64  `json:"stderr_bytes"`
	StdoutSHA    string `json:"stdout_sha256,omitempty"`
	StderrSHA    string `json:"stderr_sha256,omitempty"`
}

// result makes of an exit what the model, the receipt and the store are told. What
// a failure leaves behind is kept.
func (t *ShellTool) result(r events.ToolRequest, name string, e Exit, kept events.Effects) ToolResult {
	stdout, stderr := printedOf(e.Stdout), printedOf(e.Stderr)
	structured, _ := json.Marshal(shellOutput{ // plain fields always encode
		ExitCode: e.Code, Signal: e.Signal, TimedOut: e.TimedOut, Cancelled: e.Cancelled, Overflowed: e.Overflowed, OutOfMemory: e.OutOfMemory,
		Stdout: Summary(stdout.text, streamSize), Stderr: Summary(stderr.text, streamSize), StdoutBinary: stdout.binary, StderrBinary: stderr.binary,
		StdoutBytes: e.Stdout.Total, StderrBytes: e.Stderr.Total, StdoutSHA: e.Stdout.SHA256, StderrSHA: e.Stderr.SHA256,
	})
	detail := Detail{ExitCode: e.Code, Structured: structured, Isolation: e.Isolation}
	detail.Overflow = append(stdout.overflow("stdout"), stderr.overflow("stderr")...)
	meta := map[string]string{"program": name, "exit_code": strconv.Itoa(e.Code)}
	output := Summary(stdout.text, SummarySize)
	reason, recoverable := t.reason(name, stderr.text, e)
	if reason == "" {
		return Success{Invocation: r.Invocation, Output: output, Metadata: meta, Detail: detail}
	}
	detail.Effects = kept
	return Failure{Invocation: r.Invocation, Reason: reason, Recoverable: recoverable, Output: output, Metadata: meta, Detail: detail}
}

// A printed stream is what is told of what a program printed.
type printed struct {
	text   string
	raw    []byte // what was kept of it, if text is not all of that
	binary bool
}

// printedOf tells a text as it is, and of anything else how much it is: bytes of a
// picture are of no use to a model, and none to a terminal.
func printedOf(c Capture) printed {
	kept := slices.Concat(c.Head, c.Tail)
	if !isBinary(kept) {
		return printed{text: c.Text()}
	}
	text := fmt.Sprintf("(%d bytes that are no text; they are kept as an artifact)", c.Total)
	if gone := c.Total - int64(len(kept)); gone > 0 {
		text = fmt.Sprintf("(%d bytes that are no text; the first %d and the last %d are kept as an artifact)", c.Total, len(c.Head), len(c.Tail))
	}
	return printed{text, kept, true}
}

// isBinary reports whether bytes are no text: they have a NUL, or more than a few
// that are no UTF-8. A rune that is cut at an end is none of these.
func isBinary(b []byte) bool {
	if slices.Contains(b, 0) {
		return true
	}
	bad := 0
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			bad++
		}
		b = b[size:]
	}
	return bad > 16
}

// overflow is the stream as an artifact, if it is not told whole.
func (s printed) overflow(name string) []Blob {
	data := s.raw
	if !s.binary {
		if Summary(s.text, streamSize) == s.text {
			return nil
		}
		data = []byte(s.text)
	}
	return []Blob{{Name: name, MediaType: "application/octet-stream", Data: data}}
}

// reason says why a run failed; it is empty when it did not.
func (t *ShellTool) reason(name, stderr string, e Exit) (reason string, recoverable bool) {
	printed := strings.TrimRight(stderr, "\n")
	switch {
	case e.TimedOut:
		return also(fmt.Sprintf("%s was stopped after %s, with all that it had started", name, t.allowed(name)), printed), true
	case e.Cancelled:
		return also(name+" was stopped because the call was cancelled", printed), true
	case e.OutOfMemory:
		return also(name+" was killed: it and what it started took more memory than they may", printed), false
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
