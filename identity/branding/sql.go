package branding

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("branding", migrations) }

// querier is a [*sqldb.DB] or a [*sqldb.Tx].
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) *sqldb.Row
}

// selectBranding reads the branding of a tenant; the zero value if there is none.
func selectBranding(ctx context.Context, q querier, tenantID string) (b Branding, mark string, err error) {
	var text string
	err = q.QueryRow(ctx, `SELECT branding, mark FROM brandings WHERE tenant_id = $1`, tenantID).Scan(&text, &mark)
	if errors.Is(err, sqldb.ErrNoRows) {
		return b, "", nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &b)
	}
	if err != nil {
		return b, "", fmt.Errorf("read branding: %w", err)
	}
	return b, mark, nil
}

func upsertBranding(ctx context.Context, tx *sqldb.Tx, tenantID, mark, text string, now time.Time) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO brandings (tenant_id, mark, branding, updated_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant_id) DO UPDATE SET mark = excluded.mark, branding = excluded.branding, updated_at = excluded.updated_at`, tenantID, mark, text, now.UnixMicro())
	return err
}

func upsertPicture(ctx context.Context, tx *sqldb.Tx, tenantID string, v Variant, p Picture) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO branding_pictures (tenant_id, variant, hash, data) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant_id, variant) DO UPDATE SET hash = excluded.hash, data = excluded.data`, tenantID, string(v), p.Hash, p.Data)
	return err
}

func deletePicture(ctx context.Context, tx *sqldb.Tx, tenantID string, v Variant) error {
	_, err := tx.Exec(ctx, `DELETE FROM branding_pictures WHERE tenant_id = $1 AND variant = $2`, tenantID, string(v))
	return err
}

func selectPicture(ctx context.Context, q querier, tenantID string, v Variant) (p Picture, err error) {
	err = q.QueryRow(ctx, `SELECT hash, data FROM branding_pictures WHERE tenant_id = $1 AND variant = $2`, tenantID, string(v)).Scan(&p.Hash, &p.Data)
	if errors.Is(err, sqldb.ErrNoRows) {
		return p, ErrNoLogo
	}
	if err != nil {
		return p, fmt.Errorf("read picture: %w", err)
	}
	return p, nil
}
