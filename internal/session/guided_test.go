package session

import (
	"slices"
	"strings"
	"testing"

	"correx/internal/schema"
	"correx/pkg/events"
)

// fileTool does several things with files, as those of pkg/tools do.
func fileTool(name string, tier events.Tier, examples ...events.ToolExample) events.ToolOffer {
	text := `{"type":"string","maxLength":200}`
	branch := func(operation, more, required string) string {
		return `{"type":"object","properties":{"operation":{"enum":["` + operation + `"]},"path":` + text + more +
			`,"note":` + text + `},"required":["operation","path"` + required + `],"additionalProperties":false}`
	}
	return events.ToolOffer{Name: name, Tier: tier, Examples: examples, Schema: events.Raw(`{"oneOf":[` + branch("read", "", "") + "," +
		branch("write", `,"content":`+text, `,"content"`) + "," + branch("delete", "", "") + "," +
		branch("replace", `,"target":`+text, `,"target"`) + `]}`)}
}

func ofFiles(task, parameters string) events.ToolExample {
	return events.ToolExample{Task: task, Parameters: events.Raw(parameters), Result: "done", Answer: "Done."}
}

func guidedOffers() []events.ToolOffer {
	look := fileTool("look", events.T1,
		ofFiles("Read x.txt.", `{"operation":"read","path":"x.txt"}`),
		ofFiles("What is in y.txt?", `{"operation":"read","path":"y.txt"}`))
	change := fileTool("change", events.T2,
		ofFiles("Write one to x.txt.", `{"operation":"write","path":"x.txt","content":"one"}`),
		ofFiles("Write two to y.txt.", `{"operation":"write","path":"y.txt","content":"two"}`),
		ofFiles("Delete x.txt.", `{"operation":"delete","path":"x.txt"}`),
		ofFiles("Replace one with two in x.txt.", `{"operation":"replace","path":"x.txt","target":"one"}`))
	run := events.ToolOffer{Name: "run", Tier: events.T2,
		Schema: events.Raw(`{"type":"object","properties":{"argv":{"type":"array","items":{"type":"string"},"minItems":1}},"required":["argv"],"additionalProperties":false}`),
		Examples: []events.ToolExample{
			ofFiles("Count the lines of x.txt with wc.", `{"argv":["wc","-l","x.txt"]}`),
			ofFiles("Print one with echo.", `{"argv":["echo","one"]}`),
		}}
	return []events.ToolOffer{look, change, run}
}

func TestParts(t *testing.T) {
	verbs := newIndex(samplesOf(guidedOffers())).verbs
	for goal, want := range map[string][]string{
		"Write a to x.txt.":                         {"Write a to x.txt."},
		"Write salt and pepper to x.txt.":           {"Write salt and pepper to x.txt."},
		"Write a to x.txt and read it back.":        {"Write a to x.txt", "read it back."},
		"Please delete x.txt, then print b.":        {"Please delete x.txt", "print b."},
		"Write a to x.txt and b to y.txt.":          {"Write a to x.txt", "b to y.txt."},
		"Read x.txt and tell me who is in it.":      {"Read x.txt and tell me who is in it."},
		"There is a file x.txt. Delete it.":         {"There is a file x.txt", "Delete it."},
		"Write a to a.md, b to b.md and c to c.md.": {"Write a to a.md", "b to b.md", "c to c.md."},
		"": nil,
		"Delete a.md, delete b.md, delete c.md, delete d.md, delete e.md.": {"Delete a.md", "delete b.md", "delete c.md", "delete d.md"},
	} {
		if got := parts(goal, verbs); !slices.Equal(got, want) {
			t.Errorf("parts of %q are %q, want %q", goal, got, want)
		}
	}
}

func TestPlan(t *testing.T) {
	for goal, want := range map[string]string{
		"Write hi to n.txt and read it back.": "change write, look read",
		"Could you delete n.txt?":             "change delete",
		"Delete a.md and b.md.":               "change delete, change delete",
		"What is in n.txt?":                   "look read",
		"Put hi into n.txt.":                  "change write",
		"Count the lines of n.txt with wc.":   "run ",
		"What is the capital of Spain?":       " ",
		"Send a parcel to Ann.":               " ",
		"Paint the house.":                    "",
		"I have a list in n.txt. Read it.":    "look read",
	} {
		var got []string
		for _, s := range planOf(goal, guidedOffers()).steps {
			got = append(got, s.best.tool+" "+s.best.does().Operation)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("plan of %q is %q, want %q", goal, got, want)
		}
	}
}

// The plan of a tool that shows nothing may be anything.
func TestPlanIsOpenForToolsWithoutExamples(t *testing.T) {
	offers := append(guidedOffers(), events.ToolOffer{Name: "paint", Schema: events.Raw(`{"type":"object"}`)})
	p := planOf("Paint the house.", offers)
	if !p.open || p.enough(tried{}) {
		t.Errorf("%+v leaves an answer alone", p)
	}
	f := events.InferenceRequested{Guided: true}
	if action := Call("paint", events.Raw(`{}`)); schema.Validate(Allowed(asked("Paint the house."), offers, f), events.Raw(action)) != nil {
		t.Errorf("%s is not allowed", action)
	}
}

func asked(task string) State { return State{ID: "s", Started: &events.SessionStarted{Task: task}} }

// after is a session in which calls of a tool came to an end: nil is well.
func after(task string, calls ...Invocation) (State, events.InferenceRequested) {
	s := asked(task)
	for k, c := range calls {
		c.EndSeq = uint64(k + 1)
		s.Tools = append(s.Tools, c)
	}
	return s, events.InferenceRequested{Guided: true, Through: uint64(len(calls))}
}

func ended(tool, parameters, failure string) Invocation {
	i := Invocation{Requested: &events.ToolInvocationRequested{Request: events.ToolRequest{Tool: tool, Parameters: events.Raw(parameters)}}}
	i.End = events.ToolExecutionCompleted{}
	if failure != "" {
		i.End = events.ToolExecutionFailed{Reason: failure}
	}
	return i
}

func TestAllowed(t *testing.T) {
	read := func(path string) string { return Call("look", events.Raw(`{"operation":"read","path":"`+path+`"}`)) }
	write := func(path string) string {
		return Call("change", events.Raw(`{"operation":"write","path":"`+path+`","content":"c"}`))
	}
	replace := func(target string) string {
		return Call("change", events.Raw(`{"operation":"replace","path":"n.txt","target":"`+target+`"}`))
	}
	argv := func(list string) string { return Call("run", events.Raw(`{"argv":`+list+`}`)) }
	deleted := Call("change", events.Raw(`{"operation":"delete","path":"n.txt"}`))
	wrote := ended("change", `{"operation":"write","path":"n.txt","content":"c"}`, "")
	missing := ended("look", `{"operation":"read","path":"note.text"}`, "there is no note.text; in /w there are note.txt, keys/, z.md")
	tests := []struct {
		what    string
		task    string
		calls   []Invocation
		yes, no []string
	}{
		{"the first step", "Write c to n.txt and read it back.", nil, []string{write("n.txt")}, []string{write("x.txt"), read("n.txt"), deleted, Final("a")}},
		{"the second step", "Write c to n.txt and read it back.", []Invocation{wrote}, []string{read("n.txt")}, []string{read("x.txt"), write("n.txt"), Final("a")}},
		{"the end", "Write c to n.txt.", []Invocation{wrote}, []string{Final("a")}, []string{write("n.txt"), Final(strings.Repeat("a", maxGuidedFinal+1))}},
		{"a question", "What is the capital of Spain?", nil, []string{Final("a")}, []string{read("n.txt"), write("n.txt")}},
		{"a wrong name", "Read note.text.", []Invocation{missing}, []string{read("note.txt")}, []string{read("note.text"), read("z.md"), write("note.txt"), Final("a")}},
		{"a wrong text", "Replace up with down in n.txt.", []Invocation{ended("change", `{"operation":"replace","path":"n.txt","target":"up"}`, `target does not occur; nearest: line 1: "Up"`)},
			[]string{replace("Up")}, []string{replace("up"), deleted, Final("a")}},
		{"a failure that names nothing", "Write c to n.txt.", []Invocation{ended("change", `{"operation":"write","path":"n.txt","content":"c"}`, "the disk is full")},
			[]string{write("n.txt"), read("n.txt"), Final("a")}, []string{deleted}},
		{"a program", "Count the lines of n.txt with wc.", nil, []string{argv(`["wc","-l","n.txt"]`)},
			[]string{argv(`["rm","-l","n.txt"]`), argv(`["wc","-l","x.txt"]`), argv(`["wc"]`), argv(`["wc","-l","n.txt","x"]`)}},
	}
	for _, tt := range tests {
		s, f := after(tt.task, tt.calls...)
		allowed := Allowed(s, guidedOffers(), f)
		for _, a := range tt.yes {
			if err := schema.Validate(allowed, events.Raw(a)); err != nil {
				t.Errorf("%s: %s is refused: %v", tt.what, a, err)
			}
		}
		for _, a := range tt.no {
			if schema.Validate(allowed, events.Raw(a)) == nil {
				t.Errorf("%s: %s is allowed", tt.what, a)
			}
		}
	}
}

// What a guided model may do, every model may: a narrowed schema only takes away.
func TestAllowedIsNeverMoreThanTheWholeSchema(t *testing.T) {
	whole := ActionSchema(guidedOffers(), nil, false)
	actions := []string{Final("a"), Final(""), Final(strings.Repeat("a", 900)), `{}`, `[]`, Call("none", events.Raw(`{}`))}
	for _, o := range guidedOffers() {
		for _, e := range o.Examples {
			for _, change := range [][2]string{{"", ""}, {"x.txt", "n.txt"}, {"x.txt", strings.Repeat("n", 300)}, {`"path"`, `"place"`},
				{`"operation":"read"`, `"operation":"stat"`}, {`{`, `{"note":"n",`}, {`{`, `{"more":1,`}, {`-l`, `-w`}, {`"wc",`, ""}, {`"x.txt"`, `1`}} {
				actions = append(actions, Call(o.Name, events.Raw(strings.Replace(string(e.Parameters), change[0], change[1], 1))))
			}
		}
	}
	admitted := 0
	for _, task := range []string{"Write a to n.txt.", "Delete n.txt and x.txt.", "Read it.", "What is in n.txt?", "Count the lines of n.txt with wc.", "Print a.",
		"Replace a with b in n.txt.", "Why?", "Go."} {
		for _, calls := range [][]Invocation{nil, {ended("look", `{"operation":"read","path":"n.tx"}`, "no n.tx; there is n.txt")},
			{ended("run", `{"argv":["wc"]}`, "it failed")}, {ended("change", `{}`, "")}} {
			s, f := after(task, calls...)
			allowed := Allowed(s, guidedOffers(), f)
			for _, a := range actions {
				if schema.Validate(allowed, events.Raw(a)) != nil {
					continue
				}
				admitted++
				if err := schema.Validate(whole, events.Raw(a)); err != nil {
					t.Errorf("%q after %d calls allows %s: %v", task, len(calls), a, err)
				}
			}
		}
	}
	if admitted < 36 {
		t.Errorf("only %d actions were allowed in all", admitted)
	}
}

// Others have what they had.
func TestAllowedIsTheWholeSchemaForModelsThatAreNotGuided(t *testing.T) {
	f := events.InferenceRequested{Withdrawn: []string{"run"}}
	if got, want := string(Allowed(asked("Read n.txt."), guidedOffers(), f)), string(ActionSchema(guidedOffers(), f.Withdrawn, false)); got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
}

func TestSpans(t *testing.T) {
	for part, want := range map[string]string{
		"Write salt and pepper to x.txt.":          "salt and pepper|and pepper|pepper",
		`Write "a, b" and 'c d' to x.txt`:          "a, b|c d",
		"Write a poem about rain to x.txt":         "",
		"Replace good day with Good night in x.md": "good day|good day with Good night|day|day with Good night|with Good night|Good night|night",
		"Print Good luck!":                         "Good luck!|Good luck|luck!|luck",
		"Please append the line x: 1 to y.md":      "the line x: 1|line x: 1|x: 1|1",
	} {
		if got := strings.Join(spansOf(part), "|"); got != want {
			t.Errorf("spans of %q are %q, want %q", part, got, want)
		}
	}
}

func TestNearTo(t *testing.T) {
	said := "look failed: there is no file doc/plan.txt; its directory /w/doc does not exist either; in /w there are docs/, plan.md, palm.txt."
	for wrong, want := range map[string]string{"doc/plan.txt": "docs/plan.txt", "plan.nd": "plan.md", "PALM.TXT": "palm.txt", "other.csv": ""} {
		if got := strings.Join(nearTo(wrong, said), " "); got != want {
			t.Errorf("near to %s are %q, want %q", wrong, got, want)
		}
	}
}

func TestExamplesResembleTheTask(t *testing.T) {
	f := events.InferenceRequested{Guided: true}
	first := examplesFor(asked("Write hi to n.txt and read it back."), f, guidedOffers())
	for range 20 { // sums over maps have no order of their own
		if again := examplesFor(asked("Write hi to n.txt and read it back."), f, guidedOffers()); !slices.Equal(first, again) {
			t.Fatalf("%+v, then %+v", first, again)
		}
	}
	if len(first) != 12 || first[0].Content == first[6].Content || !strings.HasPrefix(first[6].Content, "Write") {
		t.Errorf("two chains of two calls each are %+v", first)
	}
	if alone := examplesFor(asked("Paint the house."), f, guidedOffers()); len(alone) != 4 || !strings.Contains(alone[3].Content, cannot) {
		t.Errorf("for what nothing here resembles: %+v", alone)
	}
}
