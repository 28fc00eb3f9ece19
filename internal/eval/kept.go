package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A kept is the file of what was measured. It is written anew after each task, so
// that a run that ends early goes on where it was.
type kept struct {
	path    string
	results []result
}

// openKept reads a file of results; none is an empty one.
func openKept(path string) (*kept, error) {
	k := &kept{path: path}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return k, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(data, &k.results); err != nil {
		return nil, fmt.Errorf("results in %s: %w; remove it to measure anew", path, err)
	}
	return k, nil
}

// find returns the result of a task that was measured with the same key.
func (k *kept) find(key, task string) (result, bool) {
	at := slices.IndexFunc(k.results, func(r result) bool { return r.Key == key && r.Task == task })
	if at < 0 {
		return result{}, false
	}
	return k.results[at], true
}

// add puts a result in place of older ones of the same model, loop and task, and
// writes the file: whole, or not at all.
func (k *kept) add(r result) error {
	k.results = slices.DeleteFunc(k.results, func(o result) bool {
		return o.Model == r.Model && o.Loop == r.Loop && o.Task == r.Task
	})
	k.results = append(k.results, r)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(k.results); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(k.path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(k.path+".new", b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(k.path+".new", k.path)
}

// key names what a result depends on: the model's bytes, this program, the time
// that a task has and, for Correx, the programs that are its loop. A result of
// another key is measured again.
func (e *eval) key(loop, model string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	of := []string{model, self}
	if loop == "correx" {
		for _, name := range []string{"bus", "tool-worker", "model-worker"} {
			of = append(of, filepath.Join(e.bin, name))
		}
	}
	parts := []string{loop, e.limit.String()}
	for _, path := range of {
		sum, err := e.digest(path)
		if err != nil {
			return "", err
		}
		parts = append(parts, sum)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:8]), nil
}

// digest is the SHA-256 of a file, in hex; each file is read once.
func (e *eval) digest(path string) (string, error) {
	if sum, ok := e.digests[path]; ok {
		return sum, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("digest of what is measured: %w; make eval builds it", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	e.digests[path] = hex.EncodeToString(h.Sum(nil))
	return e.digests[path], nil
}
