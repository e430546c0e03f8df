package authn

import (
	"context"
	"slices"

	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// Identities lists the external identities of a user, the oldest first.
func (s *Service) Identities(ctx context.Context, tenantID, userID string) ([]external.Identity, error) {
	return s.external.List(ctx, tenantID, userID)
}

// Link links a user with a subject at a federation connection, so that the user can sign in
// there. The caller must have authenticated both. Linking again has no effect and is no error.
// Link fails with [identity.ErrUserNotFound] or [identity.ErrManaged], or as [external.Store.Link] does.
func (s *Service) Link(ctx context.Context, i external.Identity) error {
	added := false
	err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		// The user must not be deleted before the link commits: the subject would stay taken.
		u, err := s.users.Lock(ctx, tx, i.TenantID, i.UserID)
		if err == nil && u.ManagedBy != "" {
			err = identity.ErrManaged
		}
		if err == nil {
			added, err = s.external.Link(ctx, tx, i)
		}
		if err != nil || !added {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, i.TenantID, identityLinked(ctx, u, i))
		s.notify(&b, i.TenantID, u.ID, identityAdded)
		return tx.Send(ctx, &b)
	})
	if err == nil && added {
		s.jobs.Wake()
	}
	return err
}

// Unlink removes the identity of a user at a connection. The user must have another way to sign
// in: a password, a passkey, or another identity. Unlink fails with [external.ErrNotFound] or
// [ErrLastMethod].
func (s *Service) Unlink(ctx context.Context, tenantID, userID, connectionID string) error {
	err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		u, err := s.users.UserIn(ctx, tx, tenantID, userID)
		if err != nil {
			return err
		}
		// The transaction is serializable, so that two concurrent calls cannot remove the
		// last two ways.
		have, err := external.OfUser(ctx, tx, tenantID, userID)
		if err != nil {
			return err
		}
		n := slices.IndexFunc(have, func(i external.Identity) bool { return i.ConnectionID == connectionID })
		if n < 0 {
			return external.ErrNotFound
		}
		if len(have) == 1 && u.PasswordHash == "" {
			passkey, err := s.factors.HasPasskey(ctx, tx, tenantID, userID)
			if err == nil && !passkey {
				err = ErrLastMethod
			}
			if err != nil {
				return err
			}
		}
		if err := external.Unlink(ctx, tx, tenantID, userID, connectionID); err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, identityUnlinked(ctx, u, have[n]))
		s.notify(&b, tenantID, u.ID, identityRemoved)
		return tx.Send(ctx, &b)
	})
	if err == nil {
		s.jobs.Wake()
	}
	return err
}
