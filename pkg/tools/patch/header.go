package patch

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

const devNull = "/dev/null"

// names reads the two lines that name a file.
func (p *parser) names() (File, error) {
	old, err := p.name(p.at)
	if err != nil {
		return File{}, err
	}
	new, err := p.name(p.at + 1)
	if err != nil {
		return File{}, err
	}
	f := File{Create: old == devNull, Delete: new == devNull}
	oldBare, oldGit := strings.CutPrefix(old, "a/")
	newBare, newGit := strings.CutPrefix(new, "b/")
	switch {
	case f.Create && f.Delete:
		return f, p.fault(p.at, "both names are /dev/null")
	case f.Create:
		f.Name, f.Bare = newBare, newGit
	case f.Delete:
		f.Name, f.Bare = oldBare, oldGit
	case old == new:
		f.Name = old
	case oldGit && newGit && oldBare == newBare:
		f.Name = oldBare
	default:
		return f, p.fault(p.at, "the line below names another file, %q; a patch cannot rename: both have the same name, or one is /dev/null", new)
	}
	if f.Name == "" || f.Name == devNull {
		return f, p.fault(p.at, "no file is named")
	}
	p.at += 2
	return f, nil
}

// name reads the name in line i, which a tab and a time may follow.
func (p *parser) name(i int) (string, error) {
	name, _, _ := strings.Cut(p.text(i)[len("--- "):], "\t")
	switch {
	case strings.TrimSpace(name) == "":
		return "", p.fault(i, "no file is named")
	case strings.HasPrefix(name, `"`):
		return "", p.fault(i, "a quoted name is not taken; write it as it is")
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", p.fault(i, "the name has a control character, such as the CR of a line end")
	case strings.TrimSpace(name) != name:
		return "", p.fault(i, "the name begins or ends with a blank")
	}
	return name, nil
}

// gitHeaders are what git puts before the names, as far as it says nothing more
// than the names do.
type gitHeaders struct {
	diff             string // "" where there is none
	created, deleted bool
}

var (
	gitIndex   = regexp.MustCompile(`^index [0-9a-f]{4,64}\.\.[0-9a-f]{4,64}( 100(644|755))?$`)
	gitDeleted = regexp.MustCompile(`^deleted file mode 100(644|755)$`)
)

func (p *parser) git() (gitHeaders, error) {
	var g gitHeaders
	rest, ok := strings.CutPrefix(p.text(p.at), "diff --git ")
	if !ok {
		return g, nil
	}
	start := p.at
	g.diff = rest
	for p.at++; p.at < len(p.lines) && !strings.HasPrefix(p.text(p.at), "--- "); p.at++ {
		switch line := p.text(p.at); {
		case gitIndex.MatchString(line):
		case line == "new file mode 100644":
			g.created = true
		case gitDeleted.MatchString(line):
			g.deleted = true
		default:
			return g, p.fault(p.at, "%s", stray(line))
		}
	}
	if p.at == len(p.lines) {
		return g, p.fault(start, "no --- and +++ follow it, so it changes no text")
	}
	return g, nil
}

// agrees holds git's headers against the names, and takes from them that a/ and
// b/ are no directories.
func (g gitHeaders) agrees(f *File) error {
	if g.diff == "" {
		return nil
	}
	prefixed := "a/" + f.Name + " b/" + f.Name
	switch {
	case g.diff != prefixed && (f.Bare || g.diff != f.Name+" "+f.Name):
		return fmt.Errorf("it names other files than --- and +++ below it, which name %q", f.Name)
	case g.created != f.Create || g.deleted != f.Delete:
		return errors.New("what it says of a new or deleted file is not what --- and +++ below it say, where /dev/null stands for no file")
	}
	f.Bare = false
	return nil
}

// strays are beginnings of lines that belong to no unified diff, or to one that
// says more than what lines change.
var strays = []struct{ begins, reason string }{
	{"*** Begin Patch", "this is no unified diff; write --- and +++ with the file's name, then hunks that begin with @@ -line,count +line,count @@"},
	{"*** ", "this is a context diff; write a unified one, with ---, +++ and @@"},
	{"***", "this is a context diff; write a unified one, with ---, +++ and @@"},
	{"Index:", "lines before --- are not taken; leave it out"},
	{"Prereq:", "lines before --- are not taken; leave it out"},
	{"rename ", "a patch cannot rename; delete the file and make another"},
	{"copy ", "a patch cannot copy; make the other file with all of its lines"},
	{"similarity ", "a patch can neither rename nor copy"},
	{"dissimilarity ", "leave it out"},
	{"old mode ", "a patch cannot change modes"},
	{"new mode ", "a patch cannot change modes"},
	{"new file mode ", "a new file gets the mode 100644; leave the line out"},
	{"deleted file mode ", "only regular files are deleted; leave the line out"},
	{"GIT binary patch", "binary files cannot be patched"},
	{"Binary files ", "binary files cannot be patched"},
	{"@@", "no --- and +++ with the file's name stand before it"},
	{"+++ ", "no line --- with the file's name stands before it"},
	{"```", "send the patch alone, without a fence"},
	{"diff ", "lines before --- are not taken; leave it out"},
	{`\`, "it stands behind no line of a hunk"},
}

var edScript = regexp.MustCompile(`^\d+(,\d+)?([acd](\d+(,\d+)?)?|i|s/.*)$`)

// stray says why a line is no part of a patch.
func stray(line string) string {
	for _, s := range strays {
		if strings.HasPrefix(line, s.begins) {
			return s.reason
		}
	}
	if edScript.MatchString(line) {
		return "this is a script for ed, or a plain diff; write a unified one, with ---, +++ and @@"
	}
	return "it is no part of a patch, which has ---, +++, @@ and the lines of hunks, each with a blank, - or + before it"
}

// hint is the reason for a stray line, if there is a better one than that it is
// stray.
func hint(line string) string {
	for _, s := range strays {
		if strings.HasPrefix(line, s.begins) {
			return "; " + s.reason
		}
	}
	return ""
}
