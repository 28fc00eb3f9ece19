package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/pkg/events"
)

// A question to the projector, and its answer: pages of rows.
type queryRequest struct {
	Session string `json:"session,omitempty"`
	State   string `json:"state,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Model   string `json:"model,omitempty"`
	Text    string `json:"text,omitempty"`
	Since   string `json:"since,omitempty"`
	Until   string `json:"until,omitempty"`
	Limit   int    `json:"limit,omitempty"`
	Cursor  uint64 `json:"cursor,omitempty"`
	WaitFor uint64 `json:"wait_for,omitempty"`
}

type queryAnswer struct {
	OK    bool              `json:"ok"`
	Error string            `json:"error"`
	Items []json.RawMessage `json:"items"`
	More  bool              `json:"more"`
	Next  uint64            `json:"next"`
}

// pageSize is how many rows one answer has at most.
const pageSize = 200

// query asks the projector for at most limit rows (0: all), as new as the log.
func (a *app) query(ctx context.Context, c *client, noun string, r queryRequest, limit int) ([]json.RawMessage, error) {
	wait := a.env.Progress("waiting for the projector")
	defer wait.Stop()
	log, err := c.openLog(ctx)
	if err != nil {
		return nil, err
	}
	if r.WaitFor, err = log.Last(ctx); err != nil {
		return nil, fmt.Errorf("query %s: %w", noun, err)
	}
	items := []json.RawMessage{}
	for {
		r.Limit = pageSize
		if limit > 0 {
			r.Limit = min(pageSize, limit-len(items))
		}
		ans, err := c.page(ctx, noun, r)
		if err != nil {
			return nil, err
		}
		items = append(items, ans.Items...)
		if !ans.More || limit > 0 && len(items) >= limit || ans.Next == r.Cursor {
			return items, nil
		}
		r.Cursor = ans.Next
	}
}

func (c *client) page(ctx context.Context, noun string, r queryRequest) (queryAnswer, error) {
	var ans queryAnswer
	body, err := json.Marshal(r)
	if err != nil {
		return ans, fmt.Errorf("query %s: %w", noun, err)
	}
	data, err := c.request(ctx, events.PrefixQuery+"."+noun, body, 15*time.Second)
	if errors.Is(err, nats.ErrNoResponders) {
		return ans, fmt.Errorf("query %s: no projector is running; start `projector`, or `bus up` for everything", noun)
	}
	if err != nil {
		return ans, fmt.Errorf("query %s: %w", noun, err)
	}
	if err := json.Unmarshal(data, &ans); err != nil {
		return ans, fmt.Errorf("query %s: the answer cannot be read: %w", noun, err)
	}
	if !ans.OK {
		return ans, fmt.Errorf("query %s: %s", noun, ans.Error)
	}
	return ans, nil
}

// A column of a list: its title, and the text of a row.
type tableColumn struct {
	title string
	text  func(row) string
}

// A row is one object of an answer.
type row map[string]json.RawMessage

// rowOf reads an object; one that cannot be read has no fields.
func rowOf(item json.RawMessage) row {
	var r row
	if json.Unmarshal(item, &r) != nil {
		return nil
	}
	return r
}

// text is a field as people read it.
func (r row) text(key string) string {
	raw, ok := r[key]
	if !ok || string(raw) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// time is a field that holds a time, as people read it.
func (r row) time(key string) string {
	t, err := time.Parse(time.RFC3339Nano, r.text(key))
	if err != nil {
		return r.text(key)
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func plain(title, key string) tableColumn {
	return tableColumn{title, func(r row) string { return r.text(key) }}
}

func timed(title, key string) tableColumn {
	return tableColumn{title, func(r row) string { return r.time(key) }}
}

// list prints what a query answers, as JSON or as a table.
func (a *app) list(items []json.RawMessage, none string, columns ...tableColumn) error {
	if a.flags.JSON {
		return cli.JSON(a.env.Stdout, items)
	}
	if len(items) == 0 {
		fmt.Fprintln(a.env.Stderr, none)
		return nil
	}
	var header []string
	for _, c := range columns {
		header = append(header, c.title)
	}
	var rows [][]string
	for _, item := range items {
		var r row
		if err := json.Unmarshal(item, &r); err != nil {
			return fmt.Errorf("read the projector's answer: %w", err)
		}
		var cells []string
		for _, c := range columns {
			cells = append(cells, c.text(r))
		}
		rows = append(rows, cells)
	}
	cli.Table(a.env.Stdout, a.env.OutStyle(), header, rows)
	return nil
}

// completeSession offers the ids of sessions.
func (a *app) completeSession(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	c, err := a.connect(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer c.close()
	items, err := a.query(ctx, c, "sessions", queryRequest{}, pageSize)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, item := range items {
		r := rowOf(item)
		ids = append(ids, cobra.CompletionWithDesc(r.text("session"), cli.Line(r.text("task"), 60)))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
