package pgtest

import (
	"testing"
	"time"

	"stonetown/internal/netline"
)

// Latency simulates a network between the test and the database at rawURL: a round trip
// through proxyURL takes d longer.
//
// roundTrips counts the responses of the database so far; opening a connection needs some.
func Latency(t testing.TB, rawURL string, d time.Duration) (proxyURL string, roundTrips func() int) {
	t.Helper()
	l, proxyURL, err := netline.Postgres(rawURL, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return proxyURL, l.RoundTrips
}
