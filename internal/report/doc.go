// Package report tells a session as an auditor wants it told: who asked, who
// approved what exactly, what ran where under which isolation, what changed.
//
// [Build] makes a [Report] of the session's records; it reads nothing else. It is
// JSON as it is, [Report.Text] for a terminal, and [Report.HTML] one page with
// nothing outside itself. What strangers wrote, models included, is shown with
// everything that would hide in it made visible, and can command nothing.
package report
