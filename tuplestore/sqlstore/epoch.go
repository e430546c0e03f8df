package sqlstore

import (
	"context"
	"crypto/rand"
	"fmt"

	"stonetown/internal/sqldb"
)

// BeginEpoch begins a new epoch for every tenant of a database. It is part of restoring a
// backup, before a store is opened on the database: revisions issued after the backup was
// made will be issued again, and tokens of the two must be distinct.
func BeginEpoch(ctx context.Context, db *sqldb.DB) error {
	if _, err := db.Exec(ctx, `UPDATE tenant_heads SET epoch = $1`, rand.Text()); err != nil {
		return fmt.Errorf("begin a new epoch: %w", err)
	}
	return nil
}
