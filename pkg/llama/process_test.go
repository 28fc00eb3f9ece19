package llama

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"correx/internal/testenv"
)

// A worker that is killed with SIGKILL leaves no llama-server behind.
func TestProcessOfAKilledOwner(t *testing.T) {
	d := scripted(t, "one")
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "LLAMA_TEST_OWNER="+d.Path, "LLAMA_TEST_SERVER="+testenv.LlamaServer(t),
		"LLAMA_TEST_PIDFILE="+filepath.Join(t.TempDir(), "pid"))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !alive(pid) {
		t.Fatalf("pid %q: %v", line, err)
	}
	begun := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	dies(t, pid)
	t.Logf("llama-server was dead %v after SIGKILL of its owner", time.Since(begun))
	_ = cmd.Wait() // it says "killed"
}

// orphan starts a llama-server as a worker without a parent-death signal would
// leave it.
func orphan(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(testenv.LlamaServer(t), "--model", scripted(t, "one").Path, "--host", "127.0.0.1", "--port", "0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return cmd
}

func TestProcessReap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "pid")
	if killed, err := Reap(path); killed != 0 || err != nil {
		t.Errorf("nothing there: %d, %v", killed, err)
	}
	cmd := orphan(t)
	if err := writePID(path, cmd.Process.Pid, "one"); err != nil {
		t.Fatal(err)
	}
	m, err := NewManager(Config{PIDFile: path})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if alive(cmd.Process.Pid) {
		t.Error("what was left behind is alive")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the pid file is still there")
	}
}

func TestProcessReapLeavesOthersAlone(t *testing.T) {
	cmd := orphan(t)
	pid := cmd.Process.Pid
	start, err := startTime(pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"another start":  fmt.Sprintf(`{"pid":%d,"start_ticks":%d,"boot_id":%q}`, pid, start-1, bootID()),
		"another boot":   fmt.Sprintf(`{"pid":%d,"start_ticks":%d,"boot_id":"x"}`, pid, start),
		"no start":       fmt.Sprintf(`{"pid":%d,"boot_id":%q}`, pid, bootID()),
		"init":           fmt.Sprintf(`{"pid":1,"start_ticks":0,"boot_id":%q}`, bootID()),
		"a group":        fmt.Sprintf(`{"pid":-%d,"start_ticks":%d,"boot_id":%q}`, pid, start, bootID()),
		"nobody":         fmt.Sprintf(`{"pid":4194303,"start_ticks":1,"boot_id":%q}`, bootID()),
		"a torn file":    fmt.Sprintf(`{"pid":%d,"sta`, pid),
		"an empty file":  "",
		"only a number":  strconv.Itoa(pid),
		"a huge number":  `{"pid":99999999999999999999}`,
		"something else": "\x00\xff",
	} {
		path := filepath.Join(t.TempDir(), "pid")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if killed, err := Reap(path); killed != 0 || err != nil {
			t.Errorf("%s: killed %d, %v", name, killed, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: the file is still there", name)
		}
	}
	if !alive(pid) {
		t.Error("it was killed")
	}
}

// A stranger's connection keeps llama-server from ending on SIGTERM, but not
// from ending.
func TestProcessStopWithClientConnected(t *testing.T) {
	l := &Launcher{Executable: testenv.LlamaServer(t), StopGrace: 300 * time.Millisecond}
	p, err := l.Launch(context.Background(), scripted(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.Client().base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	p.Stop(ErrUnloaded)
	t.Logf("%s %v after the stop", p.Exit(), time.Since(begun))
	if alive(p.PID()) {
		t.Error("it is alive")
	}
	p.Stop(nil)
}

// What stands in for a stuck server ignores SIGTERM and has a child.
func TestProcessStopKillsTheGroup(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	l := &Launcher{
		Executable:   script(t, "trap '' TERM; sleep 1000 & echo $$ $! > "+pids+"; wait"),
		StallTimeout: 500 * time.Millisecond, StopGrace: 100 * time.Millisecond,
	}
	_, err := l.Launch(context.Background(), scripted(t, "one"))
	if err == nil {
		t.Fatal("it loaded")
	}
	data, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		dies(t, pid)
	}
}

func TestProcessDeadlinesOfALoad(t *testing.T) {
	for name, tt := range map[string]struct {
		body        string
		stall, load time.Duration
		want        string
		least, most time.Duration
	}{
		"silent": {"exec sleep 1000", 200 * time.Millisecond, 0, "no sign of life", 200 * time.Millisecond, 20 * time.Second},
		"talks, then silent": {"for i in 1 2 3 4 5 6; do echo $i >&2; sleep 0.3; done; exec sleep 1000",
			1200 * time.Millisecond, 0, "no sign of life", 2700 * time.Millisecond, 20 * time.Second},
		"talks for ever": {"while :; do echo more >&2; sleep 0.05; done",
			5 * time.Second, 700 * time.Millisecond, "longer than a whole load", 700 * time.Millisecond, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Launcher{Executable: script(t, tt.body), StallTimeout: tt.stall, LoadTimeout: tt.load, StopGrace: 100 * time.Millisecond}
			begun := time.Now()
			_, err := l.Launch(context.Background(), scripted(t, "one"))
			took := time.Since(begun)
			if err == nil || !strings.Contains(err.Error(), tt.want) || took < tt.least || took > tt.most {
				t.Errorf("after %v: %v", took, err)
			}
		})
	}
}

// A stranger on the port is not taken for the child, whatever it answers.
func TestProcessPortOfAnother(t *testing.T) {
	asked := 0
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		fmt.Fprint(w, `{"model_alias":"two","model_path":"/elsewhere.gguf"}`)
	}))
	defer stranger.Close()
	_, taken, _ := net.SplitHostPort(strings.TrimPrefix(stranger.URL, "http://"))
	tries := 0
	l := &Launcher{Executable: testenv.LlamaServer(t), port: func() (string, error) {
		if tries++; tries == 1 {
			return taken, nil
		}
		return freePort()
	}}
	d := scripted(t, "one")
	p, err := l.Launch(context.Background(), d)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(nil)
	if tries != 2 || p.Props.ModelPath != d.Path {
		t.Errorf("%d tries, %d questions to the stranger; it is %+v", tries, asked, p.Props)
	}
}

// A cancelled load leaves nothing running.
func TestProcessCancelledLoad(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	l := &Launcher{Executable: script(t, "echo $$ > "+pids+"; echo up >&2; exec sleep 1000"), PIDFile: filepath.Join(t.TempDir(), "pid")}
	why := errors.New("nobody wants it")
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		for {
			if data, _ := os.ReadFile(pids); len(data) > 0 {
				cancel(why)
				return
			}
		}
	}()
	_, err := l.Launch(ctx, scripted(t, "one"))
	if !errors.Is(err, why) {
		t.Errorf("error is %v", err)
	}
	data, _ := os.ReadFile(pids)
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || alive(pid) {
		t.Errorf("pid %s: %v", data, err)
	}
}

// The key is in the child's environment, not in its arguments, and no variable
// of ours changes its flags.
func TestProcessEnvironment(t *testing.T) {
	t.Setenv("LLAMA_ARG_PORT", "1")
	t.Setenv("LLAMA_API_KEY", "ours")
	l := &Launcher{Executable: testenv.LlamaServer(t)}
	p, err := l.Launch(context.Background(), scripted(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(nil)
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID()))
	if err != nil || strings.Contains(string(args), p.Client().key) {
		t.Errorf("arguments are %q, %v", args, err)
	}
	var status *StatusError
	stranger := NewClient("one", p.Client().base, "ours", nil)
	if err := stranger.Probe(context.Background()); !errors.As(err, &status) || status.Code != 401 {
		t.Errorf("without the key: %v", err)
	}
}

func TestProcessThreads(t *testing.T) {
	for _, tt := range []struct {
		cores int
		args  []string
		want  string
	}{
		{1, nil, ""}, {2, nil, "--threads 1"}, {4, []string{"--mlock"}, "--threads 3"}, {8, nil, ""},
		{2, []string{"-t", "2"}, ""}, {2, []string{"--threads=2"}, ""},
	} {
		if got := strings.Join(threads(tt.cores, tt.args), " "); got != tt.want {
			t.Errorf("%d cores, %q: %q, want %q", tt.cores, tt.args, got, tt.want)
		}
	}
}

func TestProcessLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "llama-server.log")
	file, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.close()
	begun := time.Now()
	file.now = func() time.Time { begun = begun.Add(time.Minute); return begun } // nothing comes too fast
	r := newLogRing(file)
	for i := range 2 * ringLines {
		fmt.Fprintf(r, "line %d\npart", i)
		fmt.Fprintf(r, "ial\r%d%%\r\n\n", i)
	}
	if got := r.Tail(3); len(got) != 3 || got[0] != "line 399" || got[1] != "partial" || got[2] != "399%" {
		t.Errorf("tail is %q", got)
	}
	if got := r.Tail(10_000); len(got) != ringLines {
		t.Errorf("%d lines are kept", len(got))
	}
	long := strings.Repeat("x", 100_000)
	for range 2*logBytes/lineBytes + 1 {
		fmt.Fprintln(r, long)
	}
	if got := r.Tail(1)[0]; len(got) != lineBytes {
		t.Errorf("a long line is kept with %d bytes", len(got))
	}
	for _, name := range []string{path, path + ".old"} {
		if info, err := os.Stat(name); err != nil || info.Size() > logBytes || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
