package web

import (
	"encoding/base64"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"stonetown/internal/seal"
)

const (
	// DefaultLimit and MaxLimit are the sizes of a page.
	DefaultLimit = 50
	MaxLimit     = 250
	// maxCursor is far more than the longest position takes.
	maxCursor = 8 << 10
)

// Limit is the size of the page that a query asks for; nil means it does not say.
func Limit(asked *int) (int, error) {
	if asked == nil {
		return DefaultLimit, nil
	}
	if *asked < 1 || *asked > MaxLimit {
		return 0, ValidationFailed(FieldError{"limit", "out_of_range", fmt.Sprintf("limit must be between 1 and %d", MaxLimit)})
	}
	return *asked, nil
}

// Cursors makes the opaque positions between the pages of a list. A cursor is
// encrypted and authenticated together with the tenant and the list it was made
// for, filters included, so that nobody can read, forge or transplant one.
type Cursors struct{ key *seal.Key }

// NewCursors takes a key of [seal.KeySize] random bytes. All processes of a
// deployment need the same one.
func NewCursors(key []byte) (*Cursors, error) {
	k, err := seal.NewKey(key)
	if err != nil {
		return nil, fmt.Errorf("cursor key: %w", err)
	}
	return &Cursors{k}, nil
}

// Next is the cursor that leads to what follows a position of a list.
func (c *Cursors) Next(tenant string, list []string, position any) (string, error) {
	text, err := json.Marshal(position)
	if err != nil {
		return "", fmt.Errorf("encode cursor: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(c.key.Seal(tenant, listID(list), text)), nil
}

// Resume reads the position out of a cursor that was made for the same list.
// The error is an [*Error], cursor_invalid.
func (c *Cursors) Resume(tenant string, list []string, cursor string, position any) error {
	invalid := &Error{
		Status: http.StatusBadRequest, Code: "cursor_invalid",
		Message: "the cursor was not made for this list and these filters",
	}
	if len(cursor) > maxCursor {
		return invalid
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return invalid
	}
	text, err := c.key.Open(tenant, listID(list), sealed)
	if err != nil || json.Unmarshal(text, position) != nil {
		return invalid
	}
	return nil
}

// listID is unambiguous whatever the filters hold.
func listID(list []string) string { return fmt.Sprintf("cursor %q", list) }
