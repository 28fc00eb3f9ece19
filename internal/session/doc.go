// Package session is the rules of a conversation.
//
// [Evolve] says what a session is after a record; [EvolveWorld] says the same of
// what all sessions share: workers, the tools and models that they offer, and
// the kernel's settings. [React] says what has to happen next, and [Handle] what
// becomes of a command. [Pack] makes a model's prompt. All of them are pure: the
// kernel is the thin shell that reads the log, calls them, and appends what they
// answered, and whoever has the log can check every answer again.
//
// A record of system, such as an invocation that belongs to no session, is
// folded into a [State] of its own whose ID is [events.System].
package session
