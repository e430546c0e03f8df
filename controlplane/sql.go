package controlplane

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

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
		INSERT INTO organizations (id, slug, name, created_at) VALUES ($1, $2, $3, $4)`,
		o.ID, o.Slug, o.Name, o.CreatedAt.UnixMicro())
	return taken(err)
}

func insertTenant(ctx context.Context, tx *sqldb.Tx, t Tenant, host string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO tenants (id, org_id, slug, name, base_url, host, state, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		t.ID, t.OrgID, t.Slug, t.Name, t.BaseURL, host, string(t.State), t.CreatedAt.UnixMicro())
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

func taken(err error) error {
	if sqldb.IsUniqueViolation(err) {
		return ErrSlugTaken
	}
	return err
}

const selectTenant = `SELECT id, org_id, slug, name, base_url, state, created_at, rate_limits FROM tenants `

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
	return scanTenant(q.QueryRow(ctx, selectTenant+`ORDER BY created_at, id LIMIT 1`))
}

func scanTenant(row *sqldb.Row) (Tenant, error) {
	var (
		t       Tenant
		created int64
		limits  string
	)
	err := row.Scan(&t.ID, &t.OrgID, &t.Slug, &t.Name, &t.BaseURL, (*string)(&t.State), &created, &limits)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Tenant{}, ErrTenantNotFound
	}
	if err != nil {
		return Tenant{}, fmt.Errorf("read tenant: %w", err)
	}
	t.CreatedAt = time.UnixMicro(created).UTC()
	if t.RateLimits, err = loadRateLimits(limits); err != nil {
		return Tenant{}, fmt.Errorf("read tenant: %w", err)
	}
	return t, nil
}

// The condition is that of the index tenants_inactive.
const selectInactive = `SELECT id FROM tenants WHERE state <> 'active'`
