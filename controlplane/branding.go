package controlplane

import (
	"context"
	"fmt"

	"stonetown/internal/sqldb"
)

// UpdateBranding sets the mark of the branding of a tenant to the result of with, which runs in the
// same transaction and may run more than once. Changes of one tenant have an order. UpdateBranding fails
// with [ErrTenantNotFound], or as with does.
func (d *Directory) UpdateBranding(ctx context.Context, tenantID string, with func(ctx context.Context, tx *sqldb.Tx) (mark string, err error)) error {
	err := d.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(ctx, lockTenant, tenantID); err != nil {
			return err
		}
		t, err := selectTenantByID(ctx, tx, tenantID)
		if err != nil {
			return err
		}
		mark, err := with(ctx, tx)
		if err != nil || mark == t.Branding {
			return err
		}
		if err := advance(ctx, tx); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, updateBranding, tenantID, mark)
		return err
	})
	if err != nil {
		return fmt.Errorf("tenant %s: %w", tenantID, err)
	}
	d.lease.End()
	return nil
}
