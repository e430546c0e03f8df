package external

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
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("external", migrations) }

// insert may fail with [ErrTaken].
func insert(ctx context.Context, tx *sqldb.Tx, i Identity) error {
	n, err := tx.Exec(ctx, `
		INSERT INTO external_identities (tenant_id, `+columns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)
		ON CONFLICT (tenant_id, connection_id, subject) DO NOTHING`,
		i.TenantID, i.UserID, i.ConnectionID, i.Slug, i.Kind, i.Subject, i.Email, i.LinkedAt.UnixMicro())
	if err == nil && n == 0 {
		err = ErrTaken
	}
	return err
}

// update queues an update of the last use and the address of an identity.
func update(b *sqldb.Batch, i Identity) {
	b.Queue(updateOne, []any{i.TenantID, i.ConnectionID, i.Subject, i.LastUsedAt.UnixMicro(), i.Email}, nil)
}

// Unlink removes the identity of a user at a connection. It fails with [ErrNotFound].
func Unlink(ctx context.Context, tx *sqldb.Tx, tenantID, userID, connectionID string) error {
	if !sqldb.IsText(connectionID) {
		return ErrNotFound
	}
	n, err := tx.Exec(ctx, deleteOne, tenantID, userID, connectionID)
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	return err
}

// RemoveAll queues the deletion of all identities of a user.
func RemoveAll(b *sqldb.Batch, tenantID, userID string) {
	b.Queue(deleteOfUser, []any{tenantID, userID}, nil)
}

// RemoveConnection queues the deletion of the identities of all users at a connection.
func RemoveConnection(b *sqldb.Batch, tenantID, connectionID string) {
	b.Queue(deleteOfConnection, []any{tenantID, connectionID}, nil)
}

// AnyAt reports whether any user has an identity at a connection.
func AnyAt(ctx context.Context, db *sqldb.DB, tenantID, connectionID string) (bool, error) {
	var one int64
	err := db.QueryRow(ctx, selectAny, tenantID, connectionID).Scan(&one)
	if errors.Is(err, sqldb.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// The statements whose plans are tested.
const (
	updateOne = `UPDATE external_identities SET last_used_at = $4, email = $5 WHERE tenant_id = $1 AND connection_id = $2 AND subject = $3`

	deleteOne          = `DELETE FROM external_identities WHERE tenant_id = $1 AND user_id = $2 AND connection_id = $3`
	deleteOfUser       = `DELETE FROM external_identities WHERE tenant_id = $1 AND user_id = $2`
	deleteOfConnection = `DELETE FROM external_identities WHERE tenant_id = $1 AND connection_id = $2`

	selectAny = `SELECT 1 FROM external_identities WHERE tenant_id = $1 AND connection_id = $2 LIMIT 1`
	selectOne = `SELECT ` + columns + ` FROM external_identities WHERE tenant_id = $1 AND connection_id = $2 AND subject = $3`
	selectAll = `SELECT ` + columns + ` FROM external_identities WHERE tenant_id = $1 AND user_id = $2 ORDER BY linked_at, connection_id`
)

// reader is a database or a transaction.
type reader interface {
	Query(ctx context.Context, sql string, args ...any) (*sqldb.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) *sqldb.Row
}

// columns is what scan reads.
const columns = `user_id, connection_id, slug, kind, subject, email, linked_at, last_used_at`

func scan(row interface{ Scan(...any) error }, tenantID string) (Identity, error) {
	i := Identity{TenantID: tenantID}
	var linked, used int64
	err := row.Scan(&i.UserID, &i.ConnectionID, &i.Slug, &i.Kind, &i.Subject, &i.Email, &linked, &used)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Identity{}, ErrNotFound
	}
	if err != nil {
		return Identity{}, fmt.Errorf("read external identity: %w", err)
	}
	i.LinkedAt = sqldb.Instant(linked)
	i.LastUsedAt = sqldb.Instant(used)
	return i, nil
}

func selectIdentity(ctx context.Context, from reader, tenantID, connectionID, subject string) (Identity, error) {
	if !sqldb.IsText(connectionID) || !sqldb.IsText(subject) {
		return Identity{}, ErrNotFound
	}
	return scan(from.QueryRow(ctx, selectOne, tenantID, connectionID, subject), tenantID)
}

func selectOfUser(ctx context.Context, from reader, tenantID, userID string) (found []Identity, err error) {
	rows, err := from.Query(ctx, selectAll, tenantID, userID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		i, err := scan(rows, tenantID)
		if err != nil {
			return nil, err
		}
		found = append(found, i)
	}
	return found, rows.Err()
}
