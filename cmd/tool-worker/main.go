// Tool-worker runs tools that were approved, in a sandbox.
package main

import (
	"correx/internal/cli"
	"correx/pkg/sandbox"
)

func main() {
	sandbox.Stage() // in a process that a runner started this does not return
	cli.Main("tool-worker", newRoot)
}
