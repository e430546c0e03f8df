package authn

import (
	"context"
	"errors"
	"slices"

	"stonetown/identity"
	"stonetown/identity/password"
	"stonetown/identity/password/breached"
	"stonetown/internal/eventlog"
	"stonetown/internal/outbox"
	"stonetown/internal/sqldb"
)

// NoteRefused notes that a password was refused for being breached, if that is what an error
// of [identity.Directory.NewPassword] says, and returns the error. The user whose password it
// was to be may not exist yet.
func (s *Service) NoteRefused(ctx context.Context, tenantID string, u identity.User, refused error) error {
	policy, ok := errors.AsType[*password.PolicyError](refused)
	if !ok || !slices.Contains(policy.Violations, password.RuleBreached) {
		return refused
	}
	if err := s.note(ctx, tenantID, breachedPasswordUsed(ctx, u, true)); err != nil {
		return err
	}
	return refused
}

// passwordJob is what the outbox does after somebody has signed in with a password. Like all
// jobs it is encrypted.
type passwordJob struct {
	UserID string          `json:"user_id"`
	Hash   string          `json:"hash"` // which of the user's passwords it was
	Digest breached.Digest `json:"digest"`
	Origin eventlog.Origin `json:"origin"`
}

// checkPassword finds out whether the password that a user has signed in with is breached,
// and tells the user. It is tried once: what cannot be found out now is at another sign-in,
// and until then no digest of the password is kept.
func (s *Service) checkPassword(ctx context.Context, tenantID string, job passwordJob) error {
	found, err := s.users.IsBreached(ctx, job.Digest)
	if err != nil {
		return errors.Join(err, outbox.ErrDrop)
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		tell, err := s.users.PasswordChecked(ctx, tx, tenantID, job.UserID, password.Hash(job.Hash), found)
		if err != nil || !tell {
			return err
		}
		u, err := s.users.UserIn(ctx, tx, tenantID, job.UserID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, breachedPasswordUsed(from(ctx, job.Origin), u, false))
		s.notify(&b, tenantID, letterNotice, notice{UserID: u.ID, What: passwordBreached})
		return tx.Send(ctx, &b)
	})
	if err == nil && found {
		s.outbox.Wake()
	}
	return err
}
