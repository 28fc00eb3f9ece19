package main

import (
	"slices"
	"strings"
	"testing"

	"correx/internal/schema"
	"correx/internal/session"
	"correx/pkg/events"
)

func offersHere(t *testing.T) []events.ToolOffer {
	t.Helper()
	tools, err := newToolset(t.TempDir(), t.TempDir())
	if err != nil {
		t.Skipf("tools: %v", err)
	}
	return tools.offers
}

// What people ask of the tools as they are leads to the call that does it. None of
// these is a task of the evaluation.
func TestGuidedModelsMayDoWhatIsAsked(t *testing.T) {
	offers := offersHere(t)
	for task, want := range map[string]string{
		"Please put the word banana into fruit/list.txt.":        `file_write {"operation":"write","path":"fruit/list.txt","content":"banana"}`,
		"Make a file called hello.py with print(1) in it.":       `file_write {"operation":"write","path":"hello.py","content":"print(1)"}`,
		"Could you remove temp/x.bak?":                           `file_write {"operation":"delete","path":"temp/x.bak"}`,
		"Add the line dinner at eight to plans.txt.":             `file_edit {"operation":"append","path":"plans.txt","content":"dinner at eight\n"}`,
		"In settings.toml, change blue to green.":                `file_edit {"operation":"replace","path":"settings.toml","target":"blue","replacement":"green"}`,
		"Open contacts.csv and tell me the number of Mr Smith.":  `file_read {"operation":"read","path":"contacts.csv"}`,
		"Who is the author, according to cover.md?":              `file_read {"operation":"read","path":"cover.md"}`,
		"Is there a file called ghost.txt?":                      `file_read {"operation":"exists","path":"ghost.txt"}`,
		"Which files are in the folder music?":                   `file_read {"operation":"list","path":"music"}`,
		"Use echo to print sunrise.":                             `shell {"argv":["echo","sunrise"]}`,
		"What files do I have in the folder music?":              `file_read {"operation":"list","path":"music"}`,
		"Print the first 2 lines of list.txt with head.":         `shell {"argv":["head","-n","2","list.txt"]}`,
		"How many words are in essay.txt?":                       `shell {"argv":["wc","-w","essay.txt"]}`,
		"Find apple in basket.txt with grep.":                    `shell {"argv":["grep","apple","basket.txt"]}`,
		"Write \"Stop, and read this\" to sign.txt and read it.": `file_write {"operation":"write","path":"sign.txt","content":"Stop, and read this"}`,
		"Write a poem about the sea to sea.txt.":                 `file_write {"operation":"write","path":"sea.txt","content":"The waves, the foam."}`,
		"What is the capital of Peru?":                           "",
		"Water the flowers.":                                     "",
		"Please ring my brother.":                                "",
	} {
		s := session.State{ID: "s", Started: &events.SessionStarted{Task: task}}
		f := events.InferenceRequested{Guided: true, FinalOnly: want == ""}
		action := session.Final("an answer")
		if tool, parameters, ok := strings.Cut(want, " "); ok {
			action = session.Call(tool, events.Raw(parameters))
		}
		allowed := session.Allowed(s, offers, f)
		if err := schema.Validate(allowed, events.Raw(action)); err != nil {
			t.Errorf("%q: %s is refused: %v", task, action, err)
		}
		if delete := session.Call("file_write", events.Raw(`{"operation":"delete","path":"notes/a.txt"}`)); schema.Validate(allowed, events.Raw(delete)) == nil {
			t.Errorf("%q: may delete what was not spoken of", task)
		}
	}
}

// A model that has seen the tasks has not done them.
func TestNoExampleIsATask(t *testing.T) {
	var shown []string
	for _, o := range offersHere(t) {
		for _, e := range append(o.Examples, *o.Example) {
			shown = append(shown, plain(e.Task))
		}
	}
	if len(shown) < 40 {
		t.Fatalf("%d examples", len(shown))
	}
	names := map[string]bool{}
	for _, k := range tasks() {
		if names[k.name] {
			t.Errorf("two tasks are called %s", k.name)
		}
		names[k.name] = true
		for _, say := range k.say {
			if slices.Contains(shown, plain(say)) {
				t.Errorf("%s: %q is an example", k.name, say)
			}
		}
	}
	if len(names) < 40 {
		t.Errorf("%d tasks", len(names))
	}
}

func TestWilson(t *testing.T) {
	for _, tt := range []struct {
		done, n   int
		low, high float64
	}{{0, 10, 0, 0.278}, {5, 10, 0.237, 0.763}, {10, 10, 0.722, 1}, {24, 48, 0.364, 0.636}} {
		low, high := wilson(tt.done, tt.n)
		if abs(low-tt.low) > 0.001 || abs(high-tt.high) > 0.001 {
			t.Errorf("%d of %d: %.3f to %.3f, want %.3f to %.3f", tt.done, tt.n, low, high, tt.low, tt.high)
		}
	}
}

func abs(x float64) float64 { return max(x, -x) }
