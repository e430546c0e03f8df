package authn

import (
	"context"
	"slices"

	"stonetown/identity/external"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// Identities lists the external identities of a user, the oldest first.
func (s *Service) Identities(ctx context.Context, tenantID, userID string) ([]external.Identity, error) {
	return s.external.List(ctx, tenantID, userID)
}

// Link lets a user sign in as a subject at a federation connection. Who asks has proved
// to be both. That it was so before is no error, and changes nothing. It fails with
// [identity.ErrUserNotFound], or as [external.Store.Link] does.
func (s *Service) Link(ctx context.Context, i external.Identity) error {
	added := false
	err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		// A subject that were left to a user who is deleted would be nobody's for ever.
		u, err := s.users.Hold(ctx, tx, i.TenantID, i.UserID)
		if err == nil {
			added, err = s.external.Link(ctx, tx, i)
		}
		if err != nil || !added {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, i.TenantID, identityLinked(ctx, u, i))
		s.notify(&b, i.TenantID, letterNotice, notice{UserID: u.ID, What: identityAdded})
		return tx.Send(ctx, &b)
	})
	if err == nil && added {
		s.outbox.Wake()
	}
	return err
}

// Unlink takes the identity at a connection from a user, who must have another way to
// sign in: a password, a passkey, or another identity. It fails with
// [external.ErrNotFound] or [ErrLastMethod].
func (s *Service) Unlink(ctx context.Context, tenantID, userID, connectionID string) error {
	err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		u, err := s.users.UserIn(ctx, tx, tenantID, userID)
		if err != nil {
			return err
		}
		// The transaction is serializable: of two that give up one of two each, the second
		// sees what the first has left.
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
		s.notify(&b, tenantID, letterNotice, notice{UserID: u.ID, What: identityRemoved})
		return tx.Send(ctx, &b)
	})
	if err == nil {
		s.outbox.Wake()
	}
	return err
}
