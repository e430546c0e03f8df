// Package storage has the form in which the tables of OAuth store times and composite values.
package storage

import (
	"context"
	"encoding/json"
	"time"

	"stonetown/internal/sqldb"
)

// Querier is a database or a transaction.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) *sqldb.Row
}

// Now returns the time as it is stored: UTC, in microseconds.
func Now(clock func() time.Time) time.Time { return clock().UTC().Truncate(time.Microsecond) }

// JSON returns the stored form of a value that is read and written as a whole.
func JSON(part any) string {
	text, err := json.Marshal(part)
	if err != nil {
		panic("oauth: " + err.Error()) // values have strings, numbers and booleans only
	}
	return string(text)
}

// ReadJSON reads what [JSON] returned. If text is empty, because the column has its default,
// part stays as it is.
func ReadJSON(text string, part any) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), part)
}
