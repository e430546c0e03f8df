package authorization

import (
	"context"
	"fmt"

	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

// IssueCode completes an authorization request of a user who has signed in. It returns an
// authorization code (RFC 6749 §4.1.2), which is valid for a minute and once.
func (s *Service) IssueCode(ctx context.Context, tenant protocol.Tenant, r Request, by access.Authentication) (code string, err error) {
	grantID := id.New(id.Grant)
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		settings, err := client.SelectSettings(ctx, tx, tenant.ID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		s.access.Begin(&b, tenant, settings, access.Grant{ID: grantID, ClientID: r.ClientID, Authentication: by, Scopes: r.Scopes, Audience: r.Audience, Nonce: r.Nonce})
		code = s.access.AddCode(&b, tenant, grantID, r.ClientID, r.RedirectURI, r.Challenge, r.Thumbprint)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return "", fmt.Errorf("issue code: %w", err)
	}
	return code, nil
}
