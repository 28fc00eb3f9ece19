package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestResultsAreKeptAndFoundByWhatTheyWereMeasuredWith(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench", "eval.json")
	k, err := openKept(path)
	if err != nil {
		t.Fatal(err)
	}
	was := result{Key: "a", Model: "m", Loop: "native", Kind: files, Task: "write", Done: true, Seconds: 1.5,
		outcome: outcome{Answers: []string{"<done>"}, Calls: []call{{Tool: "shell", Parameters: `{"argv":["ls"]}`, Failed: true}}, Tokens: 12, Actions: 2, Invalid: 1}}
	for _, r := range []result{was, {Key: "a", Model: "m", Loop: "correx", Task: "write"}, {Key: "a", Model: "n", Loop: "native", Task: "write"}} {
		if err := k.add(r); err != nil {
			t.Fatal(err)
		}
	}
	if k, err = openKept(path); err != nil {
		t.Fatal(err)
	}
	got, ok := k.find("a", "write")
	if !ok || table([]result{got}) != table([]result{was}) || got.Answers[0] != "<done>" || got.Calls[0] != was.Calls[0] {
		t.Errorf("found %+v, %v; want %+v", got, ok, was)
	}
	if _, ok := k.find("b", "write"); ok {
		t.Error("a result of another program counts")
	}
	again := was
	again.Key, again.Done = "b", false
	if err := k.add(again); err != nil {
		t.Fatal(err)
	}
	if n := len(k.results); n != 3 {
		t.Errorf("%d results are kept; measured anew, a task replaces itself alone", n)
	}
}

func TestFileOfResultsThatCannotBeReadIsNotOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eval.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openKept(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error is %v; it has to name the file", err)
	}
}

func TestKeyIsOfModelProgramsAndLimit(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, p := range []string{"bus", "tool-worker", "model-worker"} {
		write(p, "one")
	}
	model := write("m.gguf", "weights")
	key := func(loop string, limit time.Duration) string {
		e := eval{bin: dir, limit: limit, digests: map[string]string{}}
		k, err := e.key(loop, model)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	native, correx := key("native", time.Minute), key("correx", time.Minute)
	if native != key("native", time.Minute) || native == correx || native == key("native", time.Hour) {
		t.Error("a key depends on something else than loop and limit")
	}
	write("model-worker", "two")
	if native != key("native", time.Minute) || correx == key("correx", time.Minute) {
		t.Error("another model-worker has to measure Correx again, and nothing else")
	}
	write("m.gguf", "other weights")
	if native == key("native", time.Minute) {
		t.Error("another model has the same key")
	}
}

func TestSampleTakesOfEachKind(t *testing.T) {
	sample, err := chosen("", len(kinds))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[kind]bool{}
	for _, t := range sample {
		seen[t.kind] = true
	}
	if len(seen) != len(kinds) {
		t.Errorf("%d tasks are of %d kinds", len(sample), len(seen))
	}
	all, err := chosen("", 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, t := range all {
		names[t.name] = true
	}
	if len(all) != len(tasks()) || len(names) != len(all) {
		t.Errorf("%d of %d tasks under %d names; results are found by their names", len(all), len(tasks()), len(names))
	}
}
