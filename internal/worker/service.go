package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"correx/internal/claim"
	"correx/pkg/events"
)

// ServiceConfig is what a worker says of itself to whoever asks.
type ServiceConfig struct {
	Role     events.WorkerRole // the service's name
	Version  string            // semantic
	Worker   events.WorkerID
	Boot     string
	Metadata map[string]string
	Tools    []events.ToolOffer // told in short as metadata, whole by an endpoint
	Models   func() any         // models and what goes on with each, as JSON; asked each time. Nil: none are offered
	Running  func(claim.Question) claim.Answer
	Drain    func() // asked to finish what it has and stop; returns at once
}

// Service answers $SRV.PING, INFO and STATS for the role, and the two questions
// that are asked of one worker. It lasts until its Stop or the connection's end.
func Service(nc *nats.Conn, cfg ServiceConfig) (micro.Service, error) {
	meta := map[string]string{"worker": string(cfg.Worker), "boot": cfg.Boot}
	for k, v := range cfg.Metadata {
		meta[k] = v
	}
	for _, t := range cfg.Tools {
		meta["tool."+t.Token] = inShort(t)
	}
	srv, err := micro.AddService(nc, micro.Config{
		Name: string(cfg.Role), Version: cfg.Version, Metadata: meta, QueueGroupDisabled: true,
		Description: "worker " + string(cfg.Worker), StatsHandler: stats(cfg),
	})
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", cfg.Role, err)
	}
	if err := endpoints(srv, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("serve %s: %w", cfg.Role, err), srv.Stop())
	}
	return srv, nil
}

// stats adds to $SRV.STATS, at the endpoint models, what that one answers.
func stats(cfg ServiceConfig) micro.StatsHandler {
	return func(e *micro.Endpoint) any {
		if e.Name != modelsEndpoint {
			return nil
		}
		return cfg.Models()
	}
}

const modelsEndpoint = "models"

func endpoints(srv micro.Service, cfg ServiceConfig) error {
	running := micro.HandlerFunc(func(r micro.Request) {
		var q claim.Question
		if err := json.Unmarshal(r.Data(), &q); err != nil {
			_ = r.Error("400", fmt.Sprintf("not a question: %v", err), nil)
			return
		}
		_ = r.RespondJSON(cfg.Running(q))
	})
	drain := micro.HandlerFunc(func(r micro.Request) {
		cfg.Drain()
		_ = r.RespondJSON(map[string]any{"ok": true, "worker": cfg.Worker})
	})
	var offers error
	if len(cfg.Tools) > 0 {
		offers = srv.AddEndpoint("tools", micro.HandlerFunc(func(r micro.Request) { _ = r.RespondJSON(cfg.Tools) }),
			micro.WithEndpointSubject(events.ToolsSubject(cfg.Worker)))
	}
	if cfg.Models != nil {
		offers = errors.Join(offers, srv.AddEndpoint(modelsEndpoint, micro.HandlerFunc(func(r micro.Request) { _ = r.RespondJSON(cfg.Models()) }),
			micro.WithEndpointSubject(events.ModelsSubject(cfg.Worker))))
	}
	return errors.Join(offers,
		srv.AddEndpoint("running", running, micro.WithEndpointSubject(events.RunningSubject(cfg.Worker))),
		srv.AddEndpoint("drain", drain, micro.WithEndpointSubject(events.DrainSubject(cfg.Worker))),
	)
}

// inShort is an offer on one line: what somebody wants to see who asks which
// worker runs what.
func inShort(t events.ToolOffer) string {
	text := fmt.Sprintf("%s %s, isolation %s, digest %.12s", t.Name, t.Tier, cmp.Or(t.Isolation, "not said"), t.Digest)
	if t.FollowUpOnly {
		text += ", follow-up only"
	}
	if t.Origin != "" {
		text += ", from " + t.Origin
	}
	return text
}

// An Asker asks workers over plain NATS.
type Asker struct{ Conn *nats.Conn }

// AskRunning implements [claim.Asker]. That nobody listens is known at once;
// the caller decides how long to go on asking.
func (a Asker) AskRunning(ctx context.Context, w events.WorkerID, q claim.Question) (claim.Answer, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return claim.Answer{}, fmt.Errorf("ask %s: %w", w, err)
	}
	m, err := a.Conn.RequestWithContext(ctx, events.RunningSubject(w), body)
	if err != nil {
		return claim.Answer{}, fmt.Errorf("ask %s: %w", w, err)
	}
	if e := m.Header.Get(micro.ErrorHeader); e != "" {
		return claim.Answer{}, fmt.Errorf("ask %s: it answered %q", w, e)
	}
	var ans claim.Answer
	if err := json.Unmarshal(m.Data, &ans); err != nil {
		return ans, fmt.Errorf("ask %s: %w", w, err)
	}
	return ans, nil
}

// Doorbell calls poke for each fact of the names, as it is published. It is no
// proof of anything, and may miss some. Stop ends it.
func Doorbell(nc *nats.Conn, poke func(events.Aggregate), names ...events.FactName) (stop func(), err error) {
	var subs []*nats.Subscription
	stop = func() {
		for _, s := range subs {
			_ = s.Unsubscribe()
		}
	}
	for _, n := range names {
		subject := events.PrefixFact + ".*." + string(n.Kind()) + ".*." + n.Token()
		s, err := nc.Subscribe(subject, func(m *nats.Msg) {
			if a, _, _, err := events.ParseSubject(m.Subject); err == nil {
				poke(a)
			}
		})
		if err != nil {
			stop()
			return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
		}
		subs = append(subs, s)
	}
	return stop, nil
}

var _ claim.Asker = Asker{}
