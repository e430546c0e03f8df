package access

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// SignIn stores that a user has signed in to a SAML service provider, and returns the id of the
// grant: one for each session and application, so that it is the SessionIndex at the application
// (SAML Core §2.7.2). The id in g is ignored.
func (s *Store) SignIn(ctx context.Context, tenant protocol.Tenant, g Grant) (grantID string, err error) {
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		settings, err := client.SelectSettings(ctx, tx, tenant.ID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		err = tx.QueryRow(ctx, selectSignIn, tenant.ID, g.Authentication.SessionID, g.ClientID, g.NameID, storage.Now(s.clock).UnixMicro()).Scan(&grantID)
		switch {
		case errors.Is(err, sqldb.ErrNoRows):
			grantID = id.New(id.Grant)
			g.ID = grantID
			s.Begin(&b, tenant, settings, g)
		case err != nil:
			return err
		default:
			s.noteUse(&b, notedBy(tenant, g))
		}
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return "", fmt.Errorf("sign in to a service provider: %w", err)
	}
	return grantID, nil
}

const (
	// selectSignIn finds the grant of a session for a service provider.
	selectSignIn = `
		SELECT id FROM grants
		WHERE tenant_id = $1 AND session_id = $2 AND client_id = $3 AND name_id = $4 AND revoked_at = 0 AND expires_at > $5 ORDER BY id LIMIT 1`
	// selectSignIns finds the grants of a user at a service provider.
	selectSignIns = `
		SELECT ` + grantColumns + ` FROM grants g
		WHERE g.tenant_id = $1 AND g.client_id = $2 AND g.name_id = $3 AND g.name_id <> '' AND g.revoked_at = 0 ORDER BY g.created_at DESC, g.id LIMIT $4`
	// selectParticipants finds the grants of a session for service providers.
	selectParticipants = `
		SELECT ` + grantColumns + ` FROM grants g
		WHERE g.tenant_id = $1 AND g.session_id = $2 AND g.name_id <> '' AND g.revoked_at = 0 ORDER BY g.created_at, g.id LIMIT $3`
)

// maxSignIns bounds the sessions that end at the request of a service provider, and the service
// providers of a session that learn of its end.
const maxSignIns = 100

// SignIns lists the latest grants with which a user, by the name at a SAML service provider, has
// signed in to it, at most 100: those of some ids, or all if there are none.
func (s *Store) SignIns(ctx context.Context, tenant protocol.Tenant, clientID, nameID string, ids []string) (list []Grant, err error) {
	if !sqldb.IsText(nameID) {
		return nil, nil
	}
	found, err := s.signIns(ctx, tenant, selectSignIns, tenant.ID, clientID, nameID, int64(maxSignIns))
	return slices.DeleteFunc(found, func(g Grant) bool { return len(ids) > 0 && !slices.Contains(ids, g.ID) }), err
}

// Participants lists the grants with which a user has signed in to SAML service providers during a
// session, the oldest first, at most 100. Those that were revoked are not listed.
func (s *Store) Participants(ctx context.Context, tenant protocol.Tenant, sessionID string) ([]Grant, error) {
	return s.signIns(ctx, tenant, selectParticipants, tenant.ID, sessionID, int64(maxSignIns))
}

// signIns reads the grants that a statement selects.
func (s *Store) signIns(ctx context.Context, tenant protocol.Tenant, statement string, args ...any) (list []Grant, err error) {
	rows, err := s.db.Query(ctx, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("list sign-ins to service providers: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		g, err := grantRow(rows, tenant)
		if err != nil {
			return nil, fmt.Errorf("list sign-ins to service providers: %w", err)
		}
		list = append(list, g)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list sign-ins to service providers: %w", err)
	}
	return list, nil
}
