package storage

import (
	"context"
	"encoding/json"
	"time"

	"stonetown/internal/sqldb"
)

// Querier is the database or a transaction on it.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) *sqldb.Row
}

// Now is the present time as it is stored: UTC, in microseconds.
func Now(clock func() time.Time) time.Time { return clock().UTC().Truncate(time.Microsecond) }

// Micros is 0 for the zero time, which is instant's inverse.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func Time(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// JSON is how a part of an application is stored that is read and written whole.
func JSON(part any) string {
	text, err := json.Marshal(part)
	if err != nil {
		panic("oauth: " + err.Error()) // of texts, numbers and truth values
	}
	return string(text)
}

// ReadJSON reads what stored wrote; of what was never written, part stays as it is.
func ReadJSON(text string, part any) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), part)
}
