package session

import (
	"fmt"
	"slices"
	"sort"
	"unicode/utf8"

	"correx/pkg/events"
)

// A Loss is what a prompt was made to fit by. It makes the same prompt again, so
// it is recorded with the answer. As few entries are cut as will do, and then as
// few bytes shortened.
type Loss struct {
	Cut       int  // entries of L2 that were left out, oldest first
	Shortened int  // bytes of the tool results that stayed, oldest first, each down to minResult
	Merged    bool // the model's template has no turns of the system: the user's first begins with it
}

// How long tool results are in a prompt, in bytes, with the marker in place of
// their middle.
const (
	maxResult       = 8 << 10
	maxGuidedResult = 1500 // for a model that is guided: it is the slower, and the sooner lost, the more it has to read
	minResult       = 400  // where the window is small: what it was about, and how it ended
)

// A layout is a prompt before anything is lost.
type layout struct {
	head    []events.ChatMessage // L0 and L1
	history []entry              // L2
	tail    []events.ChatMessage // what the model has to answer
	most    int                  // bytes of a tool's result
}

// build is the prompt after a loss.
func (l layout) build(lost Loss) []events.ChatMessage {
	msgs := slices.Clone(l.head)
	gap, left := 0, lost.Shortened
	for k, e := range l.history {
		if !e.kept && lost.Cut > 0 {
			lost.Cut--
			gap++
			continue
		}
		if gap > 0 {
			msgs, gap = append(msgs, gapMarker(gap)), 0
		}
		spare := min(left, l.spare(k))
		left -= spare
		msgs = append(msgs, events.ChatMessage{Role: e.role, Content: e.told(min(len(e.text), l.most) - spare)})
	}
	if gap > 0 {
		msgs = append(msgs, gapMarker(gap))
	}
	msgs = merge(append(msgs, l.tail...))
	if lost.Merged {
		return withoutSystem(msgs)
	}
	return msgs
}

// spare is how many bytes an entry can be shortened by.
func (l layout) spare(k int) int {
	e := l.history[k]
	if !e.result {
		return 0
	}
	return max(0, min(len(e.text), l.most)-minResult)
}

// shortest is what can be lost after so many entries were cut.
func (l layout) shortest(cut int) Loss {
	lost := Loss{Cut: cut}
	for k, e := range l.history {
		switch {
		case !e.kept && cut > 0:
			cut--
		default:
			lost.Shortened += l.spare(k)
		}
	}
	return lost
}

// fit returns the prompt that fits with the least loss. Counting may cost a
// request each, so the loss is searched for by halves.
func (l layout) fit(room Room) (Prompt, error) {
	with := func(lost Loss) Loss { lost.Merged = room.NoSystem; return lost }
	size := func(lost Loss) int { return room.Count(l.build(with(lost))) }
	fits := func(lost Loss) bool { return size(lost) <= room.Window }
	made := func(lost Loss) Prompt { return prompt(l.build(with(lost)), with(lost)) }
	if fits(Loss{}) {
		return made(Loss{}), nil
	}
	n := 0 // entries that can be cut
	for _, e := range l.history {
		if !e.kept {
			n++
		}
	}
	cut := 0
	if !fits(l.shortest(0)) {
		cut = 1 + sort.Search(n, func(k int) bool { return fits(l.shortest(k + 1)) })
	}
	if cut > n {
		return Prompt{}, &ErrOverflow{size(l.shortest(n)), room.Window}
	}
	all := l.shortest(cut).Shortened
	bytes := func(k int) int { return min(all, k*grain) }
	k := sort.Search((all+grain-1)/grain, func(k int) bool { return fits(Loss{Cut: cut, Shortened: bytes(k)}) })
	return made(Loss{Cut: cut, Shortened: bytes(k)}), nil
}

// grain is how finely results are shortened, in bytes.
const grain = 16

func gapMarker(entries int) events.ChatMessage {
	return user(fmt.Sprintf("[%d earlier entries were left out]", entries))
}

// shorten keeps head and tail of a text that is longer than so many bytes, and
// says between them how many are gone. The result is no longer than that, unless
// not even the marker is; no character is taken apart.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	marker := func(gone int) string { return fmt.Sprintf("\n[… %d bytes left out …]\n", gone) }
	room := max(0, most-len(marker(len(s))))
	from, to := room-room/2, len(s)-room/2
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to++
	}
	return s[:from] + marker(to-from) + s[to:]
}
