package events_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"slices"
	"testing"
	"time"

	"correx/pkg/events"
)

var write = flag.Bool("write-golden", false, "write the golden logs that are not there")

// goldenLogs says what stands in which log: all types of version 1 as they were
// first, and those that got fields later, as they were then.
var goldenLogs = map[string][]events.FactName{
	"testdata/golden-v1.jsonl":            nil, // all
	"testdata/golden-v1-checkpoint.jsonl": {"audit.checkpoint"},
	"testdata/golden-v1-follow-up.jsonl":  {"tool.completed", "tool.failed", "tool.previewed", "tool.requested", "worker.started"},
	"testdata/golden-v1-routing.jsonl":    {"inference.requested", "worker.started"},
	"testdata/golden-v1-fork.jsonl":       {"session.started"},
}

// A line is one record of a log of version 1.
type line struct {
	Seq     uint64        `json:"seq"`
	Time    time.Time     `json:"time"`
	Subject string        `json:"subject"`
	Header  events.Header `json:"header"`
	Data    string        `json:"data"`
}

// A log that was written once must be readable for ever, with every value that
// stood in it. Nobody writes this file anew: a payload that changes gets a new
// version, an upcaster, and a log of its own.
func TestGoldenLogDecodesForEver(t *testing.T) {
	for path, names := range goldenLogs {
		t.Run(path, func(t *testing.T) { decodesForEver(t, path, names) })
	}
}

func decodesForEver(t *testing.T, path string, names []events.FactName) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && *write {
		text = writeGolden(t, path, names)
	} else if err != nil {
		t.Fatal(err)
	}
	seen := map[events.FactName]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		r := events.Decode(l.Seq, l.Time, l.Subject, l.Header, []byte(l.Data))
		if r.Err != nil {
			t.Errorf("#%d %s: %v", l.Seq, l.Subject, r.Err)
			continue
		}
		seen[r.Fact.FactName()] = true
		_, _, now, err := events.Encode(r.Fact, events.Source{}, 0, l.Time)
		if err != nil {
			t.Fatal(err)
		}
		keeps(t, l.Subject, json.RawMessage(l.Data), now)
	}
	for _, typ := range events.FactTypes() {
		if typ.Version == 1 && !seen[typ.Name] && (names == nil || slices.Contains(names, typ.Name)) {
			t.Errorf("%s is not in %s; a fact that came later belongs into a log of its own", typ.Name, path)
		}
	}
}

// keeps checks that every field that stood in old stands in now, as it was.
func keeps(t *testing.T, where string, old, now json.RawMessage) {
	t.Helper()
	var before, after map[string]json.RawMessage
	if json.Unmarshal(old, &before) != nil || len(old) == 0 || old[0] != '{' {
		if !bytes.Equal(old, now) {
			t.Errorf("%s was %s and is read as %s", where, old, now)
		}
		return
	}
	if err := json.Unmarshal(now, &after); err != nil {
		t.Errorf("%s was an object and is read as %s", where, now)
	}
	for name, v := range before {
		keeps(t, where+" "+name, v, after[name])
	}
}

func writeGolden(t *testing.T, path string, names []events.FactName) []byte {
	t.Helper()
	var out bytes.Buffer
	for n, typ := range events.FactTypes() {
		if names != nil && !slices.Contains(names, typ.Name) {
			continue
		}
		subject, h, data := encode(t, filled(typ), uint64(n))
		text, err := json.Marshal(line{uint64(n) + 1, instant, subject, h, string(data)})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(text, '\n'))
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
