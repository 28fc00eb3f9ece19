package session

import (
	"sort"

	"correx/pkg/events"
)

// maxResult bounds what a model is told of one tool's result, in bytes.
const maxResult = 8 << 10

// maxGuidedResult is the same for a model that is guided: it is the slower, and
// the sooner lost, the more it has to read.
const maxGuidedResult = 1500

// historyOf is L2: what was said and done since the task, in the order of the
// log, as far as f may read.
func historyOf(s State, f events.InferenceRequested) []events.ChatMessage {
	type entry struct {
		seq uint64
		msg events.ChatMessage
	}
	var all []entry
	add := func(seq uint64, role events.ChatRole, text string) {
		if seq <= f.Through {
			all = append(all, entry{seq, events.ChatMessage{Role: role, Content: neutral(text)}})
		}
	}
	for _, m := range s.Messages {
		add(m.Seq, events.RoleUser, m.Text)
	}
	for _, i := range s.Inferences {
		if i.Done != nil {
			add(i.EndSeq, events.RoleAssistant, i.Done.Reply.Text)
		}
	}
	for _, i := range s.Tools {
		if i.End != nil && i.Requested != nil {
			text := ResultText(i)
			if f.Guided {
				text = clipTo(text, maxGuidedResult)
			}
			add(i.EndSeq, events.RoleUser, text)
		}
	}
	sort.SliceStable(all, func(a, b int) bool { return all[a].seq < all[b].seq })
	msgs := make([]events.ChatMessage, len(all))
	for k, e := range all {
		msgs[k] = e.msg
	}
	return msgs
}

// ResultText is what a model is told of an invocation that ended.
func ResultText(i Invocation) string {
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
	return tool + " succeeded: " + clip(output)
}

func failure(tool, reason string, recoverable bool) string {
	hint := " The same call would fail again."
	if recoverable {
		hint = " The same call may work later."
	}
	return tool + " failed: " + clip(reason) + "." + hint
}

func clip(s string) string { return clipTo(s, maxResult) }

// clipTo keeps head and tail of a text that is longer than so many bytes.
func clipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most/2] + "\n[…]\n" + s[len(s)-most/2:]
}
