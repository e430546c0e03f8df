package client

import (
	"slices"

	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

// GrantedScopes returns the requested scopes, all of which must be allowed, or all allowed
// ones if none is requested.
func GrantedScopes(app Application, parameter string) ([]string, error) {
	asked, err := scope.Parse(parameter)
	if err != nil {
		return nil, err
	}
	if len(asked) == 0 {
		return app.AllowedScopes, nil
	}
	for _, scope := range asked {
		if !slices.Contains(app.AllowedScopes, scope) {
			return nil, protocol.NewError(protocol.InvalidScope, "the application is not allowed all of the scopes that it requested")
		}
	}
	return asked, nil
}

// Audience returns the aud of a token: the requested audience, which must be that of the
// application or the tenant; by default the application's, or the tenant if it has none. A
// token with scopes of the product's own API has the tenant as a second audience.
func Audience(tenant protocol.Tenant, app Application, asked, scopes []string) ([]string, error) {
	aud := tenant.BaseURL
	if app.Audience != "" {
		aud = app.Audience
	}
	switch len(asked) {
	case 0:
	case 1:
		if asked[0] != aud && asked[0] != tenant.BaseURL {
			return nil, protocol.NewError(protocol.InvalidTarget, "the application is not allowed tokens for this audience")
		}
		aud = asked[0]
	default:
		return nil, protocol.NewError(protocol.InvalidRequest, "more than one audience")
	}
	if aud != tenant.BaseURL && slices.ContainsFunc(scopes, scope.IsBuiltin) {
		return []string{aud, tenant.BaseURL}, nil
	}
	return []string{aud}, nil
}
