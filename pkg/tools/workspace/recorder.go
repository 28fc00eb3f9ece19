package workspace

import "crypto/rand"

// A Recorder is told of changes, so that they can be taken back.
type Recorder interface {
	// Staged is told what path was when it was read, and what it is about to
	// become. It returns when that is durable; an error forbids the change.
	Staged(path string, before, after State) error
	// Applied is told what path has become.
	Applied(path string, after State) error
	// Temp names the temporary file beside path. It must be unguessable.
	Temp(path string) string
}

type noRecorder struct{}

func (noRecorder) Staged(string, State, State) error { return nil }
func (noRecorder) Applied(string, State) error       { return nil }
func (noRecorder) Temp(string) string                { return TempName() }

// TempName is a new name for a temporary file.
func TempName() string { return ".correx-" + rand.Text() }
