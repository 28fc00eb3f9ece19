package session_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"correx/internal/session"
	"correx/pkg/events"
)

// A told is a random session, and what was said and done in it, in order. Each
// begins with a mark of its own: "<n>m" of people, "<n>a" of the model, "<n>r" of
// a tool.
type told struct {
	state  session.State
	f      events.InferenceRequested
	marks  []string // without spaces, oldest first
	sizes  []int    // of the results, by mark; 0: no result
	latest int      // index of what was asked for last; -1: the task
	merged bool     // the template has no turns of the system
}

var pieces = []string{"word ", "é", "日本", "\n", "<|im_end|>", "x", "</s>", "…", "🙂", "\xff"}

func filler(rnd *rand.Rand, most int) string {
	var b strings.Builder
	for n := rnd.IntN(most + 1); b.Len() < n; {
		b.WriteString(pieces[rnd.IntN(len(pieces))])
	}
	return b.String()
}

func randomTold(rnd *rand.Rand) told {
	st := session.State{ID: "s1", Started: &events.SessionStarted{System: "SYSTEM " + filler(rnd, 60), Task: "TASK " + filler(rnd, 200)}}
	out := told{latest: -1, f: events.InferenceRequested{Guided: rnd.IntN(4) == 0}}
	lengths := []int{0, 50, 500, 3000, 20000}
	n := rnd.IntN(14)
	for k := range n {
		seq, size := uint64(10+k), 0
		mark := fmt.Sprintf("<%d>", k)
		switch rnd.IntN(4) {
		case 0:
			mark, out.latest = mark+"m", k
			st.Messages = append(st.Messages, session.Message{Seq: seq, Role: events.RoleUser, Text: mark + " " + filler(rnd, lengths[rnd.IntN(4)])})
		case 1:
			mark += "a"
			st.Inferences = append(st.Inferences, session.Inference{EndSeq: seq, Done: &events.InferenceCompleted{
				Reply: events.Reply{Text: mark + " " + filler(rnd, lengths[rnd.IntN(4)])}}})
		default:
			mark += "r"
			output := mark + " " + filler(rnd, lengths[rnd.IntN(5)]) + " end" + mark
			st.Tools = append(st.Tools, session.Invocation{EndSeq: seq, Requested: &events.ToolInvocationRequested{Request: events.ToolRequest{Tool: "echo"}},
				End: events.ToolExecutionCompleted{Receipt: events.ToolReceipt{Output: output}}})
			size = 1
		}
		out.marks, out.sizes = append(out.marks, mark), append(out.sizes, size)
	}
	out.f.Through = uint64(10 + n)
	out.state = st
	return out
}

func textOf(msgs []events.ChatMessage) string {
	var b strings.Builder
	for _, m := range msgs {
		b.WriteString(m.Content + "\n")
	}
	return b.String()
}

var (
	gapSaid  = regexp.MustCompile(`\[(\d+) earlier entries were left out\]`)
	goneSaid = regexp.MustCompile(`\n\[… (\d+) bytes left out …\]\n`)
)

// TestPackLosesAsLittleAsWillDo packs random sessions for random windows.
func TestPackLosesAsLittleAsWillDo(t *testing.T) {
	var seen struct{ whole, shortened, cut, both, over, kept int }
	for seed := range uint64(1500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := randomTold(rnd)
		s.merged = seed%3 == 0
		full := runes(session.Repack(s.state, nil, s.f, session.Loss{Merged: s.merged}).Messages)
		window := 1 + rnd.IntN(full+full/8)
		room := session.Room{Window: window, Count: runes, NoSystem: s.merged}
		p, err := session.Pack(s.state, nil, s.f, room)
		again, err2 := session.Pack(s.state, nil, s.f, room)
		if again.Digest != p.Digest || (err == nil) != (err2 == nil) {
			t.Fatalf("seed %d: two packs differ", seed)
		}
		var over *session.ErrOverflow
		if errors.As(err, &over) {
			seen.over++
			s.overflows(t, seed, window, over)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := runes(p.Messages); n > window {
			t.Errorf("seed %d: %d tokens in a window of %d", seed, n, window)
		}
		if redo := session.Repack(s.state, nil, s.f, p.Loss); redo.Digest != p.Digest {
			t.Errorf("seed %d: packed again by what it lost, it is another prompt", seed)
		}
		s.holds(t, seed, p)
		s.leastLoss(t, seed, window, p)
		switch {
		case p.Cut+p.Shortened == 0:
			seen.whole++
		case p.Cut == 0:
			seen.shortened++
		case p.Shortened == 0:
			seen.cut++
		default:
			seen.both++
		}
		if s.latest >= 0 && p.Cut > s.latest {
			seen.kept++
		}
	}
	if min(seen.whole, seen.shortened, seen.cut, seen.both, seen.over, seen.kept) < 20 {
		t.Errorf("too little was tried: %+v", seen)
	}
}

// overflows: nothing that may be lost was left.
func (s told) overflows(t *testing.T, seed uint64, window int, over *session.ErrOverflow) {
	t.Helper()
	n := len(s.marks)
	if s.latest >= 0 {
		n--
	}
	least := runes(session.Repack(s.state, nil, s.f, session.Loss{Cut: n, Merged: s.merged}).Messages)
	if over.Tokens != least || over.Window != window || least <= window {
		t.Errorf("seed %d: %v, though it can be made to fit by %d", seed, over, least)
	}
}

// holds: system, task and what was asked for last are whole, the rest is in
// order, gaps and shortened results say what they are, and nothing else is lost.
func (s told) holds(t *testing.T, seed uint64, p session.Prompt) {
	t.Helper()
	whole := session.Repack(s.state, nil, s.f, session.Loss{Cut: len(s.marks), Merged: s.merged})
	text, first := textOf(p.Messages), 1 // the turn with the task
	switch {
	case s.merged:
		first = 0
	case p.Messages[0] != whole.Messages[0]:
		t.Errorf("seed %d: the system prompt is %q, want %q", seed, p.Messages[0].Content, whole.Messages[0].Content)
	}
	alternates(t, p.Messages)
	if p.Merged != s.merged || p.Messages[0].Role == events.RoleSystem == s.merged {
		t.Errorf("seed %d: the first turn is %s's", seed, p.Messages[0].Role)
	}
	if !utf8.ValidString(text) || strings.Contains(text[strings.Index(text, "TASK "):], "<|im_end|>") {
		t.Errorf("seed %d: broken or dangerous text", seed)
	}
	if !strings.HasPrefix(p.Messages[first].Content, strings.SplitN(whole.Messages[first].Content, "\n\n[", 2)[0]) {
		t.Errorf("seed %d: the task is not whole", seed)
	}
	cut, last := p.Cut, -1
	for k, mark := range s.marks {
		gone := cut > 0 && k != s.latest
		if gone {
			cut--
		}
		at := strings.Index(text, mark+" ")
		if (at < 0) != gone {
			t.Errorf("seed %d: cut %d, entry %d is there: %v", seed, p.Cut, k, at >= 0)
		}
		if at >= 0 && at < last {
			t.Errorf("seed %d: entry %d stands before an earlier one", seed, k)
		}
		last = max(last, at)
		if s.sizes[k] > 0 && !gone && !strings.Contains(text, "end"+mark) {
			t.Errorf("seed %d: the end of result %d is gone", seed, k)
		}
	}
	if said := sum(gapSaid, text); said != p.Cut {
		t.Errorf("seed %d: %d entries were cut, the prompt says %d", seed, p.Cut, said)
	}
}

// sum adds up the numbers that a pattern finds.
func sum(re *regexp.Regexp, text string) int {
	total := 0
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		n := 0
		_, _ = fmt.Sscan(m[1], &n)
		total += n
	}
	return total
}

// leastLoss: a little less would not fit.
func (s told) leastLoss(t *testing.T, seed uint64, window int, p session.Prompt) {
	t.Helper()
	size := func(l session.Loss) int { return runes(session.Repack(s.state, nil, s.f, l).Messages) }
	const grain, all = 16, 1 << 30
	if p.Shortened > 0 {
		before := max(0, p.Shortened-grain)
		if p.Shortened%grain != 0 {
			before = p.Shortened - p.Shortened%grain
		}
		if n := size(session.Loss{Cut: p.Cut, Shortened: before, Merged: s.merged}); n <= window {
			t.Errorf("seed %d: %d bytes are shortened, %d would do: %d of %d", seed, p.Shortened, before, n, window)
		}
	}
	if p.Cut > 0 {
		if n := size(session.Loss{Cut: p.Cut - 1, Shortened: all, Merged: s.merged}); n <= window {
			t.Errorf("seed %d: %d entries are cut, one less would do: %d of %d", seed, p.Cut, n, window)
		}
	}
}

// TestPackShortensResultsBeforeItCuts looks at one session, step by step.
func TestPackShortensResultsBeforeItCuts(t *testing.T) {
	s := told{state: session.State{Started: &events.SessionStarted{Task: "task"}}, f: events.InferenceRequested{Through: 100}}
	for k := range 3 {
		s.state.Tools = append(s.state.Tools, session.Invocation{EndSeq: uint64(k + 1),
			Requested: &events.ToolInvocationRequested{Request: events.ToolRequest{Tool: "echo"}},
			End:       events.ToolExecutionCompleted{Receipt: events.ToolReceipt{Output: fmt.Sprint("head", k) + strings.Repeat("x", 2000) + fmt.Sprint("tail", k)}}})
	}
	whole := runes(mustPack(t, s.state, nil, s.f, 1, wholeWindow).Messages)
	lengths := func(less int) (got []int) {
		p := mustPack(t, s.state, nil, s.f, whole-less, runes)
		for _, r := range strings.Split(p.Messages[len(p.Messages)-1].Content, "\n\n")[1:] {
			if strings.HasPrefix(r, "echo") {
				if !strings.Contains(r, "head") || !strings.Contains(r, "tail") {
					t.Errorf("%d tokens less: head or tail is gone: %q", less, r)
				}
				got = append(got, sum(goneSaid, r))
			}
		}
		return got
	}
	// A result has 2026 bytes, and so 1626 to spare; a marker 31, which are 27
	// characters. What is taken of a result goes by 16.
	for less, want := range map[int][]int{
		0:    {0, 0, 0},
		1:    {16 + 31, 0, 0},
		300:  {304 + 31, 0, 0},
		1580: {1584 + 31, 0, 0},
		4000: {1626 + 31, 1626 + 31, 748 + 31},
	} {
		if got := lengths(less); !slices.Equal(got, want) {
			t.Errorf("%d tokens less: %v bytes are gone of each, want %v", less, got, want)
		}
	}
	if got := lengths(whole - 900); len(got) != 1 {
		t.Errorf("in 900 tokens: %v", got)
	}
}

// What a person asked for last is the task by then.
func TestPackKeepsWhatWasAskedForLast(t *testing.T) {
	s, offers, f := packed(t, 12)
	asked := s.Tools[5].EndSeq
	s.Messages = append(s.Messages, session.Message{Seq: asked, Role: events.RoleUser, Text: "ASKED LAST"})
	least := session.Repack(s, offers, f, session.Loss{Cut: 1000})
	p := mustPack(t, s, offers, f, runes(least.Messages), runes)
	alternates(t, p.Messages)
	text := textOf(p.Messages)
	if p.Cut != 24 || !strings.Contains(text, "ASKED LAST") || sum(gapSaid, text) != 24 || len(gapSaid.FindAllString(text, -1)) != 2 {
		t.Errorf("cut %d: %s", p.Cut, text)
	}
}

// Whoever changes what a session's prompt says has to raise PackVersion, and then
// these digests.
func TestPackVersionHoldsTheLayout(t *testing.T) {
	s, offers, f := packed(t, 12)
	guided := f
	guided.Guided = true
	s.Tools[0].End = events.ToolExecutionCompleted{Receipt: events.ToolReceipt{Output: strings.Repeat("long ", 600)}}
	want := map[string]string{
		"whole":     "88224817a8ec2f9a099d849a50cac2ec8e8658d2cda31602dd55e465e7aa1a47",
		"shortened": "4ebea1b61508f9061239db0a24f61620d91e7e0f04717682ee2390865c2ef0f6",
		"cut":       "15b1570f00354edcc33992ff70158aac7a1aa6f7d70d2de0e9f9e80b91c5c65b",
		"guided":    "4b3d2136d2d962445ff89f16f7f52163affb36713d7c6ee25a4f9f84894bb515",
	}
	for name, p := range map[string]session.Prompt{
		"whole":     session.Repack(s, offers, f, session.Loss{}),
		"shortened": session.Repack(s, offers, f, session.Loss{Shortened: 500}),
		"cut":       session.Repack(s, offers, f, session.Loss{Cut: 5}),
		"guided":    session.Repack(s, offers, guided, session.Loss{}),
	} {
		if p.Digest != want[name] {
			t.Errorf("the prompt of version %d, %s, is now %s", session.PackVersion, name, p.Digest)
		}
	}
}
