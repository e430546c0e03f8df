package web

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"

	"stonetown/internal/seal"
)

const (
	// DefaultLimit and MaxLimit are the sizes of a page.
	DefaultLimit = 50
	MaxLimit     = 250
	// maxCursor bounds the length of a cursor. Cursors of all lists are far shorter.
	maxCursor = 8 << 10
)

// Limit returns the page size of a query; nil means the default.
func Limit(asked *int) (int, error) {
	if asked == nil {
		return DefaultLimit, nil
	}
	if *asked < 1 || *asked > MaxLimit {
		return 0, ValidationFailed(FieldError{"limit", "out_of_range", fmt.Sprintf("limit must be between 1 and %d", MaxLimit)})
	}
	return *asked, nil
}

// Cursors encrypts the positions between the pages of a list. A cursor is authenticated with
// its tenant, list and filters, so clients can neither read nor forge one, nor use it for
// another list.
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

// Next returns the cursor of the page after a position.
func (c *Cursors) Next(tenant string, list []string, position any) (string, error) {
	text, err := json.Marshal(position)
	if err != nil {
		return "", fmt.Errorf("encode cursor: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(c.key.Seal(tenant, listID(list), text)), nil
}

// CursorInvalid returns the error of a cursor of another list.
func CursorInvalid() *Error {
	return &Error{
		Status: http.StatusBadRequest, Code: "cursor_invalid",
		Message: "the cursor does not belong to this list and these filters",
	}
}

// Resume reads the position out of a cursor that was made for the same list.
// The error is an [*Error], cursor_invalid.
func (c *Cursors) Resume(tenant string, list []string, cursor string, position any) error {
	invalid := CursorInvalid()
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

// place is the end of a page of a list that is in memory.
type place struct {
	ID    string `json:"i"`
	Index int    `json:"n"` // of the next item
}

// Page returns a page of a list that is in memory, because it is never long, and the cursor of
// the next page, or nil. If the last item of the previous page was removed meanwhile, the page
// begins at its position.
func Page[T any](c *Cursors, tenant string, list []string, size *int, cursor string, all []T, id func(T) string) (page []T, limit int, next *string, err error) {
	if limit, err = Limit(size); err != nil {
		return nil, 0, nil, err
	}
	start := 0
	if cursor != "" {
		var last place
		if err := c.Resume(tenant, list, cursor, &last); err != nil {
			return nil, 0, nil, err
		}
		if start = 1 + slices.IndexFunc(all, func(item T) bool { return id(item) == last.ID }); start == 0 {
			start = min(max(0, last.Index-1), len(all))
		}
	}
	end := min(start+limit, len(all))
	if end < len(all) {
		more, err := c.Next(tenant, list, place{id(all[end-1]), end})
		if err != nil {
			return nil, 0, nil, err
		}
		next = &more
	}
	return all[start:end], limit, next, nil
}

// listID is unambiguous for all values of filters.
func listID(list []string) string { return fmt.Sprintf("cursor %q", list) }
