package escape

import (
	"path/filepath"
	"testing"

	"correx/pkg/tools"
)

func languageJobs() []job {
	return []job{
		{name: "python reads, writes and starts a process", program: "python3", argv: []string{"python3", "job.py"}, want: "3 lines, 6, ok\n",
			prepare: func(t testing.TB, s *site) {
				s.write(t, "in.txt", "1\n2\n3\n")
				s.write(t, "job.py", pythonJob)
			}, files: map[string]string{"out.json": `{"sum": 6}`}},
		{name: "node reads, writes and starts a process", program: "node", argv: []string{"node", "job.js"}, want: "6 ok\n",
			prepare: func(t testing.TB, s *site) {
				s.write(t, "in.json", "[1,2,3]")
				s.write(t, "job.js", nodeJob)
			}, files: map[string]string{"out.txt": "6"}},
		{name: "gcc compiles a program, which runs", program: "sh", argv: []string{"sh", "-c", "gcc -O2 -Wall -o job job.c && ./job"}, want: "6\n",
			prepare: func(t testing.TB, s *site) {
				s.write(t, "job.c", "#include <stdio.h>\nint main(void) { int s = 0; for (int i = 1; i < 4; i++) s += i; printf(\"%d\\n\", s); return 0; }\n")
			}},
		{name: "make builds a project in C", program: "make", argv: []string{"make", "-j2", "check"}, want: "checked\n",
			prepare: func(t testing.TB, s *site) {
				s.write(t, "Makefile", "job: a.o b.o\n\tgcc -o $@ a.o b.o\n%.o: %.c\n\tgcc -c -o $@ $<\ncheck: job\n\t./job && echo checked\n")
				s.write(t, "a.c", "int b(void);\nint main(void) { return b(); }\n")
				s.write(t, "b.c", "int b(void) { return 0; }\n")
			}},
		{name: "go builds, tests and runs a module", program: "go", want: "6\n", prepare: goModule,
			argv: []string{"sh", "-c", `"$GO" build -o job . && "$GO" test ./... >&2 && ./job`},
			change: func(c *tools.Command, s *site) {
				c.Env = append(c.Env, append(goEnv(filepath.Join(s.Own, "cache")), "GO="+c.Path)...)
				c.Path = "/bin/sh"
			}},
	}
}

const pythonJob = `
import json, os, subprocess, tempfile
lines = open("in.txt").read().split()
total = sum(map(int, lines))
with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as f:
    json.dump({"sum": total}, f)
os.replace(f.name, "out.json")
out = subprocess.run(["sh", "-c", "echo ok"], capture_output=True, text=True, check=True).stdout
print(f"{len(lines)} lines, {total}, {out.strip()}")
`

const nodeJob = `
const fs = require("fs"), child = require("child_process");
const sum = JSON.parse(fs.readFileSync("in.json")).reduce((a, b) => a + b);
fs.writeFileSync("out.txt", String(sum));
child.exec("echo ok", (err, out) => { if (err) throw err; console.log(fs.readFileSync("out.txt", "utf8"), out.trim()); });
`

func searchJobs() []job {
	tree := func(t testing.TB, s *site) {
		s.write(t, "src/a.txt", "nothing\nthe needle\n")
		s.write(t, "src/b.txt", "nothing\n")
		s.write(t, "data.json", `{"rows":[{"n":1},{"n":2},{"n":3}]}`)
		s.write(t, "a.diff", "--- src/b.txt\n+++ src/b.txt\n@@ -1 +1 @@\n-nothing\n+something\n")
	}
	return []job{
		{name: "ripgrep searches", program: "rg", argv: []string{"rg", "-n", "needle", "."}, want: "src/a.txt:2:the needle\n", prepare: tree},
		{name: "jq sums", program: "jq", argv: []string{"jq", "[.rows[].n] | add", "data.json"}, want: "6\n", prepare: tree},
		{name: "patch patches", program: "patch", argv: []string{"patch", "-p0", "-i", "a.diff"}, want: "src/b.txt", prepare: tree,
			files: map[string]string{"src/b.txt": "something"}},
		{name: "find and xargs", program: "sh", argv: []string{"sh", "-c", "find src -name '*.txt' -print0 | xargs -0 cat | sort | uniq -c"}, want: "2 nothing", prepare: tree},
		{name: "mv across directories", program: "sh", argv: []string{"sh", "-c", `mv src/b.txt "$HOME/b" && mv "$HOME/b" b.txt && cat b.txt`}, want: "nothing\n", prepare: tree},
		{name: "temporary files", program: "sh", argv: []string{"sh", "-c", `f=$(mktemp) && echo hi >"$f" && cat "$f" && echo >/dev/null`}, want: "hi\n"},
		{name: "a /tmp of its own", only: full, program: "sh", argv: []string{"sh", "-c", `echo hi >/tmp/$MARK && cat /tmp/$MARK && ls /tmp | wc -l`}, want: "hi\n1\n"},
	}
}

// gitJobs read the repository of the workspace, whose .git is not to be written,
// and work in one of the invocation's own.
func gitJobs() []job {
	committed := func(t testing.TB, s *site) {
		repository(t, s)
		s.write(t, "a.txt", "alpha\n")
		asRole(t, s, "git", "add", "a.txt")
		asRole(t, s, "git", "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", "first commit")
		s.write(t, "a.txt", "beta\n")
	}
	return []job{
		{name: "git status", program: "git", argv: []string{"git", "status", "--short"}, want: " M a.txt\n", prepare: committed},
		{name: "git diff", program: "git", argv: []string{"git", "diff"}, want: "-alpha\n+beta\n", prepare: committed},
		{name: "git log", program: "git", argv: []string{"git", "log", "--oneline"}, want: "first commit\n", prepare: committed},
		{name: "git grep", program: "git", argv: []string{"git", "grep", "-n", "beta"}, want: "a.txt:1:beta\n", prepare: committed},
		{name: "git show and blame", program: "sh", argv: []string{"sh", "-c", "git show HEAD:a.txt && git blame HEAD -- a.txt"}, want: "alpha\n", prepare: committed},
		{name: "git clones the workspace into the invocation's directory and commits there", program: "sh", prepare: committed, want: "second commit\n",
			argv: []string{"sh", "-c", `git clone -q . "$HOME/copy" && cd "$HOME/copy" && echo gamma >b.txt && git add b.txt &&
				git -c user.name=A -c user.email=a@example.org commit -q -m "second commit" && git log --oneline`}},
		{name: "git starts a repository in the invocation's directory", program: "sh", want: "first commit\n",
			argv: []string{"sh", "-c", `git init -q "$HOME/new" && cd "$HOME/new" && echo a >a && git add a &&
				git -c user.name=A -c user.email=a@example.org commit -q -m "first commit" && git log --oneline`}},
	}
}
