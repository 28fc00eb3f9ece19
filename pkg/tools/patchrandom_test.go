package tools_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"correx/internal/testenv"
	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
	"correx/pkg/tools/workspace"
)

// An edit is one step of a script: a line of the old file that stays, goes, or one
// that comes.
type edit struct {
	kind byte // ' ', '-', '+'
	line string
}

// randomScript edits a file of up to 60 lines, of few kinds, so that much occurs
// more than once.
func randomScript(r *rand.Rand) []edit {
	end := []string{"\n", "\n", "\n", "\r\n"}[r.IntN(4)]
	words := []string{"", "a", "b", "{", "}", "\tx", "-- c", "++ d", "@@ -1 +1 @@", "é", "\\ e", "diff --git", "--- f0", "+++ f0", "one rather long line of words"}
	line := func() string {
		e := end
		if r.IntN(30) == 0 {
			e = "\r\n"
		}
		return words[r.IntN(len(words))] + strings.Repeat("'", r.IntN(3)) + e
	}
	var s []edit
	for range r.IntN(60) {
		switch r.IntN(14) {
		case 0:
			s = append(s, edit{'-', line()})
		case 1:
			s = append(s, edit{'+', line()})
		case 2:
			s = append(s, edit{'-', line()}, edit{'+', line()})
		default:
			s = append(s, edit{' ', line()})
		}
	}
	if n := len(s); n > 0 && r.IntN(4) == 0 { // the last line has no newline
		if last := strings.TrimRight(s[n-1].line, "\r\n"); last != "" {
			s[n-1].line = last
		}
	}
	return s
}

// text is the file before ('-') or after ('+') a script. A line that no newline
// ends is the last of its side, or has none to lose.
func text(s []edit, side byte) string {
	var b strings.Builder
	for _, e := range s {
		if e.kind == ' ' || e.kind == side {
			b.WriteString(e.line)
		}
	}
	return b.String()
}

// A scriptHunk is a part of a script, and how many old lines stand before it.
type scriptHunk struct {
	before int
	edits  []edit
}

func (h scriptHunk) lines(side byte) (out []string) {
	for _, e := range h.edits {
		if e.kind == ' ' || e.kind == side {
			out = append(out, e.line)
		}
	}
	return out
}

// cut makes hunks of a script, with some lines around each.
func cut(s []edit, around int) []scriptHunk {
	var out []scriptHunk
	for i := 0; i < len(s); {
		if s[i].kind == ' ' {
			i++
			continue
		}
		from, last := max(0, i-around), i
		for k := i; k < len(s) && k-last <= 2*around+1; k++ {
			if s[k].kind != ' ' {
				last = k
			}
		}
		i = min(last+1+around, len(s))
		out = append(out, scriptHunk{len(scriptHunk{edits: s[:from]}.lines('-')), s[from:i]})
	}
	return out
}

// unified writes hunks as a patch has them.
func unified(hunks []scriptHunk) string {
	var b strings.Builder
	b.WriteString("--- a.txt\n+++ a.txt\n")
	for _, h := range hunks {
		old, new, at := len(h.lines('-')), len(h.lines('+')), h.before
		if old > 0 {
			at++
		}
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", at, old, at, new)
		for _, e := range h.edits {
			b.WriteString(string(e.kind) + e.line)
			if !strings.HasSuffix(e.line, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	return b.String()
}

// model is what hunks make of a file: each stands where it says, or at its only
// place. It answers false where one does not fit, or all change nothing.
func model(file string, hunks []scriptHunk) (string, bool) {
	lines := strings.SplitAfter(file, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	done, rest, passed, said := "", lines, 0, 0
	for _, h := range asIn(file, hunks) {
		old, new := h.lines('-'), h.lines('+')
		if h.before < said {
			return "", false
		}
		said = h.before + len(old)
		var at []int
		for i := range len(rest) - len(old) + 1 {
			if slices.Equal(rest[i:i+len(old)], old) {
				at = append(at, i)
			}
		}
		stated := h.before - passed
		switch {
		case len(old) == 0 && (len(lines) > 0 || stated != 0):
			return "", false
		case slices.Contains(at, stated):
		case len(at) == 1:
			stated = at[0]
		default:
			return "", false
		}
		end := stated + len(old)
		if len(new) > 0 && !strings.HasSuffix(new[len(new)-1], "\n") && end < len(rest) {
			return "", false
		}
		done += strings.Join(rest[:stated], "") + strings.Join(new, "")
		rest, passed = rest[end:], passed+end
	}
	done += strings.Join(rest, "")
	return done, done != file
}

// asIn gives hunks without CR the line ends of a file that has CR LF throughout.
func asIn(file string, hunks []scriptHunk) []scriptHunk {
	if !strings.Contains(file, "\n") || strings.Contains(unified(hunks), "\r") || strings.Contains(strings.ReplaceAll(file, "\r\n", ""), "\n") {
		return hunks
	}
	var out []scriptHunk
	for _, h := range hunks {
		c := scriptHunk{before: h.before}
		for _, e := range h.edits {
			c.edits = append(c.edits, edit{e.kind, strings.ReplaceAll(e.line, "\n", "\r\n")})
		}
		out = append(out, c)
	}
	return out
}

// blur changes a line or two of a text, so that a patch may fit no more, or
// elsewhere.
func blur(r *rand.Rand, text string) string {
	lines := strings.SplitAfter(text, "\n")
	for range 1 + r.IntN(2) {
		switch i := r.IntN(len(lines)); r.IntN(4) {
		case 0:
			lines = slices.Delete(lines, i, i+1)
		case 1:
			lines = slices.Insert(lines, i, lines[r.IntN(len(lines))])
		case 2:
			lines[i] = "x" + lines[i]
		case 3:
			lines = slices.Insert(lines, 0, "new\n")
		}
		if len(lines) == 0 {
			return ""
		}
	}
	return strings.Join(lines, "")
}

// TestPatchRandom: after a patch the file is exactly what a model makes of it, or
// exactly what it was. A seeded sample in every run, 10,000 with CORREX_SOAK=1.
func TestPatchRandom(t *testing.T) {
	seed, runs := testenv.Seed(t), 200
	if os.Getenv("CORREX_SOAK") != "" {
		runs = 10_000
	}
	dir := realDir(t)
	tool := fileTools(t, dir)["file_edit"]
	oracle := newOracle(t)
	outcomes := map[string]int{}
	for n := range runs {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		s := randomScript(r)
		hunks := cut(s, r.IntN(5))
		if len(hunks) == 0 {
			continue
		}
		file, diff := text(s, '-'), unified(hunks)
		kind := []string{"as made", "the file moved", "another line is said", "the patch is damaged"}[r.IntN(4)]
		want, fits := text(s, '+'), true
		switch kind {
		case "the file moved":
			file = blur(r, file)
			want, fits = model(file, hunks)
		case "another line is said":
			h := &hunks[r.IntN(len(hunks))]
			h.before = max(0, h.before+r.IntN(7)-3)
			diff = unified(hunks)
			want, fits = model(file, hunks)
		case "as made":
			want, fits = model(file, hunks)
			if kind == "as made" && fits && want != text(s, '+') {
				t.Fatalf("seed %d, run %d: the model made %q of %q", seed, n, want, s)
			}
		default:
			diff = blur(r, diff)
		}
		put(t, dir+"/a.txt", file)
		result := run(t, tool, p{"operation": "patch", "patch": diff})
		got := get(t, dir+"/a.txt")
		_, ok := result.(tools.Success)
		fault := ""
		switch by, certain := oracle.patched(t, file, diff); {
		case !ok && got != file:
			fault = "refused, and changed all the same"
		case ok && certain && got != by:
			fault = fmt.Sprintf("the program patch alone makes %q", by)
		case kind == "the patch is damaged":
		case ok != fits:
			fault = fmt.Sprintf("the model says %v", fits)
		case ok && got != want:
			fault = fmt.Sprintf("the model says %q", want)
		}
		if fault != "" {
			t.Fatalf("seed %d, run %d, %s: %s\nfile %q\npatch:\n%s\ngot %q\n%+v", seed, n, kind, fault, file, diff, got, result)
		}
		outcomes[fmt.Sprintf("%s: applied %v", kind, ok)]++
	}
	t.Logf("%d runs: %v", runs, outcomes)
	for _, kind := range []string{"as made: applied true", "the file moved: applied true", "the file moved: applied false", "another line is said: applied true", "another line is said: applied false", "the patch is damaged: applied false"} {
		if outcomes[kind] == 0 {
			t.Errorf("%q never came", kind)
		}
	}
}

// An oracle is the program patch as it is, on the patch as it is.
type oracle struct{ program, dir string }

func newOracle(t *testing.T) oracle {
	program, err := exec.LookPath("patch")
	if err != nil {
		t.Skip("there is no program patch here")
	}
	return oracle{program, realDir(t)}
}

// patched is what the program makes of a file, if it is certain of it: it applied
// all of the patch where that says.
func (o oracle) patched(t *testing.T, file, diff string) (string, bool) {
	t.Helper()
	put(t, o.dir+"/a.txt", file)
	put(t, o.dir+"/in", diff)
	defer os.Remove(o.dir + "/a.txt")
	cmd := exec.Command(o.program, "-p0", "-u", "--binary", "--forward", "--batch", "--fuzz=0", "-r", "-", "-i", "in", "a.txt")
	cmd.Dir = o.dir
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "offset") {
		return "", false
	}
	data, err := os.ReadFile(o.dir + "/a.txt")
	if os.IsNotExist(err) {
		return "", true
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data), true
}

// A failingRecorder forbids the change that comes after some others.
type failingRecorder struct {
	tools.Recorder
	left *int
}

var errForbidden = errors.New("the disk is on fire")

func (f failingRecorder) Staged(path string, before, after workspace.State) error {
	if *f.left--; *f.left < 0 {
		return errForbidden
	}
	return f.Recorder.Staged(path, before, after)
}

// TestPatchAllOrNothing: of a patch of several files all are changed or none, at
// whichever of them it fails.
func TestPatchAllOrNothing(t *testing.T) {
	const before = "-- a.txt --\none\n-- b/b.txt --\ntwo\n-- c.txt --\nthree\n"
	const diff = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+1\n--- b/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-two\n" +
		"--- c.txt\n+++ c.txt\n@@ -1 +1 @@\n-three\n+3\n--- /dev/null\n+++ new/d.txt\n@@ -0,0 +1 @@\n+four\n"
	const after = "-- a.txt --\n1\n-- c.txt --\n3\n-- new/d.txt --\nfour\n"
	for good := range 5 {
		t.Run(fmt.Sprintf("after %d", good), func(t *testing.T) {
			work, dir := realDir(t), realDir(t)
			for name, data := range tree(before) {
				put(t, filepath.Join(work, name), data)
			}
			registry, err := tools.NewRegistry(fileTools(t, work)["file_edit"])
			if err != nil {
				t.Fatal(err)
			}
			journal, _, err := sandbox.OpenJournal(dir, sandbox.JournalOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer journal.Close()
			left := good
			executor, err := sandbox.NewExecutor(sandbox.ExecutorOptions{Registry: registry, Journal: journal, Dir: dir,
				Delegate: executorFunc(func(ctx context.Context, r events.ToolRequest) tools.ToolResult {
					s := tools.ScopeOf(ctx)
					if s.Dir == "" {
						t.Error("it has no directory of its own")
					}
					s.Recorder = failingRecorder{s.Recorder, &left}
					return tools.NewDispatcher(registry).Execute(tools.WithScope(ctx, s), r)
				})})
			if err != nil {
				t.Fatal(err)
			}
			r := request(t, "file_edit", p{"operation": "patch", "patch": diff})
			preview := executor.Preview(context.Background(), r)
			if files, _ := onDisk(t, work); !preview.Valid || !maps.Equal(files, tree(before)) {
				t.Fatalf("preview %+v, left %q", preview, files)
			}
			key := sandbox.Key{Session: "s1", Invocation: "t1-0", Started: 1, Nonce: "n"}
			out := executor.Run(context.Background(), sandbox.Call{Key: key, Request: r, Tier: events.T3, Base: preview.Base})
			files, _ := onDisk(t, work)
			if good < 4 {
				if out.Status != sandbox.Failed || !maps.Equal(files, tree(before)) || !strings.Contains(out.Reason, errForbidden.Error()) {
					t.Fatalf("%+v, left %q", out, files)
				}
				if _, err := os.Lstat(work + "/new"); err == nil {
					t.Fatal("a directory is left behind")
				}
				return
			}
			if out.Status != sandbox.Completed || !maps.Equal(files, tree(after)) || out.Receipt.Diff != preview.Diff || len(out.Receipt.Affected) != 4 {
				t.Fatalf("%+v, left %q", out, files)
			}
		})
	}
}

type executorFunc func(context.Context, events.ToolRequest) tools.ToolResult

func (f executorFunc) Execute(ctx context.Context, r events.ToolRequest) tools.ToolResult {
	return f(ctx, r)
}
