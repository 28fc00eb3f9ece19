package kernel

import (
	"context"
	"time"

	"correx/pkg/events"
)

// serveOffers makes the consumers by which workers get what they offered to do.
// Workers never make consumers themselves: whoever may, can have any message
// delivered to any subject.
func (k *Kernel) serveOffers(ctx context.Context) error {
	have := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.offers:
		}
		for !k.equip(ctx, have) {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
}

// offered says that somebody announced something.
func (k *Kernel) offered() {
	select {
	case k.offers <- struct{}{}:
	default:
	}
}

// equip makes what is missing, and reports whether all is there.
func (k *Kernel) equip(ctx context.Context, have map[string]bool) bool {
	w := *k.world.Load()
	var tools, models []string
	want := map[string][2]string{}
	for _, o := range w.Tools() {
		tools = append(tools, o.What.Token)
		want["tool/"+o.What.Token] = [2]string{"tool", o.What.Token}
		if o.What.Previews {
			want["preview/"+o.What.Token] = [2]string{"preview", o.What.Token}
		}
		if o.Differs {
			k.logger.Error("alarm: workers announce one tool with different digests", "tool", o.What.Name, "workers", o.Workers)
		}
	}
	for _, o := range w.Models() {
		models = append(models, o.What.Token)
		want["model/"+o.What.Token] = [2]string{"model", o.What.Token}
	}
	if err := k.Permit(tools, models); err != nil {
		k.logger.Error("workers cannot be permitted their consumers", "err", err)
		return false
	}
	for name, kt := range want {
		if have[name] {
			continue
		}
		if err := k.makeConsumer(ctx, kt[0], kt[1]); err != nil {
			k.logger.Error("consumer cannot be made", "kind", kt[0], "token", kt[1], "err", err)
			return false
		}
		have[name] = true
	}
	return true
}

func (k *Kernel) makeConsumer(ctx context.Context, kind, token string) error {
	if err := events.CheckToken(token); err != nil {
		k.logger.Error("offer cannot be served", "token", token, "err", err)
		return nil // never can be
	}
	cfg, err := k.Consumer(kind, token)
	if err != nil {
		return err
	}
	_, err = k.JS.CreateOrUpdateConsumer(ctx, k.identity.Stream, cfg)
	return err
}
