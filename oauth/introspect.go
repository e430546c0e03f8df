package oauth

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// Introspection is what a token says, to those whom it concerns (RFC 7662 §2.2). The zero
// value is all that others learn: that it is not good, or not for them.
type Introspection struct {
	Active                bool
	TokenType             string // [TokenTypeBearer] or [TokenTypeDPoP]; empty for refresh tokens
	Thumbprint            string // of the key that an access token is bound to; empty: to none
	ClientID              string
	Subject               string
	Username              string // the address of a user
	Scope                 string
	Audience              []string
	Issuer                string
	TokenID               string
	SessionID             string
	TenantID              string
	IssuedAt              time.Time
	NotBefore             time.Time
	ExpiresAt             time.Time
	AuthTime              time.Time
	AuthenticationContext string // acr
	Actor                 *Actor // act; nil: nobody acts for the subject
}

// Introspect tells a client that can prove who it is about a token: about its own, and about
// access tokens that are for it. Whatever ends a token is seen at once. Refusals of the
// client are [*Error].
func (s *Service) Introspect(ctx context.Context, tenant Tenant, by Credentials, token string) (Introspection, error) {
	app, err := s.client(ctx, tenant, by)
	if err != nil {
		return Introspection{}, err
	}
	if !app.Type.Confidential() {
		return Introspection{}, &Error{InvalidClient, "introspection requires a client with credentials"}
	}
	var i Introspection
	if strings.HasPrefix(token, refreshTokenPrefix) {
		i, err = s.introspectRefreshToken(ctx, tenant, app, token)
	} else {
		i, err = s.introspectAccessToken(ctx, tenant, app, token)
	}
	var refused *TokenError
	if errors.As(err, &refused) || errors.Is(err, invalidGrant) || errors.Is(err, ErrPersonGone) {
		return Introspection{}, nil
	}
	return i, err
}

func (s *Service) introspectAccessToken(ctx context.Context, tenant Tenant, app Application, token string) (Introspection, error) {
	c, err := s.readToken(ctx, tenant, token, s.clock())
	if err != nil {
		return Introspection{}, err
	}
	if !app.IntrospectAll && c.ClientID != app.ClientID && (app.Audience == "" || !slices.Contains(c.Audience, app.Audience)) {
		return Introspection{}, nil
	}
	if err := s.alive(ctx, tenant, c); err != nil {
		return Introspection{}, err
	}
	scopes, person, err := s.standingScopes(ctx, tenant, c)
	if err != nil {
		return Introspection{}, err
	}
	i := Introspection{
		Active: true, TokenType: c.Confirmation.tokenType(), Thumbprint: c.Confirmation.Thumbprint, ClientID: c.ClientID, Subject: c.Subject, Scope: strings.Join(scopes, " "), Audience: c.Audience, Issuer: c.Issuer,
		Actor: c.Act, TokenID: c.TokenID, SessionID: c.SessionID, TenantID: c.TenantID, AuthenticationContext: c.ACR,
		IssuedAt: seconds(c.IssuedAt), NotBefore: seconds(c.NotBefore), ExpiresAt: seconds(c.Expires),
	}
	if person != nil {
		i.AuthTime, i.Username = seconds(c.AuthTime), person.Email
	}
	return i, nil
}

// standingScopes are the scopes of an access token that its application may still have,
// and the user that it speaks for; nil if it speaks for an application.
func (s *Service) standingScopes(ctx context.Context, tenant Tenant, c claims) (scopes []string, person *Person, err error) {
	if c.AuthTime != 0 {
		p, err := s.people.Person(ctx, tenant.ID, c.Subject)
		if err != nil {
			return nil, nil, err
		}
		person = &p
	}
	scopes = strings.Fields(c.Scope)
	app, err := selectApplication(ctx, s.db, tenant.ID, c.ClientID)
	if notFound(err) { // the product itself issued the token
		return scopes, person, nil
	}
	granted := scopes
	if err == nil && person != nil && c.Parent == "" {
		var g grant
		if g, err = selectGrant(ctx, s.db, tenant, c.GrantID); err == nil {
			granted = g.scopes
		}
	}
	return standing(scopes, app, granted, person), person, err
}

func (s *Service) introspectRefreshToken(ctx context.Context, tenant Tenant, app Application, token string) (Introspection, error) {
	r, err := s.selectRefreshToken(ctx, tenant, token)
	if err != nil {
		return Introspection{}, err
	}
	if r.clientID != app.ClientID || r.rotated || !moment(s.clock).Before(r.expiresAt) {
		return Introspection{}, nil
	}
	g := r.grant
	person, err := s.holder(ctx, tenant, g, false)
	if err != nil {
		return Introspection{}, err
	}
	// What the token would lead to now.
	carries, err := s.entitled(ctx, tenant, entitling{app: app, person: &person, scopes: g.scopes, brings: true})
	if err != nil {
		return Introspection{}, err
	}
	return Introspection{
		Active: true, ClientID: r.clientID, Subject: person.ID, Username: person.Email, Scope: carries.String(), Issuer: tenant.BaseURL,
		TenantID: tenant.ID, IssuedAt: r.createdAt, ExpiresAt: r.expiresAt, AuthTime: g.auth.AuthTime, AuthenticationContext: g.auth.acr(),
	}, nil
}

// Revoke takes a token of a client back (RFC 7009): an access token alone, a refresh token
// with all that followed from the same authorization. When it returns, no process accepts
// it any more. Tokens that are not good, or not the client's, are left as they are.
// Refusals of the client are [*Error].
func (s *Service) Revoke(ctx context.Context, tenant Tenant, by Credentials, token string) error {
	app, err := s.client(ctx, tenant, by)
	if err != nil {
		return err
	}
	if strings.HasPrefix(token, refreshTokenPrefix) {
		r, err := s.selectRefreshToken(ctx, tenant, token)
		if err == nil && r.clientID == app.ClientID {
			err = s.revokeGrant(ctx, tenant, r.grant.id, tokenFamilyRevoked)
		}
		if errors.Is(err, invalidGrant) {
			return nil
		}
		return err
	}
	c, err := s.readToken(ctx, tenant, token, s.clock())
	var refused *TokenError
	if errors.As(err, &refused) || err == nil && c.ClientID != app.ClientID {
		return nil
	}
	if err != nil {
		return err
	}
	if done, err := s.revoked.has(ctx, revocation{tenant.ID, revokedClient, c.ClientID}, revocation{tenant.ID, revokedToken, c.TokenID}); done || err != nil {
		return err
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		s.revoked.set(&b, revocation{tenant.ID, revokedToken, c.TokenID}, seconds(c.Expires))
		eventlog.Append(&b, tenant.ID, tokenRevoked(asApplication(ctx, app), c))
		return tx.Send(ctx, &b)
	})
	if err == nil {
		s.revoked.settle(ctx)
	}
	return err
}
