package eventlog

import (
	"context"
	"fmt"

	"stonetown/internal/sqldb"
)

// Reader is someone who reads the logs, at a pace of its own, and whose place is
// remembered. It is safe for concurrent use; who reads the same log twice at once
// gets the same events twice.
type Reader struct {
	log  *Log
	name string
}

// Reader returns the reader of a name.
func (l *Log) Reader(name string) *Reader { return &Reader{l, name} }

// Next returns up to limit events that follow the reader's place, which for a
// new reader is the beginning. It fails with [*ExpiredError] if some of them are
// no longer kept; [Reader.Advance] to its floor then, or stop.
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

// Advance moves the reader's place to a position, with whatever else the
// transaction does about the events up to it. A place never moves back.
func (r *Reader) Advance(ctx context.Context, tx *sqldb.Tx, tenantID string, to int64) error {
	if _, err := tx.Exec(ctx, advanceReader, tenantID, r.name, to); err != nil {
		return fmt.Errorf("advance reader %s: %w", r.name, err)
	}
	return nil
}
