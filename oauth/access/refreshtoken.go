package access

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// RefreshTokenPrefix begins refresh tokens, and no access token.
const RefreshTokenPrefix = "rt_"

// RefreshToken is a stored refresh token. Each use replaces it (rotation, RFC 9700 §4.14.2);
// the tokens that follow from one authorization are a family, which is their grant.
//
// A successor is derived from its predecessor, a seed in its row, and a key of the tenant that is
// not in the database. So a client that presents a token again can get the successor that it
// already has, though only hashes of tokens are stored, and neither a copy of the database nor a
// token that was replaced suffices to derive one.
type RefreshToken struct {
	Grant                Grant
	ClientID             string
	Key                  string    // thumbprint of the key that was proved when it was issued; empty: none
	RotatedAt            time.Time // it was replaced; zero: it was not
	CreatedAt, ExpiresAt time.Time

	token, hash string
}

// Rotated reports whether the token was replaced.
func (r RefreshToken) Rotated() bool { return !r.RotatedAt.IsZero() }

// HeldBy reports whether a client may use the token: it must be the client's own and, if the
// client has no credentials, bound to the key that it proves (RFC 9449 §5), if it is bound.
func (r RefreshToken) HeldBy(app client.Application, key string) bool {
	return r.ClientID == app.ClientID && (r.Key == "" || r.Key == key || app.Type.Confidential())
}

// RefreshToken finds a refresh token, valid or not, and its grant. It fails with
// [ErrInvalidGrant].
func (s *Store) RefreshToken(ctx context.Context, tenant protocol.Tenant, token string) (r RefreshToken, err error) {
	r.token, r.hash = token, protocol.Hash(token)
	var created, expires, rotated int64
	r.Grant, err = grantRow(s.db.QueryRow(ctx, `
		SELECT r.client_id, r.dpop_jkt, r.created_at, r.expires_at, r.rotated_at, `+grantColumns+`
		FROM refresh_tokens r JOIN grants g ON g.tenant_id = r.tenant_id AND g.id = r.grant_id WHERE r.tenant_id = $1 AND r.hash = $2`, tenant.ID, r.hash),
		tenant, &r.ClientID, &r.Key, &created, &expires, &rotated)
	if err != nil {
		return r, err
	}
	r.CreatedAt, r.ExpiresAt, r.RotatedAt = sqldb.Instant(created), sqldb.Instant(expires), sqldb.Instant(rotated)
	return r, nil
}

// NewRefreshToken returns a new refresh token of a grant, for a client and a key, and queues it
// with add. predecessor is the token that it replaces, zero if there is none. It expires with the
// grant at the latest.
func (s *Store) NewRefreshToken(tenant protocol.Tenant, g Grant, clientID, key string, predecessor RefreshToken, ttl time.Duration) (token string, add func(*sqldb.Batch), err error) {
	token, seed := protocol.NewToken(RefreshTokenPrefix), ""
	if predecessor.token != "" {
		seed = protocol.NewToken("")
		if token, err = s.successorOf(tenant, predecessor, seed); err != nil {
			return "", nil, err
		}
	}
	now := storage.Now(s.clock)
	expires := now.Add(ttl)
	if g.ExpiresAt.Before(expires) {
		expires = g.ExpiresAt
	}
	args := []any{tenant.ID, protocol.Hash(token), g.ID, clientID, key, predecessor.hash, seed, now.UnixMicro(), expires.UnixMicro()}
	return token, func(b *sqldb.Batch) {
		b.Queue(`
			INSERT INTO refresh_tokens (tenant_id, hash, grant_id, client_id, dpop_jkt, predecessor, seed, created_at, expires_at, rotated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0)`,
			args, nil)
	}, nil
}

// successorOf derives the successor of a token.
func (s *Store) successorOf(tenant protocol.Tenant, r RefreshToken, seed string) (string, error) {
	key, err := s.seal.DeriveFor(tenant.ID, "refresh tokens")
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, r.token+"\x00"+seed)
	return RefreshTokenPrefix + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// UseOfRefreshToken is the use of a refresh token.
func (s *Store) UseOfRefreshToken(tenant protocol.Tenant, r RefreshToken) Use {
	return Use{
		update: `UPDATE refresh_tokens SET rotated_at = $3 WHERE tenant_id = $1 AND hash = $2 AND rotated_at = 0`,
		args:   []any{tenant.ID, r.hash, storage.Now(s.clock).UnixMicro()}, hash: r.hash,
	}
}

// Successor returns the refresh token that replaced one. It fails with [ErrInvalidGrant] if there
// is none.
func (s *Store) Successor(ctx context.Context, tenant protocol.Tenant, r RefreshToken) (token string, successor RefreshToken, err error) {
	var seed string
	err = s.db.QueryRow(ctx, `SELECT seed FROM refresh_tokens WHERE tenant_id = $1 AND predecessor = $2 AND predecessor <> ''`, tenant.ID, r.hash).Scan(&seed)
	if errors.Is(err, sqldb.ErrNoRows) {
		return "", successor, ErrInvalidGrant
	}
	if err != nil {
		return "", successor, fmt.Errorf("look for successor of refresh token: %w", err)
	}
	if token, err = s.successorOf(tenant, r, seed); err != nil {
		return "", successor, err
	}
	successor, err = s.RefreshToken(ctx, tenant, token)
	return token, successor, err
}
