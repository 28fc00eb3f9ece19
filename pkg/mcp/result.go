package mcp

import (
	"encoding/json"
	"fmt"
	"math"
	"mime"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"correx/pkg/events"
	"correx/pkg/tools"
)

// maxStructured is how large a structured result may be in a receipt.
const maxStructured = 64 << 10

// A reading is a server's result, as it is told.
type reading struct {
	text       []string
	blobs      []tools.Blob
	structured events.Raw
}

// read takes a result apart: text is the output, everything else an artifact that
// the output mentions. Links are mentioned and never followed.
func read(r *sdk.CallToolResult) reading {
	var out reading
	for _, c := range r.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			out.text = append(out.text, c.Text)
		case *sdk.ImageContent:
			out.blob("image", c.MIMEType, c.Data)
		case *sdk.AudioContent:
			out.blob("audio", c.MIMEType, c.Data)
		case *sdk.ResourceLink:
			out.note("a link, not followed: %s", visible(c.URI, 1<<10))
		case *sdk.EmbeddedResource:
			out.resource(c.Resource)
		default:
			out.note("content of an unknown kind was left out")
		}
	}
	out.structure(r.StructuredContent)
	return out
}

func (o *reading) note(format string, a ...any) {
	o.text = append(o.text, "["+fmt.Sprintf(format, a...)+"]")
}

func (o *reading) blob(kind, media string, data []byte) {
	if m, _, err := mime.ParseMediaType(media); err != nil || len(media) > 100 {
		media = "application/octet-stream"
	} else {
		media = m
	}
	name := fmt.Sprintf("content-%d", len(o.blobs)+1)
	o.blobs = append(o.blobs, tools.Blob{Name: name, MediaType: media, Data: data})
	o.note("%s, %s, %d bytes: artifact %s", kind, media, len(data), name)
}

func (o *reading) resource(r *sdk.ResourceContents) {
	switch {
	case r == nil:
		o.note("an empty resource")
	case len(r.Blob) > 0:
		o.blob("resource "+visible(r.URI, 1<<10), r.MIMEType, r.Blob)
	default:
		o.note("resource %s", visible(r.URI, 1<<10))
		o.text = append(o.text, r.Text)
	}
}

// structure keeps a structured result, if that can be done without changing it.
func (o *reading) structure(v any) {
	if v == nil {
		return
	}
	if !exact(v) {
		o.note("a structured result was left out: it has numbers beyond 2^53")
		return
	}
	data, err := json.Marshal(v)
	if err != nil {
		o.note("a structured result was left out: %v", err)
		return
	}
	if _, object := v.(map[string]any); object && len(data) <= maxStructured {
		o.structured = data
	} else {
		o.blob("structured result", "application/json", data)
	}
	if len(o.text) == 0 {
		o.text = append(o.text, string(data))
	}
}

// exact reports whether the numbers in v are what the server wrote.
func exact(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.Abs(v) < 1<<53
	case []any:
		for _, e := range v {
			if !exact(e) {
				return false
			}
		}
	case map[string]any:
		for _, e := range v {
			if !exact(e) {
				return false
			}
		}
	}
	return true
}

func (o *reading) output() string { return strings.Join(o.text, "\n") }
