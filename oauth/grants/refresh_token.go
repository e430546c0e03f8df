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
// that it had when it got the token (RFC 9449 §5); without it the token stays as it is.
type refreshToken struct {
	sources
	ofUsers
}

func (g refreshToken) decide(ctx context.Context, r *request) (*issuance, error) {
	presented, err := g.access.RefreshToken(ctx, r.tenant, r.RefreshToken)
	if err != nil {
		return nil, err
	}
	if presented.ClientID != r.app.ClientID || presented.Key != "" && presented.Key != r.key && !r.app.Type.Confidential() {
		return nil, access.ErrInvalidGrant
	}
	if presented.Rotated {
		if err := g.repeated(ctx, r, presented); err != nil {
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
	described.ofUser.predecessor = presented
	if !presented.Rotated {
		described.consumes = g.access.UseOfRefreshToken(r.tenant, presented)
	}
	return described, nil
}

// repeated decides about a token that was replaced before. Within the leeway, and while no
// successor was used, the client may not have received the response, so the token leads to
// another successor. Otherwise repeated revokes the grant and fails with
// [access.ErrInvalidGrant].
func (g refreshToken) repeated(ctx context.Context, r *request, presented access.RefreshToken) error {
	settings, err := client.SelectSettings(ctx, g.db, r.tenant.ID)
	if err != nil {
		return err
	}
	var rotatedAt time.Time
	used := false
	if settings.RefreshReuseLeewayS > 0 {
		if rotatedAt, used, err = g.access.Successors(ctx, r.tenant, presented); err != nil {
			return err
		}
	}
	late := storage.Now(g.clock).Sub(rotatedAt) > time.Duration(settings.RefreshReuseLeewayS)*time.Second
	if late || used {
		return g.reused(ctx, r.tenant, presented.Grant.ID, access.RefreshTokenReused)
	}
	return nil
}
