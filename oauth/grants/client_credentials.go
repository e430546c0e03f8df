package grants

import (
	"context"

	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// clientCredentials issues a token to the application itself (RFC 6749 §4.4).
func (s *Service) clientCredentials(ctx context.Context, tenant protocol.Tenant, app client.Application, req Request) (token.Response, error) {
	if !app.ActsForItself() {
		return token.Response{}, protocol.NewError(protocol.UnauthorizedClient, "the application cannot use "+protocol.GrantClientCredentials)
	}
	scopes, err := client.GrantedScopes(app, req.Scope)
	if err != nil {
		return token.Response{}, err
	}
	aud, err := client.Audience(tenant, app, req.Audience, scopes)
	if err != nil {
		return token.Response{}, err
	}
	carries, err := s.tokens.Entitled(ctx, tenant, token.EntitlementRequest{App: app, Scopes: scopes})
	if err == nil {
		err = s.authn.Admit(ctx, req.Credentials, app.ClientID)
	}
	if err != nil {
		return token.Response{}, err
	}
	c := token.Claims{Subject: app.ClientID, Audience: aud, Confirmation: token.Confirmation{Thumbprint: req.key}}
	raw, err := s.minter.AccessToken(ctx, tenant, app, carries, &c)
	if err == nil {
		err = s.clients.NoteUse(ctx, app)
	}
	if err != nil {
		return token.Response{}, err
	}
	return token.Response{AccessToken: raw, TokenType: c.Confirmation.TokenType(), ExpiresIn: app.AccessTokenTTL, Scope: carries.String()}, nil
}
