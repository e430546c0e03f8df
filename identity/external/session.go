package external

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
)

// Session is the session of a user at a federation connection from which a session of the product
// began, so that a logout at either side can end the other.
type Session struct {
	TenantID     string
	SessionID    string // of the product's session
	ConnectionID string
	Subject      string
	// ProviderID is the provider's identifier of its session: sid (OpenID Connect Front-Channel
	// Logout 1.0 §3) or SessionIndex (SAML Core §2.7.2); empty if there is none.
	ProviderID string
	// Hint names the session in a request for logout: the ID token, or the NameID. It is stored
	// encrypted.
	Hint      string
	ExpiresAt time.Time // UTC; of the product's session
}

// Began queues that a session of the product began with one at a connection.
func (s *Store) Began(b *sqldb.Batch, of Session) {
	b.Queue(insertSession, []any{
		of.TenantID, of.SessionID, of.ConnectionID, of.Subject, of.ProviderID, s.seal.Seal(of.TenantID, of.SessionID, []byte(of.Hint)), of.ExpiresAt.UnixMicro(),
	}, nil)
}

// SessionOf returns the session at a connection from which a session of the product began. It
// fails with [ErrNotFound].
func (s *Store) SessionOf(ctx context.Context, tenantID, sessionID string) (Session, error) {
	found := Session{TenantID: tenantID, SessionID: sessionID}
	var hint []byte
	var expires int64
	err := s.db.QueryRow(ctx, selectSession, tenantID, sessionID).Scan(&found.ConnectionID, &found.Subject, &found.ProviderID, &hint, &expires)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Session{}, ErrNotFound
	}
	if err == nil {
		hint, err = s.seal.Open(tenantID, sessionID, hint)
	}
	if err != nil {
		return Session{}, fmt.Errorf("read session at a provider: %w", err)
	}
	found.Hint, found.ExpiresAt = string(hint), time.UnixMicro(expires).UTC()
	return found, nil
}

// SessionsAt returns the ids of the product's sessions of a subject at a connection: those of one
// session of the provider or, if providerID is empty, all.
func (s *Store) SessionsAt(ctx context.Context, tenantID, connectionID, subject, providerID string) ([]string, error) {
	if !sqldb.IsText(subject) || !sqldb.IsText(providerID) {
		return nil, nil
	}
	return sqldb.Texts(s.db.Query(ctx, selectSessionsAt, tenantID, connectionID, subject, providerID))
}

// SessionsBy returns the ids of the product's sessions of one session of a provider, regardless of
// their subject.
func (s *Store) SessionsBy(ctx context.Context, tenantID, connectionID, providerID string) ([]string, error) {
	if !sqldb.IsText(providerID) || providerID == "" {
		return nil, nil
	}
	return sqldb.Texts(s.db.Query(ctx, selectSessionsBy, tenantID, connectionID, providerID))
}

// SessionEnded removes what is known of the session at a connection.
func SessionEnded(ctx context.Context, tx *sqldb.Tx, tenantID, sessionID string) error {
	_, err := tx.Exec(ctx, deleteSession, tenantID, sessionID)
	return err
}

// DeleteExpired deletes what is known of sessions that have expired.
func (s *Store) DeleteExpired(ctx context.Context) error {
	_, err := s.db.Exec(ctx, deleteExpired, s.now().UnixMicro())
	return err
}

const (
	insertSession = `
		INSERT INTO external_sessions (tenant_id, session_id, connection_id, subject, provider_id, hint, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	selectSession    = `SELECT connection_id, subject, provider_id, hint, expires_at FROM external_sessions WHERE tenant_id = $1 AND session_id = $2`
	selectSessionsAt = `
		SELECT session_id FROM external_sessions WHERE tenant_id = $1 AND connection_id = $2 AND subject = $3 AND ($4 = '' OR provider_id = $4) ORDER BY session_id`
	selectSessionsBy = `
		SELECT session_id FROM external_sessions WHERE tenant_id = $1 AND connection_id = $2 AND provider_id = $3 ORDER BY session_id`
	deleteSession = `DELETE FROM external_sessions WHERE tenant_id = $1 AND session_id = $2`
	deleteExpired = `DELETE FROM external_sessions WHERE expires_at <= $1`
)
