package report

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"correx/internal/approval"
	"correx/internal/cli"
	"correx/pkg/audit"
	"correx/pkg/events"
)

var update = flag.Bool("update", false, "write testdata anew")

var (
	epoch  = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	stream = audit.Identity{Stream: "EVENTS", Created: epoch.Add(-time.Hour)}
)

// hostile is what a model, a tool or a stranger may write to take over a page or
// a terminal, or to make it show something else.
const hostile = `</pre><script>alert(1)</script><img src=x onerror=alert(2)>"'&` + "\u202egnp.exe\u202c\u200b\ufeff\x1b[2J\x00\xff" + `<style>*{display:none}</style>{{.}}` + "\n  signature  by me"

// A story is the records of a session in the making.
type story struct {
	t    *testing.T
	key  nkeys.KeyPair
	recs []events.Record
	last map[events.Aggregate]uint64
}

func (s *story) add(f events.Fact) uint64 {
	s.t.Helper()
	a, seq := events.AggregateOf(f), uint64(len(s.recs)+1)
	at := epoch.Add(time.Duration(seq) * 1500 * time.Millisecond)
	subject, h, data, err := events.Encode(f, events.Source{Name: "test"}, s.last[a], at)
	if err != nil {
		s.t.Fatal(err)
	}
	s.recs = append(s.recs, events.Decode(seq, at, subject, h, data))
	s.last[a] = seq
	return seq
}

func ref(id string) events.Ref { return events.Ref{Session: "s1", ID: id} }

func decided(command string) events.Decision {
	return events.Decision{DecidedAt: 1, Now: epoch, Command: events.CommandID(command), Actor: "alice"}
}

const params = `{"operation":"write","path":"notes/a.txt","content":"` + "one\\ntwo" + `"}`

const diff = "--- notes/a.txt\n+++ notes/a.txt\n@@ -1,2 +1,2 @@\n one\n-2\n+two\n"

// told is a session with each thing that a report tells.
func told(t *testing.T) *story {
	t.Helper()
	key, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, bytes.Repeat([]byte{3}, 32))
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, key: key, last: map[events.Aggregate]uint64{}}
	s.add(events.SessionStarted{Ref: ref("main"), Decision: decided("1-abc"), Task: "Write the notes.\nThen stop.", Model: "smol:135m",
		Mode: events.ModePrompt, Tools: []string{"file_write", "shell"}})
	s.add(events.StageEntered{Ref: ref("main"), Decision: decided(""), Stage: "turn-1"})
	s.add(events.InferenceRequested{Ref: ref("t1"), Decision: decided(""), Stage: "turn-1", Model: "smol:135m", ModelToken: "smol", Through: 2, Deadline: epoch})
	claim := s.add(events.InferenceStarted{Ref: ref("t1"), Claim: events.Claim{Worker: "m1", Boot: "b", Nonce: "n", Attempt: 1}})
	s.add(events.InferenceCompleted{Ref: ref("t1"), Fence: events.Fence{Started: claim, Nonce: "n"}, Usage: events.TokenUsage{Total: 25}, PromptDigest: "d1",
		Reply: events.Reply{Text: "x", Calls: []events.ToolCall{{Tool: "file_write", Arguments: events.Raw(params)}}}, Finish: events.FinishStop})
	s.good("t1-0")
	s.add(events.MessageAdded{Ref: ref("main"), Decision: decided("2-abc"), Role: events.RoleUser, Text: hostile})
	s.denied("t1-1")
	s.failed("t1-2")
	s.forged("t1-3")
	s.add(events.SessionCancelled{Ref: ref("main"), Decision: decided("9-abc"), Reason: "enough"})
	return s
}

func (s *story) requested(id, tool, parameters string) {
	s.add(events.ToolInvocationRequested{Ref: ref(id), Decision: decided(""), Tier: events.T2, Token: tool,
		Request: events.ToolRequest{Invocation: events.ToolInvocationID(id), Session: "s1", Tool: tool, Parameters: events.Raw(parameters)}})
}

func (s *story) asked(id, tool, parameters string, base []events.BaseHash) string {
	digest := approval.Digest(tool, events.Raw(parameters), base, "p1")
	s.add(events.ApprovalRequested{Ref: ref(id), Decision: decided(""), Token: tool, Tool: tool, Tier: events.T2, Digest: digest, Policy: "p1",
		Why: "mode prompt", Deadline: epoch.Add(time.Hour), Notes: []string{"a note"}})
	return digest
}

func (s *story) granted(id, tool, digest string) {
	g := events.ApprovalGranted{Ref: ref(id), Decision: decided("3-abc"), Token: tool, Tool: tool, Tier: events.T2, Digest: digest, Policy: "p1",
		By: "person", Scope: events.ScopeOnce, Reason: "looks fine", Until: epoch.Add(time.Hour)}
	g, err := approval.Sign(s.key, approval.StreamIdentity(stream), g)
	if err != nil {
		s.t.Fatal(err)
	}
	s.add(g)
}

func (s *story) started(id string) events.Fence {
	seq := s.add(events.ToolExecutionStarted{Ref: ref(id), Claim: events.Claim{Worker: "w1", Boot: "b", Nonce: "n", Attempt: 1}, Isolation: events.IsolationFull})
	return events.Fence{Started: seq, Nonce: "n"}
}

func (s *story) good(id string) {
	base := []events.BaseHash{{Path: "notes/a.txt"}}
	s.requested(id, "file_write", params)
	s.add(events.ToolPreviewed{Ref: ref(id), Worker: "w1", Valid: true, Tier: events.T2, Diff: diff, Base: base, Affected: []string{"notes/a.txt"}})
	s.granted(id, "file_write", s.asked(id, "file_write", params, base))
	s.add(events.ToolExecutionCompleted{Ref: ref(id), Fence: s.started(id), Receipt: events.ToolReceipt{Output: "wrote notes/a.txt", Diff: diff,
		Affected: []string{"notes/a.txt"}, Duration: 12 * time.Millisecond, Isolation: events.IsolationFull, Tier: events.T2, Time: epoch,
		Artifacts: []events.ArtifactRef{{Name: "stdout", SHA256: "ab", Size: 70000}}}})
}

func (s *story) denied(id string) {
	s.requested(id, "shell", `{"argv":["rm","-rf","/"]}`)
	s.asked(id, "shell", `{"argv":["rm","-rf","/"]}`, nil)
	s.add(events.ApprovalDenied{Ref: ref(id), Decision: decided("4-abc"), Reason: "certainly not"})
	s.add(events.ToolExecutionRejected{Ref: ref(id), Decision: decided(""), Tier: events.T2, Reason: "a person said no: certainly not", Denied: true})
}

// failed is a run that failed, of which everything that a stranger fills in is
// hostile.
func (s *story) failed(id string) {
	quoted, err := json.Marshal(map[string]string{"argv": hostile})
	if err != nil {
		s.t.Fatal(err)
	}
	s.requested(id, "shell", string(quoted))
	s.add(events.ToolPreviewed{Ref: ref(id), Worker: "w1", Valid: true, Tier: events.T2, Diff: "+" + hostile + "\n-" + hostile, Notes: []string{hostile}, Affected: []string{hostile}})
	s.granted(id, "shell", s.asked(id, "shell", string(quoted), nil))
	s.add(events.ToolExecutionFailed{Ref: ref(id), Fence: s.started(id), Reason: hostile, Effects: events.EffectsKept,
		Receipt: &events.ToolReceipt{ExitCode: 3, Output: hostile, Diff: hostile, Affected: []string{hostile}, Time: epoch}})
}

// forged is an approval that is signed by somebody else, and does not hold.
func (s *story) forged(id string) {
	s.requested(id, "shell", `{"argv":["true"]}`)
	real := s.key
	s.key, _ = nkeys.CreateUser()
	s.granted(id, "shell", s.asked(id, "shell", `{"argv":["true"]}`, nil))
	s.key = real
	r := &s.recs[len(s.recs)-1]
	r.Fact, r.Err = nil, approval.ErrForged
}

// built is the report of [told].
func built(t *testing.T) Report {
	t.Helper()
	s := told(t)
	pub, err := s.key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	v, err := approval.NewVerifier(approval.StreamIdentity(stream), pub)
	if err != nil {
		t.Fatal(err)
	}
	return Build(s.recs, Options{Stream: stream, Session: "s1", Verify: v.Verify,
		Evidence: Evidence{Checked: true, Keys: []string{pub}, Covered: 20}})
}

// The report answers what an auditor asks, in its data.
func TestReportSaysWhoDidWhat(t *testing.T) {
	r := built(t)
	if s := r.Summary; s.Calls != 4 || s.ByPeople != 2 || s.Succeeded != 1 || s.Failed != 1 || s.Refused != 1 || s.Open != 1 || s.Tokens != 25 ||
		strings.Join(s.Affected, " ") != "notes/a.txt" {
		t.Errorf("summary: %+v", s)
	}
	if r.Start == nil || r.Start.Actor != "alice" || r.State != "CANCELLED" || r.Reason != "enough" {
		t.Errorf("it begins with %+v and is %s (%s)", r.Start, r.State, r.Reason)
	}
	calls := map[string]*Call{}
	for _, s := range r.Steps {
		if s.Call != nil {
			calls[s.Call.ID] = s.Call
		}
	}
	c := calls["t1-0"]
	if a := c.Answer; a.What != "approved" || a.Actor != "alice" || !a.Matches || !a.Verified || a.Waited != 1500*time.Millisecond {
		t.Errorf("the approval is %+v", a)
	}
	if c.AskedBy != "the model, in t1" || c.Run.Isolation != "full" || c.Result.Diff != diff || c.Preview.Diff != diff {
		t.Errorf("the call is %+v", c)
	}
	if len(c.Records) != 6 || len(c.Records[0].Hash) != 64 {
		t.Errorf("its records are %v", c.Records)
	}
	if a := calls["t1-1"].Answer; a.What != "denied" || a.Reason != "certainly not" || calls["t1-1"].Run != nil {
		t.Errorf("the denial is %+v", a)
	}
	if calls["t1-3"].Answer != nil || len(r.Alarms) != 1 || !strings.Contains(r.Alarms[0].Reason, "not signed by the kernel") {
		t.Errorf("the forgery is told as %+v, alarms %v", calls["t1-3"].Answer, r.Alarms)
	}
}

// An approval for something else than what stands on the log, or that nobody
// signed, is said to be that: whoever wrote the log down may have changed it.
func TestReportDoubtsApprovals(t *testing.T) {
	s := told(t)
	stranger, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	pub, err := stranger.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	v, err := approval.NewVerifier(approval.StreamIdentity(stream), pub)
	if err != nil {
		t.Fatal(err)
	}
	r := Build(s.recs, Options{Stream: stream, Session: "s1", Verify: v.Verify})
	for _, step := range r.Steps {
		if step.Call != nil && step.Call.Answer != nil && step.Call.Answer.What == "approved" && step.Call.Answer.Verified {
			t.Errorf("%s is said to be signed by the kernel", step.Call.ID)
		}
	}
	var text, html bytes.Buffer
	if err := errors.Join(r.Text(&text, cli.Coloured(false)), r.HTML(&html)); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{text.String(), html.String()} {
		if !strings.Contains(form, "approval is not signed by the kernel") || !strings.Contains(form, "was not held against its checkpoints") {
			t.Error("it does not say so")
		}
	}
}

func TestTextAndJSON(t *testing.T) {
	r := built(t)
	var text bytes.Buffer
	if err := r.Text(&text, cli.Coloured(false)); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.txt", text.Bytes())
	if strings.Contains(text.String(), "\n  signature  by me") {
		t.Error("a line of a text passes for one of the report")
	}
	for _, c := range text.String() {
		if c < ' ' && c != '\n' || c == 0x7f || c == '\u202e' || c == '\u200b' || c == '\ufeff' {
			t.Errorf("the text has %U in it", c)
		}
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(b, &again); err != nil || again.Summary.Calls != 4 {
		t.Errorf("the JSON reads as %+v: %v", again.Summary, err)
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, got, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is another; run with -update and look at the difference\n%s", path, got)
	}
}

// pageOf is the page, written into a file too.
func pageOf(t *testing.T) (html []byte, path string) {
	t.Helper()
	var b bytes.Buffer
	if err := built(t).HTML(&b); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), path
}

// The page is made of its own elements only, loads nothing, and shows what
// strangers wrote as text, the invisible in it included.
func TestPage(t *testing.T) {
	html, _ := pageOf(t)
	allowed := map[string]bool{}
	for _, e := range strings.Fields("html head meta title style body header h1 h2 h3 h4 div span p b dl dt dd ul li pre bdi section table tbody tr td footer") {
		allowed[e] = true
	}
	attributes := map[string]bool{"class": true, "charset": true, "name": true, "content": true, "http-equiv": true, "lang": true}
	d := xml.NewDecoder(bytes.NewReader(html))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var text strings.Builder
	var open []string
	styles := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			open = append(open, e.Name.Local)
			if e.Name.Local == "style" {
				styles++
			}
			if !allowed[e.Name.Local] {
				t.Errorf("the page has an element %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				if !attributes[a.Name.Local] {
					t.Errorf("an element %s has an attribute %s=%q", e.Name.Local, a.Name.Local, a.Value)
				}
			}
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != e.Name.Local {
				t.Fatalf("</%s> closes %v", e.Name.Local, open)
			}
			open = open[:len(open)-1]
		case xml.CharData:
			text.Write(e)
		}
	}
	if styles != 1 || len(open) != 0 {
		t.Errorf("%d styles, %v left open", styles, open)
	}
	for _, want := range []string{`<script>alert(1)</script>`, `\u{202e}`, `\u{200b}`, `\u{feff}`, `\x1b`, `\x00`, `{{.}}`,
		"Write the notes.", "alice", "full", "-2", "+two", "certainly not", "by the kernel's key"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	for _, c := range "\u202e\u202c\u200b\ufeff\x1b\x00" {
		if bytes.ContainsRune(html, c) {
			t.Errorf("the page has %U in it", c)
		}
	}
	if bytes.Contains(html, []byte("http:")) || bytes.Contains(html, []byte("https:")) || bytes.Contains(html, []byte("url(")) {
		t.Error("the page names something outside itself")
	}
	if !bytes.Contains(html, []byte("@media print")) || !bytes.Contains(html, []byte("default-src 'none'")) {
		t.Error("the page has no print style, or no policy")
	}
}

// What does not show is named, and marked apart from one who only writes the name.
func TestPieces(t *testing.T) {
	got := pieces("a\u202eb\xffé\\u{202e}")
	want := []Piece{{"a", false}, {`\u{202e}`, true}, {"b", false}, {`\xff`, true}, {`é\u{202e}`, false}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if got := pieces(""); got != nil {
		t.Errorf("of nothing it makes %v", got)
	}
}

// A browser, where there is one, shows the page as it is meant, and makes a PDF
// of it.
func TestPageInABrowser(t *testing.T) {
	browser := os.Getenv("CORREX_BROWSER")
	for _, name := range []string{"chromium", "chromium-headless-shell", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); browser == "" && err == nil {
			browser = path
		}
	}
	if browser == "" {
		t.Skip("no browser on PATH, and CORREX_BROWSER names none; TestPage has parsed the page")
	}
	_, path := pageOf(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := func(args ...string) []byte {
		t.Helper()
		args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir=" + t.TempDir()}, args...)
		out, err := exec.CommandContext(ctx, browser, append(args, "file://"+path)...).Output()
		if err != nil {
			t.Fatalf("%s: %v", browser, err)
		}
		return out
	}
	dom := run("--dump-dom")
	for _, bad := range []string{"<script", "<img"} {
		if bytes.Contains(dom, []byte(bad)) {
			t.Errorf("the browser has made a %s", bad)
		}
	}
	if n := bytes.Count(dom, []byte(`<section class="step call">`)); n != 4 {
		t.Errorf("the browser shows %d calls", n)
	}
	pdf := filepath.Join(t.TempDir(), "report.pdf")
	run("--print-to-pdf=" + pdf)
	if b, err := os.ReadFile(pdf); err != nil || !bytes.HasPrefix(b, []byte("%PDF-")) || len(b) < 10_000 {
		t.Errorf("it prints %d bytes (%v)", len(b), err)
	}
}
