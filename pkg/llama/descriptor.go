package llama

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"correx/pkg/events"
)

// Defaults of a [Descriptor].
const (
	DefaultIdleTimeout = 60 * time.Second
	DefaultContextSize = 8192 // tokens
)

// A Descriptor says what a model is and how it is kept. Its launch fields are
// ModelID, Path, ContextSize, Parallel, CacheRAM and Args: who asks for other ones gets a
// new process. The others may change while the model is loaded.
type Descriptor struct {
	ModelID       events.ModelID
	Path          string               // of a GGUF file, or "hf:<user>/<model>[:quant]"
	ResidencyMode events.ResidencyMode // empty: Dynamic
	IdleTimeout   time.Duration        // of Dynamic; 0: DefaultIdleTimeout
	ContextSize   int                  // tokens a request may have; 0: DefaultContextSize
	Parallel      int                  // requests at once; 0: 1
	CacheRAM      int                  // MiB of host memory for prompts of other sessions; 0: none
	Args          []string             // further flags of llama-server
	Guided        Guidance             // empty: GuideSmall
}

// withDefaults returns d with every empty field filled in and its path absolute.
func (d Descriptor) withDefaults() Descriptor {
	if d.ResidencyMode == "" {
		d.ResidencyMode = events.Dynamic
	}
	if d.IdleTimeout == 0 {
		d.IdleTimeout = DefaultIdleTimeout
	}
	if d.ContextSize == 0 {
		d.ContextSize = DefaultContextSize
	}
	if d.Parallel == 0 {
		d.Parallel = 1
	}
	if _, remote := d.repo(); !remote && d.Path != "" {
		if path, err := filepath.Abs(d.Path); err == nil {
			d.Path = path
		}
	}
	return d
}

// ownFlags are set by the [Process] itself.
var ownFlags = []string{
	"-m", "--model", "-hf", "-hfr", "--hf-repo", "--host", "--port", "-c", "--ctx-size",
	"-np", "--parallel", "-a", "--alias", "--api-key", "--api-key-file", "--reuse-port", "-cram", "--cache-ram",
}

// Validate names every fault of d.
func (d Descriptor) Validate() error {
	var faults []error
	fault := func(format string, a ...any) {
		faults = append(faults, fmt.Errorf("model %q: "+format, append([]any{d.ModelID}, a...)...))
	}
	if d.ModelID == "" {
		fault("has no name")
	}
	if strings.ContainsAny(string(d.ModelID), ",\n\r\x00") {
		fault("a name has no comma and no line end")
	}
	if d.Path == "" {
		fault("has no path; name a GGUF file or hf:<user>/<model>[:quant]")
	}
	if d.IdleTimeout < 0 || d.ContextSize < 0 || d.Parallel < 0 || d.CacheRAM < 0 {
		fault("idle time-out, context size, parallel and cache are not negative")
	}
	switch d.ResidencyMode {
	case "", events.Persistent, events.Dynamic, events.Ephemeral:
	default:
		fault("residency is %q; use %s, %s or %s", d.ResidencyMode, events.Persistent, events.Dynamic, events.Ephemeral)
	}
	for _, a := range d.Args {
		if name, _, _ := strings.Cut(a, "="); slices.Contains(ownFlags, name) {
			fault("%s is not for extra flags: it is set from the other fields", name)
		}
	}
	return errors.Join(faults...)
}

// Offer is d as a worker announces it. Capabilities are guessed from the name
// where none are given.
func (d Descriptor) Offer(capabilities []events.CapabilityScore) events.ModelOffer {
	d = d.withDefaults()
	if len(capabilities) == 0 {
		capabilities = Capabilities(d.ModelID)
	}
	return events.ModelOffer{
		Name: d.ModelID, Token: events.Token(string(d.ModelID)), ContextSize: d.ContextSize,
		Capabilities: capabilities, ResidencyMode: d.ResidencyMode, Small: d.guided(), Slots: d.Parallel,
	}
}

// Guidance says whether a model is shown what to do, and held to it.
type Guidance string

// Guidances.
const (
	GuideSmall  Guidance = "auto" // if its file is that of a small model
	GuideAlways Guidance = "on"
	GuideNever  Guidance = "off"
)

// A model whose file is smaller than smallModel needs guidance: a thousand million
// parameters and fewer, as they are commonly quantised. Under toyModel it is no
// model that speaks.
const (
	smallModel = 1 << 30
	toyModel   = 16 << 20
)

func (d Descriptor) guided() bool {
	switch d.Guided {
	case GuideAlways:
		return true
	case GuideNever:
		return false
	}
	info, err := os.Stat(d.Path)
	return err == nil && info.Size() > toyModel && info.Size() < smallModel
}

// sameLaunch reports whether one process serves both. Both have their defaults.
func (d Descriptor) sameLaunch(o Descriptor) bool {
	return d.ModelID == o.ModelID && d.Path == o.Path && d.ContextSize == o.ContextSize &&
		d.Parallel == o.Parallel && d.CacheRAM == o.CacheRAM && slices.Equal(d.Args, o.Args)
}

// repo returns the Hugging Face repository that d names.
func (d Descriptor) repo() (string, bool) { return strings.CutPrefix(d.Path, "hf:") }

func (d Descriptor) remote() bool { _, ok := d.repo(); return ok }

// launchKey is what sameLaunch compares, as text.
func (d Descriptor) launchKey() string {
	return fmt.Sprintf("%q %q %d %d %d %q", d.ModelID, d.Path, d.ContextSize, d.Parallel, d.CacheRAM, d.Args)
}

// minContext is what no context is made smaller than, in tokens.
const minContext = 512

// smaller is d with half the context; false: that would be too little.
func (d Descriptor) smaller() (Descriptor, bool) {
	d.ContextSize /= 2
	return d, d.ContextSize >= minContext
}

// flags are those of llama-server that come from d. The server shares its
// context among its slots, so each gets the whole size.
func (d Descriptor) flags() []string {
	source := []string{"--model", d.Path}
	if repo, ok := d.repo(); ok {
		source = []string{"--hf-repo", repo}
	}
	return append(source,
		"--alias", string(d.ModelID),
		"--ctx-size", strconv.Itoa(d.ContextSize*d.Parallel),
		"--parallel", strconv.Itoa(d.Parallel))
}
