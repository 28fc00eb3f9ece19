package toolworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"correx/internal/claim"
	"correx/pkg/events"
	"correx/pkg/sandbox"
)

// endOf tells the outcome of a call as the fact that ends it. Why says what its
// context was cancelled for, if it was.
func endOf(t claim.Task, out sandbox.Outcome, refs []events.ArtifactRef, why error) events.Fact {
	receipt := out.Receipt
	receipt.Artifacts = append(receipt.Artifacts, refs...)
	ref := t.State.Aggregate.Ref()
	if out.Status == sandbox.Completed {
		return events.ToolExecutionCompleted{Ref: ref, Fence: t.Fence(), Receipt: receipt}
	}
	f := events.ToolExecutionFailed{
		Ref: ref, Fence: t.Fence(), Reason: out.Reason, Recoverable: out.Recoverable, Effects: out.Effects, Receipt: &receipt,
	}
	var cancelled claim.Cancelled
	switch {
	case errors.As(why, &cancelled):
		f.Reason, f.Recoverable = cancelled.Error(), false
	case errors.Is(why, claim.ErrStopping):
		f.Reason, f.Recoverable = "the worker was stopped while this ran", true
	}
	return f
}

// fit makes sure that an end fits into one message, by leaving out of the
// receipt what can be missed most easily.
func fit(f events.Fact, worker string) events.Fact {
	if fits(f, worker) {
		return f
	}
	for _, cut := range []func(*events.ToolReceipt){
		func(r *events.ToolReceipt) { r.Diff = cutNote },
		func(r *events.ToolReceipt) { r.Structured = nil },
		func(r *events.ToolReceipt) { r.Affected = append(r.Affected[:min(100, len(r.Affected))], cutNote) },
		func(r *events.ToolReceipt) { r.Metadata = map[string]string{"cut": cutNote} },
		func(r *events.ToolReceipt) { r.Output = cutNote },
	} {
		f = withReceipt(f, cut)
		if fits(f, worker) {
			return f
		}
	}
	return f
}

const cutNote = "(left out: the receipt was too large for one message)"

func fits(f events.Fact, worker string) bool {
	_, _, _, err := events.Encode(f, events.Source{Name: worker}, 0, time.Time{})
	return err == nil
}

func withReceipt(f events.Fact, cut func(*events.ToolReceipt)) events.Fact {
	switch e := f.(type) {
	case events.ToolExecutionCompleted:
		cut(&e.Receipt)
		return e
	case events.ToolExecutionFailed:
		if e.Receipt != nil {
			r := *e.Receipt
			cut(&r)
			e.Receipt = &r
		}
		return e
	}
	return f
}

// A storedEnd is an end in the journal: the message as it would be published.
type storedEnd struct {
	Subject string        `json:"subject"`
	Header  events.Header `json:"header"`
	Data    []byte        `json:"data"`
}

func encodeEnd(f events.Fact) ([]byte, error) {
	subject, h, data, err := events.Encode(f, events.Source{}, 0, time.Time{})
	if err != nil {
		return nil, err
	}
	return json.Marshal(storedEnd{subject, events.Header{events.HeaderType: h[events.HeaderType]}, data})
}

func decodeEnd(b []byte) (events.Fact, error) {
	var s storedEnd
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("read the journalled end: %w", err)
	}
	r := events.Decode(0, time.Time{}, s.Subject, s.Header, s.Data)
	if r.Err != nil {
		return nil, fmt.Errorf("read the journalled end: %w", r.Err)
	}
	return r.Fact, nil
}

// storeFor is how long large outputs may take to be stored.
const storeFor = 30 * time.Second

// store puts large outputs into the object store. One that cannot be stored is
// named in the receipt's metadata: the result stands without it.
func (w *work) store(ctx context.Context, out *sandbox.Outcome) []events.ArtifactRef {
	if len(out.Overflow) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeFor)
	defer cancel()
	var refs []events.ArtifactRef
	for _, b := range out.Overflow {
		ref, err := w.artifacts.PutBytes(ctx, b.Data, b.Name, b.MediaType)
		if err != nil {
			w.logger.Error("store large output", "name", b.Name, "bytes", len(b.Data), "error", err)
			if out.Receipt.Metadata == nil {
				out.Receipt.Metadata = map[string]string{}
			}
			out.Receipt.Metadata["lost_"+b.Name] = fmt.Sprintf("%d bytes could not be stored: %v", len(b.Data), err)
			continue
		}
		refs = append(refs, ref)
	}
	return refs
}
