package client

import (
	"net/http"
	"slices"
	"testing"
)

func TestWarnings(t *testing.T) {
	var got []string
	w := warnings{warn: func(text string) { got = append(got, text) }}
	for range 2 {
		w.of(http.Header{"Warning": {`299 - "a \"b\" \\"`, `110 - "stale"`, "299 - \"x\x1b[2Jy\"", `299 - "open`, `299 - "née"`}})
	}
	if want := []string{`a "b" \`, "x[2Jy", "née"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
