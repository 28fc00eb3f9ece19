// Package testmodel writes tiny models for tests, which the real llama-server
// loads in milliseconds.
//
// [Scripted] writes a model that answers what a test wants: its k-th answer to
// a task is the k-th of a list. [Random] writes one with random weights, for
// fuzzing. Both are complete GGUF files with a vocabulary of characters and a
// ChatML template with system, user and assistant turns, and without tools.
//
//	err := testmodel.Scripted(path, testmodel.Script{
//		Tasks: map[string][]string{
//			"hello": {
//				testmodel.Call("file_write", `{"path":"hello.txt","content":"hi"}`),
//				testmodel.Call("file_read", `{"path":"hello.txt"}`),
//				testmodel.Final("It says hi."),
//			},
//		},
//	})
//	task := testmodel.Task("hello", "Write hi to hello.txt and read it back.")
//
// Nearly every character of a prompt is a token, so a test gives such a model a
// large context: [ContextSize].
package testmodel

// ContextSize is the window the models were made for, in tokens.
const ContextSize = 32768
