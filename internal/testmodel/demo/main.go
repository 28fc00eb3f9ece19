// Demo writes the scripted model that stands in where no real one can be had.
package main

import (
	"fmt"
	"os"

	"correx/internal/testmodel"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: demo FILE.gguf")
		os.Exit(2)
	}
	err := testmodel.Scripted(os.Args[1], testmodel.Script{Tasks: map[string][]string{"demo": {
		testmodel.Call("file_write", `{"operation":"write","path":"notes/hello.txt","content":"Hello from Correx"}`),
		testmodel.Call("file_read", `{"operation":"read","path":"notes/hello.txt"}`),
		testmodel.Final("I wrote Hello from Correx to notes/hello.txt and read it back."),
	}}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
