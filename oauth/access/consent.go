package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

// ErrNoAuthorization is returned if a user has given no access to an application.
var ErrNoAuthorization = errors.New("the user has not signed in to the application")

// Consent is what a user agreed to for an application.
type Consent struct {
	Scopes []string
	Claims []string // that were requested by their names, beside those of the scopes
}

// Covers reports whether a user who gave the consent need not be asked about scopes, and about claims
// that are requested by their names. Consent to the scope of a claim is consent to the claim.
func (c Consent) Covers(scopes []string, claims RequestedClaims) bool {
	return len(scope.Intersect(scopes, c.Scopes)) == len(scopes) && len(c.beyond(claims.Beyond(c.Scopes).Names())) == 0
}

// beyond returns the claims that are not of the consent.
func (c Consent) beyond(claims []string) []string {
	return slices.DeleteFunc(slices.Clone(claims), func(name string) bool { return slices.Contains(c.Claims, name) })
}

// and returns the consent with what another one has beside it.
func (c Consent) and(more Consent) Consent {
	scopes := slices.DeleteFunc(slices.Clone(more.Scopes), func(name string) bool { return slices.Contains(c.Scopes, name) })
	return Consent{slices.Concat(c.Scopes, scopes), slices.Concat(c.Claims, c.beyond(more.Claims))}
}

// SelectConsent reads the consent of a user for an application.
func (s *Store) SelectConsent(ctx context.Context, from storage.Querier, tenant protocol.Tenant, userID, clientID string) (Consent, error) {
	var scopes, claims string
	err := from.QueryRow(ctx, `SELECT scopes, claims FROM authorizations WHERE tenant_id = $1 AND user_id = $2 AND client_id = $3`, tenant.ID, userID, clientID).Scan(&scopes, &claims)
	if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
		return Consent{}, fmt.Errorf("read consent: %w", err)
	}
	return Consent{strings.Fields(scopes), strings.Fields(claims)}, nil
}

// AddConsent queues, with its event, that a user gave consent for an application, beside that of
// before.
func (s *Store) AddConsent(ctx context.Context, b *sqldb.Batch, tenant protocol.Tenant, userID string, app client.Application, given, before Consent) {
	all := before.and(given)
	b.Queue(`
		INSERT INTO authorizations (tenant_id, user_id, client_id, scopes, claims, created_at, used_at) VALUES ($1, $2, $3, $4, $5, $6, $6)
		ON CONFLICT (tenant_id, user_id, client_id) DO UPDATE SET scopes = $4, claims = $5`,
		[]any{tenant.ID, userID, app.ClientID, strings.Join(all.Scopes, " "), strings.Join(all.Claims, " "), storage.Now(s.clock).UnixMicro()}, nil)
	eventlog.Append(b, tenant.ID, consentGranted(ctx, app, userID, given))
}

// Authorization is an application to which a user has signed in.
type Authorization struct {
	Application client.Application
	Consent               // of the user; none for first-party applications
	CreatedAt   time.Time // UTC, as the other time
	UsedAt      time.Time // when the user last got a code for it
}

// maxAuthorizations bounds the list of one user.
const maxAuthorizations = 1000

// Authorizations lists the applications to which a user has signed in, the latest first, at
// most 1,000.
func (s *Store) Authorizations(ctx context.Context, tenantID, userID string) (list []Authorization, err error) {
	rows, err := s.db.Query(ctx, `
		SELECT z.scopes, z.claims, z.created_at, z.used_at, a.id, a.client_id, a.name, a.options
		FROM authorizations z JOIN applications a ON a.tenant_id = z.tenant_id AND a.client_id = z.client_id
		WHERE z.tenant_id = $1 AND z.user_id = $2 ORDER BY z.used_at DESC, z.client_id LIMIT $3`, tenantID, userID, int64(maxAuthorizations))
	if err != nil {
		return nil, fmt.Errorf("list authorizations: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var z Authorization
		var scopes, claims, options string
		var created, used int64
		err := rows.Scan(&scopes, &claims, &created, &used, &z.Application.ID, &z.Application.ClientID, &z.Application.Name, &options)
		if err == nil {
			z.Application.FirstParty = true
			err = storage.ReadJSON(options, &z.Application.Options)
		}
		if err != nil {
			return nil, fmt.Errorf("list authorizations: %w", err)
		}
		z.Consent, z.CreatedAt, z.UsedAt = Consent{strings.Fields(scopes), strings.Fields(claims)}, sqldb.Instant(created), sqldb.Instant(used)
		list = append(list, z)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list authorizations: %w", err)
	}
	return list, nil
}

// AuthorizedUser is a user who has signed in to an application.
type AuthorizedUser struct {
	UserID    string
	Consent             // none for first-party applications
	CreatedAt time.Time // UTC, as the other time
	UsedAt    time.Time // when the user last got a code for it
}

const selectUsers = `
	SELECT user_id, scopes, claims, created_at, used_at FROM authorizations
	WHERE tenant_id = $1 AND client_id = $2 AND user_id > $3 ORDER BY user_id LIMIT $4`

// Users lists the users who have signed in to an application, by id, after one of them. It fails with
// [client.ErrNotFound].
func (s *Store) Users(ctx context.Context, tenantID, applicationID, after string, limit int) (list []AuthorizedUser, err error) {
	app, err := client.SelectByID(ctx, s.db, tenantID, applicationID)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Query(ctx, selectUsers, tenantID, app.ClientID, after, int64(limit))
	if err != nil {
		return nil, fmt.Errorf("list users of application: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var u AuthorizedUser
		var scopes, claims string
		var created, used int64
		if err := rows.Scan(&u.UserID, &scopes, &claims, &created, &used); err != nil {
			return nil, fmt.Errorf("list users of application: %w", err)
		}
		u.Consent, u.CreatedAt, u.UsedAt = Consent{strings.Fields(scopes), strings.Fields(claims)}, sqldb.Instant(created), sqldb.Instant(used)
		list = append(list, u)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list users of application: %w", err)
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
		given, err := s.SelectConsent(ctx, tx, tenant, userID, app.ClientID)
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
		eventlog.Append(&b, tenant.ID, consentRevoked(ctx, app, userID, given))
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
