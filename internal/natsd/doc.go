// Package natsd is the NATS server inside `bus`: JetStream on disk, flushed
// before it acknowledges, on loopback, with a user for each role of
// internal/access and no other way in.
//
// A store belongs to one server at a time. NATS itself does not see to that: two
// servers on one directory both acknowledge, and one of them loses what it took.
// Hence the lock.
package natsd
