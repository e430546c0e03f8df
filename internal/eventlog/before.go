package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Before returns up to limit events before a position (0: the newest), at most [MaxPage], the newest
// first, without a gap. None are left if it returns none.
func (l *Log) Before(ctx context.Context, tenantID string, before int64, limit int) ([]Event, error) {
	h, err := l.settled(ctx, tenantID)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	newest := h.position
	if before > 0 {
		newest = min(newest, before-1)
	}
	after := max(h.floor.position, newest-int64(min(limit, MaxPage)))
	for after < newest {
		events, err := l.Read(ctx, tenantID, after, int(newest-after))
		if expired, ok := errors.AsType[*ExpiredError](err); ok {
			after = expired.Floor // the events before it were deleted meanwhile
			continue
		}
		slices.Reverse(events)
		return events, err
	}
	return nil, nil
}
