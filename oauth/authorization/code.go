package authorization

import (
	"context"
	"fmt"

	"stonetown/internal/id"
	"stonetown/oauth/access"
	"stonetown/oauth/protocol"
)

// IssueCode completes an authorization request of a user who has signed in. It returns an
// authorization code (RFC 6749 §4.1.2), which is valid for a minute and once. It fails with
// [*PageError] if the application was deleted.
func (s *Service) IssueCode(ctx context.Context, tenant protocol.Tenant, r Request, by access.Authentication) (code string, err error) {
	c, err := s.known(ctx, tenant, &r)
	if err == nil {
		g := access.Grant{ID: id.New(id.Grant), ClientID: r.ClientID, Authentication: r.stated(by), Scopes: r.Scopes, Claims: r.Claims, Details: r.Details, Audience: r.Audience, Nonce: r.Nonce}
		code, err = s.access.Issue(ctx, tenant, c.settings, g, r.RedirectURI, r.Challenge, r.Thumbprint)
	}
	if err != nil {
		return "", fmt.Errorf("issue code: %w", err)
	}
	return code, nil
}
