package authorization

import (
	"context"
	"fmt"

	"stonetown/internal/id"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

// IssueCode completes an authorization request of a user who has signed in. It returns an
// authorization code (RFC 6749 §4.1.2), which is valid for a minute and once.
func (s *Service) IssueCode(ctx context.Context, tenant protocol.Tenant, r Request, by access.Authentication) (code string, err error) {
	settings, err := client.SelectSettings(ctx, s.db, tenant.ID)
	if err == nil {
		g := access.Grant{ID: id.New(id.Grant), ClientID: r.ClientID, Authentication: by, Scopes: r.Scopes, Audience: r.Audience, Nonce: r.Nonce}
		code, err = s.access.Issue(ctx, tenant, settings, g, r.RedirectURI, r.Challenge, r.Thumbprint)
	}
	if err != nil {
		return "", fmt.Errorf("issue code: %w", err)
	}
	return code, nil
}
