package client

import (
	"cmp"
	"fmt"
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

// MaxResources bounds the resources of one request (RFC 8707).
const MaxResources = 10

// Resources returns the resources that the parameters resource and audience name (RFC 8707 §2),
// each once. It fails with [*protocol.Error] if one is malformed. Whether the application can get
// tokens for them is not decided here: see package audience.
func Resources(asked []string) (resources []string, err error) {
	if len(asked) > MaxResources {
		return nil, protocol.NewError(protocol.InvalidTarget, fmt.Sprintf("more than %d resources", MaxResources))
	}
	for _, resource := range asked {
		if !ValidAudience(resource) {
			return nil, protocol.NewError(protocol.InvalidTarget, "a resource is not an absolute URI without fragment")
		}
		if !slices.Contains(resources, resource) {
			resources = append(resources, resource)
		}
	}
	return resources, nil
}

// own returns the default audience of an application.
func own(tenant protocol.Tenant, app Application) string { return cmp.Or(app.Audience, tenant.BaseURL) }

// Others returns the requested resources that are not the application's own: neither its audience
// nor the tenant.
func Others(tenant protocol.Tenant, app Application, asked []string) (others []string) {
	for _, resource := range asked {
		if resource != own(tenant, app) && resource != tenant.BaseURL {
			others = append(others, resource)
		}
	}
	return others
}

// Audience returns the aud of a token: the requested resources; by default the audience of the
// application, or the tenant if it has none. A token with scopes of the product's own API has the
// tenant as another audience, unless it is for resources of others: a resource server must not get
// a token with which it could act at the tenant (RFC 8707 §3).
func Audience(tenant protocol.Tenant, app Application, asked, scopes []string) []string {
	aud := asked
	if len(aud) == 0 {
		aud = []string{own(tenant, app)}
	}
	if len(Others(tenant, app, aud)) == 0 && !slices.Contains(aud, tenant.BaseURL) && slices.ContainsFunc(scopes, scope.IsBuiltin) {
		return append(slices.Clone(aud), tenant.BaseURL)
	}
	return aud
}
