package natsd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"correx/pkg/events"
)

// offers are the tokens whose durable consumers workers may pull from. They are
// kept beside the store, so that after a restart a worker's acks are not refused
// until the kernel has read the log again.
type offers struct {
	Tools  []string `json:"tools"`
	Models []string `json:"models"`
}

func offersFile(store string) string { return filepath.Join(store, "offers.json") }

func loadOffers(store string) (offers, error) {
	var of offers
	b, err := os.ReadFile(offersFile(store))
	if errors.Is(err, fs.ErrNotExist) {
		return of, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &of)
	}
	if err != nil {
		return offers{}, fmt.Errorf("read %s: %w", offersFile(store), err)
	}
	return of, nil
}

func (of offers) save(store string) error {
	b, err := json.Marshal(of)
	if err != nil {
		return err
	}
	tmp := offersFile(store) + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("write offers: %w", err)
	}
	return os.Rename(tmp, offersFile(store))
}

// with returns of and what is new in tools and models.
func (of offers) with(tools, models []string) (offers, error) {
	for _, t := range slices.Concat(tools, models) {
		if err := events.CheckToken(t); err != nil {
			return of, fmt.Errorf("token %w", err)
		}
	}
	return offers{Tools: union(of.Tools, tools), Models: union(of.Models, models)}, nil
}

func (of offers) equal(o offers) bool {
	return slices.Equal(of.Tools, o.Tools) && slices.Equal(of.Models, o.Models)
}

func union(a, b []string) []string {
	u := slices.Concat(a, b)
	slices.Sort(u)
	return slices.Compact(u)
}
