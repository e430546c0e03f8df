package access

import (
	"context"
	"time"

	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// RefreshTokenPrefix tells a refresh token from an access token.
const RefreshTokenPrefix = "rt_"

// RefreshToken is what is kept of one.
type RefreshToken struct {
	Grant                Grant
	ClientID             string
	Key                  string // thumbprint of the one that was proved when it was issued; empty: none
	Predecessor          string // hash of the token that it was issued for; empty: none
	Rotated              bool
	CreatedAt, ExpiresAt time.Time
}

// SelectRefreshToken finds a refresh token, good or not, and what it is of. It fails with invalidGrant.
func (s *Store) SelectRefreshToken(ctx context.Context, tenant protocol.Tenant, token string) (r RefreshToken, err error) {
	var created, expires, rotated int64
	r.Grant, err = grantRow(s.db.QueryRow(ctx, `
		SELECT r.client_id, r.dpop_jkt, r.predecessor, r.created_at, r.expires_at, r.rotated_at, `+grantColumns+`
		FROM refresh_tokens r JOIN grants g ON g.tenant_id = r.tenant_id AND g.id = r.grant_id WHERE r.tenant_id = $1 AND r.hash = $2`, tenant.ID, protocol.Hash(token)),
		tenant, &r.ClientID, &r.Key, &r.Predecessor, &created, &expires, &rotated)
	if err != nil {
		return r, err
	}
	r.CreatedAt, r.ExpiresAt, r.Rotated = storage.Time(created), storage.Time(expires), rotated != 0
	return r, nil
}
