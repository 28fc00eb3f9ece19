package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"correx/pkg/tools/workspace"
)

// statFile tells what is at a place, a line each. Of a file it reads all, if it is
// not too large; anything else is not opened.
func statFile(q fileRequest) (Success, error) {
	fi, err := q.place.Stat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Success{}, nothing("file or directory", q)
	case err != nil:
		return Success{}, err
	case q.isDir && !fi.IsDir():
		return Success{}, fmt.Errorf("%s is a %s and no directory; leave out the slash at its end", q.asked, workspace.KindOf(fi))
	}
	facts := [][2]string{{"path", q.asked}}
	if real := showName(q.place.Path()); leads(q.asked, q.place) != "" {
		facts = append(facts, [2]string{"leads to", real})
	}
	facts = append(facts, [2]string{"kind", workspace.KindOf(fi)}, [2]string{"mode", fmt.Sprintf("%04o", fi.Mode().Perm())},
		[2]string{"changed", fi.ModTime().UTC().Format(time.RFC3339)})
	if fi.Mode().IsRegular() {
		facts = append(facts, statContent(q, fi.Size())...)
	}
	var b strings.Builder
	meta := map[string]string{}
	for i, f := range facts {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s: %s", f[0], f[1])
		meta[strings.ReplaceAll(f[0], " ", "_")] = f[1]
	}
	return Success{Output: b.String(), Metadata: meta}, nil
}

func statContent(q fileRequest, size int64) [][2]string {
	facts := [][2]string{{"size", fmt.Sprintf("%d bytes", size)}}
	file, err := q.place.Look(workspace.MaxSize)
	if errors.Is(err, workspace.ErrTooLarge) {
		return append(facts, [2]string{"content", fmt.Sprintf("not looked at: it is over %d bytes", workspace.MaxSize)})
	}
	if err != nil {
		return append(facts, [2]string{"content", "cannot be read: " + err.Error()})
	}
	t := readText(file.Data)
	if t.encoding != asBinary {
		facts = append(facts, [2]string{"lines", strconv.Itoa(t.lines)})
	}
	facts = append(facts, [2]string{"encoding", string(t.encoding)})
	if t.encoding != asBinary {
		facts = append(facts, [2]string{"line ends", t.ends})
	}
	if file.Links > 1 {
		facts = append(facts, [2]string{"hard links", fmt.Sprintf("%d, so it is not changed", file.Links)})
	}
	return append(facts, [2]string{"sha256", file.SHA256})
}
