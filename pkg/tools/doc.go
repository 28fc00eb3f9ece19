// Package tools is the contract of a tool, the registry that finds one by name,
// and the tools that Correx brings along.
//
// A [Tool] describes itself and judges requests; it never runs. An [Executor]
// runs requests; the built-in tools are both, and a [Dispatcher] is the
// Executor of a whole [Registry]. What a tool could not do is a [Failure], a
// value that is written for the model that reads it: what was found, where, and
// what would have worked.
//
// [Build] makes the built-in tools out of a [Config], in which everything is
// off and every allowlist empty until somebody says otherwise:
//
//	shell       runs an argv, never a shell string      T2, interpreters T3
//	file_read   reads, lists, tells what is there       T1
//	file_write  writes, deletes, makes directories      T2
//	file_edit   appends, replaces what occurs once,     T3
//	            applies patches
//	echo        answers with what it was given          as configured, else T0
//
// File tools work within allowed directories only (package workspace) and
// change files by atomic replacement only. They tell the [Recorder] of their
// [Scope] of each change before they make it, so that whoever ran them can take
// it back after a crash. A tool that starts processes does so by a [Runner];
// package sandbox has the one that confines them.
//
// To run tools as a worker must (backups, receipts, clean-up), wrap the
// Dispatcher in a sandbox.Executor. To write a tool of your own, implement Tool
// and Executor; add [FileAffectingTool] if it changes files, [Previewer] if it
// can say beforehand what it would change, [TierRaiser] if some requests are
// worse than others, and a [FollowUpTool] beside it if what it did is to be looked
// at before it counts.
package tools
