package grants

import (
	"context"
	"slices"
	"strings"
	"time"

	"stonetown/oauth/access"
	"stonetown/oauth/audience"
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
	resources, until, err := s.resourcesOf(ctx, r, g, user)
	if err != nil {
		return nil, err
	}
	return &issuance{
		details:     details,
		entitlement: token.EntitlementRequest{App: r.app, User: &user, Scopes: g.Scopes, GroupScopes: true},
		claims: func(carries token.Entitlement) (token.Entitlement, token.Claims, error) {
			return claimsOfGrant(r.tenant, r.app, g, user, carries, narrower, resources, until)
		},
		countedFor: user.ID,
		ofUser:     &userTokens{grant: g, user: user, first: first},
	}, nil
}

// claimsOfGrant returns the claims of an access token of a user's grant: with the scopes of the
// entitlement, or fewer if fewer are requested, for some resources, and until a time; zero: any.
func claimsOfGrant(tenant protocol.Tenant, app client.Application, g access.Grant, user access.User, carries token.Entitlement, narrower, resources []string, until time.Time) (token.Entitlement, token.Claims, error) {
	if len(narrower) > 0 {
		for _, name := range narrower {
			if !slices.Contains(g.Scopes, name) && !carries.Has(name) {
				return carries, token.Claims{}, protocol.NewError(protocol.InvalidScope, "scope exceeds what was granted")
			}
		}
		carries = carries.Narrowed(narrower)
	}
	audience := client.Audience(tenant, app, resources, carries.Scopes())
	if carries.Has("openid") && len(client.Others(tenant, app, resources)) == 0 && !slices.Contains(audience, tenant.BaseURL) {
		audience = append(audience, tenant.BaseURL) // for the UserInfo endpoint
	}
	c := token.Claims{
		Subject: user.ID, Audience: audience, SessionID: g.Authentication.SessionID, GrantID: g.ID,
		AuthTime: g.Authentication.AuthTime.Unix(), ACR: g.Authentication.ACR(), AMR: g.Authentication.Methods, Expires: expiry(until),
	}
	if g.Offline() {
		c.SessionID = "" // it does not end with the session
	}
	return carries, c, nil
}

// resourcesOf returns the resources of a token of a grant: those that the request names, of those
// that were granted, or all of these (RFC 8707 §2.2). Without resources in the authorization
// request, only those of the application itself were granted. until is as for
// [audience.Checker.Check].
func (s sources) resourcesOf(ctx context.Context, r *request, g access.Grant, user access.User) (resources []string, until time.Time, err error) {
	granted := strings.Fields(g.Audience)
	if resources, err = client.Resources(r.Audience); err != nil {
		return nil, until, err
	}
	for _, resource := range resources {
		if len(granted) > 0 && !slices.Contains(granted, resource) || len(granted) == 0 && len(client.Others(r.tenant, r.app, []string{resource})) > 0 {
			return nil, until, protocol.NewError(protocol.InvalidTarget, "the authorization was for other resources")
		}
	}
	if len(resources) == 0 {
		resources = granted
	}
	until, err = s.audiences.Check(ctx, r.tenant, r.app, resources, audience.Application(r.app), token.SubjectOf(user.ID))
	return resources, until, err
}

// expiry returns the exp of a token that ends at a time at the latest; zero: any.
func expiry(until time.Time) int64 {
	if until.IsZero() {
		return 0
	}
	return until.Unix()
}

// reused revokes a grant of which a used code or token was presented again: one of the two
// copies was stolen (RFC 6749 §4.1.2, RFC 9700 §4.14.2).
func (s sources) reused(ctx context.Context, tenant protocol.Tenant, grantID string, event access.Event) error {
	if err := s.access.Revoke(ctx, tenant, grantID, event, access.TokenFamilyRevoked); err != nil {
		return err
	}
	return access.ErrInvalidGrant
}
