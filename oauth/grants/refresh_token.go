package grants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
)

// refresh answers the refresh_token grant. The token is replaced; who comes with one that
// was replaced before ends its whole family (RFC 9700 §4.14.2), unless the tenant grants
// some leeway ([Settings.RefreshReuseLeewayS]). A client without a secret needs the key that
// it had when it got the token (RFC 9449 §5); without that, the token is left as it is.
func (s *Service) refresh(ctx context.Context, tenant protocol.Tenant, app client.Application, req Request) (token.Response, error) {
	r, err := s.access.SelectRefreshToken(ctx, tenant, req.RefreshToken)
	switch {
	case err != nil:
		return token.Response{}, err
	case r.ClientID != app.ClientID || r.Key != "" && r.Key != req.key && !app.Type.Confidential():
		return token.Response{}, access.ErrInvalidGrant
	}
	hash := protocol.Hash(req.RefreshToken)
	if r.Rotated {
		if err := s.repeated(ctx, tenant, r.Grant.ID, hash); err != nil {
			return token.Response{}, err
		}
	}
	if !storage.Now(s.clock).Before(r.ExpiresAt) {
		return token.Response{}, access.ErrInvalidGrant
	}
	g := r.Grant
	narrower, err := scope.Parse(req.Scope)
	if err != nil {
		return token.Response{}, err
	}
	as := issuance{req: req, scopes: narrower, predecessor: hash}
	if !r.Rotated {
		as.uses = func(b *sqldb.Batch) {
			now := storage.Now(s.clock).UnixMicro()
			useOnce(b, `UPDATE refresh_tokens SET rotated_at = $3 WHERE tenant_id = $1 AND hash = $2 AND rotated_at = 0`, tenant.ID, hash, now)
			if r.Predecessor != "" { // of tokens that were issued for the same one only the first used goes on
				b.Queue(`UPDATE refresh_tokens SET rotated_at = $3 WHERE tenant_id = $1 AND predecessor = $2 AND rotated_at = 0`, []any{tenant.ID, r.Predecessor, now}, nil)
			}
		}
	}
	issued, err := s.issue(ctx, tenant, app, g, as)
	if errors.Is(err, errReused) { // while this request was on its way
		if err := s.repeated(ctx, tenant, g.ID, hash); err != nil {
			return token.Response{}, err
		}
		as.uses = nil
		issued, err = s.issue(ctx, tenant, app, g, as)
	}
	return issued, err
}

// repeated lets a refresh token that was replaced lead to another one, beside the first: a
// moment later, while no successor was used, it may be that the client did not get the
// answer. Else it ends the family, and fails with invalidGrant.
func (s *Service) repeated(ctx context.Context, tenant protocol.Tenant, grantID, hash string) error {
	settings, err := client.SelectSettings(ctx, s.db, tenant.ID)
	if err != nil {
		return err
	}
	var rotated, used int64 // rotated is 0 of one without successors
	if settings.RefreshReuseLeewayS > 0 {
		err = s.db.QueryRow(ctx, `
			SELECT r.rotated_at, MAX(s.rotated_at)
			FROM refresh_tokens r JOIN refresh_tokens s ON s.tenant_id = r.tenant_id AND s.predecessor = r.hash AND s.predecessor <> ''
			WHERE r.tenant_id = $1 AND r.hash = $2 GROUP BY r.rotated_at`, tenant.ID, hash).Scan(&rotated, &used)
		if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
			return fmt.Errorf("look for successors of refresh token: %w", err)
		}
	}
	late := storage.Now(s.clock).Sub(storage.Time(rotated)) > time.Duration(settings.RefreshReuseLeewayS)*time.Second
	if late || used != 0 {
		return s.reused(ctx, tenant, grantID, access.RefreshTokenReused)
	}
	return nil
}
