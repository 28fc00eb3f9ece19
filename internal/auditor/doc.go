// Package auditor holds a log against what was signed of it, and against its
// database.
//
// [Verify] walks a [Source], the stream or a database, and compares it with the
// checkpoints that a trusted key signed; [Compare] walks both at once. The first
// record that is not as it was is named, with what became of it: altered,
// missing, inserted or reordered. [Hashes] gives what proofs are made of.
// docs/audit.md says what is signed.
package auditor
