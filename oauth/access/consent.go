package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// ErrNoAuthorization is returned if a user has given no access to an application.
var ErrNoAuthorization = errors.New("the user has not signed in to the application")

// SelectConsent reads the scopes to which a user agreed for an application.
func (s *Store) SelectConsent(ctx context.Context, from storage.Querier, tenant protocol.Tenant, userID, clientID string) ([]string, error) {
	var scopes string
	err := from.QueryRow(ctx, `SELECT scopes FROM authorizations WHERE tenant_id = $1 AND user_id = $2 AND client_id = $3`, tenant.ID, userID, clientID).Scan(&scopes)
	if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
		return nil, fmt.Errorf("read consent: %w", err)
	}
	return strings.Fields(scopes), nil
}

// AddConsent queues, with its event, that a user agreed to some scopes for an application. all
// are these and those to which the user agreed before.
func (s *Store) AddConsent(ctx context.Context, b *sqldb.Batch, tenant protocol.Tenant, userID string, app client.Application, scopes, all []string) {
	b.Queue(`
		INSERT INTO authorizations (tenant_id, user_id, client_id, scopes, created_at, used_at) VALUES ($1, $2, $3, $4, $5, $5)
		ON CONFLICT (tenant_id, user_id, client_id) DO UPDATE SET scopes = $4`,
		[]any{tenant.ID, userID, app.ClientID, strings.Join(all, " "), storage.Now(s.clock).UnixMicro()}, nil)
	eventlog.Append(b, tenant.ID, consentGranted(ctx, app, userID, scopes))
}

// Authorization is an application to which a user has signed in.
type Authorization struct {
	Application client.Application
	Scopes      []string  // to which the user agreed; none for first-party applications
	CreatedAt   time.Time // UTC, as the other time
	UsedAt      time.Time // when the user last got a code for it
}

// maxAuthorizations bounds the list of one user.
const maxAuthorizations = 1000

// Authorizations lists the applications to which a user has signed in, the latest first, at
// most 1,000.
func (s *Store) Authorizations(ctx context.Context, tenantID, userID string) (list []Authorization, err error) {
	rows, err := s.db.Query(ctx, `
		SELECT z.scopes, z.created_at, z.used_at, a.id, a.client_id, a.name, a.options
		FROM authorizations z JOIN applications a ON a.tenant_id = z.tenant_id AND a.client_id = z.client_id
		WHERE z.tenant_id = $1 AND z.user_id = $2 ORDER BY z.used_at DESC, z.client_id LIMIT $3`, tenantID, userID, int64(maxAuthorizations))
	if err != nil {
		return nil, fmt.Errorf("list authorizations: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var z Authorization
		var scopes, options string
		var created, used int64
		err := rows.Scan(&scopes, &created, &used, &z.Application.ID, &z.Application.ClientID, &z.Application.Name, &options)
		if err == nil {
			z.Application.FirstParty = true
			err = storage.ReadJSON(options, &z.Application.Options)
		}
		if err != nil {
			return nil, fmt.Errorf("list authorizations: %w", err)
		}
		z.Scopes, z.CreatedAt, z.UsedAt = strings.Fields(scopes), sqldb.Instant(created), sqldb.Instant(used)
		list = append(list, z)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list authorizations: %w", err)
	}
	return list, nil
}

// EndAuthorization revokes the access of an application to a user, and deletes the consent. It
// fails with [client.ErrNotFound] or [ErrNoAuthorization].
func (s *Store) EndAuthorization(ctx context.Context, tenant protocol.Tenant, userID, applicationID string) error {
	app, err := client.SelectByID(ctx, s.db, tenant.ID, applicationID)
	if err != nil {
		return err
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		scopes, err := s.SelectConsent(ctx, tx, tenant, userID, app.ClientID)
		if err != nil {
			return err
		}
		n, err := tx.Exec(ctx, `DELETE FROM authorizations WHERE tenant_id = $1 AND user_id = $2 AND client_id = $3`, tenant.ID, userID, app.ClientID)
		if err == nil && n == 0 {
			err = ErrNoAuthorization
		}
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE grants SET revoked_at = $4 WHERE tenant_id = $1 AND user_id = $2 AND client_id = $3 AND revoked_at = 0`,
				tenant.ID, userID, app.ClientID, storage.Now(s.clock).UnixMicro())
		}
		if err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenant.ID, consentRevoked(ctx, app, userID, scopes))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("end authorization: %w", err)
	}
	return nil
}

// ForgetUser queues that the access of all applications to a user is revoked and forgotten.
func (s *Store) ForgetUser(b *sqldb.Batch, tenantID, userID string) {
	b.Queue(`UPDATE grants SET revoked_at = $3 WHERE tenant_id = $1 AND user_id = $2 AND revoked_at = 0`, []any{tenantID, userID, storage.Now(s.clock).UnixMicro()}, nil)
	b.Queue(`DELETE FROM authorizations WHERE tenant_id = $1 AND user_id = $2`, []any{tenantID, userID}, nil)
}

// ForgetClient queues that the access of users to a deleted application is revoked and
// forgotten.
func (s *Store) ForgetClient(b *sqldb.Batch, tenantID, clientID string) {
	b.Queue(`DELETE FROM authorizations WHERE tenant_id = $1 AND client_id = $2`, []any{tenantID, clientID}, nil)
	b.Queue(`UPDATE grants SET revoked_at = $3 WHERE tenant_id = $1 AND client_id = $2 AND revoked_at = 0`, []any{tenantID, clientID, storage.Now(s.clock).UnixMicro()}, nil)
}
