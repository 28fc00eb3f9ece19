package streams

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.yaml.in/yaml/v3"

	"correx"
)

// Kinds of consumers that are made as workers announce what they offer.
const (
	KindTool    = "tool"
	KindPreview = "preview"
	KindModel   = "model"
)

// A Spec is what streams.yaml declares.
type Spec struct {
	Streams   []jetstream.StreamConfig
	Buckets   []jetstream.ObjectStoreConfig
	Consumers []ConsumerSpec
	Templates map[string]ConsumerSpec // by kind; {token} stands for the token
}

// A ConsumerSpec is a consumer of a stream.
type ConsumerSpec struct {
	Stream string                   `json:"stream_name"`
	Config jetstream.ConsumerConfig `json:"config"`
}

// file is the form of streams.yaml.
type file struct {
	Streams   []jetstream.StreamConfig      `json:"streams"`
	Buckets   []jetstream.ObjectStoreConfig `json:"buckets"`
	Consumers []ConsumerSpec                `json:"consumers"`
	Templates map[string]ConsumerSpec       `json:"templates"`
}

// Default is the streams.yaml that is part of the program.
func Default() (Spec, error) { return Load(correx.Streams) }

// Load reads a streams.yaml. Its errors name every fault with its line.
func Load(data []byte) (Spec, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return Spec{}, fmt.Errorf("read streams.yaml: %w", err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Spec{}, errors.New("read streams.yaml: more than one document; use a single one")
	}
	var f file
	if err := decode(doc.Content[0], &f); err != nil {
		return Spec{}, fmt.Errorf("read streams.yaml: %w", err)
	}
	s := Spec(f)
	if err := s.validate(); err != nil {
		return Spec{}, fmt.Errorf("read streams.yaml: %w", err)
	}
	return s, nil
}

// validate reports what the server could not, or would say too late.
func (s Spec) validate() error {
	var errs []error
	streams := map[string]bool{}
	for _, c := range s.streams(0) {
		if streams[c.cfg.Name] {
			errs = append(errs, fmt.Errorf("%s stands twice", c.title()))
		}
		streams[c.cfg.Name] = true
		if c.cfg.DenyPurge && (c.cfg.AllowMsgSchedules || c.cfg.SubjectDeleteMarkerTTL > 0) {
			errs = append(errs, fmt.Errorf("%s: deny_purge does not go with allow_msg_schedules or subject_delete_marker_ttl; the server would silently drop it", c.title()))
		}
	}
	check := func(where string, c ConsumerSpec) {
		if !streams[c.Stream] {
			errs = append(errs, fmt.Errorf("%s: stream_name is %q, and no such stream is declared", where, c.Stream))
		}
		if c.Config.Durable == "" {
			errs = append(errs, fmt.Errorf("%s: no durable_name", where))
		}
		if p := c.Config.PauseUntil; p != nil && !p.IsZero() {
			errs = append(errs, fmt.Errorf("%s: pause_until is no configuration; use `nats consumer pause`", where))
		}
		if c.Config.Name != "" && c.Config.Name != c.Config.Durable {
			errs = append(errs, fmt.Errorf("%s: name and durable_name differ; give durable_name alone", where))
		}
	}
	for i, c := range s.Consumers {
		check(fmt.Sprintf("consumers[%d]", i), c)
	}
	for _, kind := range []string{KindTool, KindPreview, KindModel} {
		c, ok := s.Templates[kind]
		if !ok {
			errs = append(errs, fmt.Errorf("templates.%s is missing", kind))
			continue
		}
		check("templates."+kind, c)
		if !strings.Contains(c.Config.Durable, token) || !strings.Contains(c.Config.FilterSubject, token) {
			errs = append(errs, fmt.Errorf("templates.%s: durable_name and filter_subject must contain %s", kind, token))
		}
	}
	return errors.Join(errs...)
}

// token is what a template has in the place of a tool's or model's token.
const token = "{token}"

// Consumer returns the configuration of the durable consumer of one tool or
// model. Kind is [KindTool], [KindPreview] or [KindModel]; ackWait of 0 leaves
// what the file says.
func Consumer(s Spec, kind, tok string, ackWait time.Duration) jetstream.ConsumerConfig {
	c := s.Templates[kind].Config
	c.Durable = strings.ReplaceAll(c.Durable, token, tok)
	c.Name = c.Durable
	c.FilterSubject = strings.ReplaceAll(c.FilterSubject, token, tok)
	if ackWait > 0 {
		c.AckWait = ackWait
	}
	return c
}

// declared is a stream that the file declares, itself or as a bucket.
type declared struct {
	bucket string // "" for a stream
	cfg    jetstream.StreamConfig
}

func (d declared) title() string {
	if d.bucket != "" {
		return "bucket " + d.bucket
	}
	return "stream " + d.cfg.Name
}

// streams returns all streams, those behind buckets included, with replicas
// where the file does not say how many.
func (s Spec) streams(replicas int) []declared {
	var all []declared
	for _, c := range s.Streams {
		all = append(all, declared{cfg: c})
	}
	for _, b := range s.Buckets {
		all = append(all, declared{bucket: b.Bucket, cfg: bucketStream(b)})
	}
	for i := range all {
		if all[i].cfg.Replicas == 0 {
			all[i].cfg.Replicas = replicas
		}
	}
	return all
}

// bucketStream is the stream of an object bucket, as NATS lays it out but for
// direct reads. Those answer with the stored body as it is, to any subject that
// the reader names; by the plain read the client does as well.
func bucketStream(b jetstream.ObjectStoreConfig) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name: "OBJ_" + b.Bucket, Description: b.Description,
		Subjects: []string{"$O." + b.Bucket + ".C.>", "$O." + b.Bucket + ".M.>"},
		MaxAge:   b.TTL, MaxBytes: b.MaxBytes, Storage: b.Storage, Replicas: b.Replicas,
		Placement: b.Placement, Metadata: b.Metadata,
		Discard: jetstream.DiscardNew, AllowRollup: true, AllowDirect: false,
	}
	if b.Compression {
		c.Compression = jetstream.S2Compression
	}
	return c
}
