package session

import (
	"sort"

	"correx/pkg/events"
)

// An entry is one part of L2: what was said, or what a tool answered.
type entry struct {
	seq    uint64
	role   events.ChatRole
	text   string // whole, and harmless
	result bool   // of a tool: it can be shortened
	kept   bool   // what was asked for last: it is never cut
}

// told is an entry as a model gets it: of a result, at most so many bytes.
func (e entry) told(most int) string {
	if !e.result {
		return e.text
	}
	return shorten(e.text, most)
}

// historyOf is L2: what was said and done since the task, in the order of the
// log, as far as f may read.
func historyOf(s State, f events.InferenceRequested) []entry {
	var all []entry
	add := func(e entry) {
		if e.seq <= f.Through {
			e.text = neutral(e.text)
			all = append(all, e)
		}
	}
	_, asked := goalSince(s, f.Through)
	for _, m := range s.Messages {
		add(entry{seq: m.Seq, role: events.RoleUser, text: m.Text, kept: m.Seq == asked})
	}
	for _, i := range s.Inferences {
		if i.Done != nil {
			add(entry{seq: i.EndSeq, role: events.RoleAssistant, text: i.Done.Reply.Text})
		}
	}
	for _, i := range s.Tools {
		if i.End != nil && i.Requested != nil {
			add(entry{seq: i.EndSeq, role: events.RoleUser, text: resultText(i), result: true})
		}
	}
	sort.SliceStable(all, func(a, b int) bool { return all[a].seq < all[b].seq })
	return all
}

// ResultText is what a model is told of an invocation that ended.
func ResultText(i Invocation) string { return shorten(resultText(i), maxResult) }

// resultText is that, however long.
func resultText(i Invocation) string {
	tool := i.Requested.Request.Tool
	prefix := ""
	if i.Requested.Actor != "" {
		prefix = "(asked for by " + string(i.Requested.Actor) + ") "
	}
	if i.Follows() != "" {
		return prefix + reviewText(i)
	}
	switch f := i.End.(type) {
	case events.ToolExecutionCompleted:
		text := prefix + success(tool, f.Receipt.Output)
		if i.FollowUp() != nil {
			text += waitsForReview
		}
		return text
	case events.ToolExecutionFailed:
		return prefix + failure(tool, f.Reason, f.Recoverable)
	case events.ToolExecutionRejected:
		return prefix + failure(tool, f.Reason, false)
	}
	return prefix + tool + " has not ended"
}

func success(tool, output string) string {
	if output == "" {
		output = "done"
	}
	return tool + " succeeded: " + output
}

func failure(tool, reason string, recoverable bool) string {
	hint := " The same call would fail again."
	if recoverable {
		hint = " The same call may work later."
	}
	return tool + " failed: " + reason + "." + hint
}
