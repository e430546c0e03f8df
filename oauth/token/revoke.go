package token

import (
	"context"
	"errors"
	"strings"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/revocation"
)

// Revoke revokes a token of a client (RFC 7009): an access token alone, a refresh token with
// its grant. When it returns, no process accepts the token. Tokens that are not valid, or of
// another client, stay as they are. Refusals of the client are [*protocol.Error].
func (s *Service) Revoke(ctx context.Context, tenant protocol.Tenant, by client.Credentials, token string) error {
	app, err := s.authn.Client(ctx, tenant, by)
	if err != nil {
		return err
	}
	if strings.HasPrefix(token, access.RefreshTokenPrefix) {
		r, err := s.access.RefreshToken(ctx, tenant, token)
		if err == nil && r.ClientID == app.ClientID {
			err = s.access.Revoke(ctx, tenant, r.Grant.ID, access.TokenFamilyRevoked)
		}
		if errors.Is(err, access.ErrInvalidGrant) {
			return nil
		}
		return err
	}
	c, err := s.Read(ctx, tenant, token, s.clock())
	var refused *Error
	if errors.As(err, &refused) || err == nil && c.ClientID != app.ClientID {
		return nil
	}
	if err != nil {
		return err
	}
	if done, err := s.revoked.Has(ctx, revocation.Item{TenantID: tenant.ID, Kind: revocation.Client, ID: c.ClientID}, revocation.Item{TenantID: tenant.ID, Kind: revocation.Token, ID: c.TokenID}); done || err != nil {
		return err
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		s.revoked.Set(&b, revocation.Item{TenantID: tenant.ID, Kind: revocation.Token, ID: c.TokenID}, Seconds(c.Expires))
		eventlog.Append(&b, tenant.ID, tokenRevoked(client.AsActor(ctx, app), c))
		return tx.Send(ctx, &b)
	})
	if err == nil {
		s.revoked.Settle(ctx)
	}
	return err
}
