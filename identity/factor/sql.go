package factor

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("factor", migrations) }

func insertFactor(ctx context.Context, tx *sqldb.Tx, f Factor) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO factors (tenant_id, user_id, id, kind, label, secret, last_step, created_at, last_used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)`,
		f.TenantID, f.UserID, f.ID, string(f.Kind), f.Label, f.secret, f.lastStep, f.CreatedAt.UnixMicro())
	return err
}

// reader is a database or a transaction.
type reader interface {
	Query(ctx context.Context, sql string, args ...any) (*sqldb.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) *sqldb.Row
}

const columns = `id, kind, label, secret, last_step, created_at, last_used_at`

func scan(row interface{ Scan(...any) error }, tenantID, userID string) (Factor, error) {
	f := Factor{TenantID: tenantID, UserID: userID}
	var created, used int64
	err := row.Scan(&f.ID, (*string)(&f.Kind), &f.Label, &f.secret, &f.lastStep, &created, &used)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Factor{}, ErrNotFound
	}
	if err != nil {
		return Factor{}, fmt.Errorf("read factor: %w", err)
	}
	f.CreatedAt = sqldb.Instant(created)
	f.LastUsedAt = sqldb.Instant(used)
	return f, nil
}

func selectFactor(ctx context.Context, from reader, tenantID, userID, factorID string) (Factor, error) {
	if !sqldb.IsText(factorID) {
		return Factor{}, ErrNotFound
	}
	return scan(from.QueryRow(ctx, `SELECT `+columns+` FROM factors WHERE tenant_id = $1 AND user_id = $2 AND id = $3`,
		tenantID, userID, factorID), tenantID, userID)
}

func selectFactors(ctx context.Context, from reader, tenantID, userID string) (found []Factor, err error) {
	rows, err := from.Query(ctx, `SELECT `+columns+` FROM factors WHERE tenant_id = $1 AND user_id = $2 ORDER BY created_at, id`, tenantID, userID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		f, err := scan(rows, tenantID, userID)
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	return found, rows.Err()
}
