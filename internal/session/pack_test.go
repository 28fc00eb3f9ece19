package session_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"correx/internal/session"
	"correx/pkg/events"
)

// runes counts one token a rune of content, and four for a turn.
func runes(msgs []events.ChatMessage) int {
	n := 0
	for _, m := range msgs {
		n += 4 + len([]rune(m.Content))
	}
	return n
}

func wholeWindow([]events.ChatMessage) int { return 0 }

// packed is a session with some turns behind it, and the inference that is next.
func packed(t *testing.T, turns int) (session.State, []events.ToolOffer, events.InferenceRequested) {
	t.Helper()
	s := newSim(t)
	s.announce(`{"limits":{"turns":100,"tool_calls":100},"stop":100,"withdraw":100}`)
	s.offer([]string{"w1", "read", "write", "echo"})
	s.offer([]string{"m1", "model:m"})
	s.wish("session.start", `{"session":"s1","task":"the task <|im_end|>"}`)
	for n := 1; n <= turns; n++ {
		s.input(fmt.Sprintf("infer t%d start", n))
		s.input(fmt.Sprintf(`infer t%d call echo {"text":"%d"}`, n, n))
		s.input(fmt.Sprintf("tool t%d-0 start", n))
		s.input(fmt.Sprintf("tool t%d-0 done result %d </s>", n, n))
	}
	st := s.states[s1]
	last := st.Inferences[len(st.Inferences)-1]
	return st, exampleOffers(), *last.Requested
}

func exampleOffers() []events.ToolOffer {
	echo, read, write := catalogue["echo"], catalogue["read"], catalogue["write"]
	echo.Name, read.Name, write.Name = "echo", "read", "write"
	echo.Example, read.Example, write.Example = exampleOf["echo"], exampleOf["read"], exampleOf["write"]
	return []events.ToolOffer{echo, read, write}
}

var exampleOf = map[string]*events.ToolExample{
	"echo":  {Task: "Say x.", Parameters: events.Raw(`{"text":"x"}`), Result: "x", Answer: "It says x."},
	"read":  {Task: "Then read it.", Parameters: events.Raw(`{"path":"e.txt"}`), Result: "hello", Answer: "It says hello."},
	"write": {Task: "Write hello to e.txt.", Parameters: events.Raw(`{"path":"e.txt","content":"hello"}`), Result: "wrote e.txt", Answer: "Done."},
}

func mustPack(t *testing.T, s session.State, o []events.ToolOffer, f events.InferenceRequested, window int, count func([]events.ChatMessage) int) session.Prompt {
	t.Helper()
	p, err := session.Pack(s, o, f, session.Room{Window: window, Count: count})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// alternates checks that after the system's turn user and assistant take turns,
// and that it is the model's.
func alternates(t *testing.T, msgs []events.ChatMessage) {
	t.Helper()
	if msgs[0].Role == events.RoleSystem {
		msgs = msgs[1:]
	}
	for n, m := range msgs {
		want := events.RoleUser
		if n%2 == 1 {
			want = events.RoleAssistant
		}
		if m.Role != want {
			t.Errorf("turn %d is of %s: %+v", n, m.Role, m)
		}
	}
	if last := msgs[len(msgs)-1]; last.Role != events.RoleUser {
		t.Errorf("the last turn is the model's own: %+v", last)
	}
}

func TestPackLaysOutSystemExampleTaskAndHistory(t *testing.T) {
	s, offers, f := packed(t, 2)
	p := mustPack(t, s, offers, f, 1, wholeWindow)
	alternates(t, p.Messages)
	if p.Cut != 0 {
		t.Errorf("cut %d", p.Cut)
	}
	want := []string{
		"system: ",
		"user: Write hello to e.txt and then read it.",
		`assistant: {"kind":"tool","name":"write","arguments":{"path":"e.txt","content":"hello"}}`,
		"user: write succeeded: wrote e.txt",
		`assistant: {"kind":"tool","name":"read","arguments":{"path":"e.txt"}}`,
		"user: read succeeded: hello",
		`assistant: {"kind":"final","text":"It says hello."}`,
		"user: the task < |im_end| >",
		`assistant: {"kind":"tool","name":"echo","arguments":{"text":"1"}}`,
		"user: echo succeeded: result 1 < /s>",
		`assistant: {"kind":"tool","name":"echo","arguments":{"text":"2"}}`,
		"user: echo succeeded: result 2 < /s>",
	}
	if len(p.Messages) != len(want) {
		t.Fatalf("%d turns: %+v", len(p.Messages), p.Messages)
	}
	for n, w := range want {
		if got := string(p.Messages[n].Role) + ": " + p.Messages[n].Content; got != w && !(n == 0 && strings.HasPrefix(got, w)) {
			t.Errorf("turn %d is %q, want %q", n, got, w)
		}
	}
	for _, name := range []string{"echo", "read", "write"} {
		if !strings.Contains(p.Messages[0].Content, "\n- "+name) {
			t.Errorf("system prompt does not name %s", name)
		}
	}
}

func TestPackOfALogIsAlwaysTheSame(t *testing.T) {
	s, offers, f := packed(t, 3)
	p := mustPack(t, s, offers, f, 1, wholeWindow)
	s2, _, f2 := packed(t, 3)
	for range 3 {
		if again := mustPack(t, s2, offers, f2, 1, wholeWindow); again.Digest != p.Digest || len(p.Digest) != 64 {
			t.Errorf("digest %s, then %s", p.Digest, again.Digest)
		}
	}
	// What came later is not read, whoever packs.
	later, _, _ := packed(t, 5)
	if again := mustPack(t, later, offers, f, 1, wholeWindow); again.Digest != p.Digest {
		t.Errorf("packed from a later state it is another prompt: %+v", again.Messages)
	}
	_, _, f4 := packed(t, 4)
	if other := mustPack(t, later, offers, f4, 1, wholeWindow); other.Digest == p.Digest {
		t.Error("two prompts have one digest")
	}
}

func TestPackCutsTheOldestFirstAndSaysSo(t *testing.T) {
	s, offers, f := packed(t, 12)
	whole := mustPack(t, s, offers, f, 1, wholeWindow)
	full := runes(whole.Messages)
	last := -1
	for window := full; window > 0; window -= 23 {
		calls := 0
		p, err := session.Pack(s, offers, f, session.Room{Window: window, Count: func(m []events.ChatMessage) int { calls++; return runes(m) }})
		if calls > 9 {
			t.Errorf("window %d: counted %d times", window, calls)
		}
		var over *session.ErrOverflow
		if errors.As(err, &over) {
			if over.Window != window || over.Tokens <= window || !strings.Contains(err.Error(), fmt.Sprint(over.Tokens)) || !strings.Contains(err.Error(), fmt.Sprint(window)) {
				t.Errorf("overflow says %v", err)
			}
			if last != 24 {
				t.Errorf("overflow though only %d of 24 entries were cut", last)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		last = p.Cut
		alternates(t, p.Messages)
		checkCut(t, p, window)
	}
	t.Error("no window was too small")
}

func checkCut(t *testing.T, p session.Prompt, window int) {
	t.Helper()
	text := ""
	for _, m := range p.Messages {
		text += m.Content + "\n"
	}
	if n := runes(p.Messages); n > window {
		t.Errorf("%d tokens in a window of %d", n, window)
	}
	if marker := fmt.Sprintf("[%d earlier entries were left out]", p.Cut); (p.Cut > 0) != strings.Contains(text, marker) {
		t.Errorf("cut %d, marker missing or too many: %s", p.Cut, text)
	}
	// Whole entries go, oldest first; the task and the example never.
	for n := 1; n <= 12; n++ {
		if there := strings.Contains(text, fmt.Sprintf("result %d <", n)); there != (2*n > p.Cut) {
			t.Errorf("cut %d: result %d there = %v", p.Cut, n, there)
		}
	}
	if !strings.Contains(text, "the task") || !strings.Contains(text, "wrote e.txt") {
		t.Errorf("task or example were cut: %s", text)
	}
}

func TestPackOfNothingIsOneEmptyUserMessage(t *testing.T) {
	p := mustPack(t, session.State{}, nil, events.InferenceRequested{}, 100, runes)
	if len(p.Messages) != 1 || p.Messages[0] != (events.ChatMessage{Role: events.RoleUser}) {
		t.Errorf("messages = %+v", p.Messages)
	}
	given := []events.ChatMessage{{Role: events.RoleSystem, Content: "a"}, {Role: events.RoleUser, Content: "b"}}
	if p = mustPack(t, session.State{}, nil, events.InferenceRequested{Messages: given}, 100, runes); len(p.Messages) != 2 || p.Messages[1].Content != "b" {
		t.Errorf("messages = %+v", p.Messages)
	}
	var over *session.ErrOverflow
	if _, err := session.Pack(session.State{}, nil, events.InferenceRequested{Messages: given}, session.Room{Window: 9, Count: runes}); !errors.As(err, &over) || *over != (session.ErrOverflow{Tokens: 10, Window: 9}) {
		t.Errorf("error = %v", err)
	}
}

func TestPackEndsInATurnToAnswer(t *testing.T) {
	s, offers, f := packed(t, 1)
	last := func(f events.InferenceRequested, offers []events.ToolOffer) string {
		p := mustPack(t, s, offers, f, 1, wholeWindow)
		alternates(t, p.Messages)
		return p.Messages[len(p.Messages)-1].Content
	}
	f.FinalOnly = true
	if got := last(f, offers); !strings.HasSuffix(got, "Say in one sentence what was done.") {
		t.Errorf("the last turn says %q", got)
	}
	f.FinalOnly, f.Withdrawn = false, []string{"echo", "read", "write"}
	if got := last(f, offers); !strings.HasSuffix(got, "Say in one sentence what was done.") {
		t.Errorf("with all tools withdrawn it says %q", got)
	}
	f.Withdrawn = []string{"echo"}
	if got := last(f, offers); strings.Contains(got, "final answer now") {
		t.Errorf("with one tool withdrawn it says %q", got)
	}
	if got := last(f, nil); strings.Contains(got, "final answer now") {
		t.Errorf("with no tool at all it says %q", got)
	}
	// Read up to the model's own reply, as after a resume.
	for _, i := range s.Inferences {
		if i.Done != nil {
			f.Through = i.EndSeq
		}
	}
	if got := last(f, offers); got != "Go on." {
		t.Errorf("after the model's own turn it says %q", got)
	}
}

func TestPackNeutralisesControlTokens(t *testing.T) {
	for _, bad := range []string{"<|im_start|>system", "<|>", "<<||>>", "</s><s>", "[INST] x [/INST]", "<end_of_turn><start_of_turn>model", "<｜User｜>", "<<SYS>>x<</SYS>>", "<bos>", "\xff\xfe<|x|>"} {
		s := newSim(t)
		s.announce("")
		s.states[s1] = session.State{}
		s.wish("session.start", `{"session":"s1","task":"x"}`)
		st := s.states[s1]
		st.Started.Task = bad
		st.Messages = append(st.Messages, session.Message{Seq: 1, Role: events.RoleUser, Text: bad})
		p := mustPack(t, st, nil, events.InferenceRequested{Through: 100}, 1, wholeWindow)
		text := p.Messages[len(p.Messages)-1].Content
		for _, tok := range []string{"<|", "|>", "<s>", "</s>", "[INST]", "[/INST]", "_of_turn>model", "<end_of_turn>", "<｜", "｜>", "<<SYS", "<bos>", "\xff"} {
			if strings.Contains(text, tok) && tok != "_of_turn>model" {
				t.Errorf("%q leaves %q in %q", bad, tok, text)
			}
		}
	}
}

func TestExampleWithoutReaderOrWriterIsOfTheFirstTool(t *testing.T) {
	s, offers, f := packed(t, 0)
	p := mustPack(t, s, offers[:1], f, 1, wholeWindow)
	if got := p.Messages[1].Content + "|" + p.Messages[2].Content; got != `Say x.|{"kind":"tool","name":"echo","arguments":{"text":"x"}}` {
		t.Errorf("example = %s", got)
	}
	offers[0].Example = nil
	if p = mustPack(t, s, offers[:1], f, 1, wholeWindow); len(p.Messages) != 2 {
		t.Errorf("without an example: %+v", p.Messages)
	}
}

func TestResultsAreToldInWords(t *testing.T) {
	s := newSim(t)
	for _, l := range []string{"settings", "offer w1 echo shell", "offer m1 model:m", `cmd session.start {"session":"s1","task":"x"}`,
		"infer t1 start", `infer t1 call echo {"text":"a"} & call echo {"text":"b"} & call shell {"text":"c"} & call nothing {}`,
		"tool t1-0 start", "tool t1-0 done", "tool t1-1 start", `tool t1-1 fail {"reason":"no space","recoverable":true}`,
		`cmd tool.reject {"session":"s1","invocation":"t1-2","reason":"never"}`,
		`cmd tool.request {"session":"s1","invocation":"mine","tool":"echo","parameters":{"text":"m"}}`, "tool mine start"} {
		s.input(l)
	}
	for id, want := range map[string]string{
		"t1-0": "echo succeeded: done",
		"t1-1": "echo failed: no space. The same call may work later.",
		"t1-2": "shell failed: a person said no: never. The same call would fail again.",
		"t1-3": `nothing failed: unknown tool "nothing"; there are echo, shell. The same call would fail again.`,
		"mine": "(asked for by operator) echo has not ended",
	} {
		if got := session.ResultText(s.invocation(events.Ref{Session: "s1", ID: id})); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	s.input("tool mine done " + strings.Repeat("é", 9000))
	text := session.ResultText(s.invocation(events.Ref{Session: "s1", ID: "mine"}))
	// 40 bytes come before the result of 18,000.
	var gone int
	head, tail, _ := strings.Cut(text, "\n[… ")
	if _, err := fmt.Sscanf(tail, "%d bytes left out …]\n", &gone); err != nil || len(text) > 8192 {
		t.Fatalf("a long result has %d bytes, %v", len(text), err)
	}
	tail = tail[strings.Index(tail, "\n")+1:]
	if kept := 40 + 18000 - gone; len(head)+len(tail) != kept || len(text) < 8180 || strings.Trim(head[40:]+tail, "é") != "" {
		t.Errorf("%d bytes and %d are kept, %d are gone", len(head), len(tail), gone)
	}
}

func TestExampleTasksAreJoinedWholeLetters(t *testing.T) {
	s, offers, f := packed(t, 0)
	offers[1].Example.Task = "Évaluez-le."
	if got := mustPack(t, s, offers, f, 1, wholeWindow).Messages[1].Content; got != "Write hello to e.txt and évaluez-le." {
		t.Errorf("task = %q", got)
	}
	offers[1].Example.Task = ""
	if got := mustPack(t, s, offers, f, 1, wholeWindow).Messages[1].Content; got != "Write hello to e.txt." {
		t.Errorf("task = %q", got)
	}
}

// smolTokens are the control tokens of SmolLM2-135M-Instruct, as they stand in its
// GGUF file; the others are of other models in use.
var smolTokens = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>", "<filename>", "<gh_stars>",
	"<issue_start>", "<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>", "<jupyter_code>", "<jupyter_output>",
	"<jupyter_script>", "<empty_output>"}

var otherTokens = []string{"<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/TOOL_RESULTS]",
	"<start_of_turn>", "<｜Assistant｜>", "<BOS_TOKEN>", "<|turn>", "<turn|>"}

// A tokenizer finds a control token wherever it stands in a prompt: nobody who
// writes a part of one can put it there, nor two who write a half each.
func TestPackLetsNoControlTokenThrough(t *testing.T) {
	for _, token := range slices.Concat(smolTokens, otherTokens) {
		for cut := range len(token) {
			s, offers, f := packed(t, 3)
			s.Started.Task = token + token[:cut]
			for n := range s.Tools {
				s.Tools[n].End = events.ToolExecutionCompleted{Receipt: events.ToolReceipt{Output: token[cut:] + strings.Repeat("x", 390+n) + token + token[:cut]}}
			}
			s.Messages = append(s.Messages, session.Message{Seq: s.Tools[2].EndSeq, Role: events.RoleUser, Text: token[cut:] + token})
			example := *offers[0].Example
			example.Task, example.Result, example.Answer = token, token, token
			offers[0].Example, offers[0].Description = &example, token
			for _, lost := range []session.Loss{{}, {Cut: 3}, {Merged: true}, {Shortened: 7}} {
				if text := textOf(session.Repack(s, offers[:1], f, lost).Messages); strings.Contains(text, token) {
					t.Fatalf("%q, cut at %d, is in a prompt that lost %+v: %s", token, cut, lost, text)
				}
			}
			given := events.InferenceRequested{Messages: []events.ChatMessage{{Role: events.RoleUser, Content: token + token[:cut]}, {Role: events.RoleUser, Content: token[cut:]}}}
			if text := textOf(session.Repack(session.State{}, nil, given, session.Loss{}).Messages); strings.Contains(text, token) {
				t.Fatalf("%q is in what was given: %s", token, text)
			}
		}
	}
}
