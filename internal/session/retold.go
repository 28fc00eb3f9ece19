package session

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"correx/pkg/events"
)

// An answer that may be anything up to the text that it has to end with cannot end
// before, and a small model fills what it is given: it goes on until there is no
// room left. So an answer says what the example's says, of this call: what the
// example's call had is replaced by what this one has.

// A retelling replaces the values of one call by those of another, place by place.
type retelling struct {
	values []string          // of the sample, the longest first
	now    map[string]string // none for a value: this call has nothing in its place
}

func retellingOf(s sample, call events.Raw) retelling {
	was, is := leaves(s.Parameters), leaves(call)
	r := retelling{now: map[string]string{}}
	for place, v := range was {
		if len(v) < 2 { // "." and "n" are in every text
			continue
		}
		r.values = append(r.values, v)
		if n, ok := is[place]; ok {
			r.now[v] = n
		}
	}
	slices.SortFunc(r.values, func(a, b string) int {
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return r
}

// leaves are the texts of a call, without space around them, by their places.
func leaves(parameters events.Raw) map[string]string {
	var all map[string]any
	_ = json.Unmarshal(parameters, &all) // what is no object has none
	out := map[string]string{}
	for key, v := range all {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for k, e := range list {
			if text, ok := e.(string); ok {
				out[key+"/"+strconv.Itoa(k)] = strings.TrimSpace(text)
			}
		}
	}
	return out
}

// of tells a text of the sample of this call; false: it has a value for which the
// call has none.
func (r retelling) of(text string) (string, bool) {
	var b strings.Builder
	for at := 0; at < len(text); {
		v := r.valueAt(text, at)
		if v == "" {
			b.WriteByte(text[at])
			at++
			continue
		}
		now, ok := r.now[v]
		if !ok {
			return "", false
		}
		b.WriteString(now)
		at += len(v)
	}
	return b.String(), true
}

// valueAt is the longest value that stands there as a word of its own.
func (r retelling) valueAt(text string, at int) string {
	for _, v := range r.values {
		end := at + len(v)
		if strings.HasPrefix(text[at:], v) && (at == 0 || !inWord(text[at-1])) && (end == len(text) || !inWord(text[end])) {
			return v
		}
	}
	return ""
}

func inWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

// told is the answer of a sample whose call had the same result, told of this call.
func (s sample) told(call events.Raw, output string) (string, bool) {
	r := retellingOf(s, call)
	result, ok := r.of(strings.TrimSpace(s.Result))
	if !ok || result != strings.TrimSpace(output) {
		return "", false
	}
	answer, ok := r.of(s.Answer)
	return answer, ok && answer != "" && copied(answer) == answer
}

// quoting is the pattern of an answer that is a text, or what leads to it in the
// sample's answer and then the text.
func (s sample) quoting(call events.Raw, text string) string {
	end := regexp.QuoteMeta(strings.TrimRight(text, ".!")) + "[.!]?$"
	at := strings.LastIndex(s.Answer, copied(s.Result))
	lead, ok := retellingOf(s, call).of(s.Answer[:max(at, 0)])
	if !ok || lead == "" || copied(lead) != strings.TrimSpace(lead) {
		return "^" + end
	}
	return fmt.Sprintf("^(%s)?%s", regexp.QuoteMeta(lead), end)
}
