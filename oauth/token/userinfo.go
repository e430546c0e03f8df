package token

import (
	"context"
	"errors"
	"fmt"

	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/claim"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

// UserInfo returns the claims about the user of an access token (OIDC Core §5.3), and the application
// to which the token was issued; zero: the product itself issued it. It fails with
// [access.ErrUserGone].
func (s *Service) UserInfo(ctx context.Context, tenant protocol.Tenant, p *Principal) (c map[string]any, app client.Application, err error) {
	user, err := s.users.User(ctx, tenant.ID, p.Subject)
	if err != nil {
		return nil, app, err
	}
	var b sqldb.Batch
	readApp, readGrant := client.QueueSelect(&b, tenant.ID, p.ClientID), access.QueueGrant(&b, tenant, p.GrantID)
	if err := s.db.Send(ctx, &b); err != nil {
		return nil, app, fmt.Errorf("read application and grant: %w", err)
	}
	app, err = readApp()
	if client.IsNotFound(err) { // the product itself issued the token
		return user.Claims(p.Scopes, nil), app, nil
	}
	if err != nil {
		return nil, app, err
	}
	g, err := readGrant()
	if err != nil && !errors.Is(err, access.ErrInvalidGrant) {
		return nil, app, err
	}
	c = user.Claims(p.Scopes, p.requested(g).For(app.AllowedScopes).UserInfo)
	signIn := ""
	if p.issuedFor(g) {
		signIn = g.Authentication.Claims
	}
	configured, err := s.Configured(ctx, tenant, app, p.Subject, &user, signIn, p.Scopes.Has, client.InUserInfo)
	configured.AddTo(c, client.InUserInfo)
	return c, app, err
}

// SignUserInfo returns a response of the UserInfo endpoint as a JWT for an application, signed by its
// userinfo_signed_response_alg (OIDC Core §5.3.2). It has no exp, so it is no ID token.
func (s *Service) SignUserInfo(ctx context.Context, tenant protocol.Tenant, app client.Application, c map[string]any) (string, error) {
	c["iss"], c["aud"] = tenant.BaseURL, app.ClientID
	return s.keys.Sign(ctx, tenant, app.UserInfoAlg, "JWT", c)
}

// requested returns the claims that were requested by their names when a grant was given, for a token
// that was issued for this grant. A token of an exchange has none: scopes can be taken from it, and
// other applications can have it, and no user has agreed to either.
func (p *Principal) requested(g access.Grant) access.RequestedClaims {
	if !p.issuedFor(g) {
		return access.RequestedClaims{}
	}
	return g.Claims
}

// issuedFor reports whether a token was issued for a grant, and not by an exchange.
func (p *Principal) issuedFor(g access.Grant) bool {
	return g.ClientID == p.ClientID && len(p.Ancestors) == 0 && !p.Acting()
}

// Configured returns the values of the claims that are configured for an application, for a
// token with some scopes. user is the subject; nil: it is an application. signIn are the claims of
// the user's sign-in ([claim.Request]).
func (s *Service) Configured(ctx context.Context, tenant protocol.Tenant, app client.Application, subject string, user *access.User, signIn string, has func(scope string) bool, where ...client.ClaimPlace) (claim.Values, error) {
	return s.claims.Find(ctx, claim.Request{TenantID: tenant.ID, App: app, Subject: SubjectOf(subject), User: user, SignIn: signIn, Has: has, Where: where})
}
