package grants

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
)

// issuance is how the tokens of a grant are issued.
type issuance struct {
	req    Request
	scopes []string // asked for; empty: all that was granted
	first  bool     // the user has just signed in
	// uses queues, by [useOnce], that what the tokens are issued for is used up; nil: it was.
	uses        func(*sqldb.Batch)
	predecessor string // hash of the refresh token that they are issued for; empty: for none
}

// errReused: somebody else has just used up the same.
var errReused = errors.New("the code or token was used concurrently")

// useOnce queues an update of one row that nobody else may have made before: else the
// transaction fails with errReused.
func useOnce(b *sqldb.Batch, update string, args ...any) {
	b.Queue(update+` RETURNING 1`, args, func(rows *sqldb.Rows) error {
		if rows.Next() || rows.Err() != nil {
			return rows.Err()
		}
		return errReused
	})
}

// issue issues the tokens of a grant, in the transaction in which what they are issued for
// is used up. It fails with errReused if it was before.
func (s *Service) issue(ctx context.Context, tenant protocol.Tenant, app client.Application, g access.Grant, as issuance) (r token.Response, err error) {
	now := storage.Now(s.clock)
	person, err := s.access.Holder(ctx, tenant, g, as.first)
	if err != nil {
		return r, err
	}
	carries, err := s.tokens.Entitled(ctx, tenant, token.EntitlementRequest{App: app, Person: &person, Scopes: g.Scopes, Brings: true})
	if err != nil {
		return r, err
	}
	if len(as.scopes) > 0 {
		for _, scope := range as.scopes {
			if !slices.Contains(g.Scopes, scope) && !slices.Contains(carries.Scopes, scope) {
				return r, protocol.NewError(protocol.InvalidScope, "scope exceeds what was granted")
			}
		}
		carries = carries.Narrowed(as.scopes)
	}
	scopes := carries.Scopes
	asked := as.req.Audience
	switch {
	case g.Audience == "":
	case len(asked) == 0:
		asked = []string{g.Audience}
	case !slices.Equal(asked, []string{g.Audience}): // RFC 8707 §2.2
		return r, protocol.NewError(protocol.InvalidTarget, "the authorization was for another audience")
	}
	aud, err := client.Audience(tenant, app, asked, scopes)
	if err != nil {
		return r, err
	}
	if err := s.authn.Admit(ctx, as.req.Credentials, person.ID); err != nil {
		return r, err
	}
	if slices.Contains(scopes, "openid") && !slices.Contains(aud, tenant.BaseURL) {
		aud = append(aud, tenant.BaseURL) // for /oauth2/userinfo
	}
	c := token.Claims{
		Subject: person.ID, Audience: aud, SessionID: g.Authentication.SessionID, GrantID: g.ID,
		AuthTime: g.Authentication.AuthTime.Unix(), ACR: g.Authentication.ACR(), AMR: g.Authentication.Methods,
		Confirmation: token.Confirmation{Thumbprint: as.req.key},
	}
	if g.Offline() {
		c.SessionID = "" // it does not end with the session
	}
	r = token.Response{TokenType: c.Confirmation.TokenType(), ExpiresIn: app.AccessTokenTTL, Scope: carries.String(), RefreshToken: protocol.NewToken(access.RefreshTokenPrefix)}
	if r.AccessToken, err = s.minter.AccessToken(ctx, tenant, app, carries, &c); err != nil {
		return r, err
	}
	if slices.Contains(scopes, "openid") {
		if r.IDToken, err = s.minter.IDToken(ctx, tenant, app, g, person, scope.SetOf(c.Scope), r.AccessToken, as.first, as.req.key); err != nil {
			return r, err
		}
	}
	until := now.Add(app.RefreshTokenTTL)
	if g.ExpiresAt.Before(until) {
		until = g.ExpiresAt
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		if as.uses != nil {
			as.uses(&b)
		}
		b.Queue(`
			INSERT INTO refresh_tokens (tenant_id, hash, grant_id, client_id, dpop_jkt, predecessor, created_at, expires_at, rotated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)`,
			[]any{tenant.ID, protocol.Hash(r.RefreshToken), g.ID, app.ClientID, as.req.key, as.predecessor, now.UnixMicro(), until.UnixMicro()}, nil)
		return tx.Send(ctx, &b)
	})
	if err == nil {
		err = s.clients.NoteUse(ctx, app)
	}
	if err != nil {
		return token.Response{}, fmt.Errorf("issue tokens: %w", err)
	}
	return r, nil
}

// reused revokes a grant of which a code or token came back that was used before, by
// whoever has it: one of the two is not who it was meant for.
func (s *Service) reused(ctx context.Context, tenant protocol.Tenant, grantID string, reused access.Event) error {
	if err := s.access.Revoke(ctx, tenant, grantID, reused, access.TokenFamilyRevoked); err != nil {
		return err
	}
	return access.ErrInvalidGrant
}
