package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/eventlog"
	"correx/internal/session"
	"correx/internal/signedlog"
	"correx/internal/testenv"
	"correx/internal/testmodel"
	"correx/pkg/events"
)

// patience is how long a test waits for something that must come.
const patience = 90 * time.Second

// A system is one Correx in a directory of its own, run as processes.
type system struct {
	t         *testing.T
	ctx       context.Context
	dir       string
	state     string
	workspace string
	bin       string

	mu   sync.Mutex
	all  []*process
	conn *nats.Conn
	log  *eventlog.Log
}

// newSystem writes the configuration of a system whose model answers by script.
func newSystem(t *testing.T, script testmodel.Script) *system {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	dir := t.TempDir()
	s := &system{t: t, ctx: ctx, dir: dir, state: filepath.Join(dir, "state"), workspace: filepath.Join(dir, "workspace"), bin: testenv.Bin(t)}
	for _, d := range []string{s.state, s.workspace} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	model := filepath.Join(dir, "scripted.gguf")
	if err := testmodel.Scripted(model, script); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`
tools:
  file_read: {enabled: true, allowed_paths: [%[1]q]}
  file_write: {enabled: true, allowed_paths: [%[1]q]}
  file_edit: {enabled: true, allowed_paths: [%[1]q]}
  shell: {enabled: true, allowed_executables: [sleep], working_dir: %[1]q}
  echo: {enabled: true, tier: T2}
session:
  limits: {wall_time: 10m}
worker: {ack_wait: 300ms, concurrency: 8, drain: 5s}
projector: {batch_wait: 5ms}
models:
  - {name: "test/scripted:1", path: %[2]q, context_size: %[3]d, residency: PERSISTENT}
llama_server: {path: %[4]q}
`, s.workspace, model, testmodel.ContextSize, testenv.LlamaServer(t))
	if err := os.WriteFile(filepath.Join(s.state, "correx.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stopAll)
	return s
}

// env is what a process of this system runs in.
func (s *system) env() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "CORREX_STATE=" + s.state, "XDG_CONFIG_HOME=" + s.dir, "NO_COLOR=1"}
	for _, k := range []string{"TMPDIR", "GOCOVERDIR"} {
		if v, ok := os.LookupEnv(k); ok {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// A process is one running command.
type process struct {
	s    *system
	name string
	args []string
	cmd  *exec.Cmd
	out  *syncBuffer
	done chan struct{}
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// start runs a command in the background, as in start("tool-worker", "--name", "w1").
func (s *system) start(name string, args ...string) *process {
	s.t.Helper()
	p := &process{s: s, name: name, args: args, cmd: exec.Command(filepath.Join(s.bin, name), args...), out: &syncBuffer{}, done: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = s.env(), p.out, p.out, s.dir
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		s.t.Fatalf("start %s: %v", name, err)
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }() // how it ended stands in ProcessState
	s.mu.Lock()
	s.all = append(s.all, p)
	s.mu.Unlock()
	return p
}

func (p *process) signal(sig syscall.Signal) {
	p.s.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.s.t.Fatalf("signal %s: %v", p.name, err)
	}
}

// kill is SIGKILL to the process alone: what it started must see to itself.
func (p *process) kill() { p.s.t.Helper(); p.signal(syscall.SIGKILL); <-p.done }

// again starts the same command once more.
func (p *process) again() *process { p.s.t.Helper(); return p.s.start(p.name, p.args...) }

func (s *system) stopAll() {
	if s.conn != nil {
		s.conn.Close()
	}
	for k := len(s.all) - 1; k >= 0; k-- {
		p := s.all[k]
		select {
		case <-p.done:
		default:
			_ = p.cmd.Process.Signal(syscall.SIGCONT)
			_ = p.cmd.Process.Kill()
			<-p.done
		}
		if s.t.Failed() {
			s.t.Logf("--- %s %s\n%s", p.name, strings.Join(p.args, " "), tail(p.out.String()))
		}
	}
}

func tail(s string) string {
	if len(s) > 4000 {
		return "…" + s[len(s)-4000:]
	}
	return s
}

// operator connects as the operator; it waits until the bus is there.
func (s *system) operator() *nats.Conn {
	s.t.Helper()
	if s.conn == nil {
		for {
			nc, err := access.Connect(s.ctx, access.Dial{StateDir: s.state, Name: "test", Role: access.Operator})
			if err == nil {
				s.conn = nc
				break
			}
			s.pause("connect", err)
		}
	}
	return s.conn
}

// pause waits a moment for what is not there yet.
func (s *system) pause(what string, err error) {
	s.t.Helper()
	select {
	case <-s.ctx.Done():
		s.t.Fatalf("%s: %v", what, err)
	case <-time.After(20 * time.Millisecond):
	}
}

func (s *system) events() *eventlog.Log {
	s.t.Helper()
	for s.log == nil {
		js, err := jetstream.New(s.operator())
		if err != nil {
			s.t.Fatal(err)
		}
		l, err := signedlog.Open(s.ctx, js, s.state, "test", nil)
		if err == nil {
			s.log = l
			break
		}
		s.pause("open the log", err)
	}
	return s.log
}

// An answer is what the api answers.
type answer struct {
	OK         bool   `json:"ok"`
	Session    string `json:"session"`
	Invocation string `json:"invocation"`
	Error      string `json:"error"`
}

// api asks until the kernel answers.
func (s *system) api(verb, body string) answer {
	s.t.Helper()
	for {
		m, err := s.operator().Request("api.operator."+verb, []byte(body), 10*time.Second)
		if err == nil {
			var a answer
			if err := json.Unmarshal(m.Data, &a); err != nil {
				s.t.Fatalf("%s answered %s", verb, m.Data)
			}
			return a
		}
		s.pause(verb, err)
	}
}

// fold folds a session as it is now.
func (s *system) fold(id events.SessionID) session.State {
	s.t.Helper()
	for {
		st, _, err := eventlog.Replay(s.ctx, s.events(), events.SessionFilter(id), session.State{ID: id}, session.Evolve)
		if err == nil {
			return st
		}
		s.pause("read session "+string(id), err)
	}
}

// await waits until a session is as it should be.
func (s *system) await(id events.SessionID, what string, ok func(session.State) bool) session.State {
	s.t.Helper()
	late := time.Now().Add(patience)
	for {
		st := s.fold(id)
		if ok(st) {
			return st
		}
		if time.Now().After(late) {
			s.t.Fatalf("session %s: waited in vain for %s; it is %s, %d inferences, %d tools, outcome %+v", id, what, st.Status, len(st.Inferences), len(st.Tools), st.Outcome)
		}
		s.pause(what, nil)
	}
}

func completed(st session.State) bool { return st.Status == session.SessionCompleted }

// approveAll answers every question that is asked, until the test ends.
func (s *system) approveAll() {
	s.t.Helper()
	log := s.events()
	ctx, stop := context.WithCancel(s.ctx)
	var work sync.WaitGroup
	work.Go(func() {
		_ = log.Follow(ctx, "evt.>", 1, func(r events.Record) error {
			if q, ok := r.Fact.(events.ApprovalRequested); ok {
				body := fmt.Sprintf(`{"session":%q,"invocation":%q,"digest":%q}`, q.Session, q.ID, q.Digest)
				work.Go(func() { s.publish(ctx, "cmd.operator.tool.approve", body) })
			}
			return nil
		})
	})
	s.t.Cleanup(func() { stop(); work.Wait() })
}

// publish puts a command on the log, whatever happens to the server meanwhile.
func (s *system) publish(ctx context.Context, subject, body string) {
	js, err := jetstream.New(s.conn)
	if err != nil {
		return
	}
	for ctx.Err() == nil {
		if _, err := js.Publish(ctx, subject, []byte(body)); err == nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// run runs a command to its end and returns what it printed on stdout.
func (s *system) run(name string, args ...string) string {
	s.t.Helper()
	return s.output(exec.CommandContext(s.ctx, filepath.Join(s.bin, name), args...))
}

func (s *system) output(cmd *exec.Cmd) string {
	s.t.Helper()
	var errs bytes.Buffer
	cmd.Env, cmd.Stderr, cmd.Dir = s.env(), &errs, s.dir
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, out, errs.Bytes())
	}
	return string(out)
}

// shell runs a line of shell with bin/ and the nats program on the path, as a
// user would type it.
func (s *system) shell(line string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.ctx, "sh", "-c", line)
	cmd.Env = append(s.env(), "PATH="+s.bin+":"+filepath.Dir(testenv.NatsCLI(s.t))+":"+os.Getenv("PATH"))
	var errs bytes.Buffer
	cmd.Stderr, cmd.Dir = &errs, s.dir
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s%s", line, err, out, errs.Bytes())
	}
	return string(out)
}

// oneEndEach checks that every invocation of a session has exactly one end on
// the log, counted record by record.
func (s *system) oneEndEach(st session.State) {
	s.t.Helper()
	for _, i := range st.Tools {
		recs, err := s.events().Read(s.ctx, events.Aggregate{Session: st.ID, Kind: events.KindTool, ID: string(i.ID)})
		if err != nil {
			s.t.Fatal(err)
		}
		ends := 0
		for _, r := range recs {
			switch r.Fact.(type) {
			case events.ToolExecutionCompleted, events.ToolExecutionFailed, events.ToolExecutionRejected:
				ends++
			}
		}
		if ends != 1 {
			s.t.Errorf("%s.%s has %d ends", st.ID, i.ID, ends)
		}
	}
}

// databaseEqualsLog compares the database with one that is made anew, and the
// kernel's decisions with what the rules give.
func (s *system) databaseEqualsLog() {
	s.t.Helper()
	s.run("bus", "replay", "--verify")
	rebuilt := filepath.Join(s.dir, "rebuilt.db")
	late := time.Now().Add(patience)
	for {
		_ = os.Remove(rebuilt)
		s.run("projector", "rebuild", "--db", rebuilt)
		live, fresh := s.run("projector", "dump"), s.run("projector", "dump", "--db", rebuilt)
		if live == fresh && strings.Count(live, "\n") > 10 {
			return
		}
		if time.Now().After(late) {
			s.t.Fatalf("the database and the log tell different stories:\n%s", firstDifference(live, fresh))
		}
		s.pause("the projector to catch up", nil)
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for k := range min(len(x), len(y)) {
		if x[k] != y[k] {
			return "- " + x[k] + "\n+ " + y[k]
		}
	}
	return fmt.Sprintf("%d lines against %d", len(x), len(y))
}
