package artifacts

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/pkg/events"
)

// Put keeps what r holds, from its present position to its end, and returns
// where it is. Name says what it is and stands in the reference only: two
// outputs with the same content are kept once. What is there already is never
// written again. It retries until ctx ends.
func (s *Store) Put(ctx context.Context, r io.Reader, name, mediaType string) (events.ArtifactRef, error) {
	src, err := open(r)
	if err != nil {
		return events.ArtifactRef{}, fmt.Errorf("put artifact %s: %w", name, err)
	}
	defer src.close()
	key := hex.EncodeToString(src.sum)
	have, err := s.lookup(ctx, key)
	if err != nil {
		return events.ArtifactRef{}, fmt.Errorf("put artifact %s: %w", name, err)
	}
	if !have.there() {
		if err := s.put(ctx, src, key, mediaType, have.seq); err != nil {
			return events.ArtifactRef{}, fmt.Errorf("put artifact %s (%s): %w", name, key, err)
		}
	}
	return ref(key, name, mediaType, src.size), nil
}

// PutBytes is [Store.Put] of data.
func (s *Store) PutBytes(ctx context.Context, data []byte, name, mediaType string) (events.ArtifactRef, error) {
	return s.Put(ctx, bytes.NewReader(data), name, mediaType)
}

// put writes the chunks, and last the description that makes them an object,
// if that of the key is still the one at sequence after.
func (s *Store) put(ctx context.Context, src *source, key, mediaType string, after uint64) error {
	nuid := rand.Text()
	chunks, err := s.putChunks(ctx, src, chunkSubject(nuid))
	if err != nil {
		return err
	}
	body, err := json.Marshal(jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{
			Name: key, Headers: nats.Header{"Content-Type": {mediaType}},
			Opts: &jetstream.ObjectMetaOptions{ChunkSize: chunkSize},
		},
		Bucket: Bucket, NUID: nuid, Size: uint64(src.size), Chunks: chunks, Digest: digest(src.sum),
	})
	if err != nil {
		return err
	}
	if _, err := s.publish(ctx, metaSubject(key), body, after); err != nil && !errors.Is(err, errMoved) {
		return fmt.Errorf("describe: %w", err)
	}
	return nil // or somebody put the same meanwhile: our chunks are spare
}

func (s *Store) putChunks(ctx context.Context, src *source, subject string) (chunks uint32, err error) {
	hash, last, buf := sha256.New(), uint64(0), make([]byte, chunkSize)
	for {
		n, err := io.ReadFull(src.r, buf)
		if n == 0 && errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, fmt.Errorf("read: %w", err)
		}
		hash.Write(buf[:n])
		if last, err = s.publish(ctx, subject, buf[:n], last); err != nil {
			return 0, fmt.Errorf("chunk %d: %w", chunks, err)
		}
		chunks++
	}
	if !bytes.Equal(hash.Sum(nil), src.sum) {
		return 0, errors.New("the content changed while it was read")
	}
	return chunks, nil
}
