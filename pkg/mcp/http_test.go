package mcp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"correx/pkg/events"
	"correx/pkg/tools"
)

func handler(kind string) http.Handler {
	s := newTestServer(kind)
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
}

// remote is a server whose handler can be replaced.
func remote(t *testing.T, h http.Handler) (Server, *atomic.Value) {
	t.Helper()
	now := &atomic.Value{}
	now.Store(&h)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*now.Load().(*http.Handler)).ServeHTTP(w, r)
	}))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return Server{Name: "srv", URL: srv.URL, Tools: []string{"*"}, StartTimeout: 20 * time.Second, Timeout: 20 * time.Second}, now
}

func TestHTTP_ItsToolsRun(t *testing.T) {
	h := handler("plain")
	var seen atomic.Value
	c, _ := remote(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("Authorization"))
		h.ServeHTTP(w, r)
	}))
	c.Headers = map[string]string{"Authorization": "TOKEN"}
	r := newRig(t, c)
	if got := r.success("echo", p{"text": "hi"}); got.Output != "echo hi" || got.Isolation != events.IsolationNone {
		t.Errorf("%+v", got)
	}
	if seen.Load() != "Bearer t0p" {
		t.Errorf("header is %q", seen.Load())
	}
	if caps := r.tool("echo").RequiredCapabilities(); len(caps) != 1 || caps[0] != events.NetworkAccess {
		t.Errorf("capabilities %v", caps)
	}
	has(t, r.failure("broken", p{}).Reason, "database is down")
	if got := r.success("asks", p{}); got.Output != "elicit false, sample false, roots 0" {
		t.Errorf("%+v", got)
	}
}

func TestHTTP_ACallThatIsCancelledPoisonsNothing(t *testing.T) {
	c, _ := remote(t, handler("plain"))
	r := newRig(t, c)
	mark := filepath.Join(t.TempDir(), "m")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan tools.ToolResult, 1)
	go func() { done <- r.run(ctx, "slow", p{"path": mark}) }()
	r.await(mark + ".begun")
	cancel()
	has(t, r.fails(<-done).Reason, "cancelled")
	r.await(mark + ".cancelled")
	r.success("echo", p{})
}

func TestHTTP_ALostSessionIsBegunAnew(t *testing.T) {
	c, now := remote(t, handler("plain"))
	r := newRig(t, c)
	r.success("echo", p{})
	next := handler("plain") // another process, which knows no session
	now.Store(&next)
	if f := r.failure("echo", p{}); !f.Recoverable || f.Effects != events.EffectsUnknown {
		t.Errorf("%+v", f)
	}
	if got := r.success("echo", p{"text": "again"}); got.Output != "echo again" {
		t.Errorf("%+v", got)
	}
}

func TestHTTP_AHugeResultIsNotTaken(t *testing.T) {
	c, _ := remote(t, handler("plain"))
	r := newRig(t, c)
	if f := r.failure("huge", p{}); strings.Contains(f.Reason, "xxxx") {
		t.Errorf("%+v", f)
	}
	r.success("echo", p{})
}

func TestHTTP_ThoseThatCannotBeUsedAreNamed(t *testing.T) {
	stolen := make(chan string, 100)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("Authorization") }))
	defer thief.Close()
	release := make(chan struct{})
	for _, c := range []struct {
		name   string
		handle http.HandlerFunc
		want   string
	}{
		{"mute", func(_ http.ResponseWriter, r *http.Request) { <-release }, "did not answer within"},
		{"redirects", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		}, "Temporary Redirect"},
		{"forbids", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusForbidden) }, "Forbidden"},
		{"floods", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			part := []byte(strings.Repeat("x", 1<<20))
			for {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		}, "more than 16 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := remote(t, c.handle)
			s.Headers = map[string]string{"Authorization": "TOKEN"}
			if c.name == "mute" {
				s.StartTimeout = 300 * time.Millisecond
				t.Cleanup(func() { close(release) }) // before the server is closed
			}
			r := newRig(t, s)
			if len(r.tools) != 0 {
				t.Errorf("offered %v", r.tools)
			}
			has(t, r.log.String(), "gives no tools", c.want)
			if strings.Contains(r.log.String(), "t0p") {
				t.Errorf("the log has the secret:\n%s", r.log)
			}
		})
	}
	if len(stolen) > 0 {
		t.Errorf("the header went elsewhere: %s", <-stolen)
	}
	s, _ := remote(t, handler("plain"))
	s.Headers = map[string]string{"Authorization": "UNSET"}
	has(t, newRig(t, s).log.String(), "the variable UNSET, for the header Authorization, is not set")
}

func TestStart_OneServerDoesNotHinderAnother(t *testing.T) {
	bad := process(t, "absent")
	bad.Name = "bad"
	r := newRig(t, bad, process(t, "plain"))
	r.success("echo", p{})
	has(t, r.log.String(), "mcp_server=bad", "exit code 7")
}
