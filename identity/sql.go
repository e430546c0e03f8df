package identity

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/onetime"
	"stonetown/identity/session"
	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("identity", migrations) }

// queueUser queues the insertion of an account and its search text.
func queueUser(b *sqldb.Batch, u User) {
	b.Queue(`
		INSERT INTO users (tenant_id, id, email, email_norm, email_verified, state, name, given_name, family_name, picture, locale,
			attributes, password_hash, password_must_be_reset, password_check_at, must_enrol, created_at, updated_at, last_signed_in_at, managed_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`,
		[]any{
			u.TenantID, u.ID, u.Email, u.emailNorm(), u.EmailVerified, string(u.State), u.Name, u.GivenName, u.FamilyName, u.Picture, u.Locale,
			string(u.Attributes), string(u.PasswordHash), u.PasswordMustBeReset, sqldb.Micros(u.PasswordCheckAt), u.MustEnrol, u.CreatedAt.UnixMicro(), u.UpdatedAt.UnixMicro(), sqldb.Micros(u.LastSignedInAt), u.ManagedBy,
		}, nil)
	b.Queue(`INSERT INTO user_search (tenant_id, created_at, user_id, text) VALUES ($1, $2, $3, $4)`,
		[]any{u.TenantID, u.CreatedAt.UnixMicro(), u.ID, u.searchText()}, nil)
}

// updateUser queues an update of an account and its search text.
func updateUser(b *sqldb.Batch, u User) {
	b.Queue(`
		UPDATE users SET email = $3, email_norm = $4, email_verified = $5, state = $6, name = $7, given_name = $8, family_name = $9,
			picture = $10, locale = $11, attributes = $12, password_hash = $13, password_must_be_reset = $14, must_enrol = $15, updated_at = $16, password_check_at = $17
		WHERE tenant_id = $1 AND id = $2`,
		[]any{
			u.TenantID, u.ID, u.Email, u.emailNorm(), u.EmailVerified, string(u.State), u.Name, u.GivenName, u.FamilyName,
			u.Picture, u.Locale, string(u.Attributes), string(u.PasswordHash), u.PasswordMustBeReset, u.MustEnrol, u.UpdatedAt.UnixMicro(), sqldb.Micros(u.PasswordCheckAt),
		}, nil)
	b.Queue(`UPDATE user_search SET text = $4 WHERE tenant_id = $1 AND created_at = $2 AND user_id = $3`,
		[]any{u.TenantID, u.CreatedAt.UnixMicro(), u.ID, u.searchText()}, nil)
}

// userColumns are the columns that scanUser reads.
const userColumns = `u.id, u.email, u.email_verified, u.state, u.name, u.given_name, u.family_name, u.picture, u.locale,
	u.attributes, u.password_hash, u.password_must_be_reset, u.password_check_at, u.must_enrol, u.created_at, u.updated_at, u.last_signed_in_at, u.signed_out_at, u.managed_by`

func scanUser(row interface{ Scan(...any) error }, tenantID string) (User, error) {
	u := User{TenantID: tenantID}
	var attributes string
	var check, created, updated, signedIn, signedOut int64
	err := row.Scan(&u.ID, &u.Email, &u.EmailVerified, (*string)(&u.State), &u.Name, &u.GivenName, &u.FamilyName, &u.Picture, &u.Locale,
		&attributes, (*string)(&u.PasswordHash), &u.PasswordMustBeReset, &check, &u.MustEnrol, &created, &updated, &signedIn, &signedOut, &u.ManagedBy)
	if errors.Is(err, sqldb.ErrNoRows) {
		return User{}, ErrUserNotFound
	}
	if err != nil {
		return User{}, fmt.Errorf("read user: %w", err)
	}
	if attributes != "" {
		u.Attributes = []byte(attributes)
	}
	u.PasswordCheckAt = sqldb.Instant(check)
	u.CreatedAt, u.UpdatedAt, u.LastSignedInAt, u.SignedOutAt = sqldb.Instant(created), sqldb.Instant(updated), sqldb.Instant(signedIn), sqldb.Instant(signedOut)
	return u, nil
}

// lister is a database or a transaction.
type lister interface {
	Query(ctx context.Context, sql string, args ...any) (*sqldb.Rows, error)
}

// reader is a database or a transaction.
type reader interface {
	QueryRow(ctx context.Context, sql string, args ...any) *sqldb.Row
}

const selectUserByID = `SELECT ` + userColumns + ` FROM users u WHERE u.tenant_id = $1 AND u.id = $2`

func selectUser(ctx context.Context, from reader, tenantID, userID string) (User, error) {
	if !sqldb.IsText(userID) {
		return User{}, ErrUserNotFound
	}
	return scanUser(from.QueryRow(ctx, selectUserByID, tenantID, userID), tenantID)
}

func selectUserByEmail(ctx context.Context, from reader, tenantID, emailNorm string) (User, error) {
	return scanUser(from.QueryRow(ctx, `SELECT `+userColumns+` FROM users u WHERE u.tenant_id = $1 AND u.email_norm = $2 AND u.email_norm <> ''`, tenantID, emailNorm), tenantID)
}

func selectFirstUser(ctx context.Context, from reader, tenantID string) (User, error) {
	return scanUser(from.QueryRow(ctx, `SELECT `+userColumns+` FROM users u WHERE u.tenant_id = $1 AND u.created_at > 0 AND u.managed_by = '' ORDER BY u.created_at, u.id LIMIT 1`, tenantID), tenantID)
}

// deleteUser deletes an account with all data of this package and the packages below.
func deleteUser(ctx context.Context, tx *sqldb.Tx, u User) error {
	n, err := tx.Exec(ctx, `DELETE FROM users WHERE tenant_id = $1 AND id = $2`, u.TenantID, u.ID)
	if err == nil && n == 0 {
		return ErrUserNotFound
	}
	if err != nil {
		return err
	}
	var b sqldb.Batch
	b.Queue(`DELETE FROM user_search WHERE tenant_id = $1 AND created_at = $2 AND user_id = $3`, []any{u.TenantID, u.CreatedAt.UnixMicro(), u.ID}, nil)
	session.EndAll(&b, u.TenantID, u.ID, "")
	session.ForgetDevices(&b, u.TenantID, u.ID)
	onetime.Discard(&b, u.TenantID, u.ID)
	external.RemoveAll(&b, u.TenantID, u.ID)
	forgetExternalIDs(&b, u.TenantID, u.ID)
	if err := tx.Send(ctx, &b); err != nil {
		return err
	}
	return factor.RemoveAll(ctx, tx, u.TenantID, u.ID)
}
