package config

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"correx/pkg/events"
)

// An Object is a JSON object that is written as YAML: the parameters of a call.
type Object events.Raw

// UnmarshalYAML turns a mapping into JSON, in its own order and with numbers as
// they were spelt.
func (o *Object) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("must be an object, such as {argv: [git, status]}")
	}
	var b strings.Builder
	if err := writeJSON(&b, n); err != nil {
		return err
	}
	*o = Object(b.String())
	return nil
}

func writeJSON(b *strings.Builder, n *yaml.Node) error {
	switch n.Kind {
	case yaml.AliasNode:
		return fmt.Errorf("must not use aliases")
	case yaml.MappingNode:
		return writeJSONList(b, n.Content, "{", "}", true)
	case yaml.SequenceNode:
		return writeJSONList(b, n.Content, "[", "]", false)
	}
	switch tag := n.ShortTag(); {
	case tag == "!!null":
		b.WriteString("null")
	case tag == "!!bool":
		v, err := strconv.ParseBool(strings.ToLower(n.Value))
		if err != nil {
			return fmt.Errorf("%q: write true or false", n.Value)
		}
		b.WriteString(strconv.FormatBool(v))
	case (tag == "!!int" || tag == "!!float") && json.Valid([]byte(n.Value)):
		b.WriteString(n.Value)
	default:
		writeJSONString(b, n.Value)
	}
	return nil
}

func writeJSONList(b *strings.Builder, content []*yaml.Node, open, end string, keyed bool) error {
	b.WriteString(open)
	for i, c := range content {
		if keyed && i%2 == 0 {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSONString(b, c.Value)
			b.WriteByte(':')
			continue
		}
		if !keyed && i > 0 {
			b.WriteByte(',')
		}
		if err := writeJSON(b, c); err != nil {
			return err
		}
	}
	b.WriteString(end)
	return nil
}

func writeJSONString(b *strings.Builder, s string) {
	var line strings.Builder
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	b.WriteString(strings.TrimSuffix(line.String(), "\n"))
}
