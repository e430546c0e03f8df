// Package factor stores the second factors of users: authenticator apps (TOTP, RFC 6238),
// phones that receive codes, WebAuthn credentials, and backup codes.
//
// The secrets that verify a factor are encrypted under the deployment's master key, so
// that a copy of the database is not a second factor. A code is valid once: of a TOTP key
// the newest accepted time step is stored, and a backup code is a row that its use
// deletes. The database decides both, so that of two concurrent requests with one code
// one is refused.
package factor

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/id"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

var (
	// ErrNotFound is returned for a factor that the user does not have.
	ErrNotFound = errors.New("factor not found")
	// ErrLimit is returned for a factor beyond [MostPerUser].
	ErrLimit = errors.New("a user can have at most 20 second factors")
	// ErrWrong is returned for a wrong code or credential.
	ErrWrong = errors.New("wrong code or credential")
)

// MostPerUser is the maximum number of factors of a user.
const MostPerUser = 20

// Kind is a kind of factor.
type Kind string

// The kinds of factors. A backup code is not a factor of its own but replaces one.
const (
	TOTP     Kind = "totp"
	SMS      Kind = "sms"
	WebAuthn Kind = "webauthn"

	BackupCode Kind = "backup_code"
)

// Kinds are the kinds that users can add, strongest first.
var Kinds = []Kind{WebAuthn, TOTP, SMS}

// Method returns the authentication method of a kind (RFC 8176).
func (k Kind) Method() string {
	switch k {
	case SMS:
		return "sms"
	case WebAuthn:
		return "hwk"
	}
	return "otp"
}

// Factor is a second factor of a user.
type Factor struct {
	ID         string
	TenantID   string
	UserID     string
	Kind       Kind
	Label      string
	CreatedAt  time.Time // UTC
	LastUsedAt time.Time // UTC; zero: never

	secret   []byte // sealed
	lastStep int64  // of TOTP: the latest accepted time step
}

// Store stores factors. It is safe for concurrent use.
type Store struct {
	db    *sqldb.DB
	seal  *seal.Key
	clock func() time.Time
}

// NewStore returns a store in db. Its tables are [Migrations].
func NewStore(db *sqldb.DB, key *seal.Key, clock func() time.Time) *Store {
	return &Store{db, key, clock}
}

func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// List returns the factors of a user, oldest first.
func (s *Store) List(ctx context.Context, tenantID, userID string) ([]Factor, error) {
	found, err := selectFactors(ctx, s.db, tenantID, userID)
	if err != nil {
		return nil, fmt.Errorf("list factors: %w", err)
	}
	return found, nil
}

// Holders returns those of some users that have a factor.
func (s *Store) Holders(ctx context.Context, tenantID string, userIDs []string) (map[string]bool, error) {
	found := map[string]bool{}
	var b sqldb.Batch
	for _, userID := range userIDs {
		b.Queue(`SELECT COUNT(*) FROM factors WHERE tenant_id = $1 AND user_id = $2`, []any{tenantID, userID}, func(rows *sqldb.Rows) error {
			for rows.Next() {
				var n int
				if err := rows.Scan(&n); err != nil {
					return err
				}
				if n > 0 {
					found[userID] = true
				}
			}
			return nil
		})
	}
	if b.Len() == 0 {
		return found, nil
	}
	if err := s.db.Send(ctx, &b); err != nil {
		return nil, fmt.Errorf("read factors: %w", err)
	}
	return found, nil
}

// Kinds returns the kinds of the factors of the users whose ids are after one and up to another, by
// the id of the user, sorted.
func (s *Store) Kinds(ctx context.Context, tenantID, after, last string) (map[string][]string, error) {
	rows, err := s.db.Query(ctx, `SELECT DISTINCT user_id, kind FROM factors WHERE tenant_id = $1 AND user_id > $2 AND user_id <= $3 ORDER BY user_id, kind`, tenantID, after, last)
	if err != nil {
		return nil, fmt.Errorf("read factors: %w", err)
	}
	defer rows.Close()
	found := make(map[string][]string)
	for rows.Next() {
		var userID, kind string
		if err := rows.Scan(&userID, &kind); err != nil {
			return nil, fmt.Errorf("read factors: %w", err)
		}
		found[userID] = append(found[userID], kind)
	}
	return found, rows.Err()
}

// Find returns a factor of a user. It fails with [ErrNotFound].
func (s *Store) Find(ctx context.Context, tenantID, userID, factorID string) (Factor, error) {
	return selectFactor(ctx, s.db, tenantID, userID, factorID)
}

// add stores a factor with its secret. It fails with [ErrLimit].
func (s *Store) add(ctx context.Context, tx *sqldb.Tx, f Factor, secret []byte) (Factor, error) {
	have, err := selectFactors(ctx, tx, f.TenantID, f.UserID)
	if err != nil {
		return Factor{}, err
	}
	if len(have) >= MostPerUser {
		return Factor{}, ErrLimit
	}
	f.ID, f.CreatedAt = id.New(id.Factor), s.now()
	f.secret = s.seal.Seal(f.TenantID, f.ID, secret)
	return f, insertFactor(ctx, tx, f)
}

// open decrypts the secret of a factor.
func (s *Store) open(f Factor) ([]byte, error) {
	secret, err := s.seal.Open(f.TenantID, f.ID, f.secret)
	if err != nil {
		return nil, fmt.Errorf("factor %s: %w", f.ID, err)
	}
	return secret, nil
}

// Rename changes the label of a factor. It fails with [ErrNotFound].
func Rename(ctx context.Context, tx *sqldb.Tx, f Factor) error {
	n, err := tx.Exec(ctx, `UPDATE factors SET label = $4 WHERE tenant_id = $1 AND user_id = $2 AND id = $3`, f.TenantID, f.UserID, f.ID, f.Label)
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	return err
}

// Remove removes a factor, and the backup codes with the last one. It fails with [ErrNotFound].
func Remove(ctx context.Context, tx *sqldb.Tx, f Factor) error {
	n, err := tx.Exec(ctx, `DELETE FROM factors WHERE tenant_id = $1 AND user_id = $2 AND id = $3`, f.TenantID, f.UserID, f.ID)
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return err
	}
	left, err := selectFactors(ctx, tx, f.TenantID, f.UserID)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		return RemoveAll(ctx, tx, f.TenantID, f.UserID)
	}
	_, err = tx.Exec(ctx, `DELETE FROM credentials WHERE tenant_id = $1 AND factor_id = $2 AND user_id = $3`, f.TenantID, f.ID, f.UserID)
	return err
}

// RemoveSince removes the factors of a user that were added at or after an instant, and returns
// them. It also removes all backup codes, because their age is unknown.
func RemoveSince(ctx context.Context, tx *sqldb.Tx, tenantID, userID string, since time.Time) (removed []Factor, err error) {
	all, err := selectFactors(ctx, tx, tenantID, userID)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		if f.CreatedAt.Before(since) {
			continue
		}
		if err := Remove(ctx, tx, f); err != nil {
			return nil, err
		}
		removed = append(removed, f)
	}
	_, err = tx.Exec(ctx, `DELETE FROM backup_codes WHERE tenant_id = $1 AND user_id = $2`, tenantID, userID)
	return removed, err
}

// RemoveAll removes all factors and backup codes of a user.
func RemoveAll(ctx context.Context, tx *sqldb.Tx, tenantID, userID string) error {
	var b sqldb.Batch
	for _, table := range []string{"factors", "credentials", "backup_codes"} {
		b.Queue(`DELETE FROM `+table+` WHERE tenant_id = $1 AND user_id = $2`, []any{tenantID, userID}, nil)
	}
	return tx.Send(ctx, &b)
}

// Used queues that a factor was used.
func (s *Store) Used(b *sqldb.Batch, f Factor) {
	b.Queue(`UPDATE factors SET last_used_at = $4 WHERE tenant_id = $1 AND user_id = $2 AND id = $3`,
		[]any{f.TenantID, f.UserID, f.ID, s.now().UnixMicro()}, nil)
}

// keyed returns a keyed hash (HMAC-SHA256) of several parts.
func keyed(key []byte, parts ...string) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return mac.Sum(nil)
}
