package grants

import (
	"context"
	"time"

	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/scope"
)

// refreshToken replaces a refresh token by new tokens of the same grant (RFC 6749 §6). A token
// that was replaced before revokes its grant (RFC 9700 §4.14.2), unless the tenant allows a
// leeway ([client.Settings.RefreshReuseLeewayS]). A client without credentials needs the key
// that it had when it got the token (RFC 9449 §5); without it the token stays as it is. So does
// that of an application whose tokens are not rotated.
type refreshToken struct {
	sources
	ofUsers
}

func (g refreshToken) decide(ctx context.Context, r *request) (*issuance, error) {
	presented, err := g.access.RefreshToken(ctx, r.tenant, r.RefreshToken)
	if err != nil {
		return nil, err
	}
	if !presented.HeldBy(r.app, r.key) {
		return nil, access.ErrInvalidGrant
	}
	successor := ""
	if presented.Rotated() {
		if successor, err = g.again(ctx, r, presented); err != nil {
			return nil, err
		}
	}
	if !storage.Now(g.clock).Before(presented.ExpiresAt) {
		return nil, access.ErrInvalidGrant
	}
	narrower, err := scope.Parse(r.Scope)
	if err != nil {
		return nil, err
	}
	described, err := g.ofGrant(ctx, r, presented.Grant, narrower, false)
	if err != nil {
		return nil, err
	}
	if successor == "" && !r.app.RotatesRefreshTokens() {
		successor = r.RefreshToken
	}
	described.ofUser.predecessor, described.ofUser.successor = presented, successor
	if successor == "" {
		described.consumes = g.access.UseOfRefreshToken(r.tenant, presented)
	}
	return described, nil
}

// again returns the successor of a token that was replaced before. Within the leeway, and while
// the successor was not used, the client may not have received the response, or it has renewed
// the token twice at once, as two tabs of a browser do. So a family never has two valid tokens.
// Otherwise again revokes the grant and fails with [access.ErrInvalidGrant].
func (g refreshToken) again(ctx context.Context, r *request, presented access.RefreshToken) (string, error) {
	settings, err := client.SelectSettings(ctx, g.db, r.tenant.ID)
	if err != nil {
		return "", err
	}
	leeway := time.Duration(settings.RefreshReuseLeewayS) * time.Second
	if leeway == 0 || storage.Now(g.clock).Sub(presented.RotatedAt) > leeway {
		return "", g.reused(ctx, r.tenant, presented.Grant.ID, access.RefreshTokenReused)
	}
	token, successor, err := g.access.Successor(ctx, r.tenant, presented)
	switch {
	case err != nil:
		return "", err
	case successor.Rotated():
		return "", g.reused(ctx, r.tenant, presented.Grant.ID, access.RefreshTokenReused)
	case !successor.HeldBy(r.app, r.key): // the client has renewed an unbound token with a key
		return "", access.ErrInvalidGrant
	}
	return token, nil
}
