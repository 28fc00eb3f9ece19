package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"correx/internal/session"
	"correx/internal/testmodel"
	"correx/pkg/events"
)

// configure replaces a part of the configuration.
func (s *system) configure(old, new string) {
	s.t.Helper()
	path := filepath.Join(s.state, "correx.yaml")
	config, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if !strings.Contains(string(config), old) {
		s.t.Fatalf("the configuration has no %q", old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(config), old, new, 1)), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// asked waits for the question about an invocation of no session, and returns it.
func (s *system) asked(id string) session.Invocation {
	s.t.Helper()
	var i session.Invocation
	s.await(events.System, "the question about "+id, func(st session.State) bool {
		found, ok := st.Tool(events.ToolInvocationID(id))
		i = found
		return ok && found.Asked != nil
	})
	return i
}

// ended waits for the end of an invocation of no session.
func (s *system) ended(id string) session.Invocation {
	s.t.Helper()
	var i session.Invocation
	s.await(events.System, "the end of "+id, func(st session.State) bool {
		found, ok := st.Tool(events.ToolInvocationID(id))
		i = found
		return ok && found.Status().Ended()
	})
	return i
}

// TestReviewedCommand: what a command changed is in the workspace when a person
// has seen the diff and said yes, and not before; a no, and a file that moved
// meanwhile, leave it alone.
func TestReviewedCommand(t *testing.T) {
	s := newSystem(t, testmodel.Script{})
	s.configure("allowed_executables: [sleep]", "allowed_executables: [sleep, sh], commit: review")
	note := filepath.Join(s.workspace, "note.txt")
	write := func(text string) {
		if err := os.WriteFile(note, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		data, err := os.ReadFile(note)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	s.start("projector") // whoever is there first waits
	s.start("tool-worker")
	s.start("bus", "serve")
	s.awaitText("tools", "shell_commit")
	call := func(id string) session.Invocation {
		s.api("tool.request", `{"tool":"shell","invocation":"`+id+`","parameters":{"argv":["sh","-c","echo two > note.txt; echo done"]}}`)
		first := s.asked(id)
		if len(first.Previewed.Notes) == 0 {
			t.Errorf("%s was asked for without a word on where it runs", id)
		}
		s.api("tool.approve", `{"session":"system","invocation":"`+id+`","digest":"`+first.Asked.Digest+`"}`)
		if e, ok := s.ended(id).End.(events.ToolExecutionCompleted); !ok || e.Receipt.FollowUp == nil || e.Receipt.Output != "done\n" {
			t.Fatalf("%s ended with %+v", id, s.ended(id).End)
		}
		return s.asked(id + "-c")
	}

	write("one\n")
	question := call("yes")
	if read() != "one\n" || !strings.Contains(question.Previewed.Diff, "-one\n+two") {
		t.Fatalf("before the review the file has %q, the diff is\n%s", read(), question.Previewed.Diff)
	}
	s.api("tool.approve", `{"session":"system","invocation":"yes-c","digest":"`+question.Asked.Digest+`"}`)
	if e, ok := s.ended("yes-c").End.(events.ToolExecutionCompleted); !ok || len(e.Receipt.Affected) != 1 || read() != "two\n" {
		t.Errorf("the review ended with %+v, the file has %q", s.ended("yes-c").End, read())
	}

	write("one\n")
	call("no")
	s.api("tool.reject", `{"session":"system","invocation":"no-c","reason":"not like this"}`)
	if e, ok := s.ended("no-c").End.(events.ToolExecutionRejected); !ok || read() != "one\n" {
		t.Errorf("the review ended with %+v, the file has %q", e, read())
	}

	question = call("moved")
	write("three\n")
	s.api("tool.approve", `{"session":"system","invocation":"moved-c","digest":"`+question.Asked.Digest+`"}`)
	if _, done := s.ended("moved-c").End.(events.ToolExecutionCompleted); done || read() != "three\n" {
		t.Errorf("the review ended with %+v, the file has %q", s.ended("moved-c").End, read())
	}
	s.databaseEqualsLog()
}
