// Package model checks the claim protocol by exhaustive search: every order of
// crashes, freezes, redeliveries, lost answers, cancels, strangers' records and
// edits by others that the bounds allow. Nothing imports it; its tests run it.
//
// It has three parts. [Checker] is a plain explicit-state checker: breadth-first
// over packed states, exact, with shortest traces, and a pass for liveness under
// weak fairness. [Invocation] is one tool invocation: the log (as its fold, and a
// bit for "the last record does not hold"), the approval, deliveries and acks,
// two workers with two slots each, the journal and one file. [Kernels] is two
// kernels over an explicit log, and the commands of a person.
//
// A switch of [Config] is either an environment, what may go wrong; or a reading,
// how the protocol could be misunderstood; or a change, a clause that closes a
// trace which ended badly. [Design] is the protocol as internal/claim carries it
// out: all changes on. Change the model before the protocol: add the switch, see
// the trace that it opens or closes, then write the code.
//
// The codes of violations: V1 is a double or invalid execution, V2 a record that
// the table of facts forbids, V3 effects that contradict the log, V6 and VK are
// the kernels', (4) is no end, (4') one that is never settled, I1 is information.
//
// Freezes, redeliveries, lost acks, lost answers and questions without an answer
// are unbounded. Bounded are kills ([Config.Crashes]), attempts, one edit by
// somebody else and one record by a stranger. With CORREX_SOAK=1 the tests search
// up to three kills, which takes minutes and gigabytes.
package model
