package config

import (
	"time"

	"correx/pkg/events"
	"correx/pkg/llama"
)

// Default returns what holds where nothing is configured.
func Default() Config {
	return Config{
		NATS: NATS{Listen: "127.0.0.1", Sync: SyncAlways, Replicas: 1},
		Session: Session{
			Mode:      events.ModePrompt,
			Limits:    Limits{Turns: 20, ToolCalls: 50, Tokens: 200_000, WallTime: time.Hour},
			OfferWait: 10 * time.Minute,
			Retries:   2,
			Withdraw:  2,
			Stop:      4,
		},
		Approval: Approval{
			Wait: 15 * time.Minute, TTL: 5 * time.Minute, RuleTTL: time.Hour, PreviewWait: 5 * time.Second,
		},
		Kernel: Kernel{CommandWait: 30 * time.Second},
		Tools: Tools{
			Sandbox: Sandbox{
				MinLevel: events.IsolationFull,
				Limits:   ProcessLimits{CPU: 60, AddressSpace: 4096, FileSize: 64, OpenFiles: 256, Processes: 64, Memory: 2048},
			},
			Shell: Shell{Timeout: time.Minute, Commit: "auto"},
		},
		Worker:      Worker{AckWait: 30 * time.Second, Concurrency: 4, Drain: 30 * time.Second},
		LlamaServer: LlamaServer{Path: "llama-server", StallTimeout: 30 * time.Second, LoadTimeout: 10 * time.Minute},
		Projector:   Projector{Batch: 500, BatchWait: 50 * time.Millisecond, CheckpointEvery: 1000, CheckpointInterval: time.Minute},
	}
}

// withDefaults fills what a model leaves out.
func (m Model) withDefaults() Model {
	if m.ContextSize == 0 {
		m.ContextSize = 8192
	}
	if m.Residency == "" {
		m.Residency = events.Dynamic
	}
	if m.Guided == "" {
		m.Guided = llama.GuideSmall
	}
	if m.IdleTimeout == 0 {
		m.IdleTimeout = time.Minute
	}
	if m.Parallel == 0 {
		m.Parallel = 1
	}
	return m
}
