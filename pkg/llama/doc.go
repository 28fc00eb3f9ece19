// Package llama runs models in llama-server and talks to it.
//
// A [Client] is one llama-server as an inference provider; a [Tokenizer] counts
// by it. A [Process] is one llama-server as a child that never outlives its
// parent. A [Manager] keeps one model at a time in one such process: it loads,
// unloads, swaps by restart and unloads by [events.ResidencyMode]. A [Managed]
// is a model under a Manager: whoever infers with it gets it loaded, and keeps
// it loaded until the answer is there.
//
// Nothing here is retried: whether a failure deserves another attempt is for
// whoever reads the log to decide, so that each attempt is a fact.
package llama
