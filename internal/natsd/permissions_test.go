package natsd_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"correx/internal/access"
	"correx/internal/natsd"
	"correx/pkg/events"
)

// letters names the roles in the matrix below.
var letters = map[access.Role]string{
	access.Operator: "O", access.Kernel: "K", access.ToolWorker: "T",
	access.ModelWorker: "M", access.Projector: "P", access.Viewer: "V",
}

// factWriters says who may publish a fact: the table "who may write what" of
// the design, written down a second time.
var factWriters = map[events.FactName]string{
	"session.started": "K", "session.message": "K", "session.stage": "K", "session.rule": "K", "session.paused": "K",
	"session.resumed": "K", "session.completed": "K", "session.failed": "K", "session.cancelled": "K",

	"inference.requested": "K", "inference.started": "M", "inference.completed": "M", "inference.failed": "KM",

	"tool.requested": "K", "tool.previewed": "T", "tool.approval_requested": "K", "tool.approved": "K",
	"tool.denied": "K", "tool.expired": "K", "tool.started": "T", "tool.completed": "T", "tool.failed": "KT",
	"tool.rejected": "KT", "tool.cancel_requested": "K", "tool.recovered": "T",

	"model.load_requested": "K", "model.unload_requested": "K", "model.loaded": "M", "model.unloaded": "M",
	"model.crashed": "M", "model.load_failed": "M",

	"worker.started": "KTMP", "worker.stopped": "KTMP",
	"command.rejected": "K", "audit.checkpoint": "P",
}

// subscribers says who may subscribe to what.
var subscribers = map[string]string{
	"evt.>": "OKTMPV", "evt.s1.>": "OKTMPV", "evt.*.tool.*.cancel_requested": "OKTMPV",
	"live.>": "OV", "live.s1.t1": "OV", "replay.>": "OV", "replay.s1.session.main.started": "OV",
	"cmd.>": "OK", "cmd.operator.session.start": "OK",
	"api.*.*.*": "K", "api.operator.session.start": "K",
	"query.sessions": "P", "query.>": "P",
	"wrk.w1.running": "TM", "wrk.w1.drain": "TM",
	"$SRV.PING": "KTMP", "$SRV.INFO.kernel.x": "KTMP",
	"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.EVENTS.tool-shell": "OK",
	"$O.ARTIFACTS.>": "O",
	// What others ask of JetStream is nobody's to read, nor to answer.
	"$JS.API.>": "", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.tool-shell": "", "$JS.ACK.>": "",
	">": "", "*": "", "*.>": "", "$SYS.>": "", "_INBOX*.>": "",
	"_INBOX.x": "O", "_INBOX.>": "O",
	"_INBOX_operator.>": "O", "_INBOX_kernel.>": "K", "_INBOX_tool-worker.>": "T",
	"_INBOX_model-worker.>": "M", "_INBOX_projector.>": "P", "_INBOX_viewer.>": "V",
}

// publishers says who may publish what is no fact.
var publishers = map[string]string{
	"cmd.operator.session.start": "OK", "cmd.alice.tool.approve": "K", "cmd.operator.a.b.c": "O",
	"api.operator.session.start": "O", "api.alice.session.start": "",
	"query.sessions": "OKV", "wrk.w1.running": "OKTM", "wrk.w1.drain": "OK",
	"live.s1.t1": "M", "live.s1.t1.x": "", "replay.s1.session.main.started": "O",
	"$SRV.PING": "O", "$SRV.PING.kernel": "O",
	"evt.s1.session.main.hijacked": "K", "evt.s1.tool.i.hijacked": "", "evt.s1.other.i.started": "",
	"evt.s1.tool.i.started.shell": "", "evt.s1.tool.i.started.x.y": "", "evt.s1.audit.a.checkpoint": "",
	"evt.s1.worker.w1.started": "", "evt.s1.command.c1.rejected": "", "evt.s1.model.m.loaded": "",
	"evt.system.worker.kernel.started": "K", "evt.system.worker.kernel.stopped": "K", "evt.system.worker.kernel-2.started": "K",
	"_INBOX.x": "KTMP", "_INBOX_operator.x": "KTMP", "_INBOX_kernel.x": "TMP", "_INBOX_tool-worker.x": "TM",
	"_INBOX_model-worker.x": "TM", "_INBOX_projector.x": "", "_INBOX_viewer.x": "KP",
	"$SYS.REQ.SERVER.PING": "", "other": "",
	"$O.ARTIFACTS.C.x": "OKTM", "$O.ARTIFACTS.M.x": "OKTM", "$O.OTHER.C.x": "O",

	"$JS.API.INFO": "OK", "$JS.API.STREAM.NAMES": "OK", "$JS.API.STREAM.LIST": "OK",
	"$JS.API.STREAM.INFO.EVENTS": "OKTMP", "$JS.API.STREAM.INFO.COMMANDS": "OK", "$JS.API.STREAM.INFO.OBJ_ARTIFACTS": "OKTMP",
	"$JS.API.STREAM.MSG.GET.EVENTS": "OKTMP", "$JS.API.STREAM.MSG.GET.COMMANDS": "OK", "$JS.API.STREAM.MSG.GET.OBJ_ARTIFACTS": "OKTMP",
	"$JS.API.DIRECT.GET.EVENTS": "O", "$JS.API.DIRECT.GET.EVENTS.evt.s1.session.main.started": "O",
	"$JS.API.DIRECT.GET.OBJ_ARTIFACTS.$O.ARTIFACTS.M.x": "O",

	"$JS.API.STREAM.CREATE.EVENTS": "OK", "$JS.API.STREAM.UPDATE.EVENTS": "OK", "$JS.API.STREAM.CREATE.COMMANDS": "OK",
	"$JS.API.STREAM.UPDATE.COMMANDS": "OK", "$JS.API.STREAM.CREATE.OBJ_ARTIFACTS": "OK", "$JS.API.STREAM.CREATE.OTHER": "O",
	"$JS.API.STREAM.DELETE.OTHER": "O", "$JS.API.STREAM.DELETE.EVENTS": "O", "$JS.API.STREAM.PURGE.EVENTS": "O",
	"$JS.API.STREAM.PURGE.OBJ_ARTIFACTS": "O", "$JS.API.STREAM.MSG.DELETE.EVENTS": "O", "$JS.API.STREAM.SNAPSHOT.EVENTS": "O",
	"$JS.API.STREAM.RESTORE.OTHER": "O",

	"$JS.API.CONSUMER.CREATE.EVENTS": "O", "$JS.API.CONSUMER.CREATE.EVENTS.mine": "OKP", "$JS.API.CONSUMER.CREATE.EVENTS.mine.evt.>": "OKP",
	"$JS.API.CONSUMER.DURABLE.CREATE.EVENTS.mine": "OKP", "$JS.API.CONSUMER.CREATE.COMMANDS.mine.cmd.>": "OK",
	"$JS.API.CONSUMER.CREATE.OBJ_ARTIFACTS.mine": "OK", "$JS.API.CONSUMER.DELETE.EVENTS.tool-shell": "OKP",
	"$JS.API.CONSUMER.NAMES.EVENTS": "OKP", "$JS.API.CONSUMER.LIST.EVENTS": "OKP", "$JS.API.CONSUMER.UNPIN.COMMANDS.kernel-commands": "OK",

	"$JS.API.CONSUMER.INFO.EVENTS.tool-shell": "OKPT", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.tool-shell": "OKPT",
	"$JS.API.CONSUMER.INFO.EVENTS.preview-shell": "OKPT", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.preview-shell": "OKPT",
	"$JS.API.CONSUMER.INFO.EVENTS.model-tiny": "OKPM", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.model-tiny": "OKPM",
	"$JS.API.CONSUMER.INFO.EVENTS.tool-other": "OKP", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.tool-other": "OKP",
	"$JS.API.CONSUMER.INFO.COMMANDS.kernel-commands": "OK", "$JS.API.CONSUMER.MSG.NEXT.COMMANDS.kernel-commands": "OK",
	"$JS.ACK.EVENTS.tool-shell.1.1.1.1.0": "OKPT", "$JS.ACK.EVENTS.model-tiny.1.1.1.1.0": "OKPM",
	"$JS.ACK.EVENTS.tool-other.1.1.1.1.0": "OKP", "$JS.ACK.COMMANDS.kernel-commands.1.1.1.1.0": "OK",
}

func TestPermissions(t *testing.T) {
	publish := map[string]string{}
	for subject, who := range publishers {
		publish[subject] = who
	}
	for _, ft := range events.FactTypes() {
		who, ok := factWriters[ft.Name]
		if !ok {
			t.Errorf("the matrix does not say who may publish %s", ft.Name)
		}
		publish[factSubject(ft)] = who
	}
	for _, r := range access.Roles() {
		t.Run(string(r), func(t *testing.T) {
			dir := t.TempDir()
			start(t, natsd.Options{StateDir: dir, Tools: []string{"shell"}, Models: []string{"tiny"}})
			nc := connect(t, dir, r)
			for subject, who := range subscribers {
				sub, err := nc.SubscribeSync(subject)
				if err != nil {
					t.Fatalf("subscribe to %s: %v", subject, err)
				}
				verify(t, nc, r, "Subscription", subject, who)
				// One that was denied is closed already.
				if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrBadSubscription) {
					t.Fatalf("unsubscribe from %s: %v", subject, err)
				}
			}
			for subject, who := range publish {
				if err := nc.PublishRequest(subject, r.InboxPrefix()+".x", []byte("{}")); err != nil {
					t.Fatalf("publish to %s: %v", subject, err)
				}
				verify(t, nc, r, "Publish", subject, who)
			}
		})
	}
}

// factSubject is where facts of a type are published.
func factSubject(ft events.FactType) string {
	session := "s1"
	switch ft.Name.Kind() {
	case events.KindModel, events.KindWorker, events.KindCommand, events.KindAudit:
		session = string(events.System)
	}
	s := "evt." + session + "." + string(ft.Name.Kind()) + ".x." + ft.Name.Token()
	if ft.Routed {
		s += ".shell"
	}
	return s
}

// verify holds what the server said to the operation just sent against who may
// do it. The server answers a flush after it has refused what came before.
func verify(t *testing.T, nc *nats.Conn, r access.Role, operation, subject, who string) {
	t.Helper()
	if err := nc.Flush(); err != nil {
		t.Fatalf("flush after %s: %v", subject, err)
	}
	err := nc.LastError()
	denied := err != nil && strings.Contains(err.Error(), "Permissions Violation for "+operation+` to "`+subject+`"`)
	if allowed := strings.Contains(who, letters[r]); allowed == denied {
		t.Errorf("%s, %s %s: denied %t, want %t (%v)", r, operation, subject, denied, !allowed, err)
	}
}
