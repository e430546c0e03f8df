package eventlog

import (
	"context"
	"fmt"
	"math"
	"time"

	"stonetown/internal/sqldb"
)

// Filter selects events. Zero fields select all.
type Filter struct {
	Type  Type
	Since time.Time // this time and later
	Until time.Time // before this time
}

const selectNewest = `
	SELECT ` + columns + ` FROM events AS e
	WHERE e.tenant_id = $1 AND e.position < $2 AND ($3 = '' OR e.type = $3) AND e.occurred_at >= $4 AND e.occurred_at < $5
	ORDER BY e.position DESC LIMIT $6`

// Newest returns up to limit events of an organisation that a filter selects, at most [MaxPage], the
// newest first, before a position (0: from the newest). The log of an organisation has no events of
// commits, which Newest does not return.
func (l *Log) Newest(ctx context.Context, orgID string, before int64, f Filter, limit int) (events []Event, err error) {
	if before == 0 {
		before = math.MaxInt64
	}
	since, until := int64(math.MinInt64), int64(math.MaxInt64)
	if !f.Since.IsZero() {
		since = f.Since.UnixMicro()
	}
	if !f.Until.IsZero() {
		until = f.Until.UnixMicro()
	}
	var b sqldb.Batch
	b.Queue(selectNewest, []any{orgID, before, string(f.Type), since, until, int64(min(limit, MaxPage))}, func(rows *sqldb.Rows) error {
		stored, err := scanStored(rows, orgID)
		for _, e := range stored {
			events = append(events, e.Event)
		}
		return err
	})
	if err := l.db.Send(ctx, &b); err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return events, nil
}
