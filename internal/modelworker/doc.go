// Package modelworker is the process that runs models.
//
// It announces its models, waits until the kernel has made their consumers, and
// takes requested inferences through the claim protocol (internal/claim). For
// each it reads the session from the log as far as the request says, packs the
// prompt, has llama-server generate one action, and reports it. What became of
// models is told as facts, after it is so.
//
// Each PERSISTENT model has a llama-server of its own, all others take turns in
// one: see [correx/pkg/llama.Manager]. They end with the worker, however that ends.
package modelworker
