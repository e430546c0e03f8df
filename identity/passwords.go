package identity

import (
	"context"
	"math"
	"strings"
	"time"

	"stonetown/identity/password"
	"stonetown/identity/password/breached"
	"stonetown/internal/sqldb"
)

// NewPassword hashes a new password of a user, if the policy of the tenant allows it and it
// is not known to be breached. If the list of breached passwords is unavailable, the password
// is accepted. NewPassword fails with [*password.PolicyError], or as [password.NewHash] does.
func (d *Directory) NewPassword(ctx context.Context, tenantID, plain string, u User) (password.Hash, error) {
	settings, err := d.Settings(ctx, tenantID)
	if err != nil {
		return "", err
	}
	p := settings.PasswordPolicy
	if err := p.Check(plain, u.Identifiers()); err != nil {
		return "", err
	}
	found, err := d.breached.Contains(ctx, breached.DigestOf(plain))
	if err != nil {
		d.log.WarnContext(ctx, "password accepted without a breach check", "tenant", tenantID, "error", err)
	}
	if found {
		return "", &password.PolicyError{Policy: p, Violations: []password.Rule{password.RuleBreached}}
	}
	return password.NewHash(ctx, plain)
}

// Identifiers are the address and the names of a user, which must not be the password.
func (u User) Identifiers() []string {
	local, _, _ := strings.Cut(u.Email, "@")
	return []string{u.Email, local, u.Name, u.GivenName, u.FamilyName}
}

// recheckAfter is how long a password in use is not looked up again. A password can become
// part of a breach at any time.
const recheckAfter = 30 * 24 * time.Hour

// neverAgain is the next check of a password that was found: its user has been notified.
var neverAgain = sqldb.Instant(math.MaxInt64)

// PasswordCheckDue reports whether the password that a user signs in with is to be looked up
// among breached passwords.
func (d *Directory) PasswordCheckDue(u User) bool {
	return d.breached.Enabled() && !d.now().Before(u.PasswordCheckAt)
}

// IsBreached looks a password up. An error means that the answer is unknown.
func (d *Directory) IsBreached(ctx context.Context, digest breached.Digest) (bool, error) {
	return d.breached.Contains(ctx, digest)
}

// PasswordChecked records within a transaction whether the password with a hash is breached.
// It reports whether to notify the user, which is true once, and only if the hash is still
// that of the user's password.
func (d *Directory) PasswordChecked(ctx context.Context, tx *sqldb.Tx, tenantID, userID string, hash password.Hash, found bool) (notify bool, err error) {
	next := d.now().Add(recheckAfter)
	if found {
		next = neverAgain
	}
	n, err := tx.Exec(ctx, `
		UPDATE users SET password_check_at = $4 WHERE tenant_id = $1 AND id = $2 AND password_hash = $3 AND password_check_at < $4`,
		tenantID, userID, string(hash), next.UnixMicro())
	return n == 1 && found, err
}
