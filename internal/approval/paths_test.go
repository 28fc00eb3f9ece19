package approval_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"correx/internal/approval"
	"correx/pkg/events"
	"correx/pkg/tools/patch"
)

// TestPathRulesSeePatches: a file that a patch names is one that the call names.
func TestPathRulesSeePatches(t *testing.T) {
	hunk := "@@ -1 +1 @@\n-a\n+b\n"
	for _, c := range []struct {
		name, patch     string
		touches, within bool // secrets; nothing but secrets
	}{
		{"plain", "--- secrets/x\n+++ secrets/x\n" + hunk, true, true},
		{"git", "diff --git a/secrets/x b/secrets/x\n--- a/secrets/x\n+++ b/secrets/x\n" + hunk, true, true},
		{"a time", "--- secrets/x\t2026\n+++ secrets/x\t2026\n" + hunk, true, true},
		{"CR LF", "--- secrets/x\r\n+++ secrets/x\r\n" + strings.ReplaceAll(hunk, "\n", "\r\n"), true, true},
		{"another spelling", "--- y/../secrets/./x\n+++ y/../secrets/./x\n" + hunk, true, true},
		{"made", "--- /dev/null\n+++ b/secrets/x\n@@ -0,0 +1 @@\n+b\n", true, true},
		{"deleted", "--- a/secrets/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", true, true},
		{"the second file", "--- x\n+++ x\n" + hunk + "--- secrets/x\n+++ secrets/x\n" + hunk, true, false},
		{"another", "--- x\n+++ x\n" + hunk, false, false},
		{"a directory called a", "--- a/secrets/x\n+++ a/secrets/x\n" + hunk, false, false},
		{"whole components", "--- secretsauce\n+++ secretsauce\n" + hunk, false, false},
		{"not the line of a hunk alone", "--- secrets/x\n+++ secrets/x\n@@ -1 +1 @@\n--- y\n+++ y\n", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := patch.Parse(c.patch); err != nil {
				t.Fatalf("the tool would not take it: %v", err)
			}
			params, err := json.Marshal(map[string]string{"operation": "patch", "patch": c.patch})
			if err != nil {
				t.Fatal(err)
			}
			for effect, want := range map[events.PolicyEffect]bool{events.Deny: c.touches, events.Ask: c.touches, events.Allow: c.within} {
				r := events.PolicyRule{Effect: effect, Tool: "file_edit", PathPrefix: "secrets"}
				if got := approval.Matches(r, "file_edit", params); got != want {
					t.Errorf("a rule to %s matches: %v, want %v", effect, got, want)
				}
			}
		})
	}
}

// FuzzPathRulesSeePatches: no patch that the tool takes names a file that a rule
// does not see.
func FuzzPathRulesSeePatches(f *testing.F) {
	for _, s := range []string{"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b", "--- a/x\n+++ a/x\n@@ -1 +1 @@\n-a\n+b\n--- y\r\n+++ y\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := patch.Parse(text)
		if err != nil {
			return
		}
		params, err := json.Marshal(map[string]string{"patch": text})
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range p.Files {
			r := events.PolicyRule{Effect: events.Deny, Tool: "file_edit", PathPrefix: file.Name}
			if !approval.Matches(r, "file_edit", params) && utf8.ValidString(text) { // which parameters are
				t.Fatalf("%q names %q, and a rule about it does not match", text, file.Name)
			}
		}
	})
}
