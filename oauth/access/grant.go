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
	"stonetown/oauth/detail"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

// Grant is the access of an application to a user. All tokens that follow from one
// authorization belong to one grant, and end with it.
type Grant struct {
	ID, tenantID, ClientID string
	Authentication         Authentication
	Scopes                 []string        // without the scopes of groups
	Claims                 RequestedClaims // without those of the scopes
	Details                []detail.Detail // nil: none
	Audience               string
	Nonce                  string
	NameID                 string // of the user at a SAML service provider; else empty
	CreatedAt, ExpiresAt   time.Time
	RevokedAt              time.Time // zero: never
}

// Offline reports whether the grant outlives its session (OIDC Core §11).
func (g Grant) Offline() bool { return slices.Contains(g.Scopes, scope.OfflineAccess) }

// Begin queues a new grant.
func (s *Store) Begin(b *sqldb.Batch, tenant protocol.Tenant, settings client.Settings, g Grant) {
	s.insertGrant(b, tenant, settings, g)
	s.noteUse(b, notedBy(tenant, g))
}

func (s *Store) insertGrant(b *sqldb.Batch, tenant protocol.Tenant, settings client.Settings, g Grant) {
	now := storage.Now(s.clock)
	b.Queue(`
		INSERT INTO grants (tenant_id, id, client_id, user_id, session_id, scope, audience, nonce, methods, auth_time, second_factor_at, created_at, expires_at, revoked_at, name_id, authorization_details, requested_claims, sign_in_claims)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0, $14, $15, $16, $17)`,
		[]any{
			tenant.ID, g.ID, g.ClientID, g.Authentication.UserID, g.Authentication.SessionID, strings.Join(g.Scopes, " "), g.Audience, g.Nonce, strings.Join(g.Authentication.Methods, " "),
			g.Authentication.AuthTime.UnixMicro(), sqldb.Micros(g.Authentication.SecondFactor), now.UnixMicro(), now.Add(time.Duration(settings.RefreshFamilyMaxS) * time.Second).UnixMicro(), g.NameID, stored(g.Details, g.Details == nil), stored(g.Claims, g.Claims.Empty()), g.Authentication.Claims,
		}, nil)
}

// stored returns the stored form of a part of a grant.
func stored(part any, absent bool) string {
	if absent {
		return ""
	}
	return storage.JSON(part)
}

// notedBy returns the row of authorizations that a grant needs, so that the user finds it in the
// list and can end it.
func notedBy(tenant protocol.Tenant, g Grant) noted {
	return noted{tenant.ID, g.Authentication.UserID, g.ClientID}
}

// noteUse queues that a user has signed in to an application.
func (s *Store) noteUse(b *sqldb.Batch, n noted) {
	b.Queue(`
		INSERT INTO authorizations (tenant_id, user_id, client_id, scopes, created_at, used_at) VALUES ($1, $2, $3, '', $4, $4)
		ON CONFLICT (tenant_id, user_id, client_id) DO UPDATE SET used_at = $4`,
		[]any{n.tenantID, n.userID, n.clientID, storage.Now(s.clock).UnixMicro()}, nil)
}

// ErrInvalidGrant is the only refusal of a code or token, for any reason.
var ErrInvalidGrant = protocol.NewError(protocol.InvalidGrant, "the code or token is not valid for this client")

// Holder returns the user of a grant that has not ended. first states that a new code is
// redeemed; then the user must still be signed in, even if the grant is offline. It fails with
// [ErrInvalidGrant].
func (s *Store) Holder(ctx context.Context, tenant protocol.Tenant, g Grant, first bool) (user User, err error) {
	if !g.RevokedAt.IsZero() || !storage.Now(s.clock).Before(g.ExpiresAt) {
		return User{}, ErrInvalidGrant
	}
	live := true
	if first || !g.Offline() {
		user, live, err = s.users.SignedIn(ctx, tenant.ID, g.Authentication.UserID, g.Authentication.SessionID)
	} else {
		user, err = s.users.User(ctx, tenant.ID, g.Authentication.UserID)
	}
	if errors.Is(err, ErrUserGone) || err == nil && (!live || g.Offline() && g.CreatedAt.Before(user.ValidFrom)) {
		return User{}, ErrInvalidGrant
	}
	return user, err
}

// grantColumns are the columns of a grant g, which grantRow reads.
const grantColumns = `g.id, g.client_id, g.user_id, g.session_id, g.scope, g.audience, g.nonce, g.methods, g.auth_time, g.second_factor_at,
	g.created_at, g.expires_at, g.revoked_at, g.name_id, g.authorization_details, g.requested_claims, g.sign_in_claims`

// grantRow reads a grant that was selected after other columns. It fails with
// [ErrInvalidGrant] if there is no row.
func grantRow(row interface{ Scan(...any) error }, tenant protocol.Tenant, more ...any) (g Grant, err error) {
	g = Grant{tenantID: tenant.ID}
	var scope, methods, details, claims string
	var auth, second, created, expires, revoked int64
	err = row.Scan(append(more, &g.ID, &g.ClientID, &g.Authentication.UserID, &g.Authentication.SessionID, &scope, &g.Audience, &g.Nonce, &methods, &auth, &second, &created, &expires, &revoked, &g.NameID, &details, &claims, &g.Authentication.Claims)...)
	if errors.Is(err, sqldb.ErrNoRows) {
		return g, ErrInvalidGrant
	}
	if err == nil {
		err = errors.Join(storage.ReadJSON(details, &g.Details), storage.ReadJSON(claims, &g.Claims))
	}
	if err != nil {
		return g, fmt.Errorf("read grant: %w", err)
	}
	g.Scopes, g.Authentication.Methods = strings.Fields(scope), strings.Fields(methods)
	g.Authentication.AuthTime, g.Authentication.SecondFactor, g.CreatedAt, g.ExpiresAt, g.RevokedAt = sqldb.Instant(auth), sqldb.Instant(second), sqldb.Instant(created), sqldb.Instant(expires), sqldb.Instant(revoked)
	return g, nil
}

// Grant finds a grant. It fails with [ErrInvalidGrant].
func (s *Store) Grant(ctx context.Context, tenant protocol.Tenant, grantID string) (Grant, error) {
	return selectGrant(ctx, s.db, tenant, grantID)
}

const grantByID = `SELECT ` + grantColumns + ` FROM grants g WHERE g.tenant_id = $1 AND g.id = $2`

// selectGrant finds a grant. It fails with [ErrInvalidGrant].
func selectGrant(ctx context.Context, from storage.Querier, tenant protocol.Tenant, grantID string) (Grant, error) {
	return grantRow(from.QueryRow(ctx, grantByID, tenant.ID, grantID), tenant)
}

// QueueGrant queues the read of a grant. When the batch was sent, result returns it, as
// [Store.Grant] does.
func QueueGrant(b *sqldb.Batch, tenant protocol.Tenant, grantID string) (result func() (Grant, error)) {
	var g Grant
	var err error
	b.Queue(grantByID, []any{tenant.ID, grantID}, func(rows *sqldb.Rows) error {
		g, err = grantRow(rows.First(), tenant)
		return nil
	})
	return func() (Grant, error) { return g, err }
}

// Revoke revokes a grant, with all its tokens, and records the events, unless it was revoked
// before.
func (s *Store) Revoke(ctx context.Context, tenant protocol.Tenant, grantID string, happened ...Event) error {
	err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE grants SET revoked_at = $3 WHERE tenant_id = $1 AND id = $2 AND revoked_at = 0`, tenant.ID, grantID, storage.Now(s.clock).UnixMicro())
		if err != nil || n == 0 {
			return err
		}
		g, err := selectGrant(ctx, tx, tenant, grantID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		for _, event := range happened {
			eventlog.Append(&b, tenant.ID, event(asClient(ctx, g.ClientID), g))
		}
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("revoke grant: %w", err)
	}
	return nil
}
