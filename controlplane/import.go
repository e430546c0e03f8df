package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
)

// ErrTenantExists is returned by the import of a tenant that the deployment has, or had, already.
var ErrTenantExists = errors.New("a tenant with this id exists already")

// importedReason is the reason for which an imported tenant is suspended.
const importedReason = "imported"

// ImportTenant adds a tenant of another deployment with its id, its slug, its name, its base URL
// and its rate limits, in the state suspended. It fails as [Directory.CreateTenant] does, or with
// [ErrTenantExists]. The rows of the tenant are written in the same transaction, and
// [Directory.Imported] is its last step.
func (d *Directory) ImportTenant(ctx context.Context, tx *sqldb.Tx, t Tenant) (Tenant, error) {
	t.State, t.CreatedAt = TenantSuspended, d.now()
	t.SuspendedAt, t.SuspendReason = t.CreatedAt, importedReason
	if err := importTenant(ctx, tx, t); err != nil {
		return Tenant{}, fmt.Errorf("import tenant %q: %w", t.Slug, err)
	}
	return t, nil
}

func importTenant(ctx context.Context, tx *sqldb.Tx, t Tenant) error {
	if !strings.HasPrefix(t.ID, id.Tenant+"_") || t.ID == SystemTenant {
		return fmt.Errorf("%q is not the id of a tenant", t.ID)
	}
	host, err := t.validate()
	if err != nil {
		return err
	}
	_, err = selectTenantByID(ctx, tx, t.ID)
	if err == nil {
		return ErrTenantExists
	}
	if !errors.Is(err, ErrTenantNotFound) {
		return err
	}
	if err := insertTenant(ctx, tx, t, host); err != nil {
		return err
	}
	var b sqldb.Batch
	updateState(&b, t)
	if len(t.RateLimits) > 0 {
		text, err := json.Marshal(t.RateLimits.Text())
		if err != nil {
			return err
		}
		b.Queue(updateRateLimits, []any{t.ID, string(text)}, nil)
	}
	return tx.Send(ctx, &b)
}

// Imported completes the import of a tenant, with its event in the log of the organisation. It
// locks a row that every change of a tenant locks.
func (d *Directory) Imported(ctx context.Context, tx *sqldb.Tx, t Tenant) error {
	if err := advance(ctx, tx); err != nil {
		return fmt.Errorf("import tenant %q: %w", t.Slug, err)
	}
	var b sqldb.Batch
	eventlog.Append(&b, t.OrgID, eventlog.New(TenantImportedEvent, eventlog.Origin{}, t.document()))
	if err := tx.Send(ctx, &b); err != nil {
		return fmt.Errorf("import tenant %q: %w", t.Slug, err)
	}
	d.lease.End()
	return nil
}

// TenantIn returns a tenant in any state, as of a transaction. It fails with [ErrTenantNotFound].
func TenantIn(ctx context.Context, tx *sqldb.Tx, tenantID string) (Tenant, error) {
	return selectTenantByID(ctx, tx, tenantID)
}
