package config

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"correx/pkg/events"
	"correx/pkg/llama"
)

// A Fault is one thing that is wrong.
type Fault struct {
	Key   string // "approval.wait"; empty: of the whole
	Place string // "correx.yaml:12", a variable or a flag; empty: a default
	Text  string // how it is wrong, and how to mend it
}

func (f Fault) String() string {
	s := strings.TrimSpace(f.Key + " " + f.Text)
	if f.Place == "" {
		return s
	}
	return f.Place + ": " + s
}

// Faults is the error of a configuration.
type Faults []Fault

func (f Faults) Error() string {
	lines := []string{"the configuration is at fault:"}
	for _, x := range f {
		lines = append(lines, "  "+x.String())
	}
	return strings.Join(lines, "\n")
}

func (f *Faults) add(key, format string, a ...any) {
	*f = append(*f, Fault{Key: key, Text: fmt.Sprintf(format, a...)})
}

// Validate names everything that is wrong with c.
func (c Config) Validate() Faults {
	var f Faults
	f.nats(c.NATS)
	f.session(c.Session)
	a := c.Approval
	f.positive("approval.wait", a.Wait)
	f.positive("approval.ttl", a.TTL)
	f.positive("approval.rule_ttl", a.RuleTTL)
	f.positive("approval.preview_wait", a.PreviewWait)
	f.policy(c)
	f.positive("kernel.command_wait", c.Kernel.CommandWait)
	f.tools(c.Tools)
	f.worker(c.Worker)
	f.models(c)
	if c.LlamaServer.Path == "" {
		f.add("llama_server.path", "is empty; name the program")
	}
	f.positive("llama_server.stall_timeout", c.LlamaServer.StallTimeout)
	f.positive("llama_server.load_timeout", c.LlamaServer.LoadTimeout)
	f.atLeast("projector.batch", c.Projector.Batch, 1)
	f.positive("projector.batch_wait", c.Projector.BatchWait)
	f.atLeast("projector.checkpoint_every", c.Projector.CheckpointEvery, 1)
	f.positive("projector.checkpoint_interval", c.Projector.CheckpointInterval)
	return f
}

func (f *Faults) positive(key string, d time.Duration) {
	if d <= 0 {
		f.add(key, "is %v; it must be more than nothing", d)
	}
}

func (f *Faults) atLeast(key string, n, least int) {
	if n < least {
		f.add(key, "is %d; it must be at least %d", n, least)
	}
}

func (f *Faults) oneOf(key, value string, allowed ...string) {
	for _, a := range allowed {
		if value == a {
			return
		}
	}
	f.add(key, "is %q; use %s", value, strings.Join(allowed, ", "))
}

func (f *Faults) nats(n NATS) {
	if n.URL != "" {
		for u := range strings.SplitSeq(n.URL, ",") {
			p, err := url.Parse(strings.TrimSpace(u))
			if err != nil || p.Host == "" {
				f.add("nats.url", "has %q; write nats://host:port", u)
			}
		}
	}
	if net.ParseIP(n.Listen) == nil && n.Listen != "localhost" {
		f.add("nats.listen", "is %q; write an IP address, such as 127.0.0.1", n.Listen)
	}
	if n.Port < 0 || n.Port > 65535 {
		f.add("nats.port", "is %d; use 1 to 65535, or 0 for a free one", n.Port)
	}
	f.oneOf("nats.sync", n.Sync, SyncAlways, SyncInterval)
	switch n.Replicas {
	case 1, 3, 5:
	default:
		f.add("nats.replicas", "is %d; use 1, 3 or 5", n.Replicas)
	}
	if n.Replicas > 1 && n.URL == "" {
		f.add("nats.replicas", "is %d, but the embedded server is one; set nats.url to a cluster", n.Replicas)
	}
}

func (f *Faults) session(s Session) {
	f.oneOf("session.mode", string(s.Mode), string(events.ModePrompt), string(events.ModeAuto), string(events.ModeDeny))
	for i, t := range s.Tools {
		if t == "" {
			f.add(fmt.Sprintf("session.tools[%d]", i), "is empty")
		}
	}
	f.atLeast("session.limits.turns", s.Limits.Turns, 1)
	f.atLeast("session.limits.tool_calls", s.Limits.ToolCalls, 1)
	f.atLeast("session.limits.tokens", s.Limits.Tokens, 1)
	f.positive("session.limits.wall_time", s.Limits.WallTime)
	f.positive("session.offer_wait", s.OfferWait)
	f.atLeast("session.retries", s.Retries, 0)
	f.atLeast("session.withdraw", s.Withdraw, 1)
	if s.Stop <= s.Withdraw {
		f.add("session.stop", "is %d; it must be more than session.withdraw, which is %d", s.Stop, s.Withdraw)
	}
}

func (f *Faults) tools(t Tools) {
	iso := []string{string(events.IsolationNone), string(events.IsolationFSOnly), string(events.IsolationFull)}
	f.oneOf("tools.sandbox.min_level", string(t.Sandbox.MinLevel), iso...)
	if t.Sandbox.Level != "" {
		f.oneOf("tools.sandbox.level", string(t.Sandbox.Level), iso...)
	}
	f.sandbox(t.Sandbox)
	f.positive("tools.shell.timeout", t.Shell.Timeout)
	f.shell(t.Shell)
	f.enabled("tools.file_read", t.FileRead.Enabled, "allowed_paths", t.FileRead.AllowedPaths)
	f.enabled("tools.file_write", t.FileWrite.Enabled, "allowed_paths", t.FileWrite.AllowedPaths)
	f.enabled("tools.file_edit", t.FileEdit.Enabled, "allowed_paths", t.FileEdit.AllowedPaths)
	f.mcp(t.MCP)
}

func (f *Faults) sandbox(s Sandbox) {
	if s.Root != "" && !filepath.IsAbs(s.Root) {
		f.add("tools.sandbox.root", "is %q; write an absolute path", s.Root)
	}
	for i, p := range s.Hidden {
		if !filepath.IsAbs(p) || filepath.Clean(p) == "/" {
			f.add(fmt.Sprintf("tools.sandbox.hidden[%d]", i), "is %q; write an absolute path", p)
		}
	}
	for i, p := range s.Protected {
		if p == "" || !filepath.IsAbs(p) && (!filepath.IsLocal(p) || filepath.Clean(p) == ".") {
			f.add(fmt.Sprintf("tools.sandbox.protected[%d]", i), "is %q; write an absolute path, or one relative to what tools may write, without ..", p)
		}
	}
	l := s.Limits
	f.atLeast("tools.sandbox.limits.cpu", l.CPU, 1)
	f.atLeast("tools.sandbox.limits.address_space", l.AddressSpace, 16)
	f.atLeast("tools.sandbox.limits.file_size", l.FileSize, 1)
	f.atLeast("tools.sandbox.limits.open_files", l.OpenFiles, 16)
	f.atLeast("tools.sandbox.limits.processes", l.Processes, 1)
	f.atLeast("tools.sandbox.limits.memory", l.Memory, 8)
}

func (f *Faults) shell(s Shell) {
	f.oneOf("tools.shell.mode", s.Mode, "", "direct", "transactional")
	f.oneOf("tools.shell.commit", s.Commit, "auto", "review")
	allowed := slices.Clone(s.AllowedExecutables)
	for i, e := range s.Executables {
		key := fmt.Sprintf("tools.shell.executables[%d]", i)
		if e.Name == "" {
			f.add(key+".name", "is empty; name a program on PATH, or give its absolute path")
		}
		if e.Timeout < 0 {
			f.add(key+".timeout", "is %s; it must not be negative", e.Timeout)
		}
		for _, l := range []struct {
			name  string
			value int
		}{
			{"cpu", e.Limits.CPU}, {"address_space", e.Limits.AddressSpace}, {"file_size", e.Limits.FileSize},
			{"open_files", e.Limits.OpenFiles}, {"processes", e.Limits.Processes}, {"memory", e.Limits.Memory},
		} {
			if l.value < 0 {
				f.add(key+".limits."+l.name, "must not be negative")
			}
		}
		allowed = append(allowed, cmp.Or(e.Name, "?"))
	}
	f.enabled("tools.shell", s.Enabled, "allowed_executables", allowed)
}

// enabled wants a tool that is on to be allowed something.
func (f *Faults) enabled(tool string, on bool, list string, allowed []string) {
	if on && len(allowed) == 0 {
		f.add(tool+".enabled", "is true, but %s.%s is empty, so that every call would be refused; name what it may use", tool, list)
	}
	for i, a := range allowed {
		if a == "" {
			f.add(fmt.Sprintf("%s.%s[%d]", tool, list, i), "is empty")
		}
	}
}

func (f *Faults) worker(w Worker) {
	if w.Name != "" {
		if err := events.CheckToken(w.Name); err != nil {
			f.add("worker.name", "%v", err)
		}
	}
	f.positive("worker.ack_wait", w.AckWait)
	f.positive("worker.drain", w.Drain)
	f.atLeast("worker.concurrency", w.Concurrency, 1)
}

func (f *Faults) models(c Config) {
	seen := map[string]bool{}
	for i, m := range c.Models {
		key := fmt.Sprintf("models[%d]", i)
		switch {
		case m.Name == "":
			f.add(key+".name", "is missing")
		case seen[m.Name]:
			f.add(key+".name", "%q stands twice", m.Name)
		}
		seen[m.Name] = true
		if m.Path == "" {
			f.add(key+".path", "is missing; name a GGUF file, or hf:<user>/<repository>")
		}
		f.atLeast(key+".context_size", m.ContextSize, 64)
		f.atLeast(key+".parallel", m.Parallel, 1)
		f.atLeast(key+".threads", m.Threads, 0)
		f.atLeast(key+".gpu_layers", m.GPULayers, 0)
		f.atLeast(key+".cache_ram", m.CacheRAM, 0)
		f.positive(key+".idle_timeout", m.IdleTimeout)
		f.oneOf(key+".residency", string(m.Residency),
			string(events.Persistent), string(events.Dynamic), string(events.Ephemeral))
		f.oneOf(key+".guided", string(m.Guided), string(llama.GuideSmall), string(llama.GuideAlways), string(llama.GuideNever))
		f.scores(key, m.Capabilities)
		if err := (llama.Descriptor{ModelID: "m", Path: "m", Args: m.ExtraArgs}).Validate(); err != nil {
			f.add(key+".extra_args", "%s", strings.TrimPrefix(err.Error(), `model "m": `))
		}
	}
}

func (f *Faults) scores(key string, scores map[events.ModelCapability]float64) {
	for _, c := range slices.Sorted(maps.Keys(scores)) {
		if s := scores[c]; !(s >= 0 && s <= 1) {
			f.add(key+".capabilities", "gives %s %g; use 0 to 1", c, s)
		}
		f.oneOf(key+".capabilities", string(c), string(events.Coding), string(events.Reasoning), string(events.General))
	}
}

// policy tries the rules and their examples.
func (f *Faults) policy(c Config) {
	_, faults := c.checkPolicy()
	for _, text := range faults {
		rule, text, ok := strings.Cut(text, ": ")
		if !ok {
			f.add("approval.policy", "%s", rule)
			continue
		}
		f.add("approval.policy"+strings.TrimPrefix(rule, "rules"), "%s", text)
	}
}
