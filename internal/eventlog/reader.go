package eventlog

import (
	"context"
	"fmt"

	"stonetown/internal/sqldb"
)

// Reader reads logs from a stored position. It is safe for concurrent use; concurrent reads of
// one log return the same events.
type Reader struct {
	log  *Log
	name string
}

// Reader returns the reader of a name.
func (l *Log) Reader(name string) *Reader { return &Reader{l, name} }

// Next returns up to limit events after the reader's position, which for a new reader is the
// beginning. It fails with [*ExpiredError] if some of them have been deleted; the caller can
// then [Reader.Advance] to its floor.
func (r *Reader) Next(ctx context.Context, tenantID string, limit int) ([]Event, error) {
	after, err := r.log.place(ctx, tenantID, r.name)
	if err != nil {
		return nil, fmt.Errorf("reader %s: %w", r.name, err)
	}
	events, err := r.log.Read(ctx, tenantID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("reader %s: %w", r.name, err)
	}
	return events, nil
}

// Advance stores a reader's position in the transaction that processes the events up to it. A
// position never decreases.
func (r *Reader) Advance(ctx context.Context, tx *sqldb.Tx, tenantID string, to int64) error {
	if _, err := tx.Exec(ctx, advanceReader, tenantID, r.name, to); err != nil {
		return fmt.Errorf("advance reader %s: %w", r.name, err)
	}
	return nil
}
