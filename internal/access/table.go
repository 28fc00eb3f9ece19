package access

import (
	"slices"

	"correx/pkg/events"
)

// Names of the streams and the bucket; streams.yaml declares them.
const (
	StreamEvents    = "EVENTS"
	StreamCommands  = "COMMANDS"
	BucketArtifacts = "ARTIFACTS"
)

// streamArtifacts is the stream behind the bucket.
const streamArtifacts = "OBJ_" + BucketArtifacts

// KernelCommands is the consumer by which one kernel at a time reads commands.
const KernelCommands = "kernel-commands"

// ToolDurable is the consumer of approved invocations of a tool.
func ToolDurable(token string) string { return "tool-" + token }

// PreviewDurable is the consumer of requested invocations of a tool.
func PreviewDurable(token string) string { return "preview-" + token }

// ModelDurable is the consumer of requested inferences of a model.
func ModelDurable(token string) string { return "model-" + token }

// A Grant is what a role may publish and subscribe to. Nothing else is allowed;
// and of what it may publish, not what is denied.
type Grant struct {
	Publish, Deny, Subscribe []string
}

// Permissions returns what r may do. Tools and models are the tokens that
// workers announced: permissions have no wildcard within a token, so that each
// durable consumer is named.
func Permissions(r Role, tools, models []string) Grant {
	var g Grant
	switch r {
	case Operator:
		g = operator()
	case Kernel:
		g = kernel()
	case ToolWorker:
		g = toolWorker(tools)
	case ModelWorker:
		g = modelWorker(models)
	case Projector:
		g = projector()
	case Viewer:
		g = viewer()
	}
	g.Subscribe = append(g.Subscribe, r.InboxPrefix()+".>")
	slices.Sort(g.Publish)
	slices.Sort(g.Subscribe)
	return Grant{slices.Compact(g.Publish), g.Deny, slices.Compact(g.Subscribe)}
}

// The operator is whoever owns the state directory. Its NATS tools use the
// common inbox prefix, so it has that too.
func operator() Grant {
	return Grant{
		Publish: join(
			subjects("cmd.operator.>", "api.operator.>", "query.>", "wrk.>", "replay.>", "$SRV.>"),
			subjects("$JS.API.>", "$JS.ACK.>", "$O.>"),
		),
		Subscribe: subjects("evt.>", "cmd.>", "live.>", "replay.>", "$JS.EVENT.>", "$O.>", "_INBOX.>"),
	}
}

// Only the kernel publishes decisions. It also puts into the stream what is
// asked of api.<actor>.…, hence any actor's commands.
func kernel() Grant {
	return Grant{
		Publish: join(
			facts("session.*"),
			facts("inference.requested.*", "inference.failed"),
			facts("tool.requested.*", "tool.approval_requested.*", "tool.approved.*", "tool.denied",
				"tool.expired", "tool.rejected", "tool.cancel_requested", "tool.failed"),
			systemFacts("model.*.load_requested", "model.*.unload_requested", "command.*.rejected"),
			announcements(),
			subjects("cmd.*.*.*", "wrk.>", "query.>"),
			answers(Operator, Viewer),
			read(StreamEvents), read(StreamCommands), read(streamArtifacts),
			consumers(StreamEvents), consumers(StreamCommands), consumers(streamArtifacts),
			define(StreamEvents), define(StreamCommands), define(streamArtifacts),
			subjects("$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST"),
			artifacts(),
		),
		Subscribe: subjects("evt.>", "cmd.>", "api.>", "$SRV.>", "$JS.EVENT.>"),
	}
}

// A tool-worker reports; it never decides. ("rejected" is its own right: the
// approval no longer holds, or isolation falls short.)
func toolWorker(tools []string) Grant {
	g := worker()
	g.Publish = join(g.Publish, facts("tool.previewed", "tool.started", "tool.completed",
		"tool.failed", "tool.rejected", "tool.recovered"))
	for _, t := range tools {
		g.Publish = join(g.Publish, pull(ToolDurable(t)), pull(PreviewDurable(t)))
	}
	return g
}

func modelWorker(models []string) Grant {
	g := worker()
	g.Publish = join(g.Publish,
		facts("inference.started", "inference.completed", "inference.failed"),
		systemFacts("model.*.loaded", "model.*.unloaded", "model.*.crashed", "model.*.load_failed"),
		subjects("live.*.*"))
	for _, m := range models {
		g.Publish = join(g.Publish, pull(ModelDurable(m)))
	}
	return g
}

// worker is what both kinds of worker may do.
func worker() Grant {
	return Grant{
		Publish: join(
			announcements(),
			subjects("wrk.*.running"),
			answers(Operator, Kernel, ToolWorker, ModelWorker),
			read(StreamEvents), read(streamArtifacts),
			artifacts(),
		),
		Deny:      ofKernels(),
		Subscribe: subjects("evt.>", "wrk.>", "$SRV.>"),
	}
}

// The projector reads in order, which takes a consumer of its own.
func projector() Grant {
	return Grant{
		Publish: join(
			systemFacts("audit.*.checkpoint"),
			announcements(),
			answers(Operator, Kernel, Viewer),
			read(StreamEvents), read(streamArtifacts), consumers(StreamEvents),
		),
		Deny:      ofKernels(),
		Subscribe: subjects("evt.>", "query.>", "$SRV.>"),
	}
}

// A viewer has nothing of the JetStream API: any call of it may be answered to
// a subject of the caller's choice. What is stored it learns by query.
func viewer() Grant {
	return Grant{
		Publish:   subjects("query.>"),
		Subscribe: subjects("evt.>", "live.>", "replay.>"),
	}
}

func subjects(s ...string) []string { return s }

func join(lists ...[]string) []string { return slices.Concat(lists...) }

// facts returns the subjects of facts of any session: "tool.started" is
// evt.*.tool.*.started.
func facts(names ...events.FactName) []string {
	var s []string
	for _, n := range names {
		s = append(s, events.PrefixFact+".*."+string(n.Kind())+".*."+n.Token())
	}
	return s
}

// systemFacts returns the subjects of facts of no session.
func systemFacts(rest ...string) []string {
	var s []string
	for _, r := range rest {
		s = append(s, events.PrefixFact+"."+string(events.System)+"."+r)
	}
	return s
}

// announcements is how a process says that it is there, and that it went.
func announcements() []string { return systemFacts("worker.*.started", "worker.*.stopped") }

// ofKernels is what a kernel announces, its policy included.
func ofKernels() []string {
	var s []string
	for _, k := range events.KernelNames() {
		s = append(s, systemFacts("worker."+string(k)+".*")...)
	}
	return s
}

// answers lets a role answer the requests of others, in their inboxes only. The
// server's allow_responses would do more than that: it permits whatever reply
// subject a request names, so that a viewer could have an answer published as a
// fact.
func answers(roles ...Role) []string {
	var s []string
	for _, r := range roles {
		s = append(s, r.InboxPrefix()+".>")
		if r == Operator {
			s = append(s, "_INBOX.>")
		}
	}
	return s
}

// read is what reads of a stream by sequence or subject take. They are answered
// by the stream's leader, in JSON: never with a stored body as it is.
func read(stream string) []string {
	return subjects("$JS.API.STREAM.INFO."+stream, "$JS.API.STREAM.MSG.GET."+stream)
}

// pull is what a worker may do with a consumer that the kernel made.
func pull(durable string) []string {
	name := StreamEvents + "." + durable
	return subjects("$JS.API.CONSUMER.INFO."+name, "$JS.API.CONSUMER.MSG.NEXT."+name, "$JS.ACK."+name+".>")
}

// consumers is what it takes to make consumers of a stream and read by them.
func consumers(stream string) []string {
	return subjects(
		"$JS.API.CONSUMER.CREATE."+stream+".>", "$JS.API.CONSUMER.DURABLE.CREATE."+stream+".*",
		"$JS.API.CONSUMER.INFO."+stream+".*", "$JS.API.CONSUMER.NAMES."+stream, "$JS.API.CONSUMER.LIST."+stream,
		"$JS.API.CONSUMER.MSG.NEXT."+stream+".*", "$JS.API.CONSUMER.DELETE."+stream+".*",
		"$JS.API.CONSUMER.UNPIN."+stream+".*", "$JS.ACK."+stream+".>",
	)
}

// define is what it takes to make and change a stream. Nothing of it deletes.
func define(stream string) []string {
	return subjects("$JS.API.STREAM.CREATE."+stream, "$JS.API.STREAM.UPDATE."+stream)
}

// artifacts is what a put of an object takes.
func artifacts() []string { return subjects("$O." + BucketArtifacts + ".>") }
