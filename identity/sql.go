package identity

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
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("identity", migrations) }

func insertUser(ctx context.Context, tx *sqldb.Tx, u User, emailNorm string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO users (tenant_id, id, email, email_norm, email_verified, name, password_hash, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		u.TenantID, u.ID, u.Email, emailNorm, u.EmailVerified, u.Name, string(u.PasswordHash), u.CreatedAt.UnixMicro())
	if sqldb.IsUniqueViolation(err) {
		return ErrUserExists
	}
	return err
}

func selectUserByEmail(ctx context.Context, db *sqldb.DB, tenantID, emailNorm string) (User, error) {
	u := User{TenantID: tenantID}
	var created int64
	err := db.QueryRow(ctx, `
		SELECT id, email, email_verified, name, password_hash, created_at
		FROM users WHERE tenant_id = $1 AND email_norm = $2`, tenantID, emailNorm).
		Scan(&u.ID, &u.Email, &u.EmailVerified, &u.Name, (*string)(&u.PasswordHash), &created)
	if errors.Is(err, sqldb.ErrNoRows) {
		return User{}, ErrUserNotFound
	}
	if err != nil {
		return User{}, fmt.Errorf("read user: %w", err)
	}
	u.CreatedAt = time.UnixMicro(created).UTC()
	return u, nil
}
