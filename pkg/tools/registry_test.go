package tools_test

import (
	"context"
	"strings"
	"testing"

	"correx/pkg/events"
	"correx/pkg/tools"
	"correx/pkg/tools/toolstest"
)

func TestRegistry(t *testing.T) {
	r, err := tools.NewRegistry(toolstest.NewEchoTool(), toolstest.NewFailingTool(), toolstest.NewRejectedTool())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range r.All() {
		names = append(names, tool.Name())
	}
	if got := strings.Join(names, " "); got != "echo failing rejected" {
		t.Fatalf("all: %s", got)
	}
	if tool, ok := r.Resolve("failing"); !ok || tool.Tier() != events.T2 {
		t.Fatalf("resolved %v, %v", tool, ok)
	}
	if _, ok := r.Resolve("nobody"); ok {
		t.Fatal("a tool that nobody gave was found")
	}
	all := r.All()
	all[0] = nil
	if r.All()[0] == nil {
		t.Fatal("the registry can be changed from outside")
	}
	if _, err := tools.NewRegistry(toolstest.NewEchoTool(), toolstest.NewEchoTool()); err == nil || !strings.Contains(err.Error(), `"echo"`) {
		t.Fatalf("two of one name: %v", err)
	}
	if _, err := tools.NewRegistry(nil); err == nil {
		t.Fatal("nil is a tool")
	}
}

// describedOnly is a tool that cannot be run.
type describedOnly struct{ tools.Tool }

func (describedOnly) Name() string { return "described" }

func TestDispatcher(t *testing.T) {
	r, err := tools.NewRegistry(toolstest.NewEchoTool(), toolstest.NewFailingTool(), describedOnly{toolstest.NewRejectedTool()})
	if err != nil {
		t.Fatal(err)
	}
	d := tools.NewDispatcher(r)
	ctx := context.Background()
	wantSuccess(t, d.Execute(ctx, request(t, "echo", `{"a":9007199254740993}`)), `{"a":9007199254740993}`)
	wantFailure(t, d.Execute(ctx, request(t, "failing", `{}`)), "simulated validation failure")
	wantFailure(t, d.Execute(ctx, request(t, "described", `{}`)), "cannot be run")
	wantFailure(t, d.Execute(ctx, request(t, "nobody", `{}`)), `no tool is called "nobody"`, "echo, failing, described")
	none, err := tools.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	wantFailure(t, tools.NewDispatcher(none).Execute(ctx, request(t, "x", `{}`)), "none is enabled")
}

func TestBuild(t *testing.T) {
	if list, err := tools.Build(tools.Config{}); err != nil || len(list) != 0 {
		t.Fatalf("the zero configuration has %v, %v", list, err)
	}
	_, err := tools.Build(tools.Config{
		Shell:     tools.ShellConfig{Enabled: true, AllowedExecutables: []string{"no-such-a", "no-such-b"}},
		FileRead:  tools.FileReadConfig{Enabled: true, AllowedPaths: []string{"/no/such/c", "/no/such/d"}},
		FileWrite: tools.FileWriteConfig{AllowedPaths: []string{"/no/such/e"}}, // not enabled
		Echo:      tools.EchoConfig{Enabled: true, Tier: 9},
		Runner:    &countingRunner{},
	})
	if err == nil {
		t.Fatal("no fault was found")
	}
	for _, want := range []string{"tools.shell", "no-such-a", "no-such-b", "tools.file_read", "/no/such/c", "/no/such/d", "create it first", "tools.echo"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "/no/such/e") {
		t.Error("a tool that is off was judged")
	}
	if _, err := tools.Build(tools.Config{Shell: tools.ShellConfig{Enabled: true}}); err == nil {
		t.Error("a shell without a runner was built")
	}
}

func TestEcho(t *testing.T) {
	tool := build(t, tools.Config{Echo: tools.EchoConfig{Enabled: true, Tier: events.T2}})["echo"]
	if tool.Tier() != events.T2 || tools.Touches(tool) {
		t.Fatalf("tier %s, touches %v", tool.Tier(), tools.Touches(tool))
	}
	wantSuccess(t, run(t, tool, p{"text": "hi"}), "hi")
	wantSuccess(t, run(t, tool, p{"text": ""}), "")
	wantFailure(t, run(t, tool, p{}), "text is missing")
	wantFailure(t, run(t, tool, p{"text": "a", "more": 1}), "missing")
	fixed := build(t, tools.Config{Echo: tools.EchoConfig{Enabled: true, Reply: "pong"}})["echo"]
	wantSuccess(t, run(t, fixed, p{"text": "hi"}), "pong")
}

func TestOffer(t *testing.T) {
	set := fileTools(t, realDir(t))
	read, write := tools.Offer(set["file_read"], events.IsolationNone), tools.Offer(set["file_write"], events.IsolationNone)
	if !read.Idempotent || read.Previews || write.Idempotent || !write.Previews {
		t.Fatalf("read %+v, write %+v", read, write)
	}
	if read.Digest == write.Digest || len(read.Digest) != 64 {
		t.Fatalf("digests %q, %q", read.Digest, write.Digest)
	}
	if again := tools.Offer(fileTools(t, realDir(t))["file_read"], events.IsolationFull); again.Digest != read.Digest {
		t.Fatal("the digest depends on where the tool runs")
	}
	if got := tools.Offer(build(t, tools.Config{Echo: tools.EchoConfig{Enabled: true, Tier: events.T1}})["echo"], ""); got.Digest == tools.Offer(build(t, tools.Config{Echo: tools.EchoConfig{Enabled: true}})["echo"], "").Digest {
		t.Fatal("the digest does not cover the tier")
	}
}

// secondLook is a tool that follows up another's result, from a server of its own.
type secondLook struct {
	tools.Tool
	only bool
}

func (s secondLook) FollowUpOnly() bool { return s.only }
func (secondLook) Origin() string       { return "mcp:files" }

func TestOfferOfAFollowUpTool(t *testing.T) {
	plain := tools.Offer(toolstest.NewEchoTool(), events.IsolationNone)
	only := tools.Offer(secondLook{toolstest.NewEchoTool(), true}, events.IsolationNone)
	not := tools.Offer(secondLook{toolstest.NewEchoTool(), false}, events.IsolationNone)
	if !only.FollowUpOnly || only.Origin != "mcp:files" || only.Digest == plain.Digest {
		t.Errorf("offer is %+v", only)
	}
	if not.FollowUpOnly || not.Digest != plain.Digest {
		t.Errorf("a tool that anybody may call is offered as %+v", not)
	}
}

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		name, in string
		limit    int
		want     string
	}{
		{"short", "a\tb\r\n", 100, "a\tb\r\n"},
		{"control characters", "a\x00\x1b[1m\x7f", 100, "a\uFFFD\uFFFD[1m\uFFFD"},
		{"invalid UTF-8", "a\xffb", 100, "a\uFFFDb"},
	} {
		if got := tools.Summary(c.in, c.limit); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	long := strings.Repeat("é\"\n", 10000)
	got := tools.Summary(long, 1000)
	if len(got) > 1000 || !strings.HasPrefix(got, "é\"\n") || !strings.HasSuffix(got, "é\"\n") || !strings.Contains(got, "bytes left out") {
		t.Fatalf("%d bytes: %.40q", len(got), got)
	}
}
