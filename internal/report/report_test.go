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

func TestForkSaysWhosePastItShares(t *testing.T) {
	s := &story{t: t, last: map[events.Aggregate]uint64{}}
	s.add(events.SessionStarted{Ref: events.Ref{Session: "s0", ID: "main"}, Task: "x"})
	s.add(events.SessionStarted{Ref: ref("main"), Decision: decided("2-abc"), Task: "x", Mode: events.ModePrompt,
		ForkOf: &events.Fork{Session: "s0", At: 1}, Say: "rather y"})
	r := Build(s.recs[1:], Options{Session: "s1"})
	var text, page bytes.Buffer
	if err := errors.Join(r.Text(&text, cli.Coloured(false)), r.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{text.String(), page.String()} {
		for _, want := range []string{"s0", "at event 1: what happened there up to then is its past", "rather y"} {
			if !strings.Contains(b, want) {
				t.Errorf("the report lacks %q:\n%s", want, b)
			}
		}
	}
}
