// Package changes is what a command changed: read from the upper layers of the
// overlays that it ran on, shown as a diff, kept, and made in the workspace.
//
// A [Set] stands for itself: it has what every path was, what it is to be, and
// all bytes of either. [Read] makes one; [Set.Encode] and [Decode] keep it as
// bytes, of which there is one form only, so that their SHA-256 names it.
//
// [Set.Apply] makes the changes, all or none, over nothing but what the set rests
// on ([Set.Base]): what has changed since is a [MovedError], and so is what others
// changed while the command ran. [Set.Plan] is for who keeps a journal: the same
// in two steps, with what is needed to take each change back between them.
//
// # What a set holds
//
// Regular files, directories and symbolic links below the layers' directories,
// with their permission bits. Renames are a deletion and a creation. Not carried
// over are owners (what is new is the worker's, what is changed keeps its own),
// access lists and extended attributes (what is changed keeps its own), times but
// those of the content of files, and hard links between files: each name gets a
// file of its own. The layers' directories themselves do not change.
//
// Refused are FIFOs, sockets, devices, files that are setuid or setgid, changes
// to files that have several hard links in the workspace, names and link targets
// that are not UTF-8, mount points, and what the caller protects.
package changes
