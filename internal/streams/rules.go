package streams

import (
	"slices"
	"strings"
)

// A rule says what becomes of a change to a field. Fields without a rule can be
// changed.
type rule struct {
	field   string
	verdict Verdict
	when    func(from, to any) bool // nil: whatever the change
	advice  string
}

const (
	anew     = "the server never changes it: keep it, or make a new stream under another name and copy the messages"
	recreate = "the server never changes it: keep it, or delete the consumer and apply again; what was acknowledged is then delivered again"
	kept     = "the server never takes it back: keep it, or make a new stream under another name and copy the messages"
)

// streamRules are all fields of a stream that the server refuses to change, or
// whose change loses messages, at once or later. deny_delete and deny_purge
// stop none of the latter.
var streamRules = []rule{
	{"storage", Refused, nil, anew},
	{"persist_mode", Refused, nil, anew},
	{"allow_msg_counter", Refused, nil, anew},
	{"first_seq", Refused, nil, "it counts at creation only; leave it out"},
	{"mirror", Refused, isSet, "a stream cannot become a mirror, or of another stream; only stop being one"},
	{"retention", Refused, either("workqueue"), anew},
	{"sealed", Refused, cleared, kept},
	{"deny_delete", Refused, cleared, kept},
	{"deny_purge", Refused, cleared, kept},
	{"allow_msg_ttl", Refused, cleared, kept},
	{"allow_msg_schedules", Refused, cleared, kept},

	{"max_msgs", Lossy, tighter, "messages over the limit are erased, oldest first, or new ones refused"},
	{"max_bytes", Lossy, tighter, "messages over the limit are erased, oldest first, or new ones refused"},
	{"max_age", Lossy, tighter, "messages older than this are erased"},
	{"max_msgs_per_subject", Lossy, tighter, "messages over the limit are erased in each subject"},
	{"discard", Lossy, nil, "old: at a limit the oldest messages are erased; new: at a limit new ones are refused"},
	{"discard_new_per_subject", Lossy, isSet, "new messages on a full subject are refused"},
	{"retention", Lossy, nil, "interest: messages are erased once every consumer has acknowledged them"},
	{"subjects", Lossy, narrower, "messages on subjects that are no longer covered are not stored any more"},
	{"subject_transform", Lossy, isSet, "messages are stored under other subjects than they were published on"},
	{"allow_rollup_hdrs", Lossy, isSet, "a publisher may then erase a subject, or the stream, by a header"},
	{"allow_msg_ttl", Lossy, isSet, "a publisher may then give messages an end, and it can never be taken back"},
	{"allow_msg_schedules", Lossy, isSet, "it silently allows rollups and purges, and can never be taken back"},
	{"subject_delete_marker_ttl", Lossy, isSet, "it silently allows rollups and purges"},
	{"sealed", Lossy, isSet, "nothing can be stored any more, and it can never be taken back"},
	{"no_ack", Lossy, isSet, "a publisher no longer learns whether its message was stored"},
	{"max_msg_size", Lossy, tighter, "messages over the limit are refused"},
}

// consumerRules are the same for consumers; what a consumer can lose is
// deliveries.
var consumerRules = []rule{
	{"deliver_policy", Refused, nil, recreate},
	{"opt_start_seq", Refused, nil, recreate},
	{"opt_start_time", Refused, nil, recreate},
	{"ack_policy", Refused, nil, recreate},
	{"replay_policy", Refused, nil, recreate},
	{"mem_storage", Refused, nil, recreate},
	{"max_waiting", Refused, nil, recreate},
	{"idle_heartbeat", Refused, nil, recreate},
	{"flow_control", Refused, nil, recreate},
	{"deliver_subject", Refused, eitherUnset, "a pull consumer cannot become a push consumer, nor the other way round"},

	{"max_deliver", Lossy, tighter, "messages that were delivered so often are never delivered again"},
	{"filter_subject", Lossy, notWider, "messages that the new filter does not cover are never delivered"},
	{"filter_subjects", Lossy, nil, "messages that the new filters do not cover are never delivered"},
	{"headers_only", Lossy, isSet, "messages come without their bodies"},
	{"inactive_threshold", Lossy, isSet, "the server deletes the consumer when nobody asks of it for so long"},
}

// ruleFor returns the first rule that speaks of the change.
func ruleFor(rules []rule, field string, from, to any) (rule, bool) {
	for _, r := range rules {
		if r.field == field && (r.when == nil || r.when(from, to)) {
			return r, true
		}
	}
	return rule{}, false
}

func isSet(_, to any) bool { return !zero(to) }

func cleared(from, to any) bool { return !zero(from) && zero(to) }

func eitherUnset(from, to any) bool { return zero(from) != zero(to) }

func zero(v any) bool { return v == nil || v == false || v == "" || v == 0.0 }

func either(value string) func(from, to any) bool {
	return func(from, to any) bool { return from == value || to == value }
}

// tighter says of a limit, where 0 and less mean none, that it became smaller.
func tighter(from, to any) bool {
	f, _ := from.(float64)
	t, _ := to.(float64)
	return t > 0 && (f <= 0 || t < f)
}

// narrower says that a subject of from is not covered by any of to.
func narrower(from, to any) bool {
	have := texts(to)
	for _, s := range texts(from) {
		if !slices.ContainsFunc(have, func(h string) bool { return covers(h, s) }) {
			return true
		}
	}
	return false
}

// notWider says that a consumer's filter does not cover the former; none is all.
func notWider(from, to any) bool {
	f, t := text1(from), text1(to)
	return !covers(t, f)
}

func text1(v any) string {
	if s, ok := v.(string); ok && s != "" {
		return s
	}
	return ">"
}

func texts(v any) []string {
	list, _ := v.([]any)
	var s []string
	for _, e := range list {
		if t, ok := e.(string); ok {
			s = append(s, t)
		}
	}
	return s
}

// covers says that every subject that matches b matches a.
func covers(a, b string) bool {
	at, bt := strings.Split(a, "."), strings.Split(b, ".")
	for i, t := range at {
		if t == ">" {
			return len(bt) > i
		}
		if i >= len(bt) || bt[i] == ">" || t != "*" && t != bt[i] {
			return false
		}
	}
	return len(at) == len(bt)
}
