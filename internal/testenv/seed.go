package testenv

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seed is what a test that draws at random draws from: $CORREX_SEED, so that a
// run can be had again, or a number of its own. The test's log says which.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(rand.Uint32())
	if given := os.Getenv("CORREX_SEED"); given != "" {
		n, err := strconv.ParseUint(given, 10, 64)
		if err != nil {
			t.Fatalf("CORREX_SEED is no number: %v", err)
		}
		seed = n
	}
	t.Logf("seed: CORREX_SEED=%d", seed)
	return seed
}
