package config

import (
	"maps"
	"slices"
	"strconv"

	"correx/pkg/events"
	"correx/pkg/llama"
)

// Descriptor returns m as a llama.Manager takes it.
func (m Model) Descriptor() llama.Descriptor {
	var args []string
	if m.Threads > 0 {
		args = append(args, "--threads", strconv.Itoa(m.Threads))
	}
	if m.GPULayers > 0 {
		args = append(args, "--n-gpu-layers", strconv.Itoa(m.GPULayers))
	}
	return llama.Descriptor{
		ModelID: events.ModelID(m.Name), Path: m.Path, ResidencyMode: m.Residency, IdleTimeout: m.IdleTimeout,
		ContextSize: m.ContextSize, Parallel: m.Parallel, CacheRAM: m.CacheRAM, Guided: m.Guided, Args: append(args, m.ExtraArgs...),
	}
}

// Scores returns what m is good at, ordered by capability; nil: guess by the name.
func (m Model) Scores() []events.CapabilityScore {
	var s []events.CapabilityScore
	for _, c := range slices.Sorted(maps.Keys(m.Capabilities)) {
		s = append(s, events.CapabilityScore{Capability: c, Score: m.Capabilities[c]})
	}
	return s
}

// Offers returns what a model-worker announces.
func (c Config) Offers() []events.ModelOffer {
	var offers []events.ModelOffer
	for _, m := range c.Models {
		offers = append(offers, m.Descriptor().Offer(m.Scores()))
	}
	return offers
}
