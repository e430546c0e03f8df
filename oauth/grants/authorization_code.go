package grants

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"

	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/internal/storage"
)

// authorizationCode redeems an authorization code (RFC 6749 §4.1.3). A wrong client, redirect
// URI, verifier or key leaves the code unused. If all are right and the code was used before,
// its grant is revoked.
type authorizationCode struct {
	sources
	ofUsers
	read func() (access.Code, error) // returns the code as it was read with the client; nil: it was not
}

func (g *authorizationCode) queue(b *sqldb.Batch, r *request) {
	g.read = g.access.QueueCode(b, r.tenant, r.Code)
}

func (g *authorizationCode) decide(ctx context.Context, r *request) (*issuance, error) {
	read := g.read
	if g.read = nil; read == nil { // another request has used the code since
		read = func() (access.Code, error) { return g.access.Code(ctx, r.tenant, r.Code) }
	}
	code, err := read()
	if err != nil {
		return nil, err
	}
	switch {
	case code.ClientID != r.app.ClientID || code.RedirectURI != r.RedirectURI || !verifies(code.Challenge, r.CodeVerifier) || code.Key != "" && code.Key != r.key:
		return nil, access.ErrInvalidGrant
	case code.Used:
		return nil, g.reused(ctx, r.tenant, code.Grant.ID, access.AuthorizationCodeReused)
	case !storage.Now(g.clock).Before(code.ExpiresAt):
		return nil, access.ErrInvalidGrant
	}
	described, err := g.ofGrant(ctx, r, code.Grant, nil, true)
	if err != nil {
		return nil, err
	}
	described.consumes = g.access.UseOfCode(r.tenant, code)
	return described, nil
}

// verifies reports whether a challenge was made of a verifier (RFC 7636 §4.6). Without a
// challenge there must be no verifier: otherwise an attacker who removes the challenge from
// the request could redeem the code (RFC 9700 §4.8).
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
