package eventlog

import (
	"context"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
)

// MaxCounted is how many of the newest events are counted at most.
const MaxCounted = 100_000

// Count is the number of events of a type.
type Count struct {
	Type Type
	N    int
}

const (
	selectCounts = `
	SELECT e.type, COUNT(*) FROM events AS e
	WHERE e.tenant_id = $1 AND e.position > $2 AND e.occurred_at >= $3 GROUP BY e.type ORDER BY e.type`
	selectLastBefore = `
	SELECT e.occurred_at FROM events AS e WHERE e.tenant_id = $1 AND e.position <= $2 ORDER BY e.position DESC LIMIT 1`
)

// Counts counts the events of each type since an instant, among the newest [MaxCounted]. Events of
// commits are not counted. truncated reports whether there are older ones since the instant.
func (l *Log) Counts(ctx context.Context, tenantID string, since time.Time) (counts []Count, truncated bool, err error) {
	return l.counts(ctx, tenantID, since, MaxCounted)
}

func (l *Log) counts(ctx context.Context, tenantID string, since time.Time, most int64) (counts []Count, truncated bool, err error) {
	h, err := l.head(ctx, tenantID)
	if err != nil {
		return nil, false, fmt.Errorf("count events: %w", err)
	}
	var b sqldb.Batch
	b.Queue(selectCounts, []any{tenantID, h.position - most, since.UnixMicro()}, func(rows *sqldb.Rows) error {
		for rows.Next() {
			var typ string
			var n int64
			if err := rows.Scan(&typ, &n); err != nil {
				return err
			}
			counts = append(counts, Count{Type(typ), int(n)})
		}
		return rows.Err()
	})
	b.Queue(selectLastBefore, []any{tenantID, h.position - most}, func(rows *sqldb.Rows) error {
		for rows.Next() {
			var at int64
			if err := rows.Scan(&at); err != nil {
				return err
			}
			truncated = at >= since.UnixMicro()
		}
		return rows.Err()
	})
	if err := l.db.Send(ctx, &b); err != nil {
		return nil, false, fmt.Errorf("count events: %w", err)
	}
	return counts, truncated, nil
}
