package controlplane

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"stonetown/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("controlplane", migrations) }

// querier is the database or a transaction on it.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) *sqldb.Row
}

func insertOrganization(ctx context.Context, tx *sqldb.Tx, o Organization) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO organizations (id, slug, name, created_at, updated_at) VALUES ($1, $2, $3, $4, $5)`,
		o.ID, o.Slug, o.Name, o.CreatedAt.UnixMicro(), o.UpdatedAt.UnixMicro())
	return taken(err)
}

func insertTenant(ctx context.Context, tx *sqldb.Tx, t Tenant, host string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO tenants (id, org_id, slug, name, base_url, host, state, environment, region, created_by, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		t.ID, t.OrgID, t.Slug, t.Name, t.BaseURL, host, string(t.State), string(t.Environment), t.Region, t.CreatedBy, t.CreatedAt.UnixMicro(), t.UpdatedAt.UnixMicro())
	return taken(err)
}

func updateBaseURL(ctx context.Context, tx *sqldb.Tx, tenantID, baseURL, host string) error {
	n, err := tx.Exec(ctx, `UPDATE tenants SET base_url = $2, host = $3 WHERE id = $1`, tenantID, baseURL, host)
	if err == nil && n == 0 {
		return ErrTenantNotFound
	}
	return taken(err)
}

const updateRateLimits = `UPDATE tenants SET rate_limits = $2 WHERE id = $1`

// lockTenant locks the row of a tenant until the transaction ends.
const lockTenant = `UPDATE tenants SET branding = branding WHERE id = $1`

const updateBranding = `UPDATE tenants SET branding = $2 WHERE id = $1`

func taken(err error) error {
	if sqldb.IsUniqueViolation(err) {
		return ErrSlugTaken
	}
	return err
}

// advance increments the version of the tenants. It locks its row until the transaction ends, so
// that changes of tenants have an order.
func advance(ctx context.Context, tx *sqldb.Tx) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO directory_versions (name, version) VALUES ('tenants', 1)
		ON CONFLICT (name) DO UPDATE SET version = directory_versions.version + 1`)
	return err
}

// selectVersion reads the version of the tenants; 0 before the first one.
func selectVersion(ctx context.Context, q querier) (version int64, err error) {
	err = q.QueryRow(ctx, `SELECT version FROM directory_versions WHERE name = 'tenants'`).Scan(&version)
	if errors.Is(err, sqldb.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read version of tenants: %w", err)
	}
	return version, nil
}

// updateTenant queues an update of what can change of a tenant, apart from its address and limits.
func updateTenant(b *sqldb.Batch, t Tenant) {
	b.Queue(`
		UPDATE tenants SET name = $2, state = $3, suspended_at = $4, suspend_reason = $5, decommissioned_at = $6, purge_at = $7, updated_at = $8 WHERE id = $1`,
		[]any{t.ID, t.Name, string(t.State), sqldb.Micros(t.SuspendedAt), t.SuspendReason, sqldb.Micros(t.DecommissionedAt), sqldb.Micros(t.PurgeAt), t.UpdatedAt.UnixMicro()}, nil)
}

const selectTenant = `
	SELECT id, org_id, slug, name, base_url, state, environment, region, created_by, created_at, updated_at, suspended_at, suspend_reason, decommissioned_at, purge_at, rate_limits, branding FROM tenants `

func selectTenantByHost(ctx context.Context, q querier, host string) (Tenant, error) {
	return scanTenant(q.QueryRow(ctx, selectTenant+`WHERE host = $1`, host))
}

func selectTenantByID(ctx context.Context, q querier, tenantID string) (Tenant, error) {
	return scanTenant(q.QueryRow(ctx, selectTenant+`WHERE id = $1`, tenantID))
}

func selectTenantBySlug(ctx context.Context, q querier, slug string) (Tenant, error) {
	return scanTenant(q.QueryRow(ctx, selectTenant+`WHERE slug = $1`, slug))
}

func selectFirstTenant(ctx context.Context, q querier) (Tenant, error) {
	return scanTenant(q.QueryRow(ctx, selectTenant+`WHERE state <> 'decommissioned' ORDER BY created_at, id LIMIT 1`))
}

// scanTenant reads the columns of selectTenant.
func scanTenant(row interface{ Scan(dest ...any) error }) (Tenant, error) {
	var (
		t                                                      Tenant
		created, updated, suspended, decommissioned, purgeable int64
		limits                                                 string
	)
	err := row.Scan(&t.ID, &t.OrgID, &t.Slug, &t.Name, &t.BaseURL, (*string)(&t.State), (*string)(&t.Environment), &t.Region, &t.CreatedBy,
		&created, &updated, &suspended, &t.SuspendReason, &decommissioned, &purgeable, &limits, &t.Branding)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Tenant{}, ErrTenantNotFound
	}
	if err != nil {
		return Tenant{}, fmt.Errorf("read tenant: %w", err)
	}
	t.CreatedAt, t.UpdatedAt, t.SuspendedAt = sqldb.Instant(created), sqldb.Instant(updated), sqldb.Instant(suspended)
	t.DecommissionedAt, t.PurgeAt = sqldb.Instant(decommissioned), sqldb.Instant(purgeable)
	if t.RateLimits, err = loadRateLimits(limits); err != nil {
		return Tenant{}, fmt.Errorf("read tenant: %w", err)
	}
	return t, nil
}

func scanTenants(rows *sqldb.Rows, err error) (list []Tenant, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		t, err := scanTenant(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, rows.Err()
}

// selectTenantsOf lists the tenants of an organisation in the order of the index
// tenants_by_organization.
const selectTenantsOf = selectTenant + `
	WHERE org_id = $1 AND ($2 = '' OR state = $2) AND (created_at, id) < ($3, $4) ORDER BY created_at DESC, id DESC LIMIT $5`

const countTenants = `SELECT COUNT(*) FROM tenants WHERE org_id = $1 AND state <> 'decommissioned'`

// selectProvisioning lists tenants by the index tenants_inactive.
const selectProvisioning = selectTenant + `WHERE state <> 'active' AND state = 'provisioning' AND created_at <= $1 ORDER BY id LIMIT $2`

// The condition is that of the index tenants_inactive.
const selectInactive = `SELECT id FROM tenants WHERE state <> 'active'`

// selectTenants lists the tenants after a slug.
const selectTenants = selectTenant + `WHERE slug > $1 ORDER BY slug LIMIT $2`

// selectPurgeable lists decommissioned tenants with data whose time has come. The condition is that
// of the index tenants_by_purge.
const selectPurgeable = `SELECT id FROM tenants WHERE purge_at > 0 AND purge_at <= $1 ORDER BY purge_at, id LIMIT $2`

// updatePurged forgets all of a tenant but its names, which are never used again.
const updatePurged = `UPDATE tenants SET purge_at = 0, name = '', rate_limits = '', branding = '' WHERE id = $1 AND purge_at > 0`

// selectAny counts up to one tenant.
const selectAny = `SELECT COUNT(*) FROM (SELECT id FROM tenants LIMIT 1) AS any_tenant`

const selectOrganization = `SELECT id, slug, name, created_at, updated_at FROM organizations `

// scanOrganization reads the columns of selectOrganization.
func scanOrganization(row interface{ Scan(dest ...any) error }) (o Organization, err error) {
	var created, updated int64
	err = row.Scan(&o.ID, &o.Slug, &o.Name, &created, &updated)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Organization{}, ErrOrganizationNotFound
	}
	if err != nil {
		return Organization{}, fmt.Errorf("read organisation: %w", err)
	}
	o.CreatedAt, o.UpdatedAt = sqldb.Instant(created), sqldb.Instant(updated)
	return o, nil
}
