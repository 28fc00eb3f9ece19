// Tool-worker runs tools that were approved, in a sandbox.
package main

import (
	"correx/internal/cli"
)

func main() {
	cli.Main("tool-worker", newRoot)
}
