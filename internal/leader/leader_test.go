package leader_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/leader"
	"correx/internal/natstest"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		filter, subject string
		want            bool
	}{
		{"evt.>", "evt.a", true},
		{"evt.>", "evt.a.b.c", true},
		{"evt.>", "evt", false},
		{">", "evt", true},
		{">", "", false},
		{"evt.a", "evt.a", true},
		{"evt.a", "evt.a.b", false},
		{"evt.a.b", "evt.a", false},
		{"evt.*.c", "evt.b.c", true},
		{"evt.*.c", "evt.b.d", false},
		{"evt.*", "evt.a.b", false},
		{"evt.*", "evt.", false},
		{"evt.a.>", "evt.aa.b", false},
	} {
		if got := leader.Matches(c.filter, c.subject); got != c.want {
			t.Errorf("%s selects %q: %t, want %t", c.filter, c.subject, got, c.want)
		}
	}
}

func TestReadsOfOneStream(t *testing.T) {
	js := natstest.Server(t).JetStream(t)
	ctx := natstest.Context(t)
	natstest.Stream(t, js, natstest.StreamConfig("EVENTS", "evt.>", 1))
	for _, subject := range []string{"evt.a", "evt.b", "evt.a"} {
		if _, err := js.Publish(ctx, subject, []byte(subject)); err != nil {
			t.Fatal(err)
		}
	}
	s := leader.Of(js, "EVENTS")
	if m, err := s.Next(ctx, "evt.b", 0); err != nil || m.Seq != 2 || string(m.Data) != "evt.b" {
		t.Errorf("next of evt.b: %+v, %v", m, err)
	}
	if m, err := s.Last(ctx, "evt.a"); err != nil || m.Seq != 3 {
		t.Errorf("last of evt.a: %+v, %v", m, err)
	}
	if m, err := s.At(ctx, 1); err != nil || m.Seq != 1 || m.Time.IsZero() {
		t.Errorf("at 1: %+v, %v", m, err)
	}
	for what, read := range map[string]func() (leader.Message, error){
		"next": func() (leader.Message, error) { return s.Next(ctx, "evt.b", 3) },
		"last": func() (leader.Message, error) { return s.Last(ctx, "evt.c") },
		"at":   func() (leader.Message, error) { return s.At(ctx, 4) },
	} {
		if m, err := read(); !errors.Is(err, leader.ErrNone) {
			t.Errorf("%s of nothing: %+v, %v", what, m, err)
		}
	}
	if i, err := s.Info(ctx); err != nil || i.First != 1 || i.Last != 3 || i.MaxMsgSize != 512<<10 || i.Created.IsZero() {
		t.Errorf("info: %+v, %v", i, err)
	}
	var api *jetstream.APIError
	if _, err := leader.Of(js, "NONE").Info(ctx); !errors.As(err, &api) || api.ErrorCode != jetstream.JSErrCodeStreamNotFound {
		t.Errorf("info of no stream: %v", err)
	}
}
