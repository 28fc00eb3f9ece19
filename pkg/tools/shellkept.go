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
	"time"

	"correx/pkg/tools/changes"
	"correx/pkg/tools/workspace"
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
	if err := k.write(name, data); err != nil {
		return "", nil, fmt.Errorf("keep the changes: %w", err)
	}
	return name, data, nil
}

// write puts a file into place whole, or not at all.
func (k kept) write(name string, data []byte) error {
	temp := filepath.Join(k.dir, workspace.TempName())
	if err := workspace.WriteSynced(temp, data); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, filepath.Join(k.dir, name)); err != nil {
		return err
	}
	return workspace.SyncDir(k.dir)
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
		age := time.Since(fi.ModTime())
		waits := keptName.MatchString(e.Name())
		if age > keptFor || !waits && age > committedFor { // a younger one may be on its way into place
			_ = os.Remove(filepath.Join(k.dir, e.Name())) // it is tried again with the next
		}
	}
}
