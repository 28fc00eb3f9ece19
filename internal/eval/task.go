package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A kind is what a task asks of a model.
type kind string

const (
	files      kind = "files"      // write, change, delete
	reading    kind = "reading"    // read, and answer
	programs   kind = "programs"   // run something
	steps      kind = "steps"      // several calls, one after another
	questions  kind = "questions"  // no tool is needed
	recovering kind = "recovering" // the first try is likely to fail
	impossible kind = "impossible" // no tool can do it
	long       kind = "long"       // many requests in one session
)

var kinds = []kind{files, reading, programs, steps, questions, recovering, impossible, long}

// A task is what a person wants, and how it is seen that it was done.
type task struct {
	name  string
	kind  kind
	files map[string]string // of the workspace, before
	say   []string          // the task, then what is said after each answer
	check func(*end) error
}

// An end is what a session left behind.
type end struct {
	before  map[string]string
	after   map[string]string // files of the workspace
	answers []string          // one for each thing that was said; "" where none came
	calls   []call
}

// A call is one that a tool answered.
type call struct {
	Tool       string `json:"tool"`
	Parameters string `json:"parameters"`
	Failed     bool   `json:"failed,omitempty"`
}

// all is done if each of the checks says so.
func all(checks ...func(*end) error) func(*end) error {
	return func(e *end) error {
		for _, c := range checks {
			if err := c(e); err != nil {
				return err
			}
		}
		return nil
	}
}

// holds: the file has the words in this order, and little else. Case, space and
// punctuation at the ends are a small model's own.
func holds(path, words string) func(*end) error {
	return func(e *end) error {
		text, ok := e.after[path]
		switch {
		case !ok:
			return fmt.Errorf("there is no %s", path)
		case !strings.Contains(plain(text), plain(words)):
			return fmt.Errorf("%s has %.60q, not %q", path, text, words)
		case len(plain(text)) > 2*len(plain(words))+20:
			return fmt.Errorf("%s has much more than %q: %.80q", path, words, text)
		}
		return nil
	}
}

// lacks: the file does not have the words any more.
func lacks(path, words string) func(*end) error {
	return func(e *end) error {
		if strings.Contains(plain(e.after[path]), plain(words)) {
			return fmt.Errorf("%s still has %q", path, words)
		}
		return nil
	}
}

func gone(path string) func(*end) error {
	return func(e *end) error {
		if _, ok := e.after[path]; ok {
			return fmt.Errorf("%s is still there", path)
		}
		return nil
	}
}

// untouched: the file is what it was.
func untouched(paths ...string) func(*end) error {
	return func(e *end) error {
		for _, p := range paths {
			if was, is := e.before[p], e.after[p]; was != is {
				return fmt.Errorf("%s was changed to %.60q", p, is)
			}
		}
		return nil
	}
}

// unchanged: the workspace is what it was.
func unchanged(e *end) error {
	if !maps.Equal(e.before, e.after) {
		return fmt.Errorf("the files are not what they were: %v", slices.Sorted(maps.Keys(e.after)))
	}
	return nil
}

// answered: the last answer has one of the words.
func answered(words ...string) func(*end) error {
	return func(e *end) error { return hasOne(e.answers[len(e.answers)-1], words) }
}

func hasOne(text string, words []string) error {
	for _, w := range words {
		if strings.Contains(" "+plain(text)+" ", plain(w)) {
			return nil
		}
	}
	return fmt.Errorf("the answer %.80q has none of %q", text, words)
}

// says: the last answer affirms, or it denies.
func says(yes bool) func(*end) error {
	return func(e *end) error {
		text := e.answers[len(e.answers)-1]
		if denies.MatchString(text) == yes {
			return fmt.Errorf("the answer %.80q says the opposite", text)
		}
		return nil
	}
}

var denies = regexp.MustCompile(`(?i)\b(no|not|nothing|cannot|[a-z]+n't)\b`)

// used: a call of the tool with the words in its parameters went well.
func used(tool string, words ...string) func(*end) error {
	return func(e *end) error {
		for _, c := range e.calls {
			if c.Tool != tool || c.Failed {
				continue
			}
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(c.Parameters, w) }) {
				return nil
			}
		}
		return fmt.Errorf("%s was not used with %q", tool, words)
	}
}

// declined: nothing was changed, and the answer says that it cannot be done.
var declined = all(unchanged, answered("cannot", "can not", "can't", "not able", "unable", "no tool", "not possible", "don't have", "do not have"))

// plain is text without case, and with single spaces for all that is no letter,
// digit or apostrophe.
func plain(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '\'' || r > 127)
	}), " ")
}

// fill makes a directory hold just these files.
func fill(dir string, want map[string]string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	for name, text := range want {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// look reads all files below a directory.
func look(dir string) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		found[name] = string(data)
		return err
	})
	return found, err
}
