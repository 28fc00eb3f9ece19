package main

import (
	"context"
	"fmt"

	"correx/internal/session"
	"correx/pkg/events"
	"correx/pkg/llama"
)

// A loop does tasks its own way.
type loop interface {
	// do says all that the task says, in order, and returns the answers and the
	// calls that were made. An error says why there are no more answers.
	do(ctx context.Context, t task) (outcome, error)
}

// An outcome is what a loop made of a task.
type outcome struct {
	Answers []string `json:"answers"` // one for each thing that was said; "" where none came
	Calls   []call   `json:"calls"`
	Tokens  int      `json:"tokens"`  // read and written, of all inferences
	Actions int      `json:"actions"` // that the model gave
	Invalid int      `json:"invalid"` // of them, those that could not be read, were cut off, or break a schema
}

// nativeLoop hands the tools to the server and lets the model choose.
type nativeLoop struct {
	server *server
	tools  *toolset
}

func (l *nativeLoop) do(ctx context.Context, t task) (out outcome, err error) {
	var offers []any
	for _, o := range l.tools.offers {
		offers = append(offers, map[string]any{"type": "function", "function": map[string]any{
			"name": o.Name, "description": o.Description, "parameters": o.Schema,
		}})
	}
	history := []nativeMessage{{Role: "system", Content: "You are an agent that does the user's task with the given tools."}}
	for _, text := range t.say {
		history = append(history, nativeMessage{Role: "user", Content: text})
		answer, err := l.answer(ctx, &history, offers, &out)
		out.Answers = append(out.Answers, answer)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

func (l *nativeLoop) answer(ctx context.Context, history *[]nativeMessage, offers []any, out *outcome) (string, error) {
	for range turns {
		m, finish, usage, err := l.server.native(ctx, *history, offers)
		if err != nil {
			return "", err
		}
		if finish == string(events.FinishLength) || !l.tools.valid(m.Calls) {
			out.Invalid++
		}
		out.Actions++
		out.Tokens += usage.Prompt + usage.Completion
		m.Role = "assistant"
		*history = append(*history, m)
		if len(m.Calls) == 0 {
			return m.Content, nil
		}
		for _, c := range m.Calls {
			text, made := l.tools.run(ctx, c.Function.Name, events.Raw(c.Function.Arguments))
			out.Calls = append(out.Calls, made)
			*history = append(*history, nativeMessage{Role: "tool", Content: text, CallID: c.ID})
		}
	}
	return "", errTurns
}

// constrainedLoop describes the tools in the system prompt and has the server hold
// each answer to one action.
type constrainedLoop struct {
	server *server
	tools  *toolset
}

func (l *constrainedLoop) do(ctx context.Context, t task) (out outcome, err error) {
	history := []events.ChatMessage{{Role: events.RoleSystem, Content: l.tools.describe()}}
	for _, text := range t.say {
		history = append(history, events.ChatMessage{Role: events.RoleUser, Content: text})
		answer, err := l.answer(ctx, &history, &out)
		out.Answers = append(out.Answers, answer)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

func (l *constrainedLoop) answer(ctx context.Context, history *[]events.ChatMessage, out *outcome) (string, error) {
	add := func(role events.ChatRole, text string) {
		*history = append(*history, events.ChatMessage{Role: role, Content: text})
	}
	for range turns {
		answer, err := l.server.client.Infer(ctx, llama.Request{
			Messages: *history, Schema: session.ActionSchema(l.tools.offers, nil, false),
			Generation: events.GenerationConfig{MaxTokens: maxTokens},
		})
		if err != nil {
			return "", err
		}
		out.Actions++
		out.Tokens += answer.Usage.Prompt + answer.Usage.Completion
		add(events.RoleAssistant, answer.Text)
		reply, err := session.ParseReply(answer.Text, l.tools.offers, nil, false)
		switch {
		case err != nil:
			out.Invalid++
			add(events.RoleUser, fmt.Sprintf("That is no action: %v", err))
		case reply.Final != nil:
			return *reply.Final, nil
		default:
			text, made := l.tools.run(ctx, reply.Calls[0].Tool, reply.Calls[0].Arguments)
			out.Calls = append(out.Calls, made)
			add(events.RoleUser, text)
		}
	}
	return "", errTurns
}
