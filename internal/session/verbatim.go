package session

import (
	"regexp"
	"slices"
	"strings"
)

// A small model that copies a text mends it on the way: harbour becomes harbor. So
// a text that a call needs is one that was said, and an answer that quotes a tool
// quotes it to the letter.

// The bounds of what may be copied.
const (
	maxSpan   = 12  // words of a goal
	maxSpans  = 300 // of one part
	maxCopied = 200 // bytes of a tool's output
)

// spansOf are the texts that a part of a goal may want written somewhere: those in
// quotation marks if there are such, else what it says up to a word that joins, to
// the name of a file or to its end. None: it asks for a text of the model's own.
func spansOf(part string) []string {
	if m := inQuotes.FindAllStringSubmatch(part, -1); m != nil {
		var out []string
		for _, q := range m {
			out = append(out, q[1]+q[2])
		}
		return out
	}
	words := strings.Fields(polite.ReplaceAllString(part, ""))
	var out []string
	for i := 1; i < len(words); i++ {
		for k := i; k < len(words) && k < i+maxSpan && len(out) < maxSpans; k++ {
			if own[strings.ToLower(strings.Trim(words[k], ".,:;!?"))] {
				return nil
			}
			if namesFile(words[k], "") && pathLike(strings.Trim(words[k], ".,:;!?")) {
				break
			}
			if k+1 < len(words) && !joins[strings.ToLower(words[k+1])] && !pathLike(strings.Trim(words[k+1], ".,:;!?")) {
				continue // a text that is wanted ends where the part goes on: "milk" of "milk to list.md"
			}
			if joins[strings.ToLower(words[k])] {
				continue
			}
			span := strings.Join(words[i:k+1], " ")
			out = append(out, span)
			if bare := strings.TrimRight(span, ".,:;!?"); bare != span && bare != "" {
				out = append(out, bare)
			}
		}
	}
	return out
}

var inQuotes = regexp.MustCompile(`"([^"]+)"|(?:^|\s)'([^']+)'`)

// own are words of parts that want a text that is not in them.
var own = set("about poem poems story stories joke haiku essay letter summary summarize summarise report code script function describe description explain explanation list numbers random")

// joins are words that lead from a text to what is done with it.
var joins = set("to into in on of with at for from by")

// copied is the output of a tool as one line, if it is short enough to be copied.
func copied(output string) string {
	lines := strings.FieldsFunc(output, func(r rune) bool { return r == '\n' || r == '\r' })
	text := strings.TrimSpace(strings.Join(lines, ", "))
	if len(text) > maxCopied || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0xFFFD }) {
		return ""
	}
	return text
}

// quotes reports whether the answer of a sample has what the tool said.
func (s sample) quotes() bool {
	said := copied(s.Result)
	return said != "" && strings.Contains(s.Answer, said)
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// numbersIn are the numbers of texts, each once.
func numbersIn(texts []string) []string {
	var out []string
	for _, w := range strings.Fields(strings.Join(texts, " ")) {
		if isNumber(w) && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}
