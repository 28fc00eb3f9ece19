package testmodel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// turnToken ends the prompt of a scripted model. It is all that the model sees,
// so it says which answer is due.
func turnToken(key string, turn int) string { return fmt.Sprintf("<turn:%s:%d>", key, turn) }

// template is ChatML. With tasks (key → number of answers; "" for what is of no
// task) the generation prompt is the turn token: the task is the last one that a
// user's message names, the turn the number of the assistant's messages since,
// or the last.
func template(tasks map[string]int) string {
	if tasks == nil {
		return messagesTemplate("", "") + `{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}`
	}
	var known []string
	for _, key := range slices.Sorted(maps.Keys(tasks)) {
		known = append(known, fmt.Sprintf("'%s': %d", key, tasks[key]))
	}
	count := `
{%- if m['role'] == 'user' and '[task:' in m['content'] -%}
  {%- set key = m['content'].split('[task:')[-1].split(']')[0] -%}
  {%- if key in known -%}{%- set ns.key = key -%}{%- set ns.turn = 0 -%}{%- endif -%}
{%- elif m['role'] == 'assistant' -%}
  {%- set ns.turn = ns.turn + 1 -%}
{%- endif -%}`
	return messagesTemplate(`
{%- set known = {`+strings.Join(known, ", ")+`} -%}
{%- set ns = namespace(key='', turn=0) -%}`, count) + `
{%- if ns.turn >= known[ns.key] -%}{%- set ns.turn = known[ns.key] - 1 -%}{%- endif -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n<turn:' + ns.key + ':' + (ns.turn | string) + '>' }}{%- endif -%}`
}

// messagesTemplate prints the messages; each is run once per message before it.
func messagesTemplate(before, each string) string {
	return before + `
{%- for m in messages -%}` + each + `
{{- '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' -}}
{%- endfor -%}`
}

// check stands before a template.
func (r Roles) check() string {
	switch r {
	case Strict:
		return `
{%- for m in messages -%}
  {%- if m['role'] == 'system' -%}{{ raise_exception('System role not supported') }}{%- endif -%}
  {%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) -%}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{%- endif -%}
{%- endfor -%}`
	case Deaf:
		return `{%- set messages = messages | rejectattr('role', 'equalto', 'system') | list -%}`
	}
	return ""
}
