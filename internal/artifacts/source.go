package artifacts

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
)

// A source is content that was hashed and can now be read once more.
type source struct {
	r    io.Reader
	size int64
	sum  []byte
	temp *os.File // nil: the caller's own is read twice
}

// open hashes r from where it stands. What cannot be read twice is kept in a
// temporary file meanwhile.
func open(r io.Reader) (*source, error) {
	hash := sha256.New()
	if seek, ok := r.(io.ReadSeeker); ok {
		if start, err := seek.Seek(0, io.SeekCurrent); err == nil { // a pipe is no seeker, though an *os.File
			n, err := io.Copy(hash, seek)
			if err != nil {
				return nil, fmt.Errorf("read: %w", err)
			}
			if _, err := seek.Seek(start, io.SeekStart); err != nil {
				return nil, fmt.Errorf("read again: %w", err)
			}
			return &source{r: io.LimitReader(seek, n), size: n, sum: hash.Sum(nil)}, nil
		}
	}
	temp, err := os.CreateTemp("", "artifact-*")
	if err != nil {
		return nil, err
	}
	s := &source{r: temp, temp: temp}
	if s.size, err = io.Copy(io.MultiWriter(temp, hash), r); err == nil {
		_, err = temp.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keep for a second reading: %w", err), s.close())
	}
	s.sum = hash.Sum(nil)
	return s, nil
}

func (s *source) close() error {
	if s.temp == nil {
		return nil
	}
	return errors.Join(s.temp.Close(), os.Remove(s.temp.Name()))
}
