// Projector keeps a SQLite view of the log and answers questions about it.
package main

import "correx/internal/cli"

func main() { cli.Main("projector", newRoot) }
