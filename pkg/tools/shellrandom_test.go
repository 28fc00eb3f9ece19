package tools_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"correx/internal/testenv"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

// TestTransactionIsWhatTheCommandDoes: a random script leaves the same tree,
// whether it changes the workspace as it goes or is committed afterwards.
func TestTransactionIsWhatTheCommandDoes(t *testing.T) {
	rounds := 25
	if os.Getenv("CORREX_SOAK") != "" {
		rounds = 500
	}
	rng := rand.New(rand.NewPCG(testenv.Seed(t), 17))
	direct := newTxBench(t, tools.ShellConfig{Mode: tools.ShellDirect})
	late := newTxBench(t, tools.ShellConfig{Mode: tools.ShellTransactional})
	for k := range rounds {
		script := randomShellScript(rng)
		for _, b := range []*txBench{direct, late} {
			if out := b.sh(script); out.Status != sandbox.Completed {
				t.Fatalf("round %d: %s\n%+v", k, script, out)
			}
		}
		if want, got := describe(t, direct.dir), describe(t, late.dir); want != got {
			t.Fatalf("round %d: after\n%s\nthe transaction left\n%s\nand the command itself\n%s", k, script, got, want)
		}
	}
}

// randomShellScript is shell that always ends well.
func randomShellScript(rng *rand.Rand) string {
	names := []string{"a", "b", "c", "d/a", "d/b", "d/e/a", "d/e", "d", "x y", "-n", "é", "f", "f/g", "f/g/h"}
	name := func() string { return "'./" + names[rng.IntN(len(names))] + "'" }
	lines := []string{"umask 022"}
	for range 1 + rng.IntN(8) {
		n, m := name(), name()
		lines = append(lines, [](func() string){
			func() string { return fmt.Sprintf("echo %d > %s", rng.IntN(100), n) },
			func() string { return fmt.Sprintf("echo %d >> %s", rng.IntN(100), n) },
			func() string { return "rm -f -- " + n },
			func() string { return "rm -rf -- " + n },
			func() string { return "mkdir -p -- " + n },
			func() string { return "rmdir -- " + n },
			func() string { return "mv -f -- " + n + " " + m },
			func() string { return "mv -fT -- " + n + " " + m },
			func() string { return "[ -d " + n + " ] || cp -- " + n + " " + m },
			func() string { return "ln -s -- nowhere " + n },
			func() string { return "ln -sfn -- a " + n },
			func() string {
				return fmt.Sprintf("[ -d %[2]s ] || chmod %[1]o -- %[2]s", []int{0o600, 0o644, 0o755, 0o700, 0o444}[rng.IntN(5)], n)
			},
			func() string {
				return fmt.Sprintf("chmod %o -- .", []int{0o755, 0o700}[rng.IntN(2)]) + "; chmod 750 -- " + n
			},
			func() string { return "rm -rf -- " + n + "; mkdir -- " + n + "; echo new > " + n + "/in" },
			func() string { return "rm -rf -- " + n + "; echo file > " + n },
			func() string { return "rm -rf -- " + n + "; ln -s -- d " + n },
			func() string { return "touch -- " + n },
		}[rng.IntN(17)]())
	}
	return strings.Join(lines, " 2>/dev/null\n") + " 2>/dev/null\nexit 0"
}

// describe is a tree as text: kinds, modes, contents.
func describe(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		fi, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		switch {
		case fi.Mode()&fs.ModeSymlink != 0:
			text, err = os.Readlink(path)
			fmt.Fprintf(&b, "%s → %s\n", rel, text)
			return err
		case fi.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(data)
		}
		mode := fi.Mode()
		if mode.IsDir() { // a commit leaves the owner in, who has to go on
			mode |= 0o700
		}
		fmt.Fprintf(&b, "%s %v %q\n", rel, mode, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
