package session

import (
	"strings"
	"unicode"
)

// Words that stand for what a text is like.
const (
	aFile     = "<file>"     // it names one
	aQuestion = "<question>" // it asks
)

// words are the words of a text, with how much each says: the first one, which is
// mostly what is to be done, says most. Names of files are all one word, and so
// are words of one meaning.
func words(text string) map[string]float64 {
	out := map[string]float64{}
	text = polite.ReplaceAllString(text, "")
	before := ""
	for k, written := range strings.Fields(text) {
		w := strings.ToLower(strings.TrimFunc(written, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }))
		weight := 1.0
		switch {
		case w == "":
			continue
		case namesFile(written, before):
			w = aFile
		case small[w]:
			weight = 0.3
		}
		before = w
		if k == 0 {
			weight = 2
		}
		w = stem(w)
		out[w] = max(out[w], weight)
	}
	if asks[first(text)] || strings.Contains(text, "?") {
		out[aQuestion] = 1
	}
	return out
}

func first(text string) string {
	w, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(text)), " ")
	return w
}

// namesFile reports whether a word is the name of a file: by its look, or by the
// word before it.
func namesFile(w, before string) bool {
	w = strings.Trim(w, `.,:;!?"'()`)
	if pathLike(w) {
		return true
	}
	var letters, digits, lower bool
	for _, r := range w {
		letters = letters || unicode.IsLetter(r)
		digits = digits || unicode.IsDigit(r)
		lower = lower || unicode.IsLower(r)
	}
	switch before {
	case "directory", "folder", "file", "called", "named":
		l := strings.ToLower(w)
		return letters && !small[l] && l != "called" && l != "named"
	}
	return letters && digits || letters && !lower && len(w) > 3
}

func set(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(text) {
		out[w] = true
	}
	return out
}

var (
	// small are words that say little of what is wanted.
	small = set("file the a an of to in on is it its and me my please for at with what that this by are was be as from into your you i can could would")
	// asks are words that questions begin with.
	asks = set("what which who whom whose when where why how is are was were do does did can could")
	// telling are verbs that ask for an answer, and for no call of its own.
	telling = set("tell say answer explain give what which")
)

// alike are words of one meaning, each with the one that stands for all.
var alike = map[string]string{
	"put": "write", "note": "write", "store": "save", "make": "create", "new": "create", "remove": "delete", "erase": "delete",
	"add": "append", "attach": "append", "change": "replace", "substitute": "replace", "swap": "replace", "exchange": "replace",
	"view": "show", "display": "show", "open": "read", "look": "read", "check": "read", "execute": "run", "start": "run",
	"what": "which", "search": "find", "folder": "directory", "email": "letter", "e-mail": "letter", "mail": "letter", "message": "letter",
	"call": "phone", "ring": "phone", "internet": "web", "online": "web", "website": "web", "turn": "switch", "order": "book", "buy": "book",
	"reserve": "book", "pay": "book", "color": "colour",
}

// stem drops the commonest endings, and takes the word that stands for those of
// its meaning.
func stem(w string) string {
	if to, ok := alike[w]; ok {
		return to
	}
	for _, end := range []string{"ing", "ed", "es", "s"} {
		if t, ok := strings.CutSuffix(w, end); ok && len(t) > 2 {
			return t
		}
	}
	return w
}
