package token

import (
	"context"

	"stonetown/internal/id"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

// Minter issues tokens. There is one for each [Service], which [New] returns to the runner of
// the grants: a grant does not have it, and so issues no token by itself.
type Minter struct{ s *Service }

// AccessToken signs an access token for an application, with the scopes of an entitlement.
// The caller sets subject and audience, and the latest expiry if the lifetime that the
// application sets is not the only limit. The rest follows from tenant, application and clock.
func (m *Minter) AccessToken(ctx context.Context, tenant protocol.Tenant, app client.Application, carries Entitlement, c *Claims) (string, error) {
	return m.s.mint(ctx, tenant, app, carries, c)
}

func (s *Service) mint(ctx context.Context, tenant protocol.Tenant, app client.Application, carries Entitlement, c *Claims) (string, error) {
	now := s.clock()
	c.Scope = carries.String()
	c.Issuer, c.TenantID, c.ClientID = tenant.BaseURL, tenant.ID, app.ClientID
	c.IssuedAt, c.NotBefore = now.Unix(), now.Unix()
	if expires := now.Add(app.AccessTokenTTL).Unix(); c.Expires == 0 || expires < c.Expires {
		c.Expires = expires
	}
	c.TokenID = id.New(id.Token)
	return s.keys.Sign(ctx, tenant, app.SigningAlg, accessTokenType, c)
}
