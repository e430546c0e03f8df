package grants

import (
	"context"

	"stonetown/oauth/audience"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// clientCredentials issues a token to the application itself (RFC 6749 §4.4).
type clientCredentials struct {
	sources
	noForm
}

func (clientCredentials) present(context.Context, *request) error { return nil }

func (g clientCredentials) decide(ctx context.Context, r *request) (*issuance, error) {
	if !r.app.ActsForItself() {
		return nil, protocol.NewError(protocol.UnauthorizedClient, "the application cannot use "+protocol.GrantClientCredentials)
	}
	return g.ofApplication(ctx, r)
}

// ofApplication describes a token of the application itself.
func (g sources) ofApplication(ctx context.Context, r *request) (*issuance, error) {
	scopes, err := client.GrantedScopes(r.app, r.Scope)
	if err != nil {
		return nil, err
	}
	resources, err := client.Resources(r.Audience)
	if err != nil {
		return nil, err
	}
	until, err := g.audiences.Check(ctx, r.tenant, r.app, resources, audience.Application(r.app))
	if err != nil {
		return nil, err
	}
	details, err := g.newDetails(ctx, r)
	if err != nil {
		return nil, err
	}
	return &issuance{
		details:     details,
		entitlement: token.EntitlementRequest{App: r.app, Scopes: scopes},
		claims: func(carries token.Entitlement) (token.Entitlement, token.Claims, error) {
			return carries, token.Claims{Subject: r.app.ClientID, Audience: client.Audience(r.tenant, r.app, resources, scopes), Expires: expiry(until)}, nil
		},
		countedFor: r.app.ClientID,
	}, nil
}
