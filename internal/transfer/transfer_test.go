package transfer_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"correx/internal/transfer"
	"correx/pkg/audit"
	"correx/pkg/events"
)

var stream = audit.Identity{Stream: "EVENTS", Created: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}

func record(seq uint64, subject string, h events.Header, body string) events.Record {
	return events.Decode(seq, time.Unix(int64(seq), 123456789).UTC(), subject, h, []byte(body))
}

// odd is records that JSON could easily change.
func odd() []events.Record {
	h := events.Header{"ce-id": {"s1.session.main+0"}, "ce-source": {"/correx/tool-worker/w%201"}, "ce-type": {"correx.X.v1"},
		"ce-specversion": {"1.0"}, "correx-nonce": {"N"}, "traceparent": {"00-1"}, "ce-data": {"no"}, "ce-correlationid": {"s1"}}
	return []events.Record{
		record(1, "evt.s1.session.main.started", h, `{"session":"s1","id":"main","task":"<b>&amp; \u003c é 漢字"}`),
		record(2, "evt.s1.session.main.message_added", events.Header{"B": {""}, "b": {"2", "1"}}, "{ \"a\": 1,\n \"a\": 2 }"),
		record(3, "evt.x", nil, ""),
		record(4, "evt.x", nil, `""`),
		record(5, "evt.\xff", events.Header{"x\xfe": {"\xff", "ok"}}, "\xff\x00"),
		record(6, "evt.x", events.Header{"empty": {}}, "no JSON"),
	}
}

func TestLinesLoseNothing(t *testing.T) {
	var out bytes.Buffer
	w := transfer.NewWriter(&out)
	if err := w.Begin(stream, 6); err != nil {
		t.Fatal(err)
	}
	want, chain := odd(), audit.Genesis(stream)
	for _, r := range want {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(&out)
	lines.Scan()
	var head transfer.Head
	if err := json.Unmarshal(lines.Bytes(), &head); err != nil || head.Format != transfer.Format || !head.Created.Equal(stream.Created) || head.First != 1 || head.Last != 6 {
		t.Fatalf("the head is %+v (%v)", head, err)
	}
	var hasher audit.Hasher
	for _, r := range want {
		lines.Scan()
		var l transfer.Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		e, err := l.Event()
		if err != nil {
			t.Fatal(err)
		}
		hash := hasher.Event(audit.Event{Seq: r.Seq, Time: r.Time, Subject: r.Subject, Header: r.Header, Data: r.Data})
		if got := hasher.Event(e); got != hash || l.SHA256 != hash.String() || !bytes.Equal(e.Data, r.Data) || e.Subject != r.Subject {
			t.Errorf("record %d comes back as %+v, of %q", r.Seq, e, lines.Text())
		}
		chain = audit.Link(chain, hash)
	}
	lines.Scan()
	if got := lines.Text(); got != `{"end":{"records":6,"chain_sha256":"`+chain.String()+`"}}` {
		t.Errorf("the end is %s", got)
	}
}

func TestAGapIsNotExported(t *testing.T) {
	w := transfer.NewWriter(&bytes.Buffer{})
	if err := w.Begin(stream, 6); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(odd()[1]); err == nil {
		t.Error("record 2 was written where 1 belongs")
	}
}

func TestCloudEvents(t *testing.T) {
	c, err := transfer.CloudEventOf(odd()[0])
	if err != nil {
		t.Fatal(err)
	}
	for attribute, want := range map[string]string{
		"id": "s1.session.main+0", "source": "/correx/tool-worker/w 1", "specversion": "1.0", "type": "correx.X.v1",
		"subject": "evt.s1.session.main.started", "sequence": "00000000000000000001", "recordedtime": "1970-01-01T00:00:01.123456789Z",
		"datacontenttype": "application/json", "correlationid": "s1", "correxnonce": "N", "traceparent": "00-1",
	} {
		var got string
		if err := json.Unmarshal(c[attribute], &got); err != nil || got != want {
			t.Errorf("%s is %s, want %q", attribute, c[attribute], want)
		}
	}
	if string(c["data"]) != string(odd()[0].Data) || !strings.Contains(string(c["correxerror"]), "ce-type") {
		t.Errorf("data %s, error %s", c["data"], c["correxerror"])
	}
	binary := odd()[0]
	binary.Data = []byte{0xff}
	if c, err = transfer.CloudEventOf(binary); err != nil || string(c["data_base64"]) != `"/w=="` || c["data"] != nil {
		t.Errorf("bytes are %s, %s (%v)", c["data"], c["data_base64"], err)
	}
	if _, err := transfer.CloudEventOf(odd()[2]); !errors.Is(err, transfer.ErrNoCloudEvent) {
		t.Errorf("without an envelope: %v", err)
	}
}

// Every fact that the golden log has can be told, whatever it stands next to.
func TestTheGoldenLogIsExported(t *testing.T) {
	text, err := os.ReadFile("../../pkg/events/testdata/golden-v1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	dec, n := json.NewDecoder(bytes.NewReader(text)), 0
	var all []events.Record
	for ; dec.More(); n++ {
		var l struct {
			Seq     uint64
			Time    time.Time
			Subject string
			Header  events.Header
			Data    string
		}
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		r := events.Decode(l.Seq, l.Time, l.Subject, l.Header, []byte(l.Data))
		if e, err := transfer.LineOf(r).Event(); err != nil || string(e.Data) != l.Data {
			t.Errorf("%s comes back as %s (%v)", l.Data, e.Data, err)
		}
		if c, err := transfer.CloudEventOf(r); err != nil || c["correxerror"] != nil {
			t.Errorf("%s is no CloudEvent: %v %s", l.Subject, err, c["correxerror"])
		}
		all = append(all, r)
	}
	if n == 0 {
		t.Fatal("the golden log is empty")
	}
	valid(t, transfer.TrajectoryOf("s1", all, "1"))
}
