package events

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Facts about models belong to evt.system.model.<id>, where id is
// [ModelAggregateID] of worker and model.

// ModelLoadRequested is the wish to have a model in memory.
type ModelLoadRequested struct {
	Ref
	Decision
	Model  ModelID  `json:"model"`
	Worker WorkerID `json:"worker"`
}

// ModelLoaded says that a model is healthy, ours, and answered a probe.
type ModelLoaded struct {
	Ref
	Model       ModelID       `json:"model"`
	Worker      WorkerID      `json:"worker"`
	PID         int           `json:"pid"`
	ContextSize int           `json:"context_size"`                  // tokens
	Latency     time.Duration `json:"latency_ns"`                    // from the spawn to the probe's answer
	Server      string        `json:"server"`                        // llama-server's own version
	Wanted      int           `json:"wanted_context_size,omitempty"` // where memory did not do for it, so that ContextSize is less
}

// ModelUnloadRequested is the wish to have a model out of memory.
type ModelUnloadRequested struct {
	Ref
	Decision
	Model  ModelID  `json:"model"`
	Worker WorkerID `json:"worker"`
	Force  bool     `json:"force,omitempty"` // do not wait for what is in flight
}

// ModelUnloaded says that the model's process is dead.
type ModelUnloaded struct {
	Ref
	Model  ModelID  `json:"model"`
	Worker WorkerID `json:"worker"`
	Reason string   `json:"reason"`
}

// ModelCrashed says that llama-server ended unasked.
type ModelCrashed struct {
	Ref
	Model       ModelID  `json:"model"`
	Worker      WorkerID `json:"worker"`
	ExitCode    int      `json:"exit_code"`        // -1: by a signal
	Signal      string   `json:"signal,omitempty"` // "killed"
	Log         []string `json:"log,omitempty"`    // the last lines
	OutOfMemory bool     `json:"out_of_memory,omitempty"`
}

// ModelLoadFailed says that a model could not be loaded.
type ModelLoadFailed struct {
	Ref
	Model       ModelID  `json:"model"`
	Worker      WorkerID `json:"worker"`
	Reason      string   `json:"reason"`
	Log         []string `json:"log,omitempty"`
	OutOfMemory bool     `json:"out_of_memory,omitempty"`
}

// A WorkerRole is what a process does.
type WorkerRole string

const (
	RoleKernel      WorkerRole = "kernel"
	RoleToolWorker  WorkerRole = "tool-worker"
	RoleModelWorker WorkerRole = "model-worker"
	RoleProjector   WorkerRole = "projector"
)

// KernelNames returns the names that kernels go by. The server keeps everybody
// else from publishing facts of these workers, each by its name, so that what a
// WorkerStarted says of policy is believed from them alone.
func KernelNames() []WorkerID {
	names := []WorkerID{"kernel"}
	for i := 2; i <= 9; i++ {
		names = append(names, WorkerID(fmt.Sprintf("kernel-%d", i)))
	}
	return names
}

// IsKernel reports whether w is one of [KernelNames].
func (w WorkerID) IsKernel() bool { return slices.Contains(KernelNames(), w) }

// WorkerStarted announces a process and what it offers. What the kernel knows
// of tools, models and policy it has from here alone, so that a fold of the log
// knows it too.
type WorkerStarted struct {
	Ref
	Role        WorkerRole   `json:"role"`
	Boot        string       `json:"boot"`
	Host        string       `json:"host"`
	PID         int          `json:"pid"`
	Version     string       `json:"version"`
	Concurrency int          `json:"concurrency,omitempty"`
	Tools       []ToolOffer  `json:"tools,omitempty"`
	Models      []ModelOffer `json:"models,omitempty"`
	Settings    *Settings    `json:"settings,omitempty"` // the kernel's
}

// WorkerStopped says that a process ended in good order.
type WorkerStopped struct {
	Ref
	Boot   string `json:"boot"`
	Reason string `json:"reason,omitempty"`
}

// CommandRejected answers a command that cannot be carried out, with every
// reason.
type CommandRejected struct {
	Ref
	Decision
	Subject string   `json:"subject"` // as published
	Reasons []string `json:"reasons"`
}

// AuditCheckpoint states what all records of the stream up to Through are, and is
// signed (docs/audit.md). All checkpoints are of the one aggregate audit.main.
type AuditCheckpoint struct {
	Ref
	Through      uint64    `json:"through"`                 // the first so many records
	Chain        string    `json:"chain_sha256"`            // the hash chain's link there
	Root         string    `json:"root_sha256,omitempty"`   // of the Merkle tree over them
	Stream       string    `json:"stream,omitempty"`        // its name,
	Created      time.Time `json:"stream_created,omitzero"` // and when it was made
	Previous     uint64    `json:"previous,omitempty"`      // sequence of the checkpoint before; 0: none
	Fingerprints string    `json:"fingerprints,omitempty"`  // of the last records up to Through, eight bytes each
	Key          string    `json:"key"`                     // public NKey of the signer
	Signature    string    `json:"signature"`
}

// ModelAggregateID names one model on one worker: "<worker>_<model>", unless a
// worker's name with a _ could be read in two ways.
func ModelAggregateID(w WorkerID, modelToken string) string {
	if strings.Contains(string(w), "_") {
		return Token(string(w) + "/" + modelToken)
	}
	return Token(string(w) + "_" + modelToken)
}

func (ModelLoadRequested) FactName() FactName   { return "model.load_requested" }
func (ModelLoaded) FactName() FactName          { return "model.loaded" }
func (ModelUnloadRequested) FactName() FactName { return "model.unload_requested" }
func (ModelUnloaded) FactName() FactName        { return "model.unloaded" }
func (ModelCrashed) FactName() FactName         { return "model.crashed" }
func (ModelLoadFailed) FactName() FactName      { return "model.load_failed" }
func (WorkerStarted) FactName() FactName        { return "worker.started" }
func (WorkerStopped) FactName() FactName        { return "worker.stopped" }
func (CommandRejected) FactName() FactName      { return "command.rejected" }
func (AuditCheckpoint) FactName() FactName      { return "audit.checkpoint" }
