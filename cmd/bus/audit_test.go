package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/natstest"
	"correx/internal/projection"
	"correx/internal/report"
	"correx/internal/signedlog"
)

// project lets a projector of the machine do all there is to do, sign it, and stop.
func (m *machine) project() (db string) {
	m.t.Helper()
	quiet, ctx := slog.New(slog.DiscardHandler), natstest.Context(m.t)
	nc, err := access.Connect(ctx, access.Dial{StateDir: m.state, Name: "p", Role: access.Projector})
	if err != nil {
		m.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		m.t.Fatal(err)
	}
	log, err := signedlog.Open(ctx, js, m.state, "projector/p", quiet)
	if err != nil {
		m.t.Fatal(err)
	}
	key, err := access.CheckpointSigner(m.state)
	if err != nil {
		m.t.Fatal(err)
	}
	db = projection.DefaultPath(m.state)
	view, err := projection.Open(ctx, db, projection.Identity(log.Identity()))
	if err != nil {
		m.t.Fatal(err)
	}
	defer view.Close()
	p := projection.New(view, log, projection.Batch{}, quiet)
	inner, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(inner) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			m.t.Error(err)
		}
	}()
	last, err := log.Last(ctx)
	if err == nil {
		err = p.Wait(ctx, last)
	}
	if err == nil {
		err = projection.NewCheckpointer(p, log, key, projection.Due{}, quiet).Publish(ctx)
	}
	if err == nil {
		err = p.Wait(ctx, last+1)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return db
}

// write puts what a command printed into a file.
func write(t *testing.T, o outcome) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte(o.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// reports are made of the machine's one call, in each form.
func reports(m *machine) {
	m.t.Helper()
	m.want(m.run("audit", "report", "system"), 0, "answer     approved by person by operator", "which is that of what stands here",
		"signature  by the kernel's key", "isolation ", "output     hello", "every event through")
	var r report.Report
	o := m.want(m.run("audit", "report", "system", "--json"), 0)
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || r.Summary.ByPeople != 2 || !r.Evidence.Checked {
		m.t.Errorf("as JSON it is %s (%v)", o.stdout, err)
	}
	path := filepath.Join(m.t.TempDir(), "report.html")
	m.want(m.run("audit", "report", "system", "--html", "-o", path), 0)
	page, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(page), "by the kernel&#39;s key") {
		m.t.Errorf("the page is %s (%v)", page, err)
	}
	m.want(m.run("audit", "report", "nothing"), 1, "the log has nothing of it")
	m.want(m.run("audit", "report", "system", "--html", "--json"), 2, "choose one")
	m.want(m.run("audit", "report", "system", "--unverified"), 0, "was not held against")
	viewer, err := access.PublicKey(m.state, access.Viewer)
	if err != nil {
		m.t.Fatal(err)
	}
	m.want(m.run("audit", "report", "system", "--key", viewer), 1, "not signed by a trusted key", "output     hello")
}

// The whole way of a proof: the log is verified, its checkpoints are given away,
// and who has no more than these checks that an event is in it.
func TestAudit(t *testing.T) {
	m := newMachine(t)
	m.want(m.run("request", "echo", hello, "--yes"), 0)
	m.want(m.run("audit", "verify"), 1, "uncovered: events 1 to", "the log is not what it was")
	m.want(m.run("audit", "checkpoints"), 0, "there are none yet")
	m.want(m.run("audit", "prove", "1"), 1, "no checkpoint has it yet")
	db := m.project()
	m.want(m.run("request", "echo", hello, "--yes"), 0)
	m.project()

	m.want(m.run("audit", "verify"), 0, "nothing was altered", "checkpoints  2")
	var result struct {
		OK       bool
		Through  uint64
		Covered  uint64
		Findings []any
	}
	o := m.want(m.run("audit", "verify", "--json"), 0)
	if err := json.Unmarshal([]byte(o.stdout), &result); err != nil || !result.OK || result.Covered+1 != result.Through || result.Findings == nil {
		t.Errorf("as JSON it says %s (%v)", o.stdout, err)
	}
	m.want(m.run("audit", "verify", "--from", "5", "--to", "6"), 0)
	m.want(m.run("audit", "verify", "--from", "5", "--to", "3"), 2, "before")
	m.want(m.run("audit", "verify", "--key", "U"), 2, "neither a public NKey")

	checkpoints := write(t, m.want(m.run("audit", "checkpoints"), 0))
	proof := write(t, m.want(m.run("audit", "prove", "3"), 0))
	given, err := readCheckpoints(checkpoints)
	if err != nil || len(given) != 2 {
		t.Fatalf("%d checkpoints: %v", len(given), err)
	}
	extension := write(t, m.want(m.run("audit", "extend", fmt.Sprint(given[0].Through), fmt.Sprint(given[1].Through)), 0))
	key := filepath.Join(m.state, "projector.pub")
	m.want(m.run("audit", "verify", "--checkpoint", checkpoints), 0)

	// From here on somebody else, with three files and nothing more.
	alone := &machine{t: t, state: t.TempDir()}
	check := func(status int, proof, key string, texts ...string) {
		t.Helper()
		alone.want(alone.run("audit", "check", proof, "--checkpoint", checkpoints, "--key", key), status, texts...)
	}
	check(0, proof, key, "proved event 3 of stream EVENTS")
	check(0, proof, given[0].Key, "signed by "+given[0].Key)
	check(0, extension, key, "unchanged")
	alone.want(alone.run("audit", "check", proof, "--checkpoint", checkpoints), 1, "name the key with --key")
	alone.want(alone.run("audit", "check", proof), 2, "checkpoint")
	other, err := access.PublicKey(m.state, access.Viewer)
	if err != nil {
		t.Fatal(err)
	}
	check(1, proof, other, "not signed by a trusted key")
	forged := filepath.Join(t.TempDir(), "forged.json")
	text, err := os.ReadFile(proof)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(forged, []byte(strings.Replace(string(text), `"body": "{`, `"body": "{ `, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	check(1, forged, key, "leads to another root")
	alone.want(alone.run("audit", "verify", "--db", db, "--key", key, "--checkpoint", checkpoints), 0, "nothing was altered")
	reports(m)
	for _, c := range []string{"report", "verify", "checkpoints", "prove", "extend", "check"} {
		alone.want(alone.run("audit", c, "--help"), 0, "bus audit "+c)
	}
}
