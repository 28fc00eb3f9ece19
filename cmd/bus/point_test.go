package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"correx/internal/session"
	"correx/pkg/events"
)

func TestParseTime(t *testing.T) {
	zone := time.FixedZone("there", 2*3600)
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, zone)
	for text, want := range map[string]string{
		"90m":                  "2026-01-31T08:30:00Z",
		"2026-01-30":           "2026-01-29T22:00:00Z",
		"2026-01-30 15:04":     "2026-01-30T13:04:00Z",
		"2026-01-30T15:04:05":  "2026-01-30T13:04:05Z",
		"2026-01-30T15:04:05Z": "2026-01-30T15:04:05Z",
	} {
		got, err := parseTime(text, now)
		if err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%s is %v, %v, not %s", text, got.UTC(), err, want)
		}
	}
	for text, want := range map[string]string{
		"yesterday": `--until "yesterday" is none; write a time (`,
		"120":       `--until "120" is none; write a time (`, // lists know no sequences
		"-5m":       `--until "-5m" lies ahead; write how long ago it is (5m0s)`,
	} {
		r := queryRequest{Until: text}
		if err := r.times(now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParsePoint(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"0":         "the first sequence of EVENTS is 1",
		"-1h":       `point "-1h" lies ahead; write how long ago it is (1h0m0s)`,
		"yesterday": "or a sequence (120)",
	} {
		if p, err := parsePoint(text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %+v, %v", text, p, err)
		}
	}
	if p, err := parsePoint("2026-01-30", now); err != nil || p.seq != 0 || !p.time.Equal(now.Add(-36*time.Hour)) {
		t.Errorf("a day is %+v, %v", p, err)
	}
}

func TestFindPoint(t *testing.T) {
	begun := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	s := story{session: "s1", last: 30, read: begun.Add(time.Hour)}
	for k, seq := range []uint64{10, 20, 25} {
		s.records = append(s.records, events.Record{Seq: seq, Time: begun.Add(time.Duration(k) * time.Minute)})
	}
	for _, c := range []struct {
		text  string
		count int
		fails string
	}{
		{"10", 1, ""},
		{"19", 1, ""},
		{"25", 3, ""},
		{"30", 3, ""},
		{"9", 0, "session s1 had not begun; its first record is 10, at 2026-01-02T10:00:00Z"},
		{"31", 0, "EVENTS ends at sequence 30"},
		{"2026-01-02T10:00:00Z", 1, ""},
		{"2026-01-02T11:01:30+01:00", 2, ""},
		{"2026-01-02T10:02:00.5Z", 3, ""},
		{"2026-01-02T09:59:59Z", 0, "had not begun"},
		{"2026-01-02T12:00:00Z", 0, "yet to come"},
		{"58m30s", 2, ""},
		{"0s", 3, ""},
		{"2h", 0, "had not begun"},
	} {
		p, err := parsePoint(c.text, s.read)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		m, err := s.find(p)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v, want %q", c.text, err, c.fails)
			}
			continue
		}
		if err != nil || m.count != c.count || m.Later != 3-c.count || m.Seq != s.records[c.count-1].Seq {
			t.Errorf("%s is %+v (%v), want %d records", c.text, m, err, c.count)
		}
	}
}

func TestShowAtAndDiff(t *testing.T) {
	m := newMachine(t)
	m.want(m.run("run", "a task", "--detach", "--session", "s1", "--wall-time", "1h"), 0)
	m.want(m.run("request", "echo", hello, "--session", "s1", "--invocation", "own", "--detach"), 0)
	m.until(func() bool { return strings.Contains(m.run("show", "s1").stdout, "echo T2 asks for approval") })
	seqOf := func(suffix string) string {
		t.Helper()
		for _, r := range records(t, m.run("replay", "--session", "s1", "--json").stdout) {
			if strings.Contains(r.Subject, suffix) {
				return strconv.FormatUint(r.Seq, 10)
			}
		}
		t.Fatalf("no record is %s", suffix)
		return ""
	}
	first, asked := seqOf(".started"), seqOf(".approval_requested")
	m.want(m.run("approve", "s1/own"), 0)
	m.until(func() bool { return strings.Contains(m.run("show", "s1").stdout, "done") })
	m.want(m.run("say", "s1", "hurry"), 0)
	m.want(m.run("cancel", "s1", "--reason", "enough"), 0)

	t.Run("a question that waited", func(t *testing.T) {
		o := m.want(m.run("show", "s1", "--at", asked), 0, "RUNNING", "as it was at "+asked, "came later", "echo T2 asks for approval", "own waits for approval")
		if strings.Contains(o.stdout, "approved") || strings.Contains(o.stdout, "hurry") {
			t.Errorf("it shows what came later:\n%s", o.stdout)
		}
		var j sessionSummary
		if err := json.Unmarshal([]byte(m.run("show", "s1", "--at", asked, "--json").stdout), &j); err != nil {
			t.Fatal(err)
		}
		if len(j.Waiting) != 1 || j.Waiting[0].Tool != "echo" || j.Waiting[0].Tier != events.T2 || j.Waiting[0].By != "operator" ||
			len(j.Waiting[0].Digest) != 64 || j.Waiting[0].Deadline.IsZero() || string(j.Waiting[0].Parameters) != hello {
			t.Errorf("what waits is %+v", j.Waiting)
		}
		if last := j.Records[len(j.Records)-1]; j.At == nil || j.At.Seq != last.Seq || j.At.Later == 0 || !j.At.Time.Equal(last.Time) {
			t.Errorf("the point is %+v, the last record %d", j.At, last.Seq)
		}
		t.Run("by its time", func(t *testing.T) {
			var k sessionSummary
			if err := json.Unmarshal([]byte(m.run("show", "s1", "--at", j.At.Time.Format(time.RFC3339Nano), "--json").stdout), &k); err != nil {
				t.Fatal(err)
			}
			if k.Seq != j.Seq || len(k.Waiting) != 1 {
				t.Errorf("at %s it is %+v", j.At.Time, k)
			}
		})
	})
	t.Run("now", func(t *testing.T) {
		o := m.want(m.run("show", "s1", "--at", "0s"), 0, "CANCELLED", "hurry")
		if strings.Contains(o.stdout, "asks for approval") {
			t.Errorf("a question still waits:\n%s", o.stdout)
		}
	})
	t.Run("what changed", func(t *testing.T) {
		m.want(m.run("show", "s1", "--diff", first, asked), 0, "own echo T2 – → APPROVAL_REQUESTED", "asked until", ", waits digest ")
		m.want(m.run("show", "--diff", "s1", asked), 0, "RUNNING → CANCELLED", "– → enough", "user hurry",
			"own echo T2 APPROVAL_REQUESTED → COMPLETED: hello", "own echo T2 approved by operator")
		m.want(m.run("show", "s1", "--diff", asked, asked), 0, "0 records", "nothing changed")
		var d differenceJSON
		if err := json.Unmarshal([]byte(m.run("show", "s1", "--diff", asked, "0s", "--json").stdout), &d); err != nil {
			t.Fatal(err)
		}
		if len(d.Calls) != 1 || d.Calls[0].Before != session.ApprovalRequested || d.Calls[0].After != session.Completed ||
			len(d.Messages) != 1 || d.Messages[0].Text != "hurry" || len(d.Approvals) != 1 || d.Approvals[0].Answer != "approved" || d.Records == 0 {
			t.Errorf("the difference is %+v", d)
		}
	})
	t.Run("no such points", func(t *testing.T) {
		m.want(m.run("show", "s1", "--at", "999999"), 1, "EVENTS ends at sequence")
		m.want(m.run("show", "s1", "--at", "1"), 1, "had not begun")
		m.want(m.run("show", "s1", "--at", "2999-01-01T00:00:00Z"), 1, "yet to come")
		m.want(m.run("show", "s1", "--diff", "1", asked), 1, "had not begun")
		m.want(m.run("show", "s1", "--diff", asked, first), 2, "name the earlier one first")
		m.want(m.run("show", "s1", "--diff", "1h", "2h"), 1, "had not begun")
		m.want(m.run("show", "none", "--at", "1"), 1, "the log has nothing of it")
	})
}
