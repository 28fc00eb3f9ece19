// Package claim is the claim protocol: how one of several workers takes on a
// tool invocation or an inference, so that it runs once, ends once, and never
// hangs, whatever crashes, freezes or gets lost. It exists once, for both kinds
// of worker.
//
// The log alone decides. A worker takes something on by appending `started`
// behind the last record of the aggregate; the sequence of the latest started,
// F, is the fencing token, and an end is appended only while F still holds.
// Deliveries, acks and counts are hints: [Claims.Handle] reads the log before it
// believes any of them. Of a fresh approval it needs the request alone, which the
// kernel's signature covers by its digest, wherever it was heard or read; that
// nothing follows the approval the append of started proves.
//
//	clause 1  held already: keep the delivery alive, nothing else
//	clause 2  ready: check, register as held, append started; refused: drop
//	clause 3  mine: run under the approval's end, follow a cancel, append the end
//	clause 4  somebody else's started: ask for a whole ack wait, then end or repeat it
//	clause 5  my end is refused by a foreign one: roll back, say so, ack
//	clause 6  an end is last: ack
//
// What differs between tools and models is a [Job]: how an aggregate folds, what
// is checked before the claim, the work itself, and a [Journal] for work that
// touches something. The subdirectory model holds the exhaustive model that the
// clauses come from; change it before the protocol.
package claim
