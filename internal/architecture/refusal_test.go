package architecture_test

import (
	"strings"
	"testing"
)

// TestTheTableRefuses: what must not be is refused, so that silence means
// something.
func TestTheTableRefuses(t *testing.T) {
	rows := table(t)
	for _, c := range []struct{ from, path, want string }{
		{"pkg/events", "correx/pkg/tools", "arrows point up only"},
		{"pkg/events", "github.com/nats-io/nats.go", "nothing but the standard library"},
		{"internal/session", "github.com/nats-io/nats.go/jetstream", "other people's packages"},
		{"internal/session", "correx/internal/eventlog", "arrows point up only"},
		{"internal/eventlog", "correx/internal/session", "needs nothing but"},
		{"internal/kernel", "correx/internal/natsd", "needs nothing but"},
		{"internal/kernel", "correx/internal/nowhere", "not in the table"},
		{"internal/access", "github.com/nats-io/nats-server/v2/server", "other people's packages"},
		{"internal/projection", "correx/cmd/bus", "arrows point up only"},
		{"cmd/*", "correx/internal/natstest", "arrows point up only"},
		{"internal/projection", "github.com/mattn/go-sqlite3", ""},
		{"internal/kernel", "correx/internal/session", ""},
		{"internal/streams", "correx", ""},
		{"cmd/*", "correx/internal/kernel", ""},
	} {
		n := -1
		for k, r := range rows {
			if r.pattern == c.from {
				n = k
			}
		}
		if n < 0 {
			t.Errorf("no line for %s", c.from)
			continue
		}
		err := allowed(rows, n, c.path)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s imports %s: %v, want %q", c.from, c.path, err, c.want)
		}
	}
}
