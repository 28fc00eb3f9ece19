// Bus is the log, the kernel, and a person's hands on both.
package main

import "correx/internal/cli"

func main() { cli.Main("bus", newRoot) }
