package session

import (
	"bytes"
	"encoding/json"
	"fmt"

	"correx/pkg/events"
)

// An object of JSON whose members keep their order, which is the order in
// which a model writes them.
type object []member

type member struct {
	name  string
	value events.Raw
}

func readObject(text events.Raw) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("%.40s is no object", text)
	}
	var o object
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var m member
		m.name, _ = name.(string) // names are strings
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		o = append(o, m)
	}
	return o, nil
}

func (o object) get(name string) events.Raw {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func (o object) set(name string, value events.Raw) {
	for k := range o {
		if o[k].name == name {
			o[k].value = value
		}
	}
}

func (o object) raw() events.Raw {
	var b bytes.Buffer
	b.WriteByte('{')
	for k, m := range o {
		if k > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(m.name) + ":")
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}
