package eventlog

import (
	"context"
	"fmt"
	"math"
	"time"
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

// Newest returns up to limit events that a filter selects, at most [MaxPage], the newest first,
// before a position (0: from the newest).
func (l *Log) Newest(ctx context.Context, tenantID string, before int64, f Filter, limit int) ([]Event, error) {
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
	events, err := scan(tenantID)(l.db.Query(ctx, selectNewest, tenantID, before, string(f.Type), since, until, int64(min(limit, MaxPage))))
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return events, nil
}
