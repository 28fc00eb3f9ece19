package testmodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// A Script is what a scripted model answers.
type Script struct {
	// Tasks are the answers by a task's key, [A-Za-z0-9_-]{1,64}, in order; the
	// last is repeated. A user's message that holds "[task:KEY]" begins the task
	// (again); the assistant's messages after it are counted, whatever lies
	// between, so that a task goes on where a later message names none.
	Tasks map[string][]string
	// Default are the answers where no task was named; nil: Final("Done.").
	Default []string
	// Slow makes every token of an answer cost some milliseconds, though not
	// those of the prompt. With [Endless], an answer takes seconds.
	Slow bool
	// Roles are what the chat template makes of them; empty: all three are turns.
	Roles Roles
}

// Roles are what a chat template makes of the roles of messages.
type Roles string

const (
	Strict Roles = "strict" // refuses the system's, and demands user and assistant in turn
	Deaf   Roles = "deaf"   // leaves the system's out and says nothing
)

// Endless is an answer that does not end by itself: a final one, whose text goes
// on one character a token until the schema or max_tokens ends it.
const Endless = `{"kind":"final","text":"`

// Call is the answer that calls a tool. The arguments are a JSON object with
// the keys in the schema's order, for that is the only one its grammar takes.
func Call(tool, arguments string) string {
	return encode(struct {
		Kind      string          `json:"kind"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}{"tool", tool, json.RawMessage(arguments)})
}

// Final is the answer that ends a task.
func Final(text string) string {
	return encode(struct {
		Kind string `json:"kind"`
		Text string `json:"text"`
	}{"final", text})
}

// Task is a task's text with the mark by which a scripted model knows it.
func Task(key, text string) string { return text + " [task:" + key + "]" }

// encode panics on arguments that are not JSON: a mistake in the test.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("testmodel: %v", err))
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

var validKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Scripted writes a model of about two megabytes that answers as the script
// says, in any number of sessions, at any temperature.
//
// Under a JSON schema that does not admit the answer that is due it gives the
// task's last one; where that is not admitted either, Final("Done."); else the
// shortest that is. Without a schema an answer may be any text.
func Scripted(path string, s Script) error {
	tasks := map[string][]string{"": s.Default}
	if len(s.Default) == 0 {
		tasks[""] = []string{Final("Done.")}
	}
	for key, answers := range s.Tasks {
		if !validKey.MatchString(key) || len(answers) == 0 {
			return fmt.Errorf("write model: task %q: bad key, or no answers", key)
		}
		tasks[key] = answers
	}

	v, b := newVocabulary(), bigrams{}
	counts := make(map[string]int)
	for _, key := range slices.Sorted(maps.Keys(tasks)) {
		answers := tasks[key]
		counts[key] = len(answers)
		last := answers[len(answers)-1]
		for turn, answer := range answers {
			if answer == "" {
				return fmt.Errorf("write model: task %q: answer %d is empty", key, turn)
			}
			b.turn(v, turnToken(key, turn), answer, last, Final("Done."))
		}
	}
	return b.model(v, s.Roles.check()+template(counts), s.Slow).save(path)
}
