package token

import (
	"context"
	"slices"
	"strings"

	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

// Entitlement is the set of scopes that a token carries. Only [Service.Entitled] returns one,
// and a [Minter] accepts nothing else, so no grant can put a scope into a token without it.
type Entitlement struct{ scopes []string }

// String returns the scopes as in the claim, separated by spaces.
func (e Entitlement) String() string { return strings.Join(e.scopes, " ") }

// Has reports whether the entitlement has a scope.
func (e Entitlement) Has(name string) bool { return slices.Contains(e.scopes, name) }

// Scopes returns the scopes. They must not be changed.
func (e Entitlement) Scopes() []string { return e.scopes }

// Narrowed returns the entitlement with only those of some scopes that it has.
func (e Entitlement) Narrowed(to []string) Entitlement {
	return Entitlement{scope.Intersect(to, e.scopes)}
}

// EntitlementRequest asks which scopes a token may carry.
type EntitlementRequest struct {
	App         client.Application  // that has the scopes; zero: the product itself
	User        *access.User        // that the token speaks for; nil: it speaks for an application
	Scopes      []string            // granted, requested, or carried by the token that is exchanged
	GroupScopes bool                // adds the scopes of the user's groups
	Also        *client.Application // must be allowed each scope as well; nil: none
}

// Entitled decides which scopes a token may carry, at the moment it is issued: of the requested
// ones those that the application may have, that are still registered, and that the user has
// as a user or through a group.
func (s *Service) Entitled(ctx context.Context, tenant protocol.Tenant, r EntitlementRequest) (Entitlement, error) {
	var ofGroups []string
	if r.User != nil {
		ofGroups = groupScopes(r.App, *r.User)
	}
	custom := func(name string) bool { return !scope.IsBuiltin(name) && !slices.Contains(scope.OIDC, name) }
	var registered map[string]scope.Scope
	if r.User != nil && slices.ContainsFunc(r.Scopes, custom) {
		var err error
		if registered, err = scope.Registered(ctx, s.db, tenant.ID); err != nil {
			return Entitlement{}, err
		}
	}
	has := func(name string) bool {
		return r.User == nil || scope.IsSelf(name) || registered[name].Entitlement == scope.BySelf || slices.Contains(r.User.Scopes, name)
	}
	allowed := func(name string) bool {
		return r.App.ClientID == "" || slices.Contains(r.App.AllowedScopes, name) || slices.Contains(ofGroups, name)
	}
	var e Entitlement
	for _, name := range r.Scopes {
		if allowed(name) && has(name) {
			e.scopes = append(e.scopes, name)
		}
	}
	if r.GroupScopes {
		for _, name := range ofGroups {
			if !e.Has(name) {
				e.scopes = append(e.scopes, name)
			}
		}
	}
	if r.Also != nil {
		e.scopes = scope.Intersect(e.scopes, r.Also.AllowedScopes)
	}
	return e, nil
}

// groupScopes returns the scopes of a user's groups that tokens of an application carry.
func groupScopes(a client.Application, user access.User) []string {
	if a.GroupScopes == client.AllowedGroupScopes {
		return scope.Intersect(user.Scopes, a.AllowedScopes)
	}
	return slices.Clone(user.Scopes)
}

// standing returns the scopes of an access token that its application may still have. A token
// keeps the scopes of its user's groups until it expires, even if the user has left the groups;
// scopes that were granted to the application end with the application's right to them.
func standing(scopes []string, app client.Application, granted []string, user *access.User) []string {
	return slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool {
		if slices.Contains(app.AllowedScopes, scope) {
			return false
		}
		if user == nil || app.GroupScopes == client.AllowedGroupScopes {
			return true
		}
		return slices.Contains(granted, scope) && !slices.Contains(user.Scopes, scope)
	})
}

// GroupScopesOf returns the scopes that a user's groups add to the tokens of an application,
// beyond those that it requested.
func (s *Service) GroupScopesOf(ctx context.Context, tenant protocol.Tenant, app client.Application, asked []string, userID string) ([]string, error) {
	if !app.Type.HasUsers() {
		return nil, nil // it gets no tokens
	}
	user, err := s.users.User(ctx, tenant.ID, userID)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(groupScopes(app, user), func(scope string) bool { return slices.Contains(asked, scope) }), nil
}
