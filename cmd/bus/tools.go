package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"correx/internal/cli"
)

const toolsHelp = `Tools asks the projector, and shows each tool once, with the workers that offer it.
A tool can be used while one of them runs. Workers that offer one tool otherwise
than others, by its digest, are told apart and marked: whoever approves a call
must not have to guess which of them takes it.

What a worker offers is configured: see correx.example.yaml. --json has a row for
each tool of each worker, with its schema.`

func newTools(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "tools", Short: "tools that workers offer", Long: toolsHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer c.close()
			items, err := a.query(cmd.Context(), c, "tools", queryRequest{}, 0)
			if err != nil {
				return err
			}
			if !a.flags.JSON {
				items = mergeOffers(items)
			}
			return a.list(items, "no worker offers a tool; turn one on in correx.yaml (see correx.example.yaml) and start tool-worker",
				plain("TOOL", "tool"), plain("TIER", "tier"), plain("USABLE", "available"), plain("ISOLATION", "isolation"),
				plain("WORKERS", "worker"), shortened("DIGEST", "digest"), tableColumn{"NOTES", toolNotes}, plain("DESCRIPTION", "description"))
		},
	}
}

// mergeOffers makes one row of all that offer a tool with one digest: those that
// run, or if none does, all.
func mergeOffers(items []json.RawMessage) []json.RawMessage {
	type offer struct {
		row
		workers, isolations []string
	}
	var all []*offer
	find := func(r row) *offer {
		for _, o := range all {
			if o.text("tool") == r.text("tool") && o.text("digest") == r.text("digest") {
				return o
			}
		}
		all = append(all, &offer{row: r})
		return all[len(all)-1]
	}
	for _, item := range items {
		r := rowOf(item)
		o := find(r)
		switch was, is := o.text("available") == "true", r.text("available") == "true"; {
		case is && !was:
			o.row, o.workers, o.isolations = r, nil, nil
		case was && !is:
			continue
		}
		o.workers = append(o.workers, r.text("worker"))
		if i := r.text("isolation"); i != "" && !slices.Contains(o.isolations, i) {
			o.isolations = append(o.isolations, i)
		}
	}
	merged := []json.RawMessage{}
	for _, o := range all {
		o.set("worker", strings.Join(o.workers, ", "))
		o.set("isolation", strings.Join(o.isolations, ", "))
		text, err := json.Marshal(o.row)
		if err == nil { // it was read from JSON
			merged = append(merged, text)
		}
	}
	return merged
}

// set puts a text into a field.
func (r row) set(key, text string) {
	if b, err := json.Marshal(text); err == nil { // a string always is
		r[key] = b
	}
}

// toolNotes is what is unusual about a tool.
func toolNotes(r row) string {
	var notes []string
	if r.text("differs") == "true" {
		notes = append(notes, "DIFFERS from another worker's")
	}
	if r.text("follow_up_only") == "true" {
		notes = append(notes, "follow-up only")
	}
	if r.text("previews") == "true" {
		notes = append(notes, "previews")
	}
	if origin := r.text("origin"); origin != "" {
		notes = append(notes, "from "+origin)
	}
	return strings.Join(notes, ", ")
}

// shortened shows enough of a hash to tell it from others.
func shortened(title, key string) tableColumn {
	return tableColumn{title, func(r row) string { return cli.Line(r.text(key)[:min(12, len(r.text(key)))], 12) }}
}
