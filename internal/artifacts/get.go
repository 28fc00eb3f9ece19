package artifacts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"correx/internal/leader"
)

// Get returns what is kept under a hash: all of it and nothing else, or an
// error. See [Store.Copy] for what does not fit into memory.
func (s *Store) Get(ctx context.Context, sha256 string) ([]byte, error) {
	var buf bytes.Buffer
	if _, err := s.Copy(ctx, &buf, sha256); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Copy writes what is kept under a hash to w and returns its size. What was
// written holds only if the error is nil: the hash is known at the end, and
// when it is not the one that was asked for, [ErrCorrupt] is returned.
func (s *Store) Copy(ctx context.Context, w io.Writer, sha256 string) (int64, error) {
	if err := checkKey(sha256); err != nil {
		return 0, fmt.Errorf("get artifact: %w", err)
	}
	e, err := s.lookup(ctx, sha256)
	if err == nil && !e.there() {
		err = ErrNotFound
	}
	var n int64
	if err == nil {
		n, err = s.copy(ctx, w, e, sha256)
	}
	if err != nil {
		return n, fmt.Errorf("get artifact %s: %w", sha256, err)
	}
	return n, nil
}

func (s *Store) copy(ctx context.Context, w io.Writer, e entry, key string) (int64, error) {
	hash, n, next := sha256.New(), int64(0), uint64(1)
	for i := range e.Chunks {
		m, err := s.lead.Next(ctx, chunkSubject(e.NUID), next)
		if errors.Is(err, leader.ErrNone) {
			return n, fmt.Errorf("%w (chunk %d of %d is missing)", ErrCorrupt, i+1, e.Chunks)
		}
		if err != nil {
			return n, err
		}
		hash.Write(m.Data)
		if _, err := w.Write(m.Data); err != nil {
			return n, fmt.Errorf("write: %w", err)
		}
		n, next = n+int64(len(m.Data)), m.Seq+1
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != key {
		return n, fmt.Errorf("%w (it has %s)", ErrCorrupt, got)
	}
	return n, nil
}
