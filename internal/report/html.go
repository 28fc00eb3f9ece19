package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"correx/internal/cli"
)

//go:embed page.html
var pageText string

// The page's functions make strings, never HTML: all escaping is the template's.
var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"pieces": pieces, "lines": lines, "took": took, "isOrNot": isOrNot, "or": or, "validity": validity,
	"shown":  func(t time.Time) string { return shown(t) },
	"join":   func(s []string) string { return strings.Join(s, ", ") },
	"json":   indent,
	"bytes":  func(n int64) string { return cli.Bytes(int(n)) },
	"colour": colour,
}).Parse(pageText))

// HTML writes the report as one page that needs nothing else, and prints.
func (r Report) HTML(out io.Writer) error {
	if err := page.Execute(out, r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// colour is the style of a status.
func colour(status string) string {
	switch strings.ToUpper(status) {
	case "COMPLETED", "SUCCEEDED", "APPROVED":
		return "good"
	case "FAILED", "REJECTED", "CANCELLED", "DENIED", "EXPIRED", "NEVER RAN":
		return "bad"
	}
	return "open"
}
