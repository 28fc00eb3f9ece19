// Package workspace is files below allowed directories.
//
// [Open] takes the directories; [Roots.Find] turns a path that somebody wrote
// into a [Place], which lies below one of them and has no symbolic link in it.
// All access then goes through an [os.Root], so that a link that is swapped in
// afterwards leads nowhere. The content of regular files alone is read and
// written, and files with several hard links are not written. [Roots.At] is a place
// that may be a link itself, and is not followed.
//
// A name is changed in one step or not at all: [Place.Write] and [Place.Put] put a
// temporary file beside it and rename; so do [Place.Mkdir], [Place.MakeDir] and
// [Place.Link] with directories and links; [Place.Remove] unlinks, and
// [Place.Chmod] changes the mode. All look once more, just before, whether what is
// there still is what was read, and tell a [Recorder] before and after.
//
// [Undo.Restore] takes a change back, but only where what is there still is what that
// change left.
package workspace
