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

// Entitlement is the scopes that a token carries. Only [Service.entitled] makes one, and
// [Service.mint] takes nothing else: no grant can put a scope into a token without it.
type Entitlement struct{ Scopes []string }

func (e Entitlement) String() string { return strings.Join(e.Scopes, " ") }

// Narrowed are those of the scopes that were asked for.
func (e Entitlement) Narrowed(asked []string) Entitlement {
	return Entitlement{scope.Intersect(asked, e.Scopes)}
}

// EntitlementRequest is the question which scopes a token may carry.
type EntitlementRequest struct {
	App    client.Application // that the scopes were granted to; zero: the product itself
	Person *access.User       // the user that the token speaks for; nil: it speaks for an application
	Scopes []string           // granted, asked for, or carried by the token that is exchanged
	Brings bool               // the scopes of the user's groups are added
	Also   *client.Application
}

// Entitled decides which scopes a token may carry, at the moment it is issued: of those in
// question, the ones that the application may have, that are still registered, and that the
// user has as a user or through a group. also is another application that must be allowed
// each of them.
func (s *Service) Entitled(ctx context.Context, tenant protocol.Tenant, q EntitlementRequest) (Entitlement, error) {
	var brought []string
	if q.Person != nil {
		brought = groupScopes(q.App, *q.Person)
	}
	custom := func(name string) bool { return !scope.IsBuiltin(name) && !slices.Contains(scope.OIDC, name) }
	var registered map[string]scope.Scope
	if q.Person != nil && slices.ContainsFunc(q.Scopes, custom) {
		var err error
		if registered, err = scope.Registered(ctx, s.db, tenant.ID); err != nil {
			return Entitlement{}, err
		}
	}
	has := func(name string) bool {
		return q.Person == nil || scope.IsSelf(name) || registered[name].Entitlement == scope.BySelf || slices.Contains(q.Person.Scopes, name)
	}
	allowed := func(scope string) bool {
		return q.App.ClientID == "" || slices.Contains(q.App.AllowedScopes, scope) || slices.Contains(brought, scope)
	}
	var e Entitlement
	for _, scope := range q.Scopes {
		if allowed(scope) && has(scope) {
			e.Scopes = append(e.Scopes, scope)
		}
	}
	if q.Brings {
		for _, scope := range brought {
			if !slices.Contains(e.Scopes, scope) {
				e.Scopes = append(e.Scopes, scope)
			}
		}
	}
	if q.Also != nil {
		e.Scopes = scope.Intersect(e.Scopes, q.Also.AllowedScopes)
	}
	return e, nil
}

// groupScopes are those scopes of a user's groups that tokens of an application carry.
func groupScopes(a client.Application, person access.User) []string {
	if a.GroupScopes == client.AllowedGroupScopes {
		return scope.Intersect(person.Scopes, a.AllowedScopes)
	}
	return slices.Clone(person.Scopes)
}

// standing are those scopes of an access token that its application may still have. A
// token keeps what its user's groups brought until it expires, even if the user has left
// them; what was granted to the application ends with the application's right to it.
func standing(scopes []string, app client.Application, granted []string, person *access.User) []string {
	return slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool {
		if slices.Contains(app.AllowedScopes, scope) {
			return false
		}
		if person == nil || app.GroupScopes == client.AllowedGroupScopes {
			return true
		}
		return slices.Contains(granted, scope) && !slices.Contains(person.Scopes, scope)
	})
}

// GroupScopesOf are those scopes that a user's groups bring into the tokens of an
// application beyond what it asked for.
func (s *Service) GroupScopesOf(ctx context.Context, tenant protocol.Tenant, app client.Application, asked []string, userID string) ([]string, error) {
	person, err := s.users.User(ctx, tenant.ID, userID)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(groupScopes(app, person), func(scope string) bool { return slices.Contains(asked, scope) }), nil
}
