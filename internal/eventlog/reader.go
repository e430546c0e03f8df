package eventlog

import (
	"context"
	"fmt"

	"stonetown/internal/sqldb"
)

// Reader reads logs from stored positions, one for each tenant that it was started for. Several
// processes can share the work of one reader: each reads a page, and of those that handle the
// same page, one can advance the position. It is safe for concurrent use.
type Reader struct {
	log  *Log
	name string
}

// Reader returns the reader of a name.
func (l *Log) Reader(name string) *Reader { return &Reader{l, name} }

// Start queues the start of the reader for a tenant, at the newest position that its log has when
// the statement runs. A reader that has been started keeps its position.
func (r *Reader) Start(b *sqldb.Batch, tenantID string) {
	queueAdvance(b, tenantID, 0)
	b.Queue(startReader, []any{r.name, tenantID}, nil)
}

// Stop queues the end of the reader for a tenant. Its position is deleted.
func (r *Reader) Stop(b *sqldb.Batch, tenantID string) {
	b.Queue(stopReader, []any{r.name, tenantID}, nil)
}

// Lag is a tenant with events that a reader has not handled.
type Lag struct {
	TenantID string
	Position int64 // the reader's
	Newest   int64 // the log's
}

// Behind lists the tenants with events after the reader's position, in the order of their ids,
// at most limit, after the tenant that ended an earlier page (empty: from the start).
func (r *Reader) Behind(ctx context.Context, after string, limit int) ([]Lag, error) {
	list, err := r.log.behind(ctx, r.name, after, limit)
	if err != nil {
		return nil, fmt.Errorf("reader %s: %w", r.name, err)
	}
	return list, nil
}

// Next returns up to limit events after the reader's position, and that position. A reader that
// has not been started for the tenant has no events. Next fails with [*ExpiredError] if some of
// the events have been deleted; the caller can then advance from the position to its floor.
func (r *Reader) Next(ctx context.Context, tenantID string, limit int) (after int64, events []Event, err error) {
	after, started, err := r.log.place(ctx, tenantID, r.name)
	if err == nil && started {
		events, err = r.log.Read(ctx, tenantID, after, limit)
	}
	if err != nil {
		return after, nil, fmt.Errorf("reader %s: %w", r.name, err)
	}
	return after, events, nil
}

// Advance stores a reader's position, to, in the transaction that handles the events after from
// up to it. If the position is not from, because another process has handled these events or
// the reader was stopped, moved is false and nothing is stored; the caller then has to roll back
// what it has done about the events.
func (r *Reader) Advance(ctx context.Context, tx *sqldb.Tx, tenantID string, from, to int64) (moved bool, err error) {
	if to < from {
		return false, fmt.Errorf("advance reader %s: from %d to %d", r.name, from, to)
	}
	n, err := tx.Exec(ctx, advanceReader, r.name, tenantID, from, to)
	if err != nil {
		return false, fmt.Errorf("advance reader %s: %w", r.name, err)
	}
	return n > 0, nil
}
