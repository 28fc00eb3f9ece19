package llama

import (
	"os"
	"regexp"
	"slices"
	"strings"
)

// hidden stands where a secret was.
const hidden = "[hidden]"

// A redactor takes secrets out of what a llama-server prints: its key, the
// tokens that are in the environment, and what looks like either.
type redactor struct{ known *strings.Replacer }

// secretVariables are variables that llama-server reads a secret from.
var secretVariables = []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "LLAMA_API_KEY", "MODEL_SCOPE_TOKEN"}

// secretPattern finds what follows a name that is a secret's.
var secretPattern = regexp.MustCompile(
	`(?i)((?:authorization|api[-_ ]?key|access[-_ ]?token|hf[-_]token|password)["']?\s*[:=]\s*["']?(?:bearer\s+)?|\bbearer\s+)[^\s"',;]{6,}`)

// secretWords are in every line that secretPattern finds something in.
var secretWords = []string{"authorization", "key", "token", "password", "bearer"}

// tokenPattern finds a token of Hugging Face by its form.
var tokenPattern = regexp.MustCompile(`\bhf_[A-Za-z0-9]{16,}`)

func newRedactor(secrets ...string) *redactor {
	for _, name := range secretVariables {
		secrets = append(secrets, os.Getenv(name))
	}
	var pairs []string
	for _, s := range secrets {
		if len(s) >= 6 { // what is shorter would tear words apart
			pairs = append(pairs, s, hidden)
		}
	}
	return &redactor{strings.NewReplacer(pairs...)}
}

func (r *redactor) clean(line string) string {
	line = r.known.Replace(line)
	lower := strings.ToLower(line) // the patterns are slow on what has no such word
	if slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(lower, w) }) {
		line = secretPattern.ReplaceAllString(line, "${1}"+hidden)
	}
	if !strings.Contains(line, "hf_") {
		return line
	}
	return tokenPattern.ReplaceAllString(line, hidden)
}
