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

// BeginTenantEpoch queues that a new epoch begins for one tenant, in the transaction that imports
// it: the deployment from which it came may have issued further revisions since. It also sets the
// number of the tenant, which an archive may have wrong.
func BeginTenantEpoch(b *sqldb.Batch, tenantID string) {
	b.Queue(`UPDATE tenant_heads SET epoch = $2, tenant_number = $3 WHERE tenant_id = $1`, []any{tenantID, rand.Text(), sqldb.TenantNumber(tenantID)}, nil)
}
