// Package document has the parts of public representations: the JSON documents that
// operations answer and that events carry. A resource has one of them, kept by its
// domain, so its parts belong neither to the HTTP layer nor to a domain.
package document

import (
	"time"

	"github.com/go-json-experiment/json"
)

// Timestamp is written as RFC 3339 in UTC with milliseconds.
type Timestamp time.Time

// MarshalText implements [encoding.TextMarshaler].
func (t Timestamp) MarshalText() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, "2006-01-02T15:04:05.000Z"), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *Timestamp) UnmarshalText(text []byte) error {
	at, err := time.Parse(time.RFC3339, string(text))
	*t = Timestamp(at.UTC())
	return err
}

// Changes are the members of a representation that differ, each with its value before
// and after.
type Changes map[string][2]any

// Difference compares two representations of a resource, which encode as JSON objects.
func Difference(before, after any) Changes {
	from, to := members(before), members(after)
	changes := Changes{}
	for name, value := range to {
		if !equal(from[name], value) {
			changes[name] = [2]any{from[name], value}
		}
	}
	return changes
}

func members(representation any) (m map[string]any) {
	text, err := json.Marshal(representation)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		panic("document: representation that is not a JSON object: " + err.Error()) // of our own types
	}
	return m
}

// equal compares two JSON values.
func equal(a, b any) bool {
	textA, errA := json.Marshal(a, json.Deterministic(true))
	textB, errB := json.Marshal(b, json.Deterministic(true))
	return errA == nil && errB == nil && string(textA) == string(textB)
}
