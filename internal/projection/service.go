package projection

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"correx/pkg/events"
)

// maxWait bounds how long an answer waits for a sequence.
const maxWait = 5 * time.Second

// maxAsking bounds how many answers are worked on at once.
const maxAsking = 64

// A service answers query.<noun> requests as the NATS micro service "projector".
type service struct {
	p       *Projector
	queries *Queries
	ctx     context.Context // ends with the service
	wait    time.Duration   // at most for a sequence
	slots   chan struct{}

	mu      sync.Mutex
	stopped bool
	asked   sync.WaitGroup
}

// Serve answers until ctx ends, and then waits for the answers at work. Requests
// and answers are JSON, see [Request] and [Answer]; version is the program's.
func Serve(ctx context.Context, nc *nats.Conn, p *Projector, version string) error {
	return serve(ctx, nc, p, version, maxWait)
}

func serve(ctx context.Context, nc *nats.Conn, p *Projector, version string, wait time.Duration) error {
	s := &service{p: p, queries: p.db.Queries(), ctx: ctx, wait: wait, slots: make(chan struct{}, maxAsking)}
	if most := int(nc.MaxPayload()) - 4<<10; most > 0 {
		s.queries.MaxBytes = min(s.queries.MaxBytes, most)
	}
	svc, err := micro.AddService(nc, micro.Config{
		Name: "projector", Version: version, Description: "answers questions about the log from its SQLite view",
		ErrorHandler: func(_ micro.Service, e *micro.NATSError) {
			p.logger.Warn("query service", "subject", e.Subject, "error", e.Description)
		},
	})
	if err != nil {
		return fmt.Errorf("serve queries: %w", err)
	}
	for _, q := range AllQueries() {
		subject := events.PrefixQuery + "." + q.Name
		err = svc.AddEndpoint(q.Name, micro.HandlerFunc(func(r micro.Request) { s.take(q, r) }),
			micro.WithEndpointSubject(subject), micro.WithEndpointMetadata(map[string]string{"description": q.What}))
		if err != nil {
			return errors.Join(fmt.Errorf("serve %s: %w", subject, err), svc.Stop())
		}
	}
	<-ctx.Done()
	err = svc.Stop()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.asked.Wait()
	if err != nil && !nc.IsClosed() {
		return fmt.Errorf("stop serving queries: %w", err)
	}
	return nil
}

// take answers in a goroutine of its own, so that who waits for a sequence does
// not keep others waiting.
func (s *service) take(q Query, r micro.Request) {
	select {
	case s.slots <- struct{}{}:
	case <-s.ctx.Done():
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped { // what was still in the subscription is not begun
		return
	}
	s.asked.Go(func() {
		defer func() { <-s.slots }()
		answer, err := s.answer(q, r.Data())
		if err != nil {
			answer = Answer{Error: err.Error(), Items: []json.RawMessage{}}
		}
		if err := r.RespondJSON(answer); err != nil && s.ctx.Err() == nil {
			s.p.logger.Warn("answer query", "subject", r.Subject(), "error", err)
		}
	})
}

func (s *service) answer(q Query, data []byte) (Answer, error) {
	var r Request
	if data = bytes.TrimSpace(data); len(data) > 0 {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&r); err != nil {
			return Answer{}, fmt.Errorf("request: %w", err)
		}
	}
	if err := s.await(r.WaitFor); err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, maxWait)
	defer cancel()
	if q.Name == "status" {
		return s.status(ctx)
	}
	return s.queries.Ask(ctx, q, r)
}

// await waits for a sequence, but not for ever.
func (s *service) await(seq uint64) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.wait)
	defer cancel()
	if err := s.p.Wait(ctx, seq); err != nil {
		return fmt.Errorf("sequence %d is not in the database after %v; it is at %d", seq, s.wait, s.p.Applied())
	}
	return nil
}

// A Status says how far a database is.
type Status struct {
	Applied    uint64 `json:"applied"` // the last sequence in the database
	Last       uint64 `json:"last"`    // of the stream
	Lag        uint64 `json:"lag"`
	Stream     string `json:"stream"`
	Created    string `json:"created"`
	Chain      string `json:"chain_sha256"`
	Root       string `json:"root_sha256"`
	Schema     string `json:"schema"`
	Path       string `json:"path"`
	Alarms     int64  `json:"alarms"` // records that do not hold
	Checkpoint string `json:"checkpoint_sha256"`
}

// StatusOf reads how far db is; last is the stream's last sequence.
func StatusOf(ctx context.Context, db *DB, last uint64) (Status, error) {
	at, err := db.Checkpoint(ctx)
	if err != nil {
		return Status{}, err
	}
	st := Status{Applied: at.Seq, Last: max(last, at.Seq), Stream: db.id.Stream, Created: stamp(db.id.Created),
		Chain: at.State.Chain.String(), Root: at.State.Tree.Root().String(), Checkpoint: at.Hash.String(),
		Schema: schemaName(), Path: db.path}
	st.Lag = st.Last - st.Applied
	err = db.read.QueryRowContext(ctx, `SELECT count(*) FROM alarms`).Scan(&st.Alarms)
	return st, err
}

func (s *service) status(ctx context.Context) (Answer, error) {
	last, err := s.p.log.Last(ctx)
	if err != nil {
		return Answer{}, err
	}
	st, err := StatusOf(ctx, s.p.db, last)
	if err != nil {
		return Answer{}, err
	}
	item, err := json.Marshal(st)
	return Answer{OK: true, Items: []json.RawMessage{item}}, err
}
