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

// ImportTenant adds a tenant of another deployment with its id, its slug, its name, its base URL,
// its environment, its region, its rate limits and the mark of its branding, in the state suspended. write writes the rows
// of the tenant in the same transaction. The tenant is added after them, because that locks rows
// which changes of other tenants wait for; whether its names are free is checked before, too.
// ImportTenant fails as [Directory.CreateTenant] and write do, or with [ErrTenantExists].
func (d *Directory) ImportTenant(ctx context.Context, tx *sqldb.Tx, t Tenant, write func() error) (Tenant, error) {
	now := d.now()
	t.State, t.CreatedAt, t.UpdatedAt = TenantSuspended, now, now
	t.SuspendedAt, t.SuspendReason = now, "imported"
	if err := d.importTenant(ctx, tx, t, write); err != nil {
		return Tenant{}, fmt.Errorf("import tenant %q: %w", t.Slug, err)
	}
	d.lease.End()
	return t, nil
}

func (d *Directory) importTenant(ctx context.Context, tx *sqldb.Tx, t Tenant, write func() error) error {
	if !strings.HasPrefix(t.ID, id.Tenant+"_") || t.ID == SystemTenant {
		return fmt.Errorf("%q is not the id of a tenant", t.ID)
	}
	host, err := d.validate(t)
	if err != nil {
		return err
	}
	limits, err := json.Marshal(t.RateLimits.Text())
	if err != nil {
		return err
	}
	if err := checkFree(ctx, tx, t, host); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	if err := advance(ctx, tx); err != nil {
		return err
	}
	if err := insertTenant(ctx, tx, t, host); err != nil {
		return err
	}
	var b sqldb.Batch
	updateTenant(&b, t)
	b.Queue(updateRateLimits, []any{t.ID, string(limits)}, nil)
	b.Queue(updateBranding, []any{t.ID, t.Branding}, nil)
	eventlog.Append(&b, t.OrgID, eventlog.Of(ctx, TenantImportedEvent, t.Document()))
	return tx.Send(ctx, &b)
}

// checkFree fails if the id, the slug or the host of a tenant is in use.
func checkFree(ctx context.Context, tx *sqldb.Tx, t Tenant, host string) error {
	for _, name := range []struct {
		find  func(context.Context, querier, string) (Tenant, error)
		value string
		used  error
	}{{selectTenantByID, t.ID, ErrTenantExists}, {selectTenantBySlug, t.Slug, ErrSlugTaken}, {selectTenantByHost, host, ErrSlugTaken}} {
		_, err := name.find(ctx, tx, name.value)
		if err == nil {
			return name.used
		}
		if !errors.Is(err, ErrTenantNotFound) {
			return err
		}
	}
	return nil
}

// TenantIn returns a tenant in any state, as of a transaction. It fails with [ErrTenantNotFound].
func TenantIn(ctx context.Context, tx *sqldb.Tx, tenantID string) (Tenant, error) {
	return selectTenantByID(ctx, tx, tenantID)
}
