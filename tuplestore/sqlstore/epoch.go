package sqlstore

import (
	"context"
	"crypto/rand"
	"fmt"

	"stonetown/internal/sqldb"
)

// BeginEpoch names a new line of history for every tenant of a database. It
// belongs to restoring a backup, before any store is opened on the database:
// revisions handed out after the backup was made will be taken anew, and tokens
// that name them must not be taken for these.
func BeginEpoch(ctx context.Context, db *sqldb.DB) error {
	if _, err := db.Exec(ctx, `UPDATE tenant_heads SET epoch = $1`, rand.Text()); err != nil {
		return fmt.Errorf("begin a new epoch: %w", err)
	}
	return nil
}
