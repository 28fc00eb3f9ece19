package session

import "strings"

// controlTokens are what templates give a meaning that text must not have.
var controlTokens = strings.NewReplacer("<|", "< |", "|>", "| >", "<｜", "< ｜", "｜>", "｜ >", "<s>", "< s>", "</s>", "< /s>",
	"[INST]", "[ INST]", "[/INST]", "[ /INST]", "<<SYS>>", "<< SYS>>", "<</SYS>>", "<< /SYS>>",
	"<bos>", "< bos>", "<eos>", "< eos>", "<start_of_turn>", "< start_of_turn>", "<end_of_turn>", "< end_of_turn>")

// neutral makes control tokens of templates harmless in text that others wrote.
func neutral(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for {
		t := controlTokens.Replace(s)
		if t == s {
			return s
		}
		s = t // "<|>" holds two that overlap
	}
}
