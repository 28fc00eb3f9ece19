package streams

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// fields is a configuration by the server's names. A field that is zero may be
// missing.
type fields map[string]any

func fieldsFrom(cfg any) (fields, error) {
	data, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	f := fields{}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	return f, nil
}

// streamFields returns c with the server's defaults where it says nothing, so
// that what is declared and what a server answers can be compared.
func streamFields(c jetstream.StreamConfig) (fields, error) {
	for _, limit := range []*int64{&c.MaxMsgs, &c.MaxBytes, &c.MaxMsgsPerSubject} {
		if *limit == 0 {
			*limit = -1
		}
	}
	if c.MaxConsumers == 0 {
		c.MaxConsumers = -1
	}
	if c.MaxMsgSize == 0 {
		c.MaxMsgSize = -1
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.Duplicates == 0 {
		c.Duplicates = 2 * time.Minute
		if c.MaxAge > 0 {
			c.Duplicates = min(c.Duplicates, c.MaxAge)
		}
	}
	if c.FirstSeq == 0 {
		c.FirstSeq = 1
	}
	c.Subjects = slices.Sorted(slices.Values(c.Subjects))
	c.Metadata = ownMetadata(c.Metadata)
	return fieldsFrom(c)
}

// consumerFields is [streamFields] for consumers. A pause is a state and no
// configuration: no update sets it.
func consumerFields(c jetstream.ConsumerConfig) (fields, error) {
	c.Name, c.PauseUntil = c.Durable, nil
	if c.AckWait == 0 && c.AckPolicy != jetstream.AckNonePolicy {
		c.AckWait = 30 * time.Second
	}
	if c.MaxDeliver == 0 {
		c.MaxDeliver = -1
	}
	if c.MaxAckPending == 0 && c.AckPolicy != jetstream.AckNonePolicy {
		c.MaxAckPending = 1000
	}
	if c.MaxWaiting == 0 && c.DeliverSubject == "" {
		c.MaxWaiting = 512
	}
	if c.PriorityPolicy == jetstream.PriorityPolicyPinned && c.PinnedTTL == 0 {
		c.PinnedTTL = 2 * time.Minute
	}
	c.FilterSubjects = slices.Sorted(slices.Values(c.FilterSubjects))
	c.Metadata = ownMetadata(c.Metadata)
	return fieldsFrom(c)
}

// ownMetadata leaves out what the server itself puts there.
func ownMetadata(m map[string]string) map[string]string {
	own := maps.Clone(m)
	maps.DeleteFunc(own, func(k, _ string) bool { return strings.HasPrefix(k, "_nats.") })
	return own
}

// compare returns the fields that differ, sorted, each with its verdict.
func compare(from, to fields, rules []rule) []Change {
	names := map[string]bool{}
	for n := range from {
		names[n] = true
	}
	for n := range to {
		names[n] = true
	}
	var changes []Change
	for _, n := range slices.Sorted(maps.Keys(names)) {
		if reflect.DeepEqual(from[n], to[n]) {
			continue
		}
		c := Change{Field: n, From: text(n, from[n]), To: text(n, to[n]), Verdict: Update}
		if r, ok := ruleFor(rules, n, from[n], to[n]); ok {
			c.Verdict, c.Advice = r.verdict, r.advice
		}
		changes = append(changes, c)
	}
	return changes
}

// durations are the fields that hold one, to be shown as such.
var durations = map[string]bool{
	"max_age": true, "duplicate_window": true, "subject_delete_marker_ttl": true,
	"ack_wait": true, "max_expires": true, "inactive_threshold": true,
	"priority_timeout": true, "idle_heartbeat": true,
}

func text(field string, v any) string {
	if n, ok := v.(float64); ok && durations[field] {
		return time.Duration(n).String()
	}
	if v == nil {
		return "unset"
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // evt.> is to be read
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(b.String())
}
