package audit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"correx/internal/testenv"
	"correx/pkg/audit"
	"correx/pkg/events"
)

// vectors are the test vectors of docs/audit.md.
type vectors struct {
	Seed    string                 `json:"seed"`
	Stream  string                 `json:"stream"`
	Created time.Time              `json:"stream_created"`
	Genesis audit.Hash             `json:"genesis"`
	Events  []vector               `json:"events"`
	Early   events.AuditCheckpoint `json:"checkpoint_3"`
	Late    events.AuditCheckpoint `json:"checkpoint_5"`
	Proof   audit.Proof            `json:"proof_2"`
	Extends audit.Extension        `json:"extension_3_5"`
}

type vector struct {
	Event   audit.Record `json:"event"`
	Content audit.Hash   `json:"content_sha256"`
	Hash    audit.Hash   `json:"event_sha256"`
	Chain   audit.Hash   `json:"chain_sha256"`
	Root    audit.Hash   `json:"root_sha256"`
}

// stored are the records of the vectors: plain, with headers of two values and
// none, with a body that is no text, the same content again, and empty.
func stored() []audit.Event {
	at := time.Date(2026, 12, 1, 3, 4, 5, 678901234, time.UTC)
	return []audit.Event{
		{Seq: 1, Time: at, Subject: "evt.s1.session.main.started", Header: map[string][]string{"ce-id": {"s1.session.main+0"}}, Data: []byte(`{"task":"é 漢字"}`)},
		{Seq: 2, Time: at.Add(time.Nanosecond), Subject: "evt.s1.tool.t1-0.requested.echo", Header: map[string][]string{"b": {"2", "1"}, "B": {""}, "ce-id": {"x"}}, Data: []byte(`{}`)},
		{Seq: 3, Time: at.Add(time.Second), Subject: "evt.x", Data: []byte{0xff, 0x00}},
		{Seq: 4, Time: at.Add(time.Minute), Subject: "evt.x", Data: []byte{0xff, 0x00}},
		{Seq: 5, Time: at.Add(time.Hour), Subject: "evt.empty"},
	}
}

func made(t *testing.T) vectors {
	t.Helper()
	key, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.Seed()
	if err != nil {
		t.Fatal(err)
	}
	of := audit.Identity{Stream: "EVENTS", Created: time.Date(2026, 12, 1, 3, 0, 0, 5, time.UTC)}
	v := vectors{Seed: string(text), Stream: of.Stream, Created: of.Created, Genesis: audit.Genesis(of)}
	s := audit.Begin(of)
	var h audit.Hasher
	var hashes []audit.Hash
	var prints []audit.Fingerprint
	for _, e := range stored() {
		content, hash := h.Content(e.Subject, e.Header, e.Data), h.Event(e)
		s.Add(hash)
		hashes, prints = append(hashes, hash), append(prints, audit.FingerprintOf(content, hash))
		v.Events = append(v.Events, vector{audit.RecordOf(e), content, hash, s.Chain, s.Tree.Root()})
		switch e.Seq {
		case 3:
			v.Early, err = audit.Sign(key, of, s, 0, prints)
		case 5:
			v.Late, err = audit.Sign(key, of, s, 4, prints[3:])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if v.Proof, err = audit.Prove(stored()[1], hashes); err != nil {
		t.Fatal(err)
	}
	if v.Extends, err = audit.Extend(3, hashes); err != nil {
		t.Fatal(err)
	}
	return v
}

// The vectors that the page shows are what this package computes, to the byte.
func TestVectorsOfThePage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "audit.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Test vectors\n")
	_, block, _ := strings.Cut(section, "```json\n")
	block, _, ok := strings.Cut(block, "```")
	if !ok {
		t.Fatal("docs/audit.md has no block of test vectors")
	}
	want, err := json.MarshalIndent(made(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(block) != string(want) {
		t.Errorf("docs/audit.md has other vectors; they are\n%s", want)
	}
}

// What the page shows is checked as a third party would: read from JSON, with
// nothing but the public key beside it.
func TestVectorsAreProofs(t *testing.T) {
	text, err := json.Marshal(made(t))
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	for _, c := range []events.AuditCheckpoint{v.Early, v.Late} {
		if err := audit.Check(c, c.Key); err != nil {
			t.Error(err)
		}
	}
	if err := v.Proof.Check(v.Late); err != nil {
		t.Error(err)
	}
	if err := v.Extends.Check(v.Early, v.Late); err != nil {
		t.Error(err)
	}
}

// Whatever is changed in a checkpoint, a proof or an extension, it no longer holds.
func TestNothingMayBeChanged(t *testing.T) {
	v := made(t)
	for name, change := range map[string]func(c *events.AuditCheckpoint){
		"through":      func(c *events.AuditCheckpoint) { c.Through++ },
		"chain":        func(c *events.AuditCheckpoint) { c.Chain = c.Root },
		"root":         func(c *events.AuditCheckpoint) { c.Root = c.Chain },
		"stream":       func(c *events.AuditCheckpoint) { c.Stream = "OTHER" },
		"created":      func(c *events.AuditCheckpoint) { c.Created = c.Created.Add(1) },
		"previous":     func(c *events.AuditCheckpoint) { c.Previous = 0 },
		"fingerprints": func(c *events.AuditCheckpoint) { c.Fingerprints = "" },
		"key":          func(c *events.AuditCheckpoint) { c.Key = "U" },
		"signature":    func(c *events.AuditCheckpoint) { c.Signature = c.Signature[1:] + "A" },
	} {
		c := v.Late
		if change(&c); audit.Check(c, v.Late.Key) == nil {
			t.Errorf("a checkpoint with another %s holds", name)
		}
	}
	other, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	pub, err := other.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	if audit.Check(v.Late, pub) == nil {
		t.Error("a checkpoint of a key that is not trusted holds")
	}
	for name, change := range map[string]func(p *audit.Proof){
		"body":    func(p *audit.Proof) { p.Event.Body = audit.Text("{ }") },
		"time":    func(p *audit.Proof) { p.Event.Time = p.Event.Time.Add(1) },
		"seq":     func(p *audit.Proof) { p.Event.Seq++ },
		"subject": func(p *audit.Proof) { p.Event.Subject = audit.Text("evt.y") },
		"header":  func(p *audit.Proof) { p.Event.Headers = p.Event.Headers[1:] },
		"path":    func(p *audit.Proof) { p.Path = p.Path[1:] },
		"through": func(p *audit.Proof) { p.Through-- },
		"format":  func(p *audit.Proof) { p.Format = "" },
	} {
		p := made(t).Proof
		if change(&p); p.Check(v.Late) == nil {
			t.Errorf("a proof with another %s holds", name)
		}
	}
	if v.Proof.Check(v.Early) == nil {
		t.Error("a proof for one checkpoint holds for another")
	}
	if v.Extends.Check(v.Late, v.Late) == nil {
		t.Error("an extension holds between other checkpoints")
	}
}
