// Package workspace is files below allowed directories.
//
// [Open] takes the directories; [Roots.Find] turns a path that somebody wrote
// into a [Place], which lies below one of them and has no symbolic link in it.
// All access then goes through an [os.Root], so that a link that is swapped in
// afterwards leads nowhere. Only regular files are read and written, and files
// with several hard links are not written.
//
// A file is changed in one step or not at all: [Place.Write] puts a temporary
// file beside it and renames, keeping mode and owner; [Place.Delete] unlinks;
// [Place.Mkdir] makes a directory. All look once more, just before, whether the
// file still is the one that was read, and tell a [Recorder] before and after.
//
// [Restore] takes a change back, but only where the file still is what that
// change left.
package workspace
