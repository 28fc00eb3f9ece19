// Package audit is the arithmetic by which a log is held to what it said before.
//
// Every record of a stream has a hash ([Hasher]). The hashes are chained, link by
// link from a beginning that names the stream ([Genesis], [Link]), and they are
// the leaves of a Merkle tree ([Tree]). A checkpoint states both for a prefix of
// the stream and is signed ([Sign], [Check]). A [Proof] shows with a published
// checkpoint alone that a record is in that prefix; an [Extension], that one
// checkpoint's prefix continues another's.
//
// Nothing here reads a log or a database. docs/audit.md says the same in bytes,
// so that anybody can write it again, and has the vectors that a test here holds.
package audit
