package token

import (
	"context"

	"stonetown/oauth/access"
	"stonetown/oauth/claim"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

// UserInfo returns the claims about the user of an access token (OIDC Core §5.3). It fails
// with [access.ErrUserGone].
func (s *Service) UserInfo(ctx context.Context, tenant protocol.Tenant, p *Principal) (map[string]any, error) {
	user, err := s.users.User(ctx, tenant.ID, p.Subject)
	if err != nil {
		return nil, err
	}
	c := user.Claims(p.Scopes)
	app, err := client.Select(ctx, s.db, tenant.ID, p.ClientID)
	if client.IsNotFound(err) { // the product itself issued the token
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	configured, err := s.Configured(ctx, tenant, app, p.Subject, &user, p.Scopes.Has, client.InUserInfo)
	configured.AddTo(c, client.InUserInfo)
	return c, err
}

// Configured returns the values of the claims that are configured for an application, for a
// token with some scopes. user is the subject; nil: it is an application.
func (s *Service) Configured(ctx context.Context, tenant protocol.Tenant, app client.Application, subject string, user *access.User, has func(scope string) bool, where ...client.ClaimPlace) (claim.Values, error) {
	return s.claims.Find(ctx, claim.Request{TenantID: tenant.ID, App: app, Subject: SubjectOf(subject), User: user, Has: has, Where: where})
}
