package session

import (
	"regexp"
	"testing"

	"correx/internal/schema"
	"correx/pkg/events"
)

func TestAnswersAreToldOfTheCallThatWasMade(t *testing.T) {
	wrote := sample{"change", events.ToolExample{Parameters: events.Raw(`{"operation":"write","path":"list.md","content":"two eggs\n"}`),
		Result: "wrote list.md", Answer: "I wrote two eggs to list.md."}}
	city := sample{"weather", events.ToolExample{Parameters: events.Raw(`{"city":"Rome"}`), Result: "sunny", Answer: "In Rome it is sunny."}}
	for _, c := range []struct {
		name         string
		of           sample
		call, output string
		want         string // "": none
	}{
		{"each value in its place", wrote, `{"operation":"write","path":"pets.txt","content":"cats"}`, "wrote pets.txt", "I wrote cats to pets.txt."},
		{"values that are in each other", wrote, `{"operation":"write","path":"two eggs","content":"list.md"}`, "wrote two eggs", "I wrote list.md to two eggs."},
		{"another result", wrote, `{"operation":"write","path":"pets.txt","content":"cats"}`, "wrote 4 bytes", ""},
		{"nothing in its place", wrote, `{"operation":"write","path":"pets.txt"}`, "wrote pets.txt", ""},
		{"a text that no answer quotes", wrote, `{"operation":"write","path":"a.txt","content":"say \"hi\"\nand go"}`, "wrote a.txt", ""},
		{"tools of others", city, `{"city":"Oslo"}`, "sunny\n", "In Oslo it is sunny."},
		{"parameters that are no object", city, `[]`, "sunny", ""},
	} {
		got, ok := c.of.told(events.Raw(c.call), c.output)
		if got != c.want && ok || ok != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", c.name, got, ok, c.want)
		}
	}
}

func TestAnswersThatQuoteHaveTheExamplesLeadOrNone(t *testing.T) {
	grep := sample{"shell", events.ToolExample{Parameters: events.Raw(`{"argv":["grep","milk","list.md"]}`),
		Result: "milk: 2\n", Answer: "The line with milk is: milk: 2."}}
	of := func(call, said string) *regexp.Regexp {
		return regexp.MustCompile(grep.quoting(events.Raw(call), said))
	}
	pattern := of(`{"argv":["grep","err","log.txt"]}`, "err: disk (full).")
	for text, want := range map[string]bool{
		"The line with err is: err: disk (full).":                    true,
		"err: disk (full)":                                           true,
		"The line with milk is: err: disk (full).":                   false,
		"The line with err is: disk: 2. Error. err: disk (full).":    false,
		"The line with err is: err: disk (full). And so is another.": false,
	} {
		if pattern.MatchString(text) != want {
			t.Errorf("%q is allowed: %v, want %v", text, !want, want)
		}
	}
	if bare := of(`{"argv":["grep"]}`, "err: disk"); bare.MatchString("The line with milk is: err: disk") || !bare.MatchString("err: disk.") {
		t.Errorf("%s: what the call has nothing for is no lead", bare)
	}
}

// The answer after the last step is the one of the example that came to the same,
// though another one resembles the task more.
func TestAllowedAnswerIsTheOneOfTheSameResult(t *testing.T) {
	exists := func(path, result, answer string) events.ToolExample {
		return events.ToolExample{Task: "Is there a file " + path + "?", Parameters: events.Raw(`{"operation":"read","path":"` + path + `"}`), Result: result, Answer: answer}
	}
	offers := []events.ToolOffer{fileTool("look", events.T1,
		exists("x.txt", "false", "No, there is no x.txt."), exists("y.md", "true", "Yes, there is y.md."))}
	for output, want := range map[string]string{"true": "Yes, there is n.txt.", "false\n": "No, there is no n.txt."} {
		call := ended("look", `{"operation":"read","path":"n.txt"}`, "")
		call.End = events.ToolExecutionCompleted{Receipt: events.ToolReceipt{Output: output}}
		s, f := after("Is there a file n.txt?", call)
		allowed := Allowed(s, offers, f)
		for _, text := range []string{"Yes, there is n.txt.", "No, there is no n.txt.", "Yes, there is y.md.", "I think so."} {
			if ok := schema.Validate(allowed, events.Raw(Final(text))) == nil; ok != (text == want) {
				t.Errorf("%q after %q is allowed: %v", text, output, ok)
			}
		}
	}
}
