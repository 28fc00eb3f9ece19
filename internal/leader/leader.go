// Package leader reads single messages of a stream from the server that leads
// it.
//
// The client library asks any replica where the stream allows it, and a replica
// may not have what its reader was just told is stored. What decides something
// must not rest on that. So the requests here are made by hand: STREAM.MSG.GET
// and STREAM.INFO, which only the leader answers.
package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrNone is returned when no message is what was asked for.
var ErrNone = errors.New("no such message")

// ErrDenied is returned when the server forbids the request itself. On the wire
// a forbidden publish is only an answer that never comes.
var ErrDenied = errors.New("forbidden to this role: the server denies publishing to the subject")

// A Message is one message as it is stored.
type Message struct {
	Seq     uint64
	Time    time.Time
	Subject string
	Header  map[string][]string
	Data    []byte
	// HeaderErr is why the stored headers cannot be read; Header is then nil.
	HeaderErr error
}

// A Stream reads one stream. It may be used by several goroutines.
type Stream struct {
	nc           *nats.Conn
	name         string
	get, inquire string // subjects of the API
}

// Of returns the reader of the stream called name.
func Of(js jetstream.JetStream, name string) *Stream {
	p := prefix(js.Options())
	return &Stream{nc: js.Conn(), name: name, get: p + "STREAM.MSG.GET." + name, inquire: p + "STREAM.INFO." + name}
}

func prefix(o jetstream.JetStreamOptions) string {
	switch {
	case o.Domain != "":
		return "$JS." + o.Domain + ".API."
	case o.APIPrefix != "":
		return strings.TrimSuffix(o.APIPrefix, ".") + "."
	}
	return jetstream.DefaultAPIPrefix
}

// getRequest is the body of STREAM.MSG.GET.
type getRequest struct {
	Seq  uint64 `json:"seq,omitempty"`
	Next string `json:"next_by_subj,omitempty"`
	Last string `json:"last_by_subj,omitempty"`
}

type getAnswer struct {
	Message *struct {
		Subject string    `json:"subject"`
		Seq     uint64    `json:"seq"`
		Header  []byte    `json:"hdrs"`
		Data    []byte    `json:"data"`
		Time    time.Time `json:"time"`
	} `json:"message"`
	Error *jetstream.APIError `json:"error"`
}

func (a getAnswer) fault() *jetstream.APIError { return a.Error }

// Next returns the first message at or behind seq whose subject matches filter,
// or [ErrNone].
func (s *Stream) Next(ctx context.Context, filter string, seq uint64) (Message, error) {
	seq = max(seq, 1)
	m, err := s.ask(ctx, getRequest{Seq: seq, Next: filter})
	if err != nil {
		return Message{}, err
	}
	if m.Seq < seq || !Matches(filter, m.Subject) {
		return Message{}, fmt.Errorf("read %s: asked for %q from sequence %d and got %q at %d: the server does not know this kind of request",
			s.name, filter, seq, m.Subject, m.Seq)
	}
	return m, nil
}

// Last returns the last message whose subject matches filter, or [ErrNone].
func (s *Stream) Last(ctx context.Context, filter string) (Message, error) {
	m, err := s.ask(ctx, getRequest{Last: filter})
	if err != nil {
		return Message{}, err
	}
	if !Matches(filter, m.Subject) {
		return Message{}, fmt.Errorf("read %s: asked for the last of %q and got %q", s.name, filter, m.Subject)
	}
	return m, nil
}

// At returns the message at seq, or [ErrNone].
func (s *Stream) At(ctx context.Context, seq uint64) (Message, error) {
	m, err := s.ask(ctx, getRequest{Seq: seq})
	if err == nil && m.Seq != seq {
		return Message{}, fmt.Errorf("read %s: asked for sequence %d and got %d", s.name, seq, m.Seq)
	}
	return m, err
}

func (s *Stream) ask(ctx context.Context, r getRequest) (Message, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return Message{}, fmt.Errorf("read %s: %w", s.name, err)
	}
	a, err := request[getAnswer](ctx, s.nc, s.get, body)
	if err != nil {
		var api *jetstream.APIError
		if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeMessageNotFound {
			return Message{}, ErrNone
		}
		return Message{}, fmt.Errorf("read %s: %w", s.name, err)
	}
	if a.Message == nil {
		return Message{}, fmt.Errorf("read %s: the answer has no message", s.name)
	}
	m := Message{Seq: a.Message.Seq, Time: a.Message.Time, Subject: a.Message.Subject, Data: a.Message.Data}
	if len(a.Message.Header) > 0 {
		h, err := nats.DecodeHeadersMsg(a.Message.Header)
		m.Header, m.HeaderErr = h, err
	}
	return m, nil
}

// Info is what a stream's leader says of it.
type Info struct {
	Created    time.Time
	Now        time.Time // the leader's clock when it answered
	First      uint64    // sequence of the first message that is there
	Last       uint64    // sequence of the last one that ever was
	Deleted    int       // messages missing between them
	MaxMsgSize int       // bytes, headers included; 0: no limit
	Subjects   []string
}

type infoAnswer struct {
	Created time.Time `json:"created"`
	Now     time.Time `json:"ts"`
	Config  struct {
		MaxMsgSize int      `json:"max_msg_size"`
		Subjects   []string `json:"subjects"`
	} `json:"config"`
	State struct {
		First   uint64 `json:"first_seq"`
		Last    uint64 `json:"last_seq"`
		Deleted int    `json:"num_deleted"`
	} `json:"state"`
	Error *jetstream.APIError `json:"error"`
}

func (a infoAnswer) fault() *jetstream.APIError { return a.Error }

// Info asks for the stream's identity and extent.
func (s *Stream) Info(ctx context.Context) (Info, error) {
	a, err := request[infoAnswer](ctx, s.nc, s.inquire, nil)
	if err != nil {
		return Info{}, fmt.Errorf("ask for stream %s: %w", s.name, err)
	}
	return Info{
		Created: a.Created, Now: a.Now, First: a.State.First, Last: a.State.Last, Deleted: a.State.Deleted,
		MaxMsgSize: max(a.Config.MaxMsgSize, 0), Subjects: a.Config.Subjects,
	}, nil
}

// Matches reports whether subject is one that filter selects.
func Matches(filter, subject string) bool {
	for {
		f, fRest, fMore := strings.Cut(filter, ".")
		if f == ">" {
			return subject != ""
		}
		s, sRest, sMore := strings.Cut(subject, ".")
		if f != "*" && f != s || fMore != sMore || s == "" {
			return false
		}
		if !fMore {
			return true
		}
		filter, subject = fRest, sRest
	}
}
