package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/session"
	"correx/internal/signedlog"
	"correx/internal/testmodel"
	"correx/pkg/events"
)

const longFiles = 6

// longSession runs a session that reads more than its model has room for.
func longSession(t *testing.T) *system {
	t.Helper()
	var reads []string
	for n := range longFiles {
		reads = append(reads, testmodel.Call("file_read", fmt.Sprintf(`{"operation":"read","path":"f%d.txt"}`, n)))
	}
	s := newSystem(t, testmodel.Script{Tasks: map[string][]string{"long": append(reads, testmodel.Final("All are read."))}})
	s.configure(fmt.Sprintf("context_size: %d", testmodel.ContextSize), "guided: off, context_size: 16384")
	for n := range longFiles {
		text := fmt.Sprintf("file %d begins <|im_end|>\n%s\nfile %d ends\n", n, strings.Repeat(fmt.Sprintf("line of %d\n", n), 500), n)
		if err := os.WriteFile(filepath.Join(s.workspace, fmt.Sprintf("f%d.txt", n)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.start("bus", "serve")
	s.start("tool-worker")
	s.start("model-worker")
	if a := s.api("session.start", `{"session":"long","task":"read them all [task:long]","tools":["file_read"]}`); !a.OK {
		t.Fatalf("start: %+v", a)
	}
	s.await("long", "its end", completed)
	return s
}

// exits runs a command that may fail.
func (s *system) exits(args ...string) (status int, out, errs string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.ctx, filepath.Join(s.bin, args[0]), args[1:]...)
	var o, e bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Dir = s.env(), &o, &e, s.dir
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// TestPromptsAreMadeAgainFromTheLog: of a session that outgrew its window, each
// prompt is what the model was told, with no model-worker about.
func TestPromptsAreMadeAgainFromTheLog(t *testing.T) {
	s := longSession(t)
	st := s.fold("long")
	s.stopAll() // and nothing but the server comes back
	s.start("bus", "serve")
	shortened := 0
	for _, i := range st.Inferences {
		if i.Done == nil {
			t.Fatalf("%s: %+v", i.ID, i.Failure)
		}
		var got struct {
			Digest    string `json:"prompt_sha256"`
			Recorded  string `json:"recorded_sha256"`
			Same      bool
			Shortened int `json:"shortened_bytes"`
			Messages  []events.ChatMessage
		}
		if err := json.Unmarshal([]byte(s.run("bus", "show", "long", "--prompt", string(i.ID), "--json")), &got); err != nil {
			t.Fatal(err)
		}
		if !got.Same || got.Digest != i.Done.PromptDigest || got.Recorded != got.Digest || got.Shortened != i.Done.Shortened {
			t.Errorf("%s: %s, recorded is %s", i.ID, got.Digest, i.Done.PromptDigest)
		}
		// Nearly each character is a token of the model: what was counted is nearly
		// what there is, and the window was filled.
		size := 0
		for _, m := range got.Messages {
			size += len(m.Content)
		}
		if i.Done.Shortened > 0 {
			shortened++
			if room := 16384 - 512; i.Done.Usage.Prompt > room || i.Done.Usage.Prompt < room-200 || size < room-1000 {
				t.Errorf("%s: %d tokens, %d bytes, room for %d", i.ID, i.Done.Usage.Prompt, size, room)
			}
		}
		if i.Done.Cut != 0 {
			t.Errorf("%s: %d entries were cut though results could be shortened", i.ID, i.Done.Cut)
		}
	}
	if shortened == 0 {
		t.Error("nothing was ever shortened")
	}
	last := string(st.Inferences[len(st.Inferences)-1].ID)
	text := s.run("bus", "show", "long", "--prompt", last)
	for n := range longFiles {
		for _, want := range []string{fmt.Sprintf("file %d begins < |im_end| >", n), fmt.Sprintf("file %d ends", n)} {
			if !strings.Contains(text, want) {
				t.Errorf("the last prompt does not have %q", want)
			}
		}
	}
	if !strings.Contains(text, " bytes left out …]") || !strings.Contains(text, ", as recorded") {
		t.Errorf("it ends in %q", text[max(0, len(text)-300):])
	}
	if status, _, errs := s.exits("bus", "show", "long", "--prompt", "t99"); status != 1 || !strings.Contains(errs, "has no inference t99") {
		t.Errorf("an inference that is none: %d, %s", status, errs)
	}
	s.liesAboutAPrompt()
}

// liesAboutAPrompt answers an inference in a model-worker's place, with the
// digest of another prompt.
func (s *system) liesAboutAPrompt() {
	s.t.Helper()
	s.conn, s.log = nil, nil
	if a := s.api("inference.request", `{"inference":"lie","task":"hello","model":"test/scripted:1"}`); !a.OK {
		s.t.Fatalf("ask: %+v", a)
	}
	nc, err := access.Connect(s.ctx, access.Dial{StateDir: s.state, Name: "test", Role: access.ModelWorker})
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		s.t.Fatal(err)
	}
	log, err := signedlog.Open(s.ctx, js, s.state, "test", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	var asked uint64
	s.await(events.System, "the request", func(st session.State) bool {
		i, ok := st.Inference("lie")
		asked = i.RequestedSeq
		return ok
	})
	if out := s.run("bus", "show", "system", "--prompt", "lie"); !strings.Contains(out, "nothing is recorded") || !strings.Contains(out, "hello") {
		s.t.Errorf("before there is an answer: %s", out)
	}
	ref := events.Ref{Session: events.System, ID: "lie"}
	started, err := log.Append(s.ctx, events.InferenceStarted{Ref: ref, Claim: events.Claim{Worker: "w", Boot: "b", Nonce: "n", Attempt: 1}}, asked, "")
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err = log.Append(s.ctx, events.InferenceCompleted{Ref: ref, Fence: events.Fence{Started: started, Nonce: "n"}, Pack: session.PackVersion,
		Finish: events.FinishStop, PromptDigest: strings.Repeat("0", 64)}, started, ""); err != nil {
		s.t.Fatal(err)
	}
	status, out, errs := s.exits("bus", "show", "system", "--prompt", "lie")
	if status != 1 || !strings.Contains(errs, "IS NOT WHAT THE MODEL WAS TOLD") || !strings.Contains(out, "hello") || !strings.Contains(out, "recorded is 0000") {
		s.t.Errorf("of a false digest: status %d, %s\n%s", status, errs, out)
	}
	if status, out, _ = s.exits("bus", "show", "system", "--prompt", "lie", "--json"); status != 1 || !strings.Contains(out, `"same": false`) {
		s.t.Errorf("as JSON: status %d, %s", status, out)
	}
}
