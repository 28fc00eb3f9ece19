package natstest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Streams makes EVENTS, COMMANDS and the object bucket ARTIFACTS as the product
// does.
func Streams(t testing.TB, js jetstream.JetStream, replicas int) {
	t.Helper()
	commands := StreamConfig("COMMANDS", "cmd.>", replicas)
	commands.MaxMsgSize = -1 // too large a command is explained, not refused
	Stream(t, js, StreamConfig("EVENTS", "evt.>", replicas))
	Stream(t, js, commands)
	retry(t, "make object bucket ARTIFACTS", func(ctx context.Context) error {
		_, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket: "ARTIFACTS", Storage: jetstream.FileStorage, Replicas: replicas,
		})
		return err
	})
}

// StreamConfig is how the product makes its streams.
func StreamConfig(name, subjects string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Subjects: []string{subjects}, Replicas: replicas,
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
		MaxMsgSize: 512 << 10, Duplicates: 10 * time.Minute, Compression: jetstream.S2Compression,
		DenyDelete: true, DenyPurge: true, AllowDirect: true, AllowAtomicPublish: true,
	}
}

// Stream makes one stream. A cluster that has just come up may need a moment.
func Stream(t testing.TB, js jetstream.JetStream, cfg jetstream.StreamConfig) {
	t.Helper()
	retry(t, "make stream "+cfg.Name, func(ctx context.Context) error {
		_, err := js.CreateStream(ctx, cfg)
		return err
	})
}

// retry repeats do while the cluster is not ready for it.
func retry(t testing.TB, what string, do func(context.Context) error) {
	t.Helper()
	ctx := Context(t)
	for {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := do(attempt)
		cancel()
		var api *jetstream.APIError
		if err == nil {
			return
		}
		const noPeers = 10005 // the servers have not heard of each other yet
		if errors.As(err, &api) && api.Code != 503 && api.Code != 500 && api.ErrorCode != noPeers {
			t.Fatalf("%s: %v", what, err)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
