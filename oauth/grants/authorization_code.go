package grants

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"

	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// exchangeCode answers the authorization_code grant. A wrong client, redirect URI, verifier
// or key leaves the code as it is; who comes with the right ones a second time ends all
// that followed from the first.
func (s *Service) exchangeCode(ctx context.Context, tenant protocol.Tenant, app client.Application, req Request) (token.Response, error) {
	c, err := s.access.SelectCode(ctx, tenant, req.Code)
	now := storage.Now(s.clock)
	g, hash := c.Grant, protocol.Hash(req.Code)
	switch {
	case err != nil:
		return token.Response{}, err
	case c.ClientID != app.ClientID || c.RedirectURI != req.RedirectURI || !verifies(c.Challenge, req.CodeVerifier) || c.Key != "" && c.Key != req.key:
		return token.Response{}, access.ErrInvalidGrant
	case c.Used:
		return token.Response{}, s.reused(ctx, tenant, g.ID, access.AuthorizationCodeReused)
	case !now.Before(c.ExpiresAt):
		return token.Response{}, access.ErrInvalidGrant
	}
	issued, err := s.issue(ctx, tenant, app, g, issuance{req: req, first: true, uses: func(b *sqldb.Batch) {
		useOnce(b, `UPDATE codes SET used_at = $3 WHERE tenant_id = $1 AND hash = $2 AND used_at = 0`, tenant.ID, hash, now.UnixMicro())
	}})
	if errors.Is(err, errReused) {
		err = s.reused(ctx, tenant, g.ID, access.AuthorizationCodeReused)
	}
	return issued, err
}

// verifies reports whether a verifier is the one that a challenge was made of (RFC 7636
// §4.6). Without a challenge there must be none: else whoever can take the challenge out of
// a request could redeem the code (RFC 9700 §4.8).
func verifies(challenge, verifier string) bool {
	if challenge == "" {
		return verifier == ""
	}
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}
