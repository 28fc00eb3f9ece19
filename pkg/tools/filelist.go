package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"correx/pkg/tools/workspace"
)

// list tells what is in a directory, an entry a line.
func list(q fileRequest) (Success, error) {
	skip, limit := 0, maxList
	if q.Offset != nil {
		skip = *q.Offset - 1
	}
	if q.Limit != nil {
		limit = min(*q.Limit, maxList)
	}
	entries, all, err := q.place.List(skip, limit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Success{}, nothing("directory", q)
	case err != nil:
		if fi, statErr := q.place.Stat(); statErr == nil && !fi.IsDir() {
			return Success{}, fmt.Errorf("%w; read it instead", err)
		}
		return Success{}, err
	case skip > 0 && skip >= all:
		return Success{}, fmt.Errorf("%s has %d entries; offset %d is behind them", q.asked, all, skip+1)
	}
	var b strings.Builder
	for i, e := range entries {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(describe(e))
	}
	switch end := skip + len(entries); {
	case all == 0:
		b.WriteString("(the directory is empty)")
	case end < all:
		fmt.Fprintf(&b, "\n[entries %d to %d of %d; to go on, use offset %d]", skip+1, end, all, end+1)
	case skip > 0:
		fmt.Fprintf(&b, "\n[entries %d to %d of %d, the end]", skip+1, end, all)
	}
	return Success{Output: b.String(), Metadata: map[string]string{"path": showName(q.place.Path()), "entries": strconv.Itoa(all)}}, nil
}

// describe is one line of a listing.
func describe(e workspace.Entry) string {
	name := shown(e)
	switch e.Kind {
	case "":
		return name + " (gone)"
	case "file":
		return fmt.Sprintf("%s (file, %d bytes)", name, e.Size)
	case "symbolic link":
		return fmt.Sprintf("%s (link to %s)", name, showName(e.Target))
	}
	return fmt.Sprintf("%s (%s)", name, e.Kind)
}
