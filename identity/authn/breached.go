package authn

import (
	"context"
	"errors"
	"slices"

	"stonetown/identity"
	"stonetown/identity/password"
	"stonetown/identity/password/breached"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

// RecordRefusal records an event if an error of [identity.Directory.NewPassword] means that the
// password is breached, and returns the error. The user may be the zero user, if the account
// does not exist yet.
func (s *Service) RecordRefusal(ctx context.Context, tenantID string, u identity.User, refused error) error {
	policy, ok := errors.AsType[*password.PolicyError](refused)
	if !ok || !slices.Contains(policy.Violations, password.RuleBreached) {
		return refused
	}
	if err := s.record(ctx, tenantID, breachedPasswordUsed(ctx, u, true)); err != nil {
		return err
	}
	return refused
}

// passwordJob checks a password after a sign-in with it. It is encrypted, as all payloads.
type passwordJob struct {
	UserID string          `json:"user_id"`
	Hash   string          `json:"hash"` // identifies the password
	Digest breached.Digest `json:"digest"`
	Origin eventlog.Origin `json:"origin"`
}

// checkPassword looks up the password of a sign-in and notifies the user if it is breached. A
// failed lookup is not repeated before the next sign-in, so that the digest of the password is
// not stored until then.
func (s *Service) checkPassword(ctx context.Context, job jobs.Job, p passwordJob) error {
	tenantID := job.TenantID
	found, err := s.users.IsBreached(ctx, p.Digest)
	if err != nil {
		return errors.Join(err, jobs.ErrDrop)
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		notify, err := s.users.PasswordChecked(ctx, tx, tenantID, p.UserID, password.Hash(p.Hash), found)
		if err != nil || !notify {
			return err
		}
		u, err := s.users.UserIn(ctx, tx, tenantID, p.UserID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, breachedPasswordUsed(from(ctx, p.Origin), u, false))
		s.notify(&b, tenantID, u.ID, passwordBreached)
		return tx.Send(ctx, &b)
	})
	if err == nil && found {
		s.jobs.Wake()
	}
	return err
}
