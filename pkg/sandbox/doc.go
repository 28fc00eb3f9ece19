// Package sandbox runs tools so that what they do is confined, recorded, and can
// be taken back.
//
// An [Executor] wraps a tools.Executor: it gives every invocation a fresh
// directory, has the [Journal] keep what the files were before, runs the tool,
// takes its changes back when it failed, and makes the receipt with the unified
// diff. A [Runner] is the tools.Runner that starts processes and kills their
// whole tree.
//
// # What a worker calls, and when
//
// Under the lock of the worker's directory, which holds journal/, backups/ and
// sandbox/:
//
//	runner, err := sandbox.NewRunner(sandbox.RunnerOptions{})
//	cfg.Runner, cfg.Writable = runner, []string{dir}
//	list, err := tools.Build(cfg)
//	registry, err := tools.NewRegistry(list...)
//	journal, pending, err := sandbox.OpenJournal(dir, sandbox.JournalOptions{})
//	executor, err := sandbox.NewExecutor(sandbox.ExecutorOptions{
//		Registry: registry, Journal: journal, Dir: dir, Isolation: runner.Isolation(),
//	})
//
// For each pending [Entry], before taking any work: one with a result is
// published as it stands ([Entry].Result); any other is rolled back
// ([Journal.Rollback]), reported as failed with the effects that came of it, and
// cleared ([Journal.Clear]). The tools of the former process are dead by then:
// their first stage kills them when its worker goes.
//
// For each invocation:
//
//	executor.Admit(call)            before `started`: why it must be rejected, or nil
//	out := executor.Run(ctx, call)  after `started`: journals, runs, rolls back a failure
//	fact := …                       completed or failed, from out
//	journal.Result(key, body)       durable: from here the result stands
//	publish the fact
//	journal.Clear(key)              after the ack: backups go
//
// When the end is refused because somebody else ended the invocation:
//
//	files, err := journal.Rollback(key)   the list for `recovered`
//	journal.Clear(key)                    after `recovered` was acked
//
// A tools.CommittingTool has no entry while it runs, but from its commit on: what
// it changed is then announced, made and taken back as one.
//
// Result, Rollback and Clear do nothing for a key without an entry, so a worker
// need not know which tools keep a journal: those that touch nothing have none,
// and pay nothing.
package sandbox
