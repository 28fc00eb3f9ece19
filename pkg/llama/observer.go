package llama

import "time"

// An Observer is told what became of models, in order, after it is so. The
// manager calls it from the goroutine that owns its state: it must return soon
// and must not call the manager.
type Observer func(ModelEvent)

// A ModelEvent is one of Loaded, Unloaded, Crashed and LoadFailed.
type ModelEvent interface{ modelEvent() }

// Loaded says that a model is healthy, ours, and has answered a probe.
type Loaded struct {
	Descriptor  Descriptor
	PID         int
	ContextSize int           // tokens of one request, as the server has them
	Latency     time.Duration // from the spawn to the probe's answer
	Server      string        // the server's own version
	Halved      bool          // memory did not do for the Descriptor's context
}

// Unloaded says that a model's process is dead because it was to be.
type Unloaded struct {
	Descriptor Descriptor
	PID        int
	Reason     string
}

// Crashed says that a model's process ended unasked.
type Crashed struct {
	Descriptor  Descriptor
	PID         int
	Exit        Exit
	OutOfMemory bool
	Log         []string // the last lines
}

func (c Crashed) String() string {
	if c.OutOfMemory {
		return "it crashed, out of memory: " + c.Exit.String()
	}
	return "it crashed: " + c.Exit.String()
}

// LoadFailed says that a model could not be loaded. Nothing runs.
type LoadFailed struct {
	Descriptor  Descriptor
	Reason      string
	Log         []string // the last lines
	OutOfMemory bool
}

func (Loaded) modelEvent()     {}
func (Unloaded) modelEvent()   {}
func (Crashed) modelEvent()    {}
func (LoadFailed) modelEvent() {}
