package access

import (
	"context"
	"fmt"

	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/scope"
)

// sessionsAtOnce is the number of sessions in one query of [Users].
const sessionsAtOnce = 500

// InUse reports whether users are signed in to an application, which prevents its deletion.
func (s *Store) InUse(ctx context.Context, a client.Application) (bool, error) {
	used, err := s.Sessions(ctx, a, false)
	return used.Sessions > 0, err
}

// Sessions counts the sessions in which users are signed in to an application: all of them, or
// enough to know that there are some.
func (s *Store) Sessions(ctx context.Context, a client.Application, all bool) (used client.InUseError, err error) {
	if !a.Type.SignsUsersIn() || s.users == nil {
		return used, nil
	}
	now := storage.Now(s.clock).UnixMicro()
	var latest int64
	err = s.db.QueryRow(ctx, `
		SELECT COUNT(*), COALESCE(MAX(r.expires_at), 0)
		FROM refresh_tokens r JOIN grants g ON g.tenant_id = r.tenant_id AND g.id = r.grant_id
		WHERE r.tenant_id = $1 AND r.client_id = $2 AND r.rotated_at = 0 AND r.expires_at > $3 AND g.revoked_at = 0
			AND ' ' || g.scope || ' ' LIKE '% `+scope.OfflineAccess+` %'`, a.TenantID, a.ClientID, now).Scan(&used.Sessions, &latest)
	if err != nil {
		return used, fmt.Errorf("count refresh tokens: %w", err)
	}
	used.Latest = sqldb.Instant(latest)
	for after, more := "", true; more && (all || used.Sessions == 0); {
		ids, err := s.selectSessions(ctx, a, after, now)
		if err != nil {
			return used, fmt.Errorf("list sessions of application: %w", err)
		}
		if more = len(ids) == sessionsAtOnce; more {
			after = ids[len(ids)-1]
		}
		n, last, err := s.users.LiveSessions(ctx, a.TenantID, ids)
		if err != nil {
			return used, err
		}
		if used.Sessions += n; last.After(used.Latest) {
			used.Latest = last
		}
	}
	return used, nil
}

// selectSessions lists the sessions in which users authorized an application, after one of
// them.
func (s *Store) selectSessions(ctx context.Context, a client.Application, after string, now int64) ([]string, error) {
	return sqldb.Texts(s.db.Query(ctx, `
		SELECT DISTINCT session_id FROM grants
		WHERE tenant_id = $1 AND client_id = $2 AND session_id > $3 AND revoked_at = 0 AND expires_at > $4 ORDER BY session_id LIMIT $5`,
		a.TenantID, a.ClientID, after, now, int64(sessionsAtOnce)))
}

// rowsOf is a database or a transaction.
type rowsOf interface {
	Query(ctx context.Context, sql string, args ...any) (*sqldb.Rows, error)
}

// ClientsOfSession lists the client ids of the applications that users authorized in a session.
func ClientsOfSession(ctx context.Context, from rowsOf, tenantID, sessionID string) ([]string, error) {
	return sqldb.Texts(from.Query(ctx, `SELECT DISTINCT client_id FROM grants WHERE tenant_id = $1 AND session_id = $2`, tenantID, sessionID))
}
