package llama

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"correx/pkg/events"
)

// maxLine bounds one line of a stream, in bytes.
const maxLine = 4 << 20

// A chunk is one event of a stream.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content   *rawText `json:"content"`
			Reasoning *rawText `json:"reasoning_content"`
		} `json:"delta"`
		Finish *events.FinishReason `json:"finish_reason"`
	} `json:"choices"`
	Usage   *usage             `json:"usage"`
	Timings map[string]float64 `json:"timings"`
	Error   *errorBody         `json:"error"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// readStream reads server-sent events up to [DONE], and calls beat for each. A
// stream without that word, without a finish reason or with an error in its
// middle is a failure, however much text it brought; that text is in the answer
// all the same.
func readStream(body io.Reader, r Request, beat func()) (answer Response, err error) {
	text, reasoning := newPieces(r.OnDelta), newPieces(r.OnReasoning)
	defer func() { answer.Text, answer.Reasoning = text.end(), reasoning.end() }()
	done := false
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 16<<10), maxLine)
	for !done && lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue // blank lines and pings
		}
		data = bytes.TrimSpace(data)
		if done = string(data) == "[DONE]"; done {
			continue
		}
		c, err := answer.take(data)
		if err != nil {
			return answer, err
		}
		beat()
		for _, choice := range c.Choices[:min(1, len(c.Choices))] {
			reasoning.add(choice.Delta.Reasoning)
			text.add(choice.Delta.Content)
		}
	}
	if err := lines.Err(); err != nil {
		return answer, fmt.Errorf("%w: %w", ErrConnection, err)
	}
	if !done || answer.Finish == "" {
		return answer, ErrTruncated
	}
	return answer, nil
}

// take adds what one event says of the answer as a whole.
func (r *Response) take(data []byte) (c chunk, err error) {
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("read stream: %w", err)
	}
	if c.Error != nil {
		return c, c.Error.failure(200)
	}
	if u := c.Usage; u != nil {
		r.Usage = events.TokenUsage{Prompt: u.Prompt, Completion: u.Completion, Total: u.Total, Cached: u.Details.Cached}
	}
	if c.Timings != nil {
		r.Timings = c.Timings
	}
	if len(c.Choices) > 0 && c.Choices[0].Finish != nil {
		r.Finish = *c.Choices[0].Finish
	}
	return c, nil
}
