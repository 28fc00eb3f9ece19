// Model-worker runs models in llama-server.
package main

import "correx/internal/cli"

func main() { cli.Main("model-worker", newRoot) }
