package escape

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"correx/internal/testenv"
	"correx/pkg/tools"
)

// A job is something small and real that a program does in the sandbox.
type job struct {
	name    string
	program string // of scripts/programs, or one on the path
	prepare func(t testing.TB, s *site)
	argv    []string
	want    string            // in what it prints
	files   map[string]string // in the workspace afterwards
	change  func(c *tools.Command, s *site)
	only    level // where it is less everywhere else
}

// TestPrograms runs what people's agents run: at every level all of it has to
// work, not least where everything is confined.
func TestPrograms(t *testing.T) {
	for _, r := range roles(t) {
		for _, j := range jobs() {
			for _, l := range []level{none, fsOnly, full} {
				if j.only != "" && j.only != l {
					continue
				}
				t.Run(r.name+"/"+j.name+"/"+string(l), func(t *testing.T) { j.try(t, r, l) })
			}
		}
	}
}

func (j job) try(t *testing.T, r *role, l level) {
	s := r.newSite(t, l)
	if j.prepare != nil {
		j.prepare(t, s)
	}
	o := r.run(t, l, j.command(t, s))
	if o.Missing != "" {
		t.Skipf("this machine does not reach %s: %s", l, o.Missing)
	}
	if o.Error != "" || o.Exit.Code != 0 || !strings.Contains(string(o.Exit.Stdout.Head), j.want) {
		t.Errorf("wants %q, and it is %s", j.want, o.summary())
	}
	for name, want := range j.files {
		if got := strings.TrimSpace(content(filepath.Join(s.Work, name))); got != want {
			t.Errorf("%s has %q, not %q", name, got, want)
		}
	}
}

// command is how the job is run; "sh" finds the other programs on its PATH.
func (j job) command(t testing.TB, s *site) tools.Command {
	t.Helper()
	c := s.command(t, attempt{script: "true"})
	c.Timeout = 2 * time.Minute
	c.Path, c.Argv = j.path(t), j.argv
	if at := strings.Index(c.Path, "/.cache/programs/"); at >= 0 { // it may lie where nothing is seen, as below /tmp
		c.Readable = append(c.Readable, c.Path[:at]+"/.cache/programs")
	}
	c.Env = append(c.Env, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	if j.change != nil {
		j.change(&c, s)
	}
	return c
}

// path finds the program. A user may not reach one of root's.
func (j job) path(t testing.TB) string {
	t.Helper()
	switch j.program {
	case "go", "gcc", "sh":
		path, err := exec.LookPath(j.program)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	return testenv.Program(t, j.program)
}

func (s *site) write(t testing.TB, name, text string) { s.put(t, filepath.Join(s.Work, name), text) }

func jobs() []job {
	return append(languageJobs(), append(gitJobs(), searchJobs()...)...)
}

// asRole runs a program outside, in the workspace.
func asRole(t testing.TB, s *site, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = s.Work
	cmd.Env = []string{"PATH=" + tools.SearchPath, "HOME=" + s.Own, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.role.credential()}
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, text)
	}
}
