package testenv_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"correx/internal/testenv"
)

func TestPrograms(t *testing.T) {
	for _, program := range []string{testenv.LlamaServer(t), testenv.NatsCLI(t), testenv.Program(t, "rg")} {
		if out, err := exec.Command(program, "--version").CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", program, err, out)
		}
	}
}

// The tags stand in the Makefile too, which cannot read them here.
func TestTagsAreTheMakefiles(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(testenv.Root(), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(makefile), "\nTAGS := "+testenv.Tags+"\n") {
		t.Errorf("the Makefile's TAGS are not %q", testenv.Tags)
	}
}
