package authorization

import (
	"context"
	"fmt"
	"time"

	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// codeFor is how long an authorization code is good.
const codeFor = time.Minute

// IssueCode answers an authorization request for a user who has signed in: with a code that
// is good for a minute and once.
func (s *Service) IssueCode(ctx context.Context, tenant protocol.Tenant, r Request, by access.Authentication) (code string, err error) {
	now := storage.Now(s.clock)
	code = protocol.NewToken("ac_")
	grantID := id.New(id.Grant)
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		settings, err := client.SelectSettings(ctx, tx, tenant.ID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		s.access.Begin(&b, tenant, settings, access.Grant{ID: grantID, ClientID: r.ClientID, Authentication: by, Scopes: r.Scopes, Audience: r.Audience, Nonce: r.Nonce})
		b.Queue(`
			INSERT INTO codes (tenant_id, hash, grant_id, client_id, redirect_uri, challenge, dpop_jkt, expires_at, used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)`,
			[]any{tenant.ID, protocol.Hash(code), grantID, r.ClientID, r.RedirectURI, r.Challenge, r.Thumbprint, now.Add(codeFor).UnixMicro()}, nil)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return "", fmt.Errorf("issue code: %w", err)
	}
	return code, nil
}
