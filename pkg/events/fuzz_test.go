package events_test

import (
	"bytes"
	"testing"

	"correx/pkg/events"
)

func FuzzDecode(f *testing.F) {
	for _, typ := range events.FactTypes() {
		subject, h, data := encode(f, filled(typ), 3)
		f.Add(subject, h.Get(events.HeaderType), data)
	}
	f.Add("evt.s1.tool.t1-0.completed", "correx.ToolExecutionCompleted.v9", []byte("nonsense"))
	f.Fuzz(func(t *testing.T, subject, ceType string, data []byte) {
		h := events.Header{events.HeaderType: {ceType}}
		r := events.Decode(1, instant, subject, h, data)
		if (r.Err == nil) == (r.Fact == nil) {
			t.Fatalf("fact %v, err %v", r.Fact, r.Err)
		}
		if r.Err != nil {
			return
		}
		if got := events.AggregateOf(r.Fact); got != r.Aggregate {
			t.Errorf("fact of %s in %s", got, r.Aggregate)
		}
		// What holds can be written again, on the same subject, and is the same.
		again, h, body, err := events.Encode(r.Fact, events.Source{}, 0, instant)
		if err != nil {
			return // a number out of range, a body over the limit
		}
		if again != subject {
			t.Errorf("subject %s, then %s", subject, again)
		}
		r2 := events.Decode(1, instant, again, h, body)
		if r2.Err != nil {
			t.Fatalf("cannot be read again: %v", r2.Err)
		}
		if _, _, body2, err := events.Encode(r2.Fact, events.Source{}, 0, instant); err != nil || !bytes.Equal(body, body2) {
			t.Errorf("%s, then %s, %v", body, body2, err)
		}
	})
}

func FuzzDecodeCommand(f *testing.F) {
	for _, c := range events.CommandTypes() {
		data, err := events.EncodeCommand(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("cmd.op."+string(c.Verb()), "", data)
	}
	f.Add("cmd.op.session.start", "application/cloudevents+json", []byte(`{"data":{"task":"x"}}`))
	f.Add("cmd.op.tool.request", "", []byte(`{"tool":"t","parameters":{"a":[{"b":{}}]}}`))
	f.Fuzz(func(t *testing.T, subject, contentType string, data []byte) {
		w := events.DecodeCommand("1-a", 1, instant, subject, events.Header{"Content-Type": {contentType}}, data)
		if (w.Command == nil) == (len(w.Faults) == 0) {
			t.Fatalf("command %v, faults %v", w.Command, w.Faults)
		}
		if w.Command == nil {
			return
		}
		if faults := w.Command.Check(); len(faults) > 0 {
			t.Errorf("was taken on with %v", faults)
		}
		body, err := events.EncodeCommand(w.Command)
		if err != nil {
			t.Fatal(err)
		}
		if len(body) > events.MaxCommand {
			return
		}
		w2 := events.DecodeCommand("1-a", 1, instant, subject, nil, body)
		if len(w2.Faults) > 0 {
			t.Errorf("%s cannot be read again: %v", body, w2.Faults)
		}
	})
}
