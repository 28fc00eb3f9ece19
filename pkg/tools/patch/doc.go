// Package patch reads unified diffs strictly and says what they make of files.
//
// [Parse] takes one dialect and nothing beside it: file headers, hunks whose
// counts are right, and the marker of a line that no newline ends. Of git's headers it
// takes those that say nothing more. Whatever else the program patch would
// guess at (ed scripts, context diffs, Index: and Prereq: lines, renames, names
// that differ, text in between) is a [SyntaxError] that says how to write it.
//
// [File.Apply] is exact: a hunk stands where its header says, or, if it does not fit
// there, at the only place where it does. Lines are compared byte for byte.
// What does not fit is a [MismatchError] that names the lines.
//
// [File.Render] writes a file's hunks anew, with the places that Apply found, for
// the program patch: it reads what we wrote, and never what a model did.
package patch
