package session

import (
	"slices"
	"strings"

	"correx/pkg/events"
)

// controlTokens are what templates and tokenizers of models in use give a meaning
// that text must not have. A tokenizer looks for them as they stand, so that a
// space in one makes it text.
var controlTokens = []string{
	"<|", "|>", "<｜", "｜>", // most: <|im_end|>, <|eot_id|>, <｜User｜>
	"<s>", "</s>", "<unk>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", // Llama 2, Mistral
	"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
	"<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>", // Gemma
	"<BOS_TOKEN>", "<EOS_TOKEN>", "<EOP_TOKEN>", // Command
	"<repo_name>", "<reponame>", "<file_sep>", "<filename>", "<gh_stars>", "<issue_start>", "<issue_comment>", "<issue_closed>", // StarCoder, SmolLM
	"<jupyter_start>", "<jupyter_text>", "<jupyter_code>", "<jupyter_output>", "<jupyter_script>", "<empty_output>",
}

var toText = strings.NewReplacer(pairs(controlTokens)...)

// pairs are tokens, each with what it becomes: "< s>", "| >".
func pairs(tokens []string) (out []string) {
	for _, t := range tokens {
		first := []rune(t)[:1]
		out = append(out, t, string(first)+" "+strings.TrimPrefix(t, string(first)))
	}
	return out
}

// neutral makes control tokens of templates harmless in text that others wrote.
func neutral(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for {
		t := toText.Replace(s)
		if t == s {
			return s
		}
		s = t // "<|>" holds two that overlap
	}
}

// neutralised is messages with the text of all but the system made harmless.
func neutralised(msgs []events.ChatMessage) []events.ChatMessage {
	msgs = slices.Clone(msgs)
	for k := range msgs {
		if msgs[k].Role != events.RoleSystem {
			msgs[k].Content = neutral(msgs[k].Content)
		}
	}
	return msgs
}
