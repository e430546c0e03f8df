package token

import (
	"context"

	"stonetown/oauth/protocol"
)

// UserInfo returns the claims about the user of an access token (OIDC Core §5.3). It fails
// with [access.ErrUserGone].
func (s *Service) UserInfo(ctx context.Context, tenant protocol.Tenant, p *Principal) (map[string]any, error) {
	user, err := s.users.User(ctx, tenant.ID, p.Subject)
	if err != nil {
		return nil, err
	}
	return user.Claims(p.Scopes), nil
}
