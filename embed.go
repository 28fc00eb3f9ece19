// Package correx holds the files at the top of the repository that are part of
// the programs.
package correx

import _ "embed"

// Streams is streams.yaml: the streams, the bucket and the consumers.
//
//go:embed streams.yaml
var Streams []byte
