package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"correx/pkg/events"
)

// An answer is what the kernel says to a command: the fact that came of it, or
// why there is none.
type answer struct {
	OK         bool                    `json:"ok"`
	Session    events.SessionID        `json:"session,omitempty"`
	Invocation events.ToolInvocationID `json:"invocation,omitempty"`
	Inference  events.InferenceID      `json:"inference,omitempty"`
	Command    events.CommandID        `json:"command,omitempty"`
	Fact       events.FactName         `json:"fact,omitempty"`
	Seq        uint64                  `json:"seq,omitempty"`
	Error      string                  `json:"error,omitempty"`
	Reasons    []string                `json:"reasons,omitempty"`
}

// err is the refusal that the answer is, or nil.
func (a answer) err(v events.Verb) error {
	if a.OK {
		return nil
	}
	text := a.Error
	if len(a.Reasons) > 0 {
		text = strings.Join(a.Reasons, "; ")
	}
	if text == "" {
		text = "it was refused and no reason was given"
	}
	return fmt.Errorf("%s: %s", v, text)
}

// slack is what an answer may take beside the time that a command waits for
// what it refers to.
const slack = 15 * time.Second

// command publishes a command by the api and waits for what comes of it. A
// refusal is an error that has every reason; the answer is returned with it.
func (a *app) command(ctx context.Context, c *client, cmd events.Command) (answer, error) {
	body, err := events.EncodeCommand(cmd)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", cmd.Verb(), err)
	}
	if len(body) > events.MaxCommand {
		return answer{}, fmt.Errorf("%s: %d bytes are too many for one command; at most %d are allowed: put large content into a file",
			cmd.Verb(), len(body), events.MaxCommand)
	}
	wait := a.env.Progress("waiting for the kernel's answer")
	defer wait.Stop()
	data, err := c.request(ctx, events.PrefixAPI+"."+string(c.actor)+"."+string(cmd.Verb()), body, c.cfg.Kernel.CommandWait+slack)
	if errors.Is(err, nats.ErrNoResponders) {
		return answer{}, fmt.Errorf("%s: no kernel is running; start `bus serve`, or `bus up` for everything", cmd.Verb())
	}
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", cmd.Verb(), err)
	}
	var ans answer
	if err := json.Unmarshal(data, &ans); err != nil {
		return answer{}, fmt.Errorf("%s: the kernel's answer cannot be read: %w", cmd.Verb(), err)
	}
	return ans, ans.err(cmd.Verb())
}

// request asks on a subject. An error of a NATS micro service is an error.
func (c *client) request(ctx context.Context, subject string, body []byte, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	msg, err := c.conn.RequestWithContext(ctx, subject, body)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("nobody answered on %s within %s", subject, timeout)
	}
	if err != nil {
		return nil, err
	}
	if text := msg.Header.Get("Nats-Service-Error"); text != "" && len(msg.Data) == 0 {
		return nil, errors.New(text)
	}
	return msg.Data, nil
}

// tell prints the outcome of a command that has nothing else to show.
func (a *app) tell(ans answer, format string, args ...any) error {
	if a.flags.JSON {
		return jsonTo(a.env.Stdout, ans)
	}
	_, err := fmt.Fprintf(a.env.Stdout, format+"\n", args...)
	return err
}
