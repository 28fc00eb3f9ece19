package escape

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write what came of the attempts into docs/sandbox.md")

func TestMain(m *testing.M) {
	switch os.Args[0] {
	case attackerName:
		os.Exit(attack(os.Args[1:]))
	case workerName:
		os.Exit(work())
	}
	code := m.Run()
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
	if err := finish(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
