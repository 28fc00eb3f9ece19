package audit

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

// A Fingerprint is short enough to stand in a checkpoint for every record that is
// new in it. It proves nothing; where a checkpoint does not match, it says which
// record is to blame. Content is the beginning of the content's hash, so that a
// record is known again in another place; Event, of the record's.
type Fingerprint struct{ Content, Event uint32 }

// FingerprintOf is the fingerprint of a record.
func FingerprintOf(content, event Hash) Fingerprint {
	return Fingerprint{binary.BigEndian.Uint32(content[:]), binary.BigEndian.Uint32(event[:])}
}

// MaxFingerprints is how many a checkpoint has at most; of more new records, the
// last ones have theirs in it.
const MaxFingerprints = 16384

const fingerprintSize = 8

// EncodeFingerprints is their text in a checkpoint.
func EncodeFingerprints(all []Fingerprint) string {
	b := make([]byte, 0, fingerprintSize*len(all))
	for _, f := range all {
		b = binary.BigEndian.AppendUint32(b, f.Content)
		b = binary.BigEndian.AppendUint32(b, f.Event)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// DecodeFingerprints undoes [EncodeFingerprints].
func DecodeFingerprints(s string) ([]Fingerprint, error) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(b)%fingerprintSize != 0 {
		return nil, fmt.Errorf("fingerprints: not base64 of eight bytes each")
	}
	all := make([]Fingerprint, 0, len(b)/fingerprintSize)
	for ; len(b) > 0; b = b[fingerprintSize:] {
		all = append(all, Fingerprint{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])})
	}
	return all, nil
}
