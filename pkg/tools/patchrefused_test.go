package tools_test

import (
	"strings"
	"testing"
)

// TestPatchRefusesSyntax has what the program patch guesses at, and what it gets
// wrong.
func TestPatchRefusesSyntax(t *testing.T) {
	good := head + "@@ -3 +3 @@\n-three\n+3\n"
	runPatchCases(t, []patchCase{
		{"nothing", six, "", refused, "is empty"},
		{"white space", six, " \n\n", refused, "is empty"},
		{"a NUL", six, head + "@@ -3 +3 @@\n-three\n+\x00\n", refused, "has a NUL"},
		{"words", six, "please change three to 3\n", refused, "is no part of a patch"},
		{"words before", six, "Here is the patch:\n" + good, refused, `line 1 of the patch, "Here is the patch:"`},
		{"words behind", six, good + "That is all.\n", refused, `line 6 of the patch, "That is all."`},
		{"a fence", six, "```diff\n" + good + "```\n", refused, "without a fence"},
		{"a mail's end", six, good + "-- \n2.39.0\n", refused, "it is no line of a hunk"},
		{"an ed script", six, "3c\n3\n.\n", refused, "script for ed"},
		{"an ed script that runs a program", six, "r !touch pwned\nw\nq\n", refused, "is no part of a patch"},
		{"an ed script behind a good patch", six, good + "1!touch pwned\n", refused, "is no part of a patch"},
		{"a plain diff", six, "3c3\n< three\n---\n> 3\n", refused, "script for ed, or a plain diff"},
		{"a context diff", six, "*** a.txt\n--- a.txt\n***************\n*** 3 ****\n! three\n--- 3 ----\n! 3\n", refused, "context diff"},
		{"another format for models", six, "*** Begin Patch\n*** Update File: a.txt\n-three\n+3\n*** End Patch\n", refused, "this is no unified diff"},
		{"Index:", six, "Index: a.txt\n" + good, refused, "leave it out"},
		{"Prereq:", six, "Prereq: 1.2\n" + good, refused, "leave it out"},
		{"a line of diff", six, "diff -u a.txt a.txt\n" + good, refused, "leave it out"},
		{"names that differ", "-- a.txt --\none\n-- b.txt --\none\n", "--- a.txt\n+++ b.txt\n@@ -1 +1 @@\n-one\n+1\n", refused, "cannot rename"},
		{"names that differ behind git's prefixes", "one\n", "--- a/a.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-one\n+1\n", refused, "cannot rename"},
		{"prefixes the wrong way round", "one\n", "--- b/a.txt\n+++ a/a.txt\n@@ -1 +1 @@\n-one\n+1\n", refused, "cannot rename"},
		{"a copy with .orig", "one\n", "--- a.txt.orig\n+++ a.txt\n@@ -1 +1 @@\n-one\n+1\n", refused, "cannot rename"},
		{"both names are /dev/null", six, "--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n", refused, "both names are /dev/null"},
		{"a quoted name", "-- a b --\none\n", "--- \"a b\"\n+++ \"a b\"\n@@ -1 +1 @@\n-one\n+1\n", refused, "quoted name"},
		{"no name", six, "--- \n+++ \n@@ -3 +3 @@\n-three\n+3\n", refused, "no file is named"},
		{"nothing but a prefix", six, "--- a/\n+++ b/\n@@ -3 +3 @@\n-three\n+3\n", refused, "no file is named"},
		{"a name that ends in a blank", six, "--- a.txt \n+++ a.txt\n@@ -3 +3 @@\n-three\n+3\n", refused, "ends with a blank"},
		{"a CR behind one name", six, "--- a.txt\r\n+++ a.txt\n@@ -3 +3 @@\n-three\n+3\n", refused, "control character"},
		{"one name only", six, "--- a.txt\n@@ -3 +3 @@\n-three\n+3\n", refused, "a line +++ with the file's name must follow"},
		{"the second name only", six, "+++ a.txt\n@@ -3 +3 @@\n-three\n+3\n", refused, "no line --- with the file's name"},
		{"no names", six, "@@ -3 +3 @@\n-three\n+3\n", refused, "no --- and +++"},
		{"no hunk", six, head, refused, "no hunk follows"},
		{"no hunk in the second file", "-- a.txt --\none\n-- b.txt --\none\n", "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+1\n--- b.txt\n+++ b.txt\n", refused, "no hunk follows"},
		{"git renames", six, "diff --git a/a.txt b/b.txt\nsimilarity index 100%\nrename from a.txt\nrename to b.txt\n", refused, "can neither rename nor copy"},
		{"git copies", six, "diff --git a/a.txt b/b.txt\ncopy from a.txt\ncopy to b.txt\n", refused, "cannot copy"},
		{"git changes a mode", six, "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n", refused, "cannot change modes"},
		{"git makes a program", none, "diff --git a/b b/b\nnew file mode 100755\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+x\n", refused, "mode 100644"},
		{"git makes a link", none, "diff --git a/b b/b\nnew file mode 120000\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n", refused, "mode 100644"},
		{"git makes an empty file", none, "diff --git a/b b/b\nnew file mode 100644\nindex 0000000..e69de29\n", refused, "it changes no text"},
		{"git's binary patch", six, "diff --git a/a.txt b/a.txt\nindex 0123456..89abcde 100644\nGIT binary patch\nliteral 3\nKcmZQzWMXDv0\n", refused, "binary files cannot be patched"},
		{"git's word for binary files", six, "diff --git a/a.txt b/a.txt\nBinary files a/a.txt and b/a.txt differ\n", refused, "binary files cannot be patched"},
		{"git's names are others", "-- a.txt --\none\n-- b.txt --\none\n", "diff --git a/b.txt b/b.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n", refused, "names other files"},
		{"git says new and the names do not", "one\n", "diff --git a/a.txt b/a.txt\nnew file mode 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n", refused, "/dev/null stands for no file"},
		{"one file twice", six, good + head + "@@ -6 +6 @@\n-six\n+6\n", refused, "has a header at line 1 already"},
		{"one file by two names", six, good + "--- ./a.txt\n+++ ./a.txt\n@@ -6 +6 @@\n-six\n+6\n", refused, "are the same file"},
		{"the second file is wrong", "-- a.txt --\none\n-- b.txt --\none\n", "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+1\n--- b.txt\n+++ b.txt\n@@ -1 +1 @@\n-two\n+2\n", refused, "b.txt"},
	})
}

func TestPatchRefusesHunks(t *testing.T) {
	runPatchCases(t, []patchCase{
		{"no numbers", six, head + "@@\n-three\n+3\n", refused, "such as @@ -1,3 +1,4 @@"},
		{"dots for numbers", six, head + "@@ ... @@\n-three\n+3\n", refused, "a hunk begins with @@ -line,count"},
		{"combined", six, head + "@@@ -3 -3 +3 @@@\n--three\n++3\n", refused, "a hunk begins with"},
		{"a sign too many", six, head + "@@ --3 +3 @@\n-three\n+3\n", refused, "a hunk begins with"},
		{"numbers without end", six, head + "@@ -99999999999999999999 +3 @@\n-three\n+3\n", refused, "a hunk begins with"},
		{"too few old lines counted", six, head + "@@ -2,1 +2,2 @@\n two\n-three\n+3\n", refused, "so it must begin with @@ -2,2 +2,2 @@"},
		{"too many old lines counted", six, head + "@@ -2,9 +2,2 @@\n two\n-three\n+3\n", refused, "so it must begin with @@ -2,2 +2,2 @@"},
		{"too few new lines counted", six, head + "@@ -2,2 +2 @@\n two\n-three\n+3\n", refused, "so it must begin with @@ -2,2 +2,2 @@"},
		{"too many new lines counted", six, head + "@@ -2,2 +2,5 @@\n two\n-three\n+3\n", refused, "so it must begin with @@ -2,2 +2,2 @@"},
		{"too many counted before another hunk", six, head + "@@ -1,5 +1,5 @@\n-one\n+1\n@@ -3 +3 @@\n-three\n+3\n", refused, "so it must begin with @@ -1,1 +1,1 @@"},
		{"too many counted before another file", six, head + "@@ -1,5 +1,5 @@\n-one\n+1\n--- b\n+++ b\n@@ -1 +1 @@\n-x\n+y\n", refused, "so it must begin with @@ -1,1 +1,1 @@"},
		{"cut off", six, head + "@@ -1,4 +1,4 @@\n one\n-two\n", refused, "the counts do not fit"},
		{"a line without its first character", six, head + "@@ -2,3 +2,3 @@\n two\nthree\n-four\n+4\n", refused, "it is no line of a hunk"},
		{"nothing changes", six, head + "@@ -2,2 +2,2 @@\n two\n three\n", refused, "changes nothing"},
		{"what goes is what comes", six, head + "@@ -2 +2 @@\n-two\n+two\n", refused, "changes nothing in it"},
		{"line 0", six, head + "@@ -0 +1 @@\n-one\n+1\n", refused, "counted from 1"},
		{"hunks in another order", six, head + "@@ -5 +5 @@\n-five\n+5\n@@ -2 +2 @@\n-two\n+2\n", refused, "stand in the order of the file"},
		{"hunks that overlap", six, head + "@@ -2,2 +2,2 @@\n two\n-three\n+3\n@@ -3,2 +3,2 @@\n three\n-four\n+4\n", refused, "do not overlap"},
		{"lines to add and nothing around", six, head + "@@ -3,0 +4 @@\n+3.5\n", refused, "nothing says where they go"},
		{"the marker behind nothing", six, head + "@@ -3 +3 @@\n\\ No newline at end of file\n-three\n+3\n", refused, "behind no line of a hunk"},
		{"the marker twice", "a", head + "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n\\ No newline at end of file\n+b\n", refused, "behind no line of a hunk"},
		{"the marker in the middle of what comes", six, head + "@@ -1,2 +1,2 @@\n-one\n+1\n\\ No newline at end of file\n two\n", refused, "more lines of the same file after that"},
		{"the marker in the first hunk of two", six, head + "@@ -1 +1 @@\n-one\n+1\n\\ No newline at end of file\n@@ -3 +3 @@\n-three\n+3\n", refused, "which is at the end of the file"},
		{"the marker behind an empty line", "a\n", head + "@@ -1 +1,2 @@\n a\n+\n\\ No newline at end of file\n", refused, "is no line"},
		{"the end is not at the end", six, head + "@@ -1 +1 @@\n-one\n+1\n\\ No newline at end of file\n", refused, `which goes on at line 2 with "two\n"`},
	})
}

func TestPatchRefusesWhatDoesNotFit(t *testing.T) {
	runPatchCases(t, []patchCase{
		{"another line", six, head + "@@ -2,2 +2,2 @@\n two\n-drei\n+3\n", refused, `line 3 of the file is "three\n", and the hunk has "drei\n"`},
		{"fuzz is none", six, head + "@@ -1,5 +1,5 @@\n uno\n two\n-three\n+3\n four\n five\n", refused, "line 1 of the file is"},
		{"near elsewhere", six, head + "@@ -1,3 +1,3 @@\n three\n-Four\n+4\n five\n", refused, "nearest it comes at line 3, where 3 of its 3 old lines fit"},
		{"case", six, head + "@@ -3 +3 @@\n-Three\n+3\n", refused, "they differ in blanks or case"},
		{"indentation", "\tx\n", head + "@@ -1 +1 @@\n-    x\n+y\n", refused, "how far they are indented"},
		{"blanks at the end", "x\n", head + "@@ -1 +1 @@\n-x  \n+y\n", refused, "blanks at the end"},
		{"behind the end", six, head + "@@ -6,2 +6,2 @@\n six\n-seven\n+7\n", refused, `the file ends with line 6, and "seven\n" was to follow`},
		{"an empty file", "", head + "@@ -1 +1 @@\n-one\n+1\n", refused, "the file is empty"},
		{"applied already", "one\n2\nthree\n", head + "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n", refused, "seems to be applied"},
		{"applied already, elsewhere", "zero\none\n2\nthree\n", head + "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n", refused, "stands at line 2 already"},
		{"reversed", six, head + "@@ -3 +3 @@\n-3\n+three\n", refused, "seems to be applied"},
		{"no newline in the file, and no marker", "a\nb", head + "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", refused, "no newline ends it"},
		{"a marker, and a newline in the file", "a\nb\n", head + "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n", refused, "the file goes on with a newline there"},
		{"LF on mixed line ends", "a\r\nb\nc\r\n", head + "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", refused, "they differ in their line ends"},
		{"CR LF on LF", "a\nb\n", "--- a.txt\r\n+++ a.txt\r\n@@ -1 +1 @@\r\n-a\r\n+A\r\n", refused, "they differ in their line ends"},
		{"UTF-16", "\xff\xfea\x00\n\x00", head + "@@ -1 +1 @@\n-a\n+b\n", refused, "it is UTF-16 LE"},
		{"binary", "a\x00b\n", head + "@@ -1 +1 @@\n-a\n+b\n", refused, "it is binary"},
		{"letters into an unknown encoding", "\xe4\nb\n", head + "@@ -2 +2 @@\n-b\n+ä\n", refused, "its encoding is unknown"},
		{"a file that is not there", none, head + "@@ -1 +1 @@\n-a\n+b\n", refused, "there is no such file; to make it, write --- /dev/null"},
		{"a file that is not there, with lines to add only", none, head + "@@ -0,0 +1 @@\n+b\n", refused, "there is no such file"},
		{"the second hunk", six, head + "@@ -1 +1 @@\n-one\n+1\n@@ -4 +4 @@\n-IV\n+4\n", refused, `the hunk has "IV\n"`},
		{"long lines are cut", strings.Repeat("x", 500) + "\n", head + "@@ -1 +1 @@\n-" + strings.Repeat("y", 500) + "\n+z\n", refused, "…"},
	})
}

func TestPatchOfSeveralFiles(t *testing.T) {
	const two = "-- a.txt --\none\n-- sub/b.txt --\ntwo\n"
	del := "--- a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
	add := "--- /dev/null\n+++ new.txt\n@@ -0,0 +1,2 @@\n+x\n+y\n"
	runPatchCases(t, []patchCase{
		{"two are changed", two, "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+1\n--- sub/b.txt\n+++ sub/b.txt\n@@ -1 +1 @@\n-two\n+2\n", "-- a.txt --\n1\n-- sub/b.txt --\n2\n", "patched a.txt at line 1\npatched sub/b.txt at line 1"},
		{"with an empty line between", two, "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+1\n\n--- sub/b.txt\n+++ sub/b.txt\n@@ -1 +1 @@\n-two\n+2\n", "-- a.txt --\n1\n-- sub/b.txt --\n2\n", ""},
		{"with git's prefixes", two, "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- a/sub/b.txt\n+++ b/sub/b.txt\n@@ -1 +1 @@\n-two\n+2\n", "-- a.txt --\n1\n-- sub/b.txt --\n2\n", ""},
		{"one is made", "one\n", add, "-- a.txt --\none\n-- new.txt --\nx\ny\n", "made new.txt"},
		{"one is made in new directories", "one\n", "--- /dev/null\n+++ b/x/y/z.txt\n@@ -0,0 +1 @@\n+z\n", "-- a.txt --\none\n-- x/y/z.txt --\nz\n", "made x/y/z.txt"},
		{"one is made by git", none, "diff --git a/b.txt b/b.txt\nnew file mode 100644\nindex 0000000..587be6b\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+x\n", "-- b.txt --\nx\n", "made b.txt"},
		{"one is deleted", two, del, "-- sub/b.txt --\ntwo\n", "deleted a.txt"},
		{"one is deleted by git", two, "diff --git a/a.txt b/a.txt\ndeleted file mode 100644\nindex 5626abf..0000000\n--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "-- sub/b.txt --\ntwo\n", "deleted a.txt"},
		{"one each", two, del + add + "--- sub/b.txt\n+++ sub/b.txt\n@@ -1 +1 @@\n-two\n+2\n", "-- new.txt --\nx\ny\n-- sub/b.txt --\n2\n", "deleted a.txt\nmade new.txt\npatched sub/b.txt"},
		{"a deletion that leaves lines", "one\ntwo\n", del, refused, "removes all"},
		{"a deletion that keeps a line", "one\ntwo\n", "--- a.txt\n+++ /dev/null\n@@ -1,2 +1 @@\n one\n-two\n", refused, "of a deleted file no line stays"},
		{"a deletion of something else", "other\n", del, refused, "does not fit"},
		{"a deletion of nothing", none, del, refused, "there is no such file"},
		{"a new file that exists", "-- new.txt --\nold\n", add, refused, "it exists already"},
		{"a new file that is empty and exists", "-- new.txt --\n", add, refused, "it exists already"},
		{"a new file with old lines", none, "--- /dev/null\n+++ new.txt\n@@ -1 +1 @@\n-a\n+b\n", refused, "a new file has no lines before"},
		{"a new file with two hunks", none, "--- /dev/null\n+++ new.txt\n@@ -0,0 +1 @@\n+b\n@@ -0,0 +2 @@\n+c\n", refused, "one hunk with all of its lines"},
		{"a file below one that is deleted", two, del + "--- /dev/null\n+++ a.txt/x\n@@ -0,0 +1 @@\n+b\n", refused, "a file and no directory"},
		{"a file below one that is made", none, add + "--- /dev/null\n+++ new.txt/x\n@@ -0,0 +1 @@\n+b\n", refused, "lies below new.txt"},
		{"a directory", two, "--- sub\n+++ sub\n@@ -1 +1 @@\n-two\n+2\n", refused, "is a directory"},
		{"a directory with a slash", two, "--- sub/\n+++ sub/\n@@ -1 +1 @@\n-two\n+2\n", refused, "is a directory's"},
		{"a new file where b is a directory", "-- b/x --\n1\n", "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+x\n", refused, "write new.txt, or ./b/new.txt"},
		{"a new file in a directory called b", "-- b/x --\n1\n", "--- /dev/null\n+++ ./b/new.txt\n@@ -0,0 +1 @@\n+x\n", "-- b/x --\n1\n-- b/new.txt --\nx\n", "made ./b/new.txt"},
		{"a deletion where a is a directory", "-- a/x --\n1\n", "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n", refused, "write x, or ./a/x"},
		{"a file in a directory called a, changed", "-- a/x --\n1\n", "--- a/x\n+++ a/x\n@@ -1 +1 @@\n-1\n+2\n", "-- a/x --\n2\n", "patched a/x"},
		{"a name with blanks", "-- x y z.txt --\n1\n", "--- x y z.txt\n+++ x y z.txt\n@@ -1 +1 @@\n-1\n+2\n", "-- x y z.txt --\n2\n", ""},
		{"a name that looks like an option", "-- -R --\n1\n", "--- -R\n+++ -R\n@@ -1 +1 @@\n-1\n+2\n", "-- -R --\n2\n", ""},
		{"a name like those of the copies", "-- f0 --\n1\n-- f1 --\n1\n", "--- f1\n+++ f1\n@@ -1 +1 @@\n-1\n+2\n", "-- f0 --\n1\n-- f1 --\n2\n", ""},
		{"out of the workspace", two, "--- ../x\n+++ ../x\n@@ -1 +1 @@\n-1\n+2\n", refused, "not allowed"},
		{"an absolute name outside", two, "--- /etc/hostname\n+++ /etc/hostname\n@@ -1 +1 @@\n-1\n+2\n", refused, "not allowed"},
		{"a new file outside", two, "--- /dev/null\n+++ ../pwned\n@@ -0,0 +1 @@\n+x\n", refused, "not allowed"},
		{"through b/..", two, "--- /dev/null\n+++ b/../../pwned\n@@ -0,0 +1 @@\n+x\n", refused, "not allowed"},
		{"a device", two, "--- /dev/zero\n+++ /dev/zero\n@@ -1 +1 @@\n-1\n+2\n", refused, "not allowed"},
	})
}
