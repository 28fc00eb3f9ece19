package llama

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"correx/pkg/events"
)

func TestDescriptorDefaults(t *testing.T) {
	got := Descriptor{ModelID: "m", Path: "m.gguf"}.withDefaults()
	path, err := filepath.Abs("m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	want := Descriptor{ModelID: "m", Path: path, ResidencyMode: events.Dynamic, IdleTimeout: time.Minute, ContextSize: 8192, Parallel: 1}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("defaults are %+v", got)
	}
	if again := got.withDefaults(); !reflect.DeepEqual(again, got) {
		t.Errorf("twice they are %+v", again)
	}
}

func TestDescriptorFlags(t *testing.T) {
	for _, tt := range []struct {
		d    Descriptor
		want string
	}{
		{Descriptor{ModelID: "org/m:1", Path: "/m.gguf"}, "--model /m.gguf --alias org/m:1 --ctx-size 8192 --parallel 1"},
		{Descriptor{ModelID: "m", Path: "hf:org/m-GGUF:Q4_K_M", ContextSize: 1024, Parallel: 3},
			"--hf-repo org/m-GGUF:Q4_K_M --alias m --ctx-size 3072 --parallel 3"},
	} {
		if got := strings.Join(tt.d.withDefaults().flags(), " "); got != tt.want {
			t.Errorf("flags are %s, want %s", got, tt.want)
		}
	}
}

func TestLaunchFields(t *testing.T) {
	base := Descriptor{ModelID: "m", Path: "/m", ContextSize: 1024, Args: []string{"--mlock"}}.withDefaults()
	for name, tt := range map[string]struct {
		change func(*Descriptor)
		same   bool
	}{
		"residency":    {func(d *Descriptor) { d.ResidencyMode = events.Ephemeral }, true},
		"idle time":    {func(d *Descriptor) { d.IdleTimeout = time.Hour }, true},
		"id":           {func(d *Descriptor) { d.ModelID = "n" }, false},
		"path":         {func(d *Descriptor) { d.Path = "/n" }, false},
		"context size": {func(d *Descriptor) { d.ContextSize++ }, false},
		"parallel":     {func(d *Descriptor) { d.Parallel++ }, false},
		"args":         {func(d *Descriptor) { d.Args = nil }, false},
	} {
		other := base
		tt.change(&other)
		if base.sameLaunch(other) != tt.same {
			t.Errorf("%s: same is %v", name, !tt.same)
		}
	}
}

func TestDescriptorFaults(t *testing.T) {
	for want, d := range map[string]Descriptor{
		"has no name":             {Path: "/m"},
		"no comma":                {ModelID: "a,b", Path: "/m"},
		"has no path":             {ModelID: "m"},
		"not negative":            {ModelID: "m", Path: "/m", ContextSize: -1},
		"residency is":            {ModelID: "m", Path: "/m", ResidencyMode: "FOREVER"},
		"--host is not for extra": {ModelID: "m", Path: "/m", Args: []string{"--mlock", "--host", "0.0.0.0"}},
		"--api-key-file is not":   {ModelID: "m", Path: "/m", Args: []string{"--api-key-file=x"}},
	} {
		if err := d.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error is %v, want %q", d, err, want)
		}
	}
	if err := (Descriptor{ModelID: "org/m:1", Path: "hf:org/m", Args: []string{"--mlock"}}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestOffer(t *testing.T) {
	offer := Descriptor{ModelID: "org/qwen-coder.gguf", Path: "/m"}.Offer(nil)
	want := events.ModelOffer{
		Name: "org/qwen-coder.gguf", Token: events.Token("org/qwen-coder.gguf"), ContextSize: 8192, ResidencyMode: events.Dynamic, Slots: 1,
		Capabilities: []events.CapabilityScore{{Capability: events.Coding, Score: 0.9}},
	}
	if !reflect.DeepEqual(offer, want) || events.CheckToken(offer.Token) != nil {
		t.Errorf("offer is %+v", offer)
	}
	own := []events.CapabilityScore{{Capability: events.Reasoning, Score: 0.2}}
	if got := (Descriptor{ModelID: "coder", Path: "/m"}).Offer(own); !reflect.DeepEqual(got.Capabilities, own) {
		t.Errorf("capabilities are %v", got.Capabilities)
	}
}
