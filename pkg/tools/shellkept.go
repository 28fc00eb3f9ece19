package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"correx/pkg/tools/changes"
)

// keptFor is how long changes wait for a person, after which nobody asks.
const keptFor = 7 * 24 * time.Hour

// kept are the changes that wait for a review: a file each, called by its
// SHA-256, in a directory of the worker.
type kept struct{ dir string }

var keptName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// put keeps a set, durably, and returns its name and its bytes.
func (k kept) put(s changes.Set) (name string, data []byte, err error) {
	if data, err = s.Encode(); err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(data)
	name = hex.EncodeToString(sum[:])
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return "", nil, err
	}
	k.sweep()
	temp := filepath.Join(k.dir, ".new-"+name)
	if err := errors.Join(writeSynced(temp, data), os.Rename(temp, filepath.Join(k.dir, name)), syncDir(k.dir)); err != nil {
		return "", nil, fmt.Errorf("keep the changes: %w", err)
	}
	return name, data, nil
}

// get returns the set that is called name.
func (k kept) get(name string) (changes.Set, error) {
	if !keptName.MatchString(name) {
		return changes.Set{}, fmt.Errorf("changes are named by a SHA-256 in hex, not %.80q", name)
	}
	data, err := os.ReadFile(filepath.Join(k.dir, name))
	if errors.Is(err, fs.ErrNotExist) { // committed, and then perhaps taken back by a crash
		data, err = os.ReadFile(filepath.Join(k.dir, name+committed))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return changes.Set{}, fmt.Errorf("the changes %.12s… are not here any more: they were committed, or waited for over %d days; run the command again", name, int(keptFor.Hours()/24))
	}
	if err != nil {
		return changes.Set{}, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != name {
		return changes.Set{}, fmt.Errorf("the changes %.12s… are damaged; run the command again", name)
	}
	return changes.Decode(data)
}

// committed is what the name of a set ends with that was committed. It is forgotten
// a little later: a crash before the end is on the log takes the commit back.
const (
	committed    = ".committed"
	committedFor = time.Hour
)

// drop lets a set go that was committed.
func (k kept) drop(name string) {
	_ = os.Rename(filepath.Join(k.dir, name), filepath.Join(k.dir, name+committed)) // else it goes by its age
}

// sweep forgets what waited too long, and what a crash left.
func (k kept) sweep() {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil {
			continue
		}
		age, name := time.Since(fi.ModTime()), strings.TrimSuffix(e.Name(), committed)
		if !keptName.MatchString(name) || age > keptFor || name != e.Name() && age > committedFor {
			_ = os.Remove(filepath.Join(k.dir, e.Name())) // it is tried again with the next
		}
	}
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
