package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// RefreshTokenPrefix begins refresh tokens, and no access token.
const RefreshTokenPrefix = "rt_"

// RefreshToken is a stored refresh token. Each use replaces it (rotation, RFC 9700 §4.14.2);
// the tokens that follow from one authorization are a family, which is their grant.
type RefreshToken struct {
	Grant                Grant
	ClientID             string
	Key                  string // thumbprint of the key that was proved when it was issued; empty: none
	Rotated              bool   // it was replaced
	CreatedAt, ExpiresAt time.Time

	hash        string
	predecessor string // hash of the token that it replaced; empty: none
}

// RefreshToken finds a refresh token, valid or not, and its grant. It fails with
// [ErrInvalidGrant].
func (s *Store) RefreshToken(ctx context.Context, tenant protocol.Tenant, token string) (r RefreshToken, err error) {
	r.hash = protocol.Hash(token)
	var created, expires, rotated int64
	r.Grant, err = grantRow(s.db.QueryRow(ctx, `
		SELECT r.client_id, r.dpop_jkt, r.predecessor, r.created_at, r.expires_at, r.rotated_at, `+grantColumns+`
		FROM refresh_tokens r JOIN grants g ON g.tenant_id = r.tenant_id AND g.id = r.grant_id WHERE r.tenant_id = $1 AND r.hash = $2`, tenant.ID, r.hash),
		tenant, &r.ClientID, &r.Key, &r.predecessor, &created, &expires, &rotated)
	if err != nil {
		return r, err
	}
	r.CreatedAt, r.ExpiresAt, r.Rotated = sqldb.Instant(created), sqldb.Instant(expires), rotated != 0
	return r, nil
}

// NewRefreshToken returns a new refresh token of a grant, for a client and a key, and queues it
// with add. predecessor is the token that it replaces, zero if there is none. It expires with the
// grant at the latest.
func (s *Store) NewRefreshToken(tenant protocol.Tenant, g Grant, clientID, key string, predecessor RefreshToken, ttl time.Duration) (token string, add func(*sqldb.Batch)) {
	token = protocol.NewToken(RefreshTokenPrefix)
	now := storage.Now(s.clock)
	expires := now.Add(ttl)
	if g.ExpiresAt.Before(expires) {
		expires = g.ExpiresAt
	}
	args := []any{tenant.ID, protocol.Hash(token), g.ID, clientID, key, predecessor.hash, now.UnixMicro(), expires.UnixMicro()}
	return token, func(b *sqldb.Batch) {
		b.Queue(`
			INSERT INTO refresh_tokens (tenant_id, hash, grant_id, client_id, dpop_jkt, predecessor, created_at, expires_at, rotated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)`,
			args, nil)
	}
}

// UseOfRefreshToken is the use of a refresh token. Of the tokens that were issued for the same
// one, only the first that is used goes on; the others end with its use.
func (s *Store) UseOfRefreshToken(tenant protocol.Tenant, r RefreshToken) Use {
	now := storage.Now(s.clock).UnixMicro()
	return Use{
		update: `UPDATE refresh_tokens SET rotated_at = $3 WHERE tenant_id = $1 AND hash = $2 AND rotated_at = 0`,
		args:   []any{tenant.ID, r.hash, now}, hash: r.hash,
		ends: func(b *sqldb.Batch) {
			if r.predecessor != "" {
				b.Queue(`UPDATE refresh_tokens SET rotated_at = $3 WHERE tenant_id = $1 AND predecessor = $2 AND rotated_at = 0`, []any{tenant.ID, r.predecessor, now}, nil)
			}
		},
	}
}

// Successors returns when a refresh token was replaced, zero if it has no successor, and
// whether a successor was used.
func (s *Store) Successors(ctx context.Context, tenant protocol.Tenant, r RefreshToken) (rotatedAt time.Time, used bool, err error) {
	var rotated, latest int64
	err = s.db.QueryRow(ctx, `
		SELECT r.rotated_at, MAX(s.rotated_at)
		FROM refresh_tokens r JOIN refresh_tokens s ON s.tenant_id = r.tenant_id AND s.predecessor = r.hash AND s.predecessor <> ''
		WHERE r.tenant_id = $1 AND r.hash = $2 GROUP BY r.rotated_at`, tenant.ID, r.hash).Scan(&rotated, &latest)
	if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
		return rotatedAt, false, fmt.Errorf("look for successors of refresh token: %w", err)
	}
	return sqldb.Instant(rotated), latest != 0, nil
}
