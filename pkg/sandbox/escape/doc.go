// Package escape tries to get out of the sandbox.
//
// It has tests only. Each attempt is a real process that goes through a
// sandbox.Runner of a worker of its own, at every level of isolation, as root and
// as an unprivileged user, against a victim that stands outside and is looked at
// from there afterwards. Each is also made with no sandbox at all, where it has
// to succeed: so none can be held only because it does not work.
//
// What came of them is the table "What was tried" of docs/sandbox.md, which the
// tests hold against what they see, and write with -update.
package escape
