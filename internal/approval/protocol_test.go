package approval_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"correx/internal/approval"
	"correx/pkg/events"
)

// A vector is the example of docs/protocol.md by which a worker in another
// language checks its digest and its check of signatures.
type vector struct {
	Seed       string            `json:"seed"` // 32 bytes, as an NKey seed of a user
	Stream     string            `json:"stream"`
	Created    time.Time         `json:"created"`
	Tool       string            `json:"tool"`
	Parameters string            `json:"parameters"`
	Base       []events.BaseHash `json:"base"`
	Policy     string            `json:"policy_version"`
	Session    events.SessionID  `json:"session"`
	ID         string            `json:"id"`
	Token      string            `json:"tool_token"`
	Until      string            `json:"until"`
	Digest     string            `json:"digest"`
	Signed     string            `json:"signed"`
	Key        string            `json:"key"`
	Signature  string            `json:"signature"`
}

func TestProtocolVector(t *testing.T) {
	var v vector
	if err := json.Unmarshal([]byte(documented(t, "vector")), &v); err != nil {
		t.Fatal(err)
	}
	if got := approval.Digest(v.Tool, events.Raw(v.Parameters), v.Base, v.Policy); got != v.Digest {
		t.Errorf("digest = %s, documented is %s", got, v.Digest)
	}
	until, err := time.Parse(time.RFC3339Nano, v.Until)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Join([]string{"correx approval 1", v.Stream, v.Created.UTC().Format(time.RFC3339Nano),
		string(v.Session), v.ID, v.Tool, v.Token, v.Digest, v.Until}, "\n")
	if lines != v.Signed {
		t.Errorf("signed text is %q, documented is %q", lines, v.Signed)
	}
	key, err := nkeys.FromSeed([]byte(v.Seed))
	if err != nil {
		t.Fatal(err)
	}
	id := approval.StreamIdentity{Stream: v.Stream, Created: v.Created}
	g, err := approval.Sign(key, id, events.ApprovalGranted{
		Ref: events.Ref{Session: v.Session, ID: v.ID}, Tool: v.Tool, Token: v.Token, Digest: v.Digest, Until: until,
	})
	if err != nil {
		t.Fatal(err)
	}
	if g.Key != v.Key || g.Signature != v.Signature {
		t.Errorf("signed by %s: %s, documented is %s: %s", g.Key, g.Signature, v.Key, v.Signature)
	}
}

// TestProtocolRecord reads the record that docs/protocol.md shows, and verifies
// the approval that it is.
func TestProtocolRecord(t *testing.T) {
	var shown struct {
		Seq     uint64              `json:"seq"`
		Time    time.Time           `json:"time"`
		Subject string              `json:"subject"`
		Headers map[string][]string `json:"headers"`
		Body    json.RawMessage     `json:"body"`
	}
	if err := json.Unmarshal([]byte(documented(t, "record")), &shown); err != nil {
		t.Fatal(err)
	}
	r := events.Decode(shown.Seq, shown.Time, shown.Subject, shown.Headers, shown.Body)
	if r.Err != nil {
		t.Fatalf("the record does not hold: %v", r.Err)
	}
	g, ok := r.Fact.(events.ApprovalGranted)
	if !ok {
		t.Fatalf("the record is %T", r.Fact)
	}
	created, err := time.Parse(time.RFC3339Nano, "2026-12-01T01:24:50.012978993Z")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(documented(t, ""), created.Format(time.RFC3339Nano)) {
		t.Error("docs/protocol.md does not say when the stream of its record was made")
	}
	v, err := approval.NewVerifier(approval.StreamIdentity{Stream: "EVENTS", Created: created}, g.Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(r); err != nil {
		t.Error(err)
	}
	if want := approval.Digest(g.Tool, events.Raw(`{"operation":"write","path":"notes/hello.txt","content":"Hello from Correx to notes/hello.txt"}`),
		[]events.BaseHash{{Path: "/home/ada/correx-tour/workspace/notes/hello.txt"}}, g.Policy); want != g.Digest {
		t.Errorf("digest = %s, the record's is %s", want, g.Digest)
	}
}

// documented returns the JSON block of docs/protocol.md that a comment names, or
// the whole page.
func documented(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	if name == "" {
		return string(page)
	}
	m := regexp.MustCompile("(?s)<!-- " + name + " -->\n```json\n(.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatalf("docs/protocol.md has no block after <!-- %s -->", name)
	}
	return string(m[1])
}
