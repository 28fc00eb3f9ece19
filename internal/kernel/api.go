package kernel

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"correx/pkg/events"
)

// Answer is what api.<actor>.<noun>.<verb> answers: the fact that came of the
// command, or why there is none.
type Answer struct {
	OK         bool             `json:"ok"`
	Command    events.CommandID `json:"command,omitempty"`
	Fact       events.FactName  `json:"fact,omitempty"`
	Seq        uint64           `json:"seq,omitempty"` // in EVENTS
	Session    events.SessionID `json:"session,omitempty"`
	Invocation string           `json:"invocation,omitempty"`
	Inference  string           `json:"inference,omitempty"`
	Error      string           `json:"error,omitempty"`
	Reasons    []string         `json:"reasons,omitempty"`
}

// apiWait is how long a request may wait for its fact. A command that came
// early may wait longer; then the answer says that it is on the log.
const apiWait = 30 * time.Second

// serveAPI answers requests until ctx is done. Each is published as the command
// that it is, so that every command is on the log, and answered with the fact
// that cites it, whichever kernel decided that.
func (k *Kernel) serveAPI(ctx context.Context) error {
	svc, err := micro.AddService(k.Conn, micro.Config{
		Name: "kernel", Version: serviceVersion(k.Version),
		Description: "decides: commands as request and reply on api.<actor>.<noun>.<verb>",
		QueueGroup:  "kernel",
	})
	if err != nil {
		return fmt.Errorf("serve api: %w", err)
	}
	for _, c := range events.CommandTypes() {
		verb := c.Verb()
		err := svc.AddEndpoint(strings.ReplaceAll(string(verb), ".", "-"),
			micro.HandlerFunc(func(r micro.Request) { k.spawn(func() { k.serve(ctx, verb, r) }) }),
			micro.WithEndpointSubject(events.PrefixAPI+".*."+string(verb)))
		if err != nil {
			return fmt.Errorf("serve api %s: %w", verb, err)
		}
	}
	<-ctx.Done()
	_ = svc.Stop() // the connection is closed by its owner
	return nil
}

// semver is what the micro framework accepts as a version.
var semver = regexp.MustCompile(`^\d+\.\d+\.\d+([-+].*)?$`)

func serviceVersion(v string) string {
	if v = strings.TrimPrefix(v, "v"); semver.MatchString(v) {
		return v
	}
	return "0.0.0"
}

func (k *Kernel) serve(ctx context.Context, verb events.Verb, r micro.Request) {
	// An answer goes where the request says; it must not be a subject that a
	// stream listens on.
	if !strings.HasPrefix(r.Reply(), "_INBOX") {
		k.logger.Warn("alarm: api request with a reply subject that is no inbox", "subject", r.Subject(), "reply", r.Reply())
		return
	}
	a := k.ask(ctx, verb, r)
	if err := r.RespondJSON(a); err != nil {
		k.logger.Debug("answer api", "subject", r.Subject(), "err", err)
	}
}

func (k *Kernel) ask(ctx context.Context, verb events.Verb, r micro.Request) Answer {
	ctx, cancel := context.WithTimeout(ctx, apiWait)
	defer cancel()
	actor := strings.Split(r.Subject(), ".")[1]
	msg := &nats.Msg{Subject: events.PrefixCommand + "." + actor + "." + string(verb), Data: r.Data(), Header: nats.Header{}}
	for _, h := range []string{"Content-Type", events.HeaderTraceparent} {
		if v := r.Headers().Get(h); v != "" {
			msg.Header.Set(h, v)
		}
	}
	ack, err := k.JS.PublishMsg(ctx, msg, jetstream.WithExpectStream(commandStreamName))
	if err != nil {
		return Answer{Error: fmt.Sprintf("the command is not known to be on the log: %v", err)}
	}
	id := k.commands.id(ack.Sequence)
	got := k.await(id)
	defer k.forget(id)
	select {
	case a := <-got:
		return a
	case <-ctx.Done():
		return Answer{Command: id, Error: "the command is on the log and not decided yet"}
	}
}

// await returns where the answer to a command will come. The fact may have been
// folded before: answers keeps the latest ones for that.
func (k *Kernel) await(id events.CommandID) <-chan Answer {
	ch := make(chan Answer, 1)
	k.mu.Lock()
	defer k.mu.Unlock()
	if a, ok := k.recent.get(id); ok {
		ch <- a
		return ch
	}
	k.answers[id] = ch
	return ch
}

func (k *Kernel) forget(id events.CommandID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.answers, id)
}

// answer tells whoever waits what came of their command.
func (k *Kernel) answer(r events.Record) {
	d, ok := r.Fact.(interface{ Decided() events.Decision })
	if !ok || d.Decided().Command == "" {
		return
	}
	id := d.Decided().Command
	a := Answer{OK: true, Command: id, Fact: r.Fact.FactName(), Seq: r.Seq, Session: r.Aggregate.Session}
	switch f := r.Fact.(type) {
	case events.CommandRejected:
		a.OK, a.Session, a.Reasons, a.Error = false, "", f.Reasons, strings.Join(f.Reasons, "; ")
	default:
		switch r.Aggregate.Kind {
		case events.KindTool:
			a.Invocation = r.Aggregate.ID
		case events.KindInference:
			a.Inference = r.Aggregate.ID
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recent.put(id, a)
	if ch := k.answers[id]; ch != nil {
		select {
		case ch <- a:
		default:
		}
	}
}

// recent keeps the answers to the latest commands: a fact can be folded before
// the request that it answers has its acknowledgement, and a command that another
// kernel rejected can be delivered to this one.
type recent struct {
	ring [8192]events.CommandID
	next int
	m    map[events.CommandID]Answer
}

func (c *recent) put(id events.CommandID, a Answer) {
	if c.m == nil {
		c.m = map[events.CommandID]Answer{}
	}
	delete(c.m, c.ring[c.next])
	c.ring[c.next] = id
	c.next = (c.next + 1) % len(c.ring)
	c.m[id] = a
}

func (c *recent) get(id events.CommandID) (Answer, bool) { a, ok := c.m[id]; return a, ok }
