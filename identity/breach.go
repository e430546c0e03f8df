package identity

import (
	"context"
	"math"
	"time"

	"stonetown/identity/breached"
	"stonetown/internal/sqldb"
)

// checkEvery is how often a password that is in use is looked up: it may be stolen any time.
const checkEvery = 30 * 24 * time.Hour

// neverAgain is when a password is looked up that was found, of which its user was told.
var neverAgain = instant(math.MaxInt64)

// MayBeBreached reports whether it is time to look the password of a user up, who is signing
// in with it.
func (d *Directory) MayBeBreached(u User) bool {
	return d.breached != nil && !d.now().Before(u.PasswordCheckAt)
}

// IsBreached looks a password up. An error says that this is not known.
func (d *Directory) IsBreached(ctx context.Context, password breached.Digest) (bool, error) {
	return d.breached.Contains(ctx, password)
}

// PasswordChecked notes within a transaction what was found out about the password that has
// a hash. It reports whether the user, whose password it still is, has to be told, which is
// true once.
func (d *Directory) PasswordChecked(ctx context.Context, tx *sqldb.Tx, tenantID, userID string, hash PasswordHash, found bool) (tell bool, err error) {
	next := d.now().Add(checkEvery)
	if found {
		next = neverAgain
	}
	n, err := tx.Exec(ctx, `
		UPDATE users SET password_check_at = $4 WHERE tenant_id = $1 AND id = $2 AND password_hash = $3 AND password_check_at < $4`,
		tenantID, userID, string(hash), next.UnixMicro())
	return n == 1 && found, err
}
