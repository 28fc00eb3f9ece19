package streams

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/nats-io/nats.go/jetstream"
)

// Apply carries p out. It changes nothing when any change would be refused, or
// would lose messages and force is not given; and stops where an object is no
// longer what the plan saw.
func Apply(ctx context.Context, js jetstream.JetStream, p Plan, force bool) error {
	if err := p.Blocked(force); err != nil {
		hint := "change streams.yaml"
		if p.Blocked(true) == nil {
			hint = "change streams.yaml, or apply with force"
		}
		return fmt.Errorf("apply streams: nothing was changed; %s:\n%w", hint, err)
	}
	for _, s := range p.Steps {
		if err := s.apply(ctx, js); err != nil {
			return fmt.Errorf("apply %s: %w", s.Object, err)
		}
	}
	return nil
}

func (s Step) apply(ctx context.Context, js jetstream.JetStream) error {
	if s.Verdict == Unchanged {
		return nil
	}
	have, err := s.target.have(ctx, js)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(have, s.seen) {
		return errors.New("somebody changed it after the plan was made; plan again")
	}
	if have == nil {
		return s.target.create(ctx, js)
	}
	return s.target.update(ctx, js)
}

func (d declared) rules() []rule         { return streamRules }
func (d declared) want() (fields, error) { return streamFields(d.cfg) }

func (d declared) have(ctx context.Context, js jetstream.JetStream) (fields, error) {
	s, err := js.Stream(ctx, d.cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return streamFields(s.CachedInfo().Config)
}

func (d declared) create(ctx context.Context, js jetstream.JetStream) error {
	_, err := js.CreateStream(ctx, d.cfg)
	return err
}

func (d declared) update(ctx context.Context, js jetstream.JetStream) error {
	_, err := js.UpdateStream(ctx, d.cfg)
	return err
}

func (c ConsumerSpec) title() string         { return "consumer " + c.Stream + "/" + c.Config.Durable }
func (c ConsumerSpec) rules() []rule         { return consumerRules }
func (c ConsumerSpec) want() (fields, error) { return consumerFields(c.Config) }

// have takes a missing stream for a missing consumer: the plan makes streams
// first.
func (c ConsumerSpec) have(ctx context.Context, js jetstream.JetStream) (fields, error) {
	info, err := c.info(ctx, js)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return consumerFields(info.Config)
}

// info asks for a consumer of either kind: the one that is there may have been
// made by somebody else.
func (c ConsumerSpec) info(ctx context.Context, js jetstream.JetStream) (*jetstream.ConsumerInfo, error) {
	pull, err := js.Consumer(ctx, c.Stream, c.Config.Durable)
	if err == nil {
		return pull.CachedInfo(), nil
	}
	if !errors.Is(err, jetstream.ErrNotPullConsumer) {
		return nil, err
	}
	push, err := js.PushConsumer(ctx, c.Stream, c.Config.Durable)
	if err != nil {
		return nil, err
	}
	return push.CachedInfo(), nil
}

func (c ConsumerSpec) push() bool { return c.Config.DeliverSubject != "" }

func (c ConsumerSpec) create(ctx context.Context, js jetstream.JetStream) (err error) {
	if c.push() {
		_, err = js.CreatePushConsumer(ctx, c.Stream, c.Config)
	} else {
		_, err = js.CreateConsumer(ctx, c.Stream, c.Config)
	}
	return err
}

func (c ConsumerSpec) update(ctx context.Context, js jetstream.JetStream) (err error) {
	if c.push() {
		_, err = js.UpdatePushConsumer(ctx, c.Stream, c.Config)
	} else {
		_, err = js.UpdateConsumer(ctx, c.Stream, c.Config)
	}
	return err
}
