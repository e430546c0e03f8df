package workload

import (
	"context"
	"errors"
	"fmt"

	"stonetown/internal/sqldb"
	"stonetown/oauth/internal/storage"
)

const columns = `id, issuer, enabled, settings, created_at, updated_at, changed_by`

func insertIssuer(b *sqldb.Batch, i Issuer) {
	b.Queue(`INSERT INTO trusted_issuers (tenant_id, `+columns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		[]any{i.TenantID, i.ID, i.Issuer, i.Enabled, storage.JSON(i.Settings), i.CreatedAt.UnixMicro(), i.UpdatedAt.UnixMicro(), i.ChangedBy}, nil)
}

func updateIssuer(b *sqldb.Batch, i Issuer) {
	b.Queue(`UPDATE trusted_issuers SET enabled = $3, settings = $4, updated_at = $5, changed_by = $6 WHERE tenant_id = $1 AND id = $2`,
		[]any{i.TenantID, i.ID, i.Enabled, storage.JSON(i.Settings), i.UpdatedAt.UnixMicro(), i.ChangedBy}, nil)
}

// selectIssuer finds an issuer by one of its unique columns. It fails with [ErrNotFound].
func selectIssuer(ctx context.Context, q storage.Querier, tenantID, by, value string) (Issuer, error) {
	if !sqldb.IsText(value) {
		return Issuer{}, ErrNotFound
	}
	i, err := scanIssuer(q.QueryRow(ctx, `SELECT `+columns+` FROM trusted_issuers WHERE tenant_id = $1 AND `+by+` = $2`, tenantID, value), tenantID)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Issuer{}, ErrNotFound
	}
	return i, err
}

func scanIssuer(row interface{ Scan(...any) error }, tenantID string) (Issuer, error) {
	i := Issuer{TenantID: tenantID}
	var settings string
	var created, updated int64
	err := row.Scan(&i.ID, &i.Issuer, &i.Enabled, &settings, &created, &updated, &i.ChangedBy)
	if err == nil {
		err = storage.ReadJSON(settings, &i.Settings)
	}
	if err != nil {
		return Issuer{}, fmt.Errorf("read trusted issuer: %w", err)
	}
	i.CreatedAt, i.UpdatedAt = sqldb.Instant(created), sqldb.Instant(updated)
	return i, nil
}

// selectIssuers reads the issuers of a tenant, by their iss.
func selectIssuers(ctx context.Context, db *sqldb.DB, tenantID string) (all []Issuer, err error) {
	rows, err := db.Query(ctx, `SELECT `+columns+` FROM trusted_issuers WHERE tenant_id = $1 ORDER BY issuer`, tenantID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		i, err := scanIssuer(rows, tenantID)
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, rows.Err()
}
