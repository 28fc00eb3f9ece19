package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"correx/pkg/events"
)

// maxParameters is how large the parameters of one request may be, in bytes.
const maxParameters = 256 << 10

// decode reads parameters strictly: an object, with known fields only.
func decode(r events.ToolRequest, into any) error {
	if len(r.Parameters) == 0 {
		return errors.New("parameters are missing")
	}
	if len(r.Parameters) > maxParameters {
		return fmt.Errorf("parameters are %d bytes large, and %d are allowed", len(r.Parameters), maxParameters)
	}
	if err := r.Parameters.Object(); err != nil {
		return fmt.Errorf("parameters: the value %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(r.Parameters))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("parameters: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("parameters: something stands behind the object")
	}
	return nil
}
