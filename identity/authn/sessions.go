package authn

import (
	"context"
	"slices"

	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// ByToken returns the live session with a token. It fails with [session.ErrEnded].
func (s *Service) ByToken(ctx context.Context, tenantID, token string) (session.Session, error) {
	return s.sessions.ByToken(ctx, tenantID, token)
}

// ByID returns a live session. It fails with [session.ErrEnded].
func (s *Service) ByID(ctx context.Context, tenantID, sessionID string) (session.Session, error) {
	return s.sessions.ByID(ctx, tenantID, sessionID)
}

// QueueByID queues the read of a session; see [session.Store.QueueByID].
func (s *Service) QueueByID(b *sqldb.Batch, tenantID, sessionID string) (result func(context.Context) (session.Session, error)) {
	return s.sessions.QueueByID(b, tenantID, sessionID)
}

// LiveSessions returns the live sessions among several hundred ids at most.
func (s *Service) LiveSessions(ctx context.Context, tenantID string, ids []string) ([]session.Session, error) {
	return s.sessions.Live(ctx, tenantID, ids)
}

// Sessions lists the live sessions of a user, the newest first.
func (s *Service) Sessions(ctx context.Context, tenantID, userID string) ([]session.Session, error) {
	return s.sessions.List(ctx, tenantID, userID)
}

// SignOut ends the session of a request or, if all is set, all sessions of its user.
func (s *Service) SignOut(ctx context.Context, current session.Session, all bool) error {
	return s.end(ctx, current.TenantID, current.UserID, session.EndedByUser, func(one session.Session) bool { return all || one.ID == current.ID },
		signedOut(ctx, current.UserID))
}

// EndSession ends one session of a user. It fails with [session.ErrEnded].
func (s *Service) EndSession(ctx context.Context, tenantID, userID, sessionID, reason string) error {
	found := false
	err := s.end(ctx, tenantID, userID, reason, func(one session.Session) bool {
		found = found || one.ID == sessionID
		return one.ID == sessionID
	})
	if err == nil && !found {
		err = session.ErrEnded
	}
	return err
}

// EndSessions ends all sessions of a user except one; all if except is empty.
func (s *Service) EndSessions(ctx context.Context, tenantID, userID, except, reason string) error {
	return s.end(ctx, tenantID, userID, reason, func(one session.Session) bool { return one.ID != except })
}

// end ends the sessions of a user that selected reports. more are events that come first.
func (s *Service) end(ctx context.Context, tenantID, userID, reason string, selected func(session.Session) bool, more ...eventlog.Event) error {
	return s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		all, err := session.OfUser(ctx, tx, tenantID, userID)
		if err != nil {
			return err
		}
		ended := slices.DeleteFunc(all, func(one session.Session) bool { return !selected(one) })
		var b sqldb.Batch
		for _, one := range ended {
			session.End(&b, tenantID, one.ID)
		}
		eventlog.Append(&b, tenantID, append(slices.Clone(more), revoked(ctx, ended, reason)...)...)
		return tx.Send(ctx, &b)
	})
}
