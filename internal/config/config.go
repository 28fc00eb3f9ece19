// Package config is the one configuration of all four commands.
//
// [Load] reads it: flags over environment over file over [Default]. A [Config]
// that it returns is complete and valid; an error names every fault with its
// place, and an unknown key is a fault. What is dangerous is off until somebody
// turns it on: every tool is disabled, every allowlist is empty, the server
// listens on loopback.
package config

import (
	"time"

	"correx/pkg/events"
	"correx/pkg/llama"
)

// A Config is everything that can be configured. Keys in the file are the yaml
// names; correx.example.yaml explains each.
type Config struct {
	State string `yaml:"-"` // the state directory, absolute
	File  string `yaml:"-"` // the file that was read; empty: none

	NATS        NATS        `yaml:"nats"`
	Session     Session     `yaml:"session"`
	Approval    Approval    `yaml:"approval"`
	Kernel      Kernel      `yaml:"kernel"`
	Tools       Tools       `yaml:"tools"`
	Worker      Worker      `yaml:"worker"`
	Models      []Model     `yaml:"models"`
	LlamaServer LlamaServer `yaml:"llama_server"`
	Projector   Projector   `yaml:"projector"`
}

// NATS is where the log lives.
type NATS struct {
	URL      string `yaml:"url"`      // an external server; empty: the embedded one
	Listen   string `yaml:"listen"`   // address of the embedded server
	Port     int    `yaml:"port"`     // 0: a free one, kept over restarts
	Sync     string `yaml:"sync"`     // SyncAlways or SyncInterval
	Replicas int    `yaml:"replicas"` // of streams; 1, 3 or 5
}

// When the embedded server forces what it acknowledged onto the disk.
const (
	SyncAlways   = "always"   // before the acknowledgement
	SyncInterval = "interval" // every second: a power cut loses that second
)

// Session is what a session has that does not say otherwise.
type Session struct {
	Mode      events.ApprovalMode `yaml:"mode"`
	Tools     []string            `yaml:"tools"` // empty: all that workers announce
	Model     string              `yaml:"model"` // empty: by capability
	Limits    Limits              `yaml:"limits"`
	OfferWait time.Duration       `yaml:"offer_wait"`
	Retries   int                 `yaml:"retries"`
	Withdraw  int                 `yaml:"withdraw"`
	Stop      int                 `yaml:"stop"`
}

// Limits end a session that goes on too long.
type Limits struct {
	Turns     int           `yaml:"turns"`
	ToolCalls int           `yaml:"tool_calls"`
	Tokens    int           `yaml:"tokens"`
	WallTime  time.Duration `yaml:"wall_time"`
}

// Approval is how people are asked.
type Approval struct {
	Wait        time.Duration `yaml:"wait"`
	TTL         time.Duration `yaml:"ttl"`
	RuleTTL     time.Duration `yaml:"rule_ttl"`
	PreviewWait time.Duration `yaml:"preview_wait"`
	Policy      []Rule        `yaml:"policy"`
}

// A Rule is one line of the policy; see [events.PolicyRule].
type Rule struct {
	Effect     events.PolicyEffect `yaml:"effect"`
	Tool       string              `yaml:"tool"`
	Argv       []string            `yaml:"argv"`
	PathPrefix string              `yaml:"path_prefix"`
	Because    string              `yaml:"because"`
	Match      []Object            `yaml:"match"`
	NotMatch   []Object            `yaml:"not_match"`
}

// Kernel is how commands are treated.
type Kernel struct {
	CommandWait time.Duration `yaml:"command_wait"`
}

// Tools is what tool-workers offer.
type Tools struct {
	Sandbox   Sandbox   `yaml:"sandbox"`
	Shell     Shell     `yaml:"shell"`
	FileRead  FileRead  `yaml:"file_read"`
	FileWrite FileWrite `yaml:"file_write"`
	FileEdit  FileEdit  `yaml:"file_edit"`
	Echo      Echo      `yaml:"echo"`
	MCP       []MCP     `yaml:"mcp"`
}

// AnyEnabled reports whether any tool is turned on.
func (t Tools) AnyEnabled() bool { return len(t.Enabled()) > 0 }

// Enabled returns the names of the tools that are turned on.
func (t Tools) Enabled() []string {
	var names []string
	for _, tool := range [...]struct {
		on   bool
		name string
	}{
		{t.Echo.Enabled, "echo"}, {t.FileEdit.Enabled, "file_edit"}, {t.FileRead.Enabled, "file_read"},
		{t.FileWrite.Enabled, "file_write"}, {t.Shell.Enabled, "shell"},
	} {
		if tool.on {
			names = append(names, tool.name)
		}
	}
	return names
}

// Sandbox is how tools are confined.
type Sandbox struct {
	MinLevel  events.Isolation `yaml:"min_level"`
	Level     events.Isolation `yaml:"level"` // empty: the most that the machine can
	Root      string           `yaml:"root"`  // where invocations have directories; empty: the worker's
	Hidden    []string         `yaml:"hidden"`
	Protected []string         `yaml:"protected"`
	Limits    ProcessLimits    `yaml:"limits"`
}

// ProcessLimits bound the processes of tools. Sizes are in MiB.
type ProcessLimits struct {
	CPU          int `yaml:"cpu"`           // seconds, of each process
	AddressSpace int `yaml:"address_space"` // MiB, of each process
	FileSize     int `yaml:"file_size"`     // MiB, of each file
	OpenFiles    int `yaml:"open_files"`    // of each process
	Processes    int `yaml:"processes"`     // of an invocation
	Memory       int `yaml:"memory"`        // MiB, of an invocation
}

// Shell is the tool that runs an argv.
type Shell struct {
	Enabled            bool          `yaml:"enabled"`
	AllowedExecutables []string      `yaml:"allowed_executables"`
	Executables        []Executable  `yaml:"executables"`
	WorkingDir         string        `yaml:"working_dir"`
	Environment        []string      `yaml:"environment"`
	Interpreters       []string      `yaml:"interpreters"`
	Timeout            time.Duration `yaml:"timeout"`
	Mode               string        `yaml:"mode"`
	Commit             string        `yaml:"commit"`
}

// An Executable is allowed too, with settings of its own.
type Executable struct {
	Name        string        `yaml:"name"`
	Interpreter bool          `yaml:"interpreter"`
	Timeout     time.Duration `yaml:"timeout"`
	Limits      ProcessLimits `yaml:"limits"`
	Writable    []string      `yaml:"writable"`
	ReadOnly    []string      `yaml:"read_only"`
	Readable    []string      `yaml:"readable"`
	Network     bool          `yaml:"network"`
	DryRun      bool          `yaml:"dry_run"`
}

// FileRead is the tool that reads and lists.
type FileRead struct {
	Enabled      bool     `yaml:"enabled"`
	AllowedPaths []string `yaml:"allowed_paths"`
}

// FileWrite is the tool that writes and deletes.
type FileWrite struct {
	Enabled      bool     `yaml:"enabled"`
	AllowedPaths []string `yaml:"allowed_paths"`
}

// FileEdit is the tool that changes a file in place.
type FileEdit struct {
	Enabled      bool     `yaml:"enabled"`
	AllowedPaths []string `yaml:"allowed_paths"`
}

// Echo is the tool that answers what it was given.
type Echo struct {
	Enabled bool        `yaml:"enabled"`
	Tier    events.Tier `yaml:"tier"`
}

// Worker is how tool-workers and model-workers take on work.
type Worker struct {
	Name        string        `yaml:"name"` // empty: the host's
	AckWait     time.Duration `yaml:"ack_wait"`
	Concurrency int           `yaml:"concurrency"`
	Drain       time.Duration `yaml:"drain"`
}

// A Model is a GGUF file under a name.
type Model struct {
	Name         string                             `yaml:"name"`
	Path         string                             `yaml:"path"` // a file, or hf:<user>/<repository>[:<quantisation>]
	ContextSize  int                                `yaml:"context_size"`
	Residency    events.ResidencyMode               `yaml:"residency"`
	IdleTimeout  time.Duration                      `yaml:"idle_timeout"`
	Parallel     int                                `yaml:"parallel"`
	Threads      int                                `yaml:"threads"`
	GPULayers    int                                `yaml:"gpu_layers"`
	CacheRAM     int                                `yaml:"cache_ram"`    // MiB
	Guided       llama.Guidance                     `yaml:"guided"`       // auto: if it is small
	Capabilities map[events.ModelCapability]float64 `yaml:"capabilities"` // empty: by the name
	ExtraArgs    []string                           `yaml:"extra_args"`
}

// LlamaServer is the program that models run in.
type LlamaServer struct {
	Path         string        `yaml:"path"` // a path, or a name on PATH
	StallTimeout time.Duration `yaml:"stall_timeout"`
	LoadTimeout  time.Duration `yaml:"load_timeout"`
}

// Projector is the SQLite view of the log.
type Projector struct {
	DB        string        `yaml:"db"` // empty: correx.db in the state directory
	Batch     int           `yaml:"batch"`
	BatchWait time.Duration `yaml:"batch_wait"`
	// A checkpoint is signed when so many facts are new,
	CheckpointEvery int `yaml:"checkpoint_every"`
	// or any are and so much time has passed.
	CheckpointInterval time.Duration `yaml:"checkpoint_interval"`
}
