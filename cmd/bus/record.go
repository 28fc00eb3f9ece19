package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"correx/internal/cli"
	"correx/pkg/events"
)

// A line is a record as JSON.
type recordJSON struct {
	Seq     uint64          `json:"seq"`
	Time    time.Time       `json:"time"`
	Subject string          `json:"subject"`
	Headers events.Header   `json:"headers,omitempty"`
	Body    json.RawMessage `json:"body"`
	Error   string          `json:"error,omitempty"` // why it does not hold
}

func asJSON(r events.Record) recordJSON {
	j := recordJSON{Seq: r.Seq, Time: r.Time.UTC(), Subject: r.Subject, Headers: r.Header, Body: r.Data}
	if !json.Valid(r.Data) {
		j.Body, _ = json.Marshal(string(r.Data)) // a text always encodes
	}
	if r.Err != nil {
		j.Error = r.Err.Error()
	}
	return j
}

func jsonTo(w io.Writer, v any) error { return cli.JSON(w, v) }

// printRecord prints one record: as JSON, or as a line for people, with its
// session if more than one may come.
func (a *app) printRecord(r events.Record, many bool) error {
	if a.flags.JSON {
		return cli.JSONLine(a.env.Stdout, asJSON(r))
	}
	s := a.env.OutStyle()
	text := describe(r, s)
	if text == "" {
		return nil
	}
	session := ""
	if many {
		session = s.Blue(cli.Visible(string(r.Aggregate.Session))) + " "
	}
	_, err := fmt.Fprintf(a.env.Stdout, "%s %s%s\n",
		s.Dim(fmt.Sprintf("%6d %s", r.Seq, r.Time.Local().Format("15:04:05.000"))), session, text)
	return err
}
