package changes

import (
	"bytes"
	"strings"
	"testing"

	"correx/pkg/tools/workspace"
)

// someSet has each kind of change.
func someSet() Set {
	file := func(text string, mode uint32) State {
		return State{Type: File, Mode: mode, Size: int64(len(text)), SHA256: workspace.Hash([]byte(text))}
	}
	dir := State{Type: Directory, Mode: 0o755}
	return Set{Changes: []Change{
		{Path: "/w/changed", Kind: Changed, Before: file("old", 0o644), After: file("new", 0o755), Old: []byte("old"), Data: []byte("new")},
		{Path: "/w/deleted", Kind: Deleted, Before: file("<&>\x00", 0o600), Old: []byte("<&>\x00")},
		{Path: "/w/dir", Kind: Changed, Before: dir, After: State{Type: Symlink, Target: "../x"}},
		{Path: "/w/dir/in", Kind: Deleted, Before: file("", 0o644)},
		{Path: "/w/mode", Kind: Changed, Before: file("same", 0o644), After: file("same", 0o600), Data: []byte("same")},
		{Path: "/w/new", Kind: Created, After: dir},
		{Path: "/w/new/é\n", Kind: Created, After: file("1", 0o644), Data: []byte("1")},
	}}
}

func TestOneForm(t *testing.T) {
	text, err := someSet().Encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Encode()
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("it is not the same again: %v\n%s\n%s", err, text, again)
	}
	if s.Diff(0) != someSet().Diff(0) {
		t.Error("it shows another diff")
	}
}

// TestDecodeRefuses changes a sound set in one place each.
func TestDecodeRefuses(t *testing.T) {
	text, err := someSet().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"format", "correx-changes-1", "correx-changes-2", "format"},
		{"space", `{"path"`, `{ "path"`, "canonical"},
		{"unknown field", `"kind":"deleted"`, `"kind":"deleted","x":1`, "unknown field"},
		{"other case", `"kind":"deleted"`, `"KIND":"deleted"`, "canonical"},
		{"field twice", `"kind":"deleted"`, `"kind":"created","kind":"deleted"`, "canonical"},
		{"relative path", `"/w/changed"`, `"w/changed"`, "absolute"},
		{"path that climbs", `"/w/changed"`, `"/w/../changed"`, "clean"},
		{"path with a NUL", `"/w/changed"`, `"/w/chan\u0000"`, "NUL"},
		{"out of order", `"/w/changed"`, `"/w/z"`, "sorted"},
		{"twice", `"/w/changed"`, `"/w/deleted"`, "twice"},
		{"kind", `"kind":"deleted"`, `"kind":"created"`, "what happens"},
		{"mode", `"mode":493`, `"mode":65535`, "mode"},
		{"setuid", `"mode":493,"size":3`, `"mode":2541,"size":3`, "setuid"},
		{"type", `"type":"symlink"`, `"type":"fifo"`, "unknown"},
		{"link without a target", `,"target":"../x"`, ``, "target"},
		{"data", `"data":"bmV3"`, `"data":"b2xk"`, "SHA-256"},
		{"backup", `"old":"b2xk"`, `"old":"bmV3"`, "SHA-256"},
		{"size", `"size":3`, `"size":4`, "bytes"},
		{"in a file", `"/w/new/`, `"/w/mode/`, "sorted"},
		{"nothing changes", `"mode":420,"size":4`, `"mode":384,"size":4`, "nothing changes"},
	} {
		bad := strings.Replace(string(text), c.old, c.new, 1)
		if bad == string(text) {
			t.Errorf("%s: there is no %s in\n%s", c.name, c.old, text)
			continue
		}
		if _, err := Decode([]byte(bad)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	for name, bad := range map[string]string{
		"nothing": "", "trailing": string(text) + " ", "cut": string(text[:len(text)-1]), "twice": string(text) + string(text),
	} {
		if _, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestNothingStandsInWhatIsNoDirectory(t *testing.T) {
	s := someSet()
	s.Changes[5].After = State{Type: Symlink, Target: "/etc"} // and a file in it
	if _, err := s.Encode(); err == nil || !strings.Contains(err.Error(), "no directory") {
		t.Errorf("encode: %v", err)
	}
	s = someSet()
	s.Changes[2].Before = State{Type: Symlink, Target: "elsewhere"}
	if _, err := s.Encode(); err == nil || !strings.Contains(err.Error(), "no directory") {
		t.Errorf("encode: %v", err)
	}
}

// FuzzDecode: what is taken is in its one form.
func FuzzDecode(f *testing.F) {
	text, err := someSet().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":"correx-changes-1","changes":[]}`))
	f.Add([]byte(`{"format":"correx-changes-1","changes":[{"path":"/a","kind":"created","before":{},"after":{"type":"directory"}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode(b)
		if err != nil {
			return
		}
		again, err := s.Encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%q was taken and is %q again: %v", b, again, err)
		}
		_ = s.Diff(1 << 16)
		_ = s.Base()
	})
}
