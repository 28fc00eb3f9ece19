// Package events is the vocabulary of Correx: ids, tiers, facts, commands,
// their subjects, and the envelope they travel in.
//
// Correx runs agents on local models so that every wish, permission, deed and
// result is a message on a log, and nothing acts without one. Two kinds of
// message exist. A [Command] is a wish by an actor, published on
// cmd.<actor>.<noun>.<verb>; anybody with the right to publish may write
// nonsense there, so [DecodeCommand] is strict. A [Fact] is what happened,
// published on evt.<session>.<kind>.<id>.<fact>[.<route>]; a fact that is on
// the log stays there for ever, so [Decode] is tolerant: it reads what it
// knows, says in [Record.Err] why a record does not hold, and never fails.
//
// Facts about one thing form an [Aggregate]. Aggregates are disjoint, and
// [Aggregate.Filter] is the only place that builds the filter by which they are
// read and conditionally appended to.
//
// The package imports nothing but the standard library, so that a client, a
// worker or a tool can be written on it alone.
package events
