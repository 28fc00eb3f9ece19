package streams_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx"
	"correx/internal/natstest"
	"correx/internal/streams"
	"correx/internal/testenv"
)

func TestFaultsAreNamedWithTheirLines(t *testing.T) {
	file := string(correx.Streams)
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown key", "max_age: 0", "max_ages: 0", `unknown key "streams[0].max_ages"; there are allow_atomic, `},
		{"key of a consumer in a stream", "max_age: 0", "ack_wait: 30s", `unknown key "streams[0].ack_wait"`},
		{"unknown key of a consumer", "max_deliver: -1", "max_delivery: -1", `unknown key "consumers[0].config.max_delivery"`},
		{"unknown key of a bucket", "compression: true", "compress: true", `unknown key "buckets[0].compress"`},
		{"unknown section", "buckets:", "bucket:", `unknown key "bucket"; there are buckets, consumers, streams, templates`},
		{"key twice", "max_age: 0", "max_age: 0\n    max_age: 0", `"streams[0].max_age" stands twice`},
		{"no such value", "discard: new", "discard: newest", `streams[0].discard cannot be "newest"`},
		{"no duration", "duplicate_window: 10m", "duplicate_window: ten minutes", `streams[0].duplicate_window is "ten minutes"; use nanoseconds, or a duration such as 30s`},
		{"word for a number", "max_msg_size: 524288", "max_msg_size: large", `streams[0].max_msg_size cannot be "large"`},
		{"number out of range", "max_msg_size: 524288", "max_msg_size: 5242880000", `streams[0].max_msg_size cannot be "5242880000"`},
		{"value for a list", `subjects: ["evt.>"]`, "subjects: evt.>", `streams[0].subjects must be a list`},
		{"list for a value", "storage: file", "storage: [file]", `streams[0].storage must be a single value`},
		{"stream of a consumer", "stream_name: COMMANDS", "stream_name: OTHER", `consumers[0]: stream_name is "OTHER", and no such stream is declared`},
		{"stream twice", "name: COMMANDS", "name: EVENTS", `stream EVENTS stands twice`},
		{"template without token", "durable_name: tool-{token}", "durable_name: tools", `templates.tool: durable_name and filter_subject must contain {token}`},
		{"template missing", "  model:\n", "  models:\n", `templates.model is missing`},
		{"purges that come back", "max_age: 0", "allow_msg_schedules: true", `stream EVENTS: deny_purge does not go with`},
		{"two documents", "buckets:", "---\nbuckets:", `more than one document`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(file, c.old, c.new, 1)
			if text == file {
				t.Fatalf("the file has no %q", c.old)
			}
			_, err := streams.Load([]byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error is %v\nwant %s", err, c.want)
			}
		})
	}
	t.Run("several at once, each with its line", func(t *testing.T) {
		_, err := streams.Load([]byte("streams:\n  - name: A\n    x: 1\n    y: 2\n"))
		for _, want := range []string{`line 3: unknown key "streams[0].x"`, `line 4: unknown key "streams[0].y"`} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v lacks %q", err, want)
			}
		}
	})
	t.Run("nothing at all", func(t *testing.T) {
		if _, err := streams.Load(nil); err == nil {
			t.Error("an empty file was taken")
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add(correx.Streams)
	f.Add([]byte("streams: [{name: *x}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = streams.Load(data) // must not panic
	})
}

// What the nats command line prints of a stream and a consumer can be pasted.
func TestWhatNatsPrintsCanBePasted(t *testing.T) {
	bus := natstest.Server(t)
	js := bus.JetStream(t)
	apply(t, js, spec(t))
	text := "streams:\n"
	for _, name := range []string{"EVENTS", "COMMANDS", "OBJ_ARTIFACTS"} {
		text += "  - " + configOf(t, bus.URL(), "stream", "info", name) + "\n"
	}
	text += "consumers:\n  - stream_name: COMMANDS\n    config: " + configOf(t, bus.URL(), "consumer", "info", "COMMANDS", "kernel-commands") + "\n"
	_, templates, _ := strings.Cut(string(correx.Streams), "\ntemplates:")
	pasted, err := streams.Load([]byte(text + "templates:" + templates))
	if err != nil {
		t.Fatal(err)
	}
	if p := plan(t, js, pasted); len(p.Steps) != 4 || !p.Unchanged() {
		t.Errorf("what was pasted differs from what was printed:\n%s", p)
	}
}

// configOf is the config object of `nats … --json`, on one line.
func configOf(t *testing.T, url string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testenv.NatsCLI(t), append(args, "--json", "--server", url)...)
	cmd.Env = append(cmd.Environ(), "XDG_CONFIG_HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("nats %v: %v\n%s", args, err, out)
	}
	var info struct{ Config json.RawMessage }
	if err := json.Unmarshal(out, &info); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, info.Config); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDurationsAreWordsOrNanoseconds(t *testing.T) {
	text := strings.ReplaceAll(string(correx.Streams), "ack_wait: 30s", "ack_wait: 1500000000")
	s, err := streams.Load([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Consumers[0].Config.AckWait; got != 1500*time.Millisecond {
		t.Errorf("1500000000 is %s", got)
	}
	if got := s.Streams[0].Duplicates; got != 10*time.Minute {
		t.Errorf("10m is %s", got)
	}
}

// The product's promises about the streams, apart from the file that keeps them.
func TestTheFileLosesNothing(t *testing.T) {
	for _, c := range spec(t).Streams {
		if c.Retention != jetstream.LimitsPolicy || c.MaxAge != 0 || c.MaxMsgs > 0 || c.MaxBytes > 0 || c.MaxMsgsPerSubject > 0 {
			t.Errorf("%s has a limit at which messages vanish: %+v", c.Name, c)
		}
		if c.Discard != jetstream.DiscardNew || !c.DenyDelete || !c.DenyPurge || c.AllowRollup || c.AllowMsgTTL || c.AllowMsgSchedules {
			t.Errorf("%s lets messages be erased: %+v", c.Name, c)
		}
		if c.Storage != jetstream.FileStorage {
			t.Errorf("%s is kept in %s", c.Name, c.Storage)
		}
	}
}
