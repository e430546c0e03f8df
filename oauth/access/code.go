package access

import (
	"context"
	"time"

	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// Code is a stored authorization code.
type Code struct {
	Grant                  Grant
	ClientID               string
	RedirectURI, Challenge string
	Key                    string // thumbprint of the key that the request named; empty: none
	Used                   bool
	ExpiresAt              time.Time
}

// SelectCode finds an authorization code, valid or not, and its grant. It fails with
// invalidGrant.
func (s *Store) SelectCode(ctx context.Context, tenant protocol.Tenant, presented string) (c Code, err error) {
	var expires, used int64
	c.Grant, err = grantRow(s.db.QueryRow(ctx, `
		SELECT c.client_id, c.redirect_uri, c.challenge, c.dpop_jkt, c.expires_at, c.used_at, `+grantColumns+`
		FROM codes c JOIN grants g ON g.tenant_id = c.tenant_id AND g.id = c.grant_id WHERE c.tenant_id = $1 AND c.hash = $2`, tenant.ID, protocol.Hash(presented)),
		tenant, &c.ClientID, &c.RedirectURI, &c.Challenge, &c.Key, &expires, &used)
	c.ExpiresAt, c.Used = storage.Time(expires), used != 0
	return c, err
}
