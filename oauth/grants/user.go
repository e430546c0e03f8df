package grants

import (
	"context"
	"slices"

	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// ofGrant describes the tokens of a user's grant. narrower are the requested scopes; none
// requests all that were granted. first states that the user has just signed in.
func (s sources) ofGrant(ctx context.Context, r *request, g access.Grant, narrower []string, first bool) (*issuance, error) {
	user, err := s.access.Holder(ctx, r.tenant, g, first)
	if err != nil {
		return nil, err
	}
	details, err := s.heldDetails(ctx, r, token.SubjectOf(user.ID), g.Details)
	if err != nil {
		return nil, err
	}
	return &issuance{
		details:     details,
		entitlement: token.EntitlementRequest{App: r.app, User: &user, Scopes: g.Scopes, GroupScopes: true},
		claims: func(carries token.Entitlement) (token.Entitlement, token.Claims, error) {
			return claimsOfGrant(r.tenant, r.app, g, user, carries, narrower, r.Audience)
		},
		countedFor: user.ID,
		ofUser:     &userTokens{grant: g, user: user, first: first},
	}, nil
}

// claimsOfGrant returns the claims of an access token of a user's grant: with the scopes of the
// entitlement, or fewer if fewer are requested, for the audience of the grant.
func claimsOfGrant(tenant protocol.Tenant, app client.Application, g access.Grant, user access.User, carries token.Entitlement, narrower, requested []string) (token.Entitlement, token.Claims, error) {
	if len(narrower) > 0 {
		for _, name := range narrower {
			if !slices.Contains(g.Scopes, name) && !carries.Has(name) {
				return carries, token.Claims{}, protocol.NewError(protocol.InvalidScope, "scope exceeds what was granted")
			}
		}
		carries = carries.Narrowed(narrower)
	}
	switch {
	case g.Audience == "":
	case len(requested) == 0:
		requested = []string{g.Audience}
	case !slices.Equal(requested, []string{g.Audience}): // RFC 8707 §2.2
		return carries, token.Claims{}, protocol.NewError(protocol.InvalidTarget, "the authorization was for another audience")
	}
	audience, err := client.Audience(tenant, app, requested, carries.Scopes())
	if err != nil {
		return carries, token.Claims{}, err
	}
	if carries.Has("openid") && !slices.Contains(audience, tenant.BaseURL) {
		audience = append(audience, tenant.BaseURL) // for the UserInfo endpoint
	}
	c := token.Claims{
		Subject: user.ID, Audience: audience, SessionID: g.Authentication.SessionID, GrantID: g.ID,
		AuthTime: g.Authentication.AuthTime.Unix(), ACR: g.Authentication.ACR(), AMR: g.Authentication.Methods,
	}
	if g.Offline() {
		c.SessionID = "" // it does not end with the session
	}
	return carries, c, nil
}

// reused revokes a grant of which a used code or token was presented again: one of the two
// copies was stolen (RFC 6749 §4.1.2, RFC 9700 §4.14.2).
func (s sources) reused(ctx context.Context, tenant protocol.Tenant, grantID string, event access.Event) error {
	if err := s.access.Revoke(ctx, tenant, grantID, event, access.TokenFamilyRevoked); err != nil {
		return err
	}
	return access.ErrInvalidGrant
}
