package authn

import (
	"context"
	"slices"

	"stonetown/identity/external"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// SessionAtProvider returns the session at a connection from which a session began. It fails with
// [external.ErrNotFound].
func (s *Service) SessionAtProvider(ctx context.Context, tenantID, sessionID string) (external.Session, error) {
	return s.external.SessionOf(ctx, tenantID, sessionID)
}

// AtProvider names the sessions that began at sessions of an identity provider.
type AtProvider struct {
	ConnectionID string
	Subject      string   // empty: any, with ProviderIDs
	ProviderIDs  []string // of the provider's sessions; none: all of the subject
}

// EndAtProvider ends sessions whose user has signed out at the identity provider. Without any it has
// no effect. also runs in the transaction that ends them.
func (s *Service) EndAtProvider(ctx context.Context, tenantID string, at AtProvider, also func(ctx context.Context, tx *sqldb.Tx) error) error {
	ids, err := s.sessionsAt(ctx, tenantID, at)
	if err != nil {
		return err
	}
	var users []string
	for some := range slices.Chunk(ids, 100) {
		live, err := s.sessions.Live(ctx, tenantID, some)
		if err != nil {
			return err
		}
		for _, one := range live {
			if !slices.Contains(users, one.UserID) {
				users = append(users, one.UserID)
			}
		}
	}
	return s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := also(ctx, tx); err != nil {
			return err
		}
		var b sqldb.Batch
		for _, userID := range users {
			all, err := session.OfUser(ctx, tx, tenantID, userID)
			if err != nil {
				return err
			}
			ended := slices.DeleteFunc(all, func(one session.Session) bool { return !slices.Contains(ids, one.ID) })
			for _, one := range ended {
				session.End(&b, tenantID, one.ID)
			}
			eventlog.Append(&b, tenantID, revoked(ctx, ended, session.EndedByProvider)...)
		}
		return tx.Send(ctx, &b)
	})
}

// sessionsAt returns the ids of sessions.
func (s *Service) sessionsAt(ctx context.Context, tenantID string, at AtProvider) (ids []string, err error) {
	if len(at.ProviderIDs) == 0 {
		return s.external.SessionsAt(ctx, tenantID, at.ConnectionID, at.Subject, "")
	}
	for _, providerID := range at.ProviderIDs {
		var some []string
		if at.Subject == "" {
			some, err = s.external.SessionsBy(ctx, tenantID, at.ConnectionID, providerID)
		} else if providerID != "" {
			some, err = s.external.SessionsAt(ctx, tenantID, at.ConnectionID, at.Subject, providerID)
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, some...)
	}
	return ids, nil
}
