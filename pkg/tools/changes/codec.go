package changes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"correx/pkg/tools/workspace"
)

// maxEncoded is the most that a set may have as bytes.
const maxEncoded = 512 << 20

// Encode is the set as bytes, in the one form that [Decode] takes: JSON, which
// says what it is first. Their SHA-256 names the set.
func (s Set) Encode() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("encode changes: %w", err)
	}
	b, err := encode(s)
	if err == nil && len(b) > maxEncoded {
		err = fmt.Errorf("%d bytes are more than %d", len(b), maxEncoded)
	}
	if err != nil {
		return nil, fmt.Errorf("encode changes: %w", err)
	}
	return b, nil
}

// format says what the bytes are.
const format = "correx-changes-1"

type encoded struct {
	Format string `json:"format"`
	Set
}

func encode(s Set) ([]byte, error) {
	if s.Changes == nil {
		s.Changes = []Change{}
	}
	return json.Marshal(encoded{Format: format, Set: s})
}

// Decode reads what [Set.Encode] made, and nothing else: any other byte is an
// error, and so is a set that contradicts itself.
func Decode(b []byte) (Set, error) {
	s, err := decode(b)
	if err != nil {
		return Set{}, fmt.Errorf("decode changes: %w", err)
	}
	return s, nil
}

func decode(b []byte) (Set, error) {
	if len(b) > maxEncoded {
		return Set{}, fmt.Errorf("%d bytes are more than %d", len(b), maxEncoded)
	}
	if !bytes.HasPrefix(b, []byte(`{"format":"`+format+`",`)) {
		return Set{}, fmt.Errorf("they do not begin with the format %s", format)
	}
	var e encoded
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return Set{}, err
	}
	if err := e.check(); err != nil {
		return Set{}, err
	}
	again, err := encode(e.Set)
	if err != nil {
		return Set{}, err
	}
	if !bytes.Equal(again, b) {
		return Set{}, errors.New("they are not in canonical form")
	}
	return e.Set, nil
}

// check reports what in a set contradicts itself.
func (s Set) check() error {
	for i, c := range s.Changes {
		if err := c.check(); err != nil {
			return fmt.Errorf("%q: %w", c.Path, err)
		}
		if i > 0 && s.Changes[i-1].Path == c.Path {
			return fmt.Errorf("%q is there twice", c.Path)
		}
	}
	if !slices.IsSortedFunc(s.Changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) }) {
		return errors.New("the paths are not sorted")
	}
	return s.checkTree()
}

func (c Change) check() error {
	switch {
	case !path.IsAbs(c.Path) || path.Clean(c.Path) != c.Path || c.Path == "/":
		return errors.New("the path is not absolute and clean")
	case len(c.Path) > maxPath || !utf8.ValidString(c.Path) || strings.ContainsRune(c.Path, 0):
		return errors.New("the path is too long, not UTF-8, or has a NUL")
	case c.Before.Same(c.After):
		return errors.New("nothing changes")
	case c.Kind != kindOf(c.Before, c.After):
		return fmt.Errorf("kind %q is not what happens", c.Kind)
	case c.Before.MTime != 0:
		return errors.New("before has a time")
	}
	if err := c.Before.check(); err != nil {
		return fmt.Errorf("before: %w", err)
	}
	if err := c.After.check(); err != nil {
		return fmt.Errorf("after: %w", err)
	}
	if c.After.Type == File && c.After.Mode&0o6000 != 0 {
		return errors.New("after: it is setuid or setgid")
	}
	if err := holds(c.After, c.Data, c.After.Type == File); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	if err := holds(c.Before, c.Old, c.Before.Type == File && c.Before.SHA256 != c.After.SHA256); err != nil {
		return fmt.Errorf("old: %w", err)
	}
	return nil
}

func (s State) check() error {
	switch {
	case s.Type != Nothing && s.Type != File && s.Type != Directory && s.Type != Symlink:
		return fmt.Errorf("type %q is unknown", s.Type)
	case s.Mode&^0o7777 != 0 || s.Mode != 0 && s.Type != File && s.Type != Directory:
		return fmt.Errorf("mode %o is not one of a %s", s.Mode, s.Type)
	case s.Type != File && (s.Size != 0 || s.SHA256 != "" || s.MTime != 0):
		return errors.New("only a file has a size, a hash and a time")
	case s.Type == File && (s.Size < 0 || s.Size > MaxFileSize || len(s.SHA256) != 64):
		return errors.New("size or hash is impossible")
	case (s.Type == Symlink) != (s.Target != ""):
		return errors.New("a link, and nothing else, has a target")
	case len(s.Target) > maxPath || !utf8.ValidString(s.Target) || strings.ContainsRune(s.Target, 0):
		return errors.New("the target is too long, not UTF-8, or has a NUL")
	}
	return nil
}

// holds makes sure that data is what a state says, where it must be there.
func holds(s State, data []byte, there bool) error {
	switch {
	case !there && len(data) > 0:
		return errors.New("there must be none")
	case there && (int64(len(data)) != s.Size || workspace.Hash(data) != s.SHA256):
		return fmt.Errorf("it has not the %d bytes of SHA-256 %.12s…", s.Size, s.SHA256)
	}
	return nil
}

// checkTree makes sure that what the set has of one directory agrees: nothing
// stands in what is none, before or after.
func (s Set) checkTree() error {
	all := make(map[string]Change, len(s.Changes))
	for _, c := range s.Changes {
		all[c.Path] = c
	}
	for _, c := range s.Changes {
		up, ok := all[path.Dir(c.Path)]
		if !ok {
			continue
		}
		if c.Before.Type != Nothing && up.Before.Type != Directory {
			return fmt.Errorf("%q was in what was no directory", c.Path)
		}
		if c.After.Type != Nothing && up.After.Type != Directory {
			return fmt.Errorf("%q would be in what is no directory", c.Path)
		}
	}
	return nil
}
