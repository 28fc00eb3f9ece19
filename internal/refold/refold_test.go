package refold_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"correx/internal/refold"
	"correx/internal/transfer"
	"correx/pkg/events"
)

// A log that was written once must be decided so for ever: what differs needs a
// version of its own. Nobody writes these files anew; scripts/release-log writes
// that of a new release.
func TestReleaseLogsReplay(t *testing.T) {
	for _, path := range releaseLogs(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			r := verify(t, text)
			if !r.OK() {
				t.Errorf("%d findings, the first: %s\nexpected %s\nfound    %s", len(r.Findings), r.Findings[0], r.Findings[0].Expected, r.Findings[0].Found)
			}
			if r.Decisions < 50 || r.Sessions < 5 || r.Alarms != 0 {
				t.Errorf("%d decisions of %d sessions and %d alarms: a release's log has more to say", r.Decisions, r.Sessions, r.Alarms)
			}
			for _, name := range decided {
				if !says(t, text, name) {
					t.Errorf("it has no %s", name)
				}
			}
		})
	}
}

// decided are the decisions that a release's log has.
var decided = []events.FactName{
	"session.started", "session.message", "session.stage", "session.rule", "session.paused", "session.resumed",
	"session.completed", "session.cancelled", "inference.requested", "tool.requested", "tool.approval_requested", "tool.approved",
	"tool.denied", "tool.expired", "tool.rejected", "tool.cancel_requested", "command.rejected", "model.load_requested",
}

// says reports whether a log has a fact of this name.
func says(t *testing.T, text []byte, want events.FactName) bool {
	t.Helper()
	return slices.ContainsFunc(linesOf(t, text), func(l transfer.Line) bool {
		_, name, _, err := events.ParseSubject(l.Subject)
		return err == nil && name == want
	})
}

// derived are the fields of each fact that no command and no clock sets: they
// follow from the log alone, and any other value is found.
var derived = map[events.FactName][]string{
	"session.stage":           {"stage"},
	"session.rule":            {"tool", "parameters_sha256", "max_tier", "until"},
	"session.completed":       {"inference"},
	"inference.requested":     {"stage", "through", "tools", "deadline", "guided", "routing"},
	"tool.requested":          {"offer_digest", "preview_by"},
	"tool.approval_requested": {"tier", "policy_version", "why", "deadline"},
	"tool.approved":           {"tier", "by", "until", "tool"},
	"tool.expired":            {"deadline"},
	"tool.rejected":           {"tier", "reason"},
}

// Each decision of the log whose derived fields are altered, one at a time, is
// named, and nothing before it.
func TestVerifyNamesWhatWasAltered(t *testing.T) {
	altered := 0
	for _, l := range lines(t) {
		_, name, _, err := events.ParseSubject(l.Subject)
		if err != nil {
			t.Fatal(err)
		}
		var body map[string]json.RawMessage
		if err := json.Unmarshal(l.Body, &body); err != nil {
			t.Fatal(err)
		}
		for _, field := range derived[name] {
			old, there := body[field]
			if !there || bytes.Contains(l.Body, []byte(`"worker"`)) || name == "tool.rejected" && field == "reason" && body["command"] != nil {
				continue // a worker's, or an actor's words
			}
			altered++
			body[field] = another(old)
			found := verify(t, with(t, l.Seq, body)).Findings
			body[field] = old
			if len(found) == 0 || found[0].Seq != l.Seq || string(found[0].Session) != strings.Split(l.Subject, ".")[1] {
				t.Errorf("#%d %s with another %s: %v", l.Seq, name, field, found)
			}
		}
	}
	if altered < 100 {
		t.Errorf("%d fields were altered: too few to mean anything", altered)
	}
}

// What a kernel never decided is found: a second answer to a command, a fact that
// nothing called for, one that comes too late.
func TestVerifyNamesWhatWasAdded(t *testing.T) {
	all := lines(t)
	last := all[len(all)-1].Seq
	for _, c := range []struct{ name, fact, want string }{
		{"a stage of a session that ended", "session.stage", "may not stand here"},
		{"an approval of what ran", "tool.approved", "may not stand here"},
		{"a rejection again", "command.rejected", "was answered by"},
		{"a session that nothing asked for", "session.started", "may not stand here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := slices.IndexFunc(all, func(l transfer.Line) bool {
				_, name, _, _ := events.ParseSubject(l.Subject)
				return string(name) == c.fact
			})
			again := all[k]
			again.Seq = last + 1
			found := verify(t, write(t, append(slices.Clone(all), again))).Findings
			if len(found) != 1 || found[0].Seq != last+1 || !strings.Contains(found[0].Problem, c.want) {
				t.Errorf("found %v, want %q at %d", found, c.want, last+1)
			}
		})
	}
}

func TestReadFileNamesTheLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{\"seq\":1,\"subject\":\"evt.s1.x\",\"body\":{}}\nnonsense\n", "line 2"},
		{"{\"seq\":2,\"subject\":\"evt.s1.x\",\"body\":{}}\n", "record 2 follows 0"},
	} {
		if _, err := refold.ReadFile(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

func releaseLogs(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/release-*.jsonl")
	if err != nil || len(all) == 0 {
		t.Fatalf("logs of releases: %v, %v", all, err)
	}
	return all
}

// lines are the lines of the latest release's log.
func lines(t *testing.T) []transfer.Line {
	t.Helper()
	paths := releaseLogs(t)
	text, err := os.ReadFile(paths[len(paths)-1])
	if err != nil {
		t.Fatal(err)
	}
	return linesOf(t, text)
}

func linesOf(t *testing.T, text []byte) []transfer.Line {
	t.Helper()
	var all []transfer.Line
	for line := range bytes.Lines(text) {
		var l transfer.Line
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

func write(t *testing.T, all []transfer.Line) []byte {
	t.Helper()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	for _, l := range all {
		if err := enc.Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	return buf.Bytes()
}

// with is the log with another body at seq.
func with(t *testing.T, seq uint64, body map[string]json.RawMessage) []byte {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	all := lines(t)
	all[seq-1].Body = text
	return write(t, all)
}

// another is a value of the same kind that is not v.
func another(v json.RawMessage) json.RawMessage {
	switch s := string(v); {
	case strings.HasPrefix(s, `"20`):
		return json.RawMessage(`"2031-02-03T04:05:06Z"`)
	case strings.HasPrefix(s, `"T`):
		if s == `"T4"` {
			return json.RawMessage(`"T1"`)
		}
		return json.RawMessage(`"T4"`)
	case strings.HasPrefix(s, `"`):
		return json.RawMessage(s[:len(s)-1] + `x"`)
	case s == "true":
		return json.RawMessage("false")
	case strings.HasPrefix(s, "["):
		return json.RawMessage("[]")
	case strings.HasPrefix(s, "{"):
		return json.RawMessage(`{"rule":"score"}`)
	}
	return json.RawMessage("7" + string(v))
}

func verify(t *testing.T, text []byte) refold.Result {
	t.Helper()
	f, err := refold.ReadFile(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	end, err := f.Last(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r, err := refold.Verify(t.Context(), f, end, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
