package llama

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"correx/pkg/events"
)

// maxLine bounds one line of a stream, in bytes.
const maxLine = 4 << 20

// A chunk is one event of a stream.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content *string `json:"content"`
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

// readStream reads server-sent events up to [DONE]. A stream without that word,
// without a finish reason or with an error in its middle is a failure, however
// much text it brought; that text is in the answer all the same.
func readStream(body io.Reader, onDelta func(string)) (Response, error) {
	var (
		answer Response
		text   strings.Builder
		done   bool
	)
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
		piece, err := answer.take(data)
		if err != nil {
			answer.Text = text.String()
			return answer, err
		}
		text.WriteString(piece)
		if piece != "" && onDelta != nil {
			onDelta(piece)
		}
	}
	answer.Text = text.String()
	if err := lines.Err(); err != nil {
		return answer, fmt.Errorf("%w: %w", ErrConnection, err)
	}
	if !done || answer.Finish == "" {
		return answer, ErrTruncated
	}
	return answer, nil
}

// take adds what one event says, and returns its piece of the text.
func (r *Response) take(data []byte) (piece string, err error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return "", fmt.Errorf("read stream: %w", err)
	}
	if c.Error != nil {
		return "", c.Error.status(200)
	}
	if u := c.Usage; u != nil {
		r.Usage = events.TokenUsage{Prompt: u.Prompt, Completion: u.Completion, Total: u.Total, Cached: u.Details.Cached}
	}
	if c.Timings != nil {
		r.Timings = c.Timings
	}
	if len(c.Choices) == 0 {
		return "", nil
	}
	if f := c.Choices[0].Finish; f != nil {
		r.Finish = *f
	}
	if t := c.Choices[0].Delta.Content; t != nil {
		return *t, nil
	}
	return "", nil
}
