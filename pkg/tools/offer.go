package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"correx/pkg/events"
)

// Offer is t as a worker announces it. A tool that touches nothing may run again
// after its worker was lost.
func Offer(t Tool, isolation events.Isolation) events.ToolOffer {
	_, previews := t.(Previewer)
	o := events.ToolOffer{
		Name:         t.Name(),
		Token:        events.Token(t.Name()),
		Description:  t.Description(),
		Tier:         t.Tier(),
		Capabilities: t.RequiredCapabilities(),
		Schema:       compact(t.ParametersSchema()),
		Previews:     previews,
		Idempotent:   !Touches(t),
		Example:      t.Example(),
		Isolation:    isolation,
		FollowUpOnly: FollowUpOnly(t),
	}
	if x, ok := t.(Exemplar); ok {
		o.Examples = x.Examples()
	}
	if f, ok := t.(ForeignTool); ok {
		o.Origin = f.Origin()
	}
	o.Digest = offerDigest(o)
	return o
}

// offerDigest covers what a person who allows the tool relies on.
func offerDigest(o events.ToolOffer) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	enc.SetEscapeHTML(false)
	parts := []any{o.Name, o.Token, o.Description, o.Tier.String(), o.Capabilities, string(o.Schema)}
	if o.FollowUpOnly { // else the digest is that of former versions
		parts = append(parts, "follow-up only")
	}
	for _, part := range parts {
		_ = enc.Encode(part) // strings and slices of strings always encode
	}
	return hex.EncodeToString(h.Sum(nil))
}

// compact drops white space, as the wire does, and keeps the order of keys.
func compact(r events.Raw) events.Raw {
	var b bytes.Buffer
	if json.Compact(&b, r) != nil {
		return r // the kernel refuses such an offer and says why
	}
	return b.Bytes()
}
