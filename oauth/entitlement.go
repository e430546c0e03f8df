package oauth

import (
	"context"
	"slices"
	"strings"
)

// entitlement is the scopes that a token carries. Only [Service.entitled] makes one, and
// [Service.mint] takes nothing else: no grant can put a scope into a token without it.
type entitlement struct{ scopes []string }

func (e entitlement) String() string { return strings.Join(e.scopes, " ") }

// narrowed are those of the scopes that were asked for.
func (e entitlement) narrowed(asked []string) entitlement {
	return entitlement{intersect(asked, e.scopes)}
}

// entitling is the question which scopes a token may carry.
type entitling struct {
	app    Application // that the scopes were granted to; zero: the product itself
	person *Person     // the user that the token speaks for; nil: it speaks for an application
	scopes []string    // granted, asked for, or carried by the token that is exchanged
	brings bool        // the scopes of the user's groups are added
	also   *Application
}

// entitled decides which scopes a token may carry, at the moment it is issued: of those in
// question, the ones that the application may have, that are still registered, and that the
// user has as a user or through a group. also is another application that must be allowed
// each of them.
func (s *Service) entitled(ctx context.Context, tenant Tenant, q entitling) (entitlement, error) {
	var brought []string
	if q.person != nil {
		brought = groupScopes(q.app, *q.person)
	}
	custom := func(scope string) bool { return !isBuiltin(scope) && !slices.Contains(OIDCScopes, scope) }
	var registered map[string]Scope
	if q.person != nil && slices.ContainsFunc(q.scopes, custom) {
		var err error
		if registered, err = selectScopes(ctx, s.db, tenant.ID); err != nil {
			return entitlement{}, err
		}
	}
	has := func(scope string) bool {
		return q.person == nil || isSelf(scope) || registered[scope].Entitlement == BySelf || slices.Contains(q.person.Scopes, scope)
	}
	allowed := func(scope string) bool {
		return q.app.ClientID == "" || slices.Contains(q.app.AllowedScopes, scope) || slices.Contains(brought, scope)
	}
	var e entitlement
	for _, scope := range q.scopes {
		if allowed(scope) && has(scope) {
			e.scopes = append(e.scopes, scope)
		}
	}
	if q.brings {
		for _, scope := range brought {
			if !slices.Contains(e.scopes, scope) {
				e.scopes = append(e.scopes, scope)
			}
		}
	}
	if q.also != nil {
		e.scopes = intersect(e.scopes, q.also.AllowedScopes)
	}
	return e, nil
}

// isSelf reports whether every user has a scope: those of OpenID Connect, and those for
// their own account.
func isSelf(scope string) bool {
	return slices.Contains(OIDCScopes, scope) || isBuiltin(scope) && strings.HasPrefix(scope, "me:")
}

// groupScopes are those scopes of a user's groups that tokens of an application carry.
func groupScopes(a Application, person Person) []string {
	if a.GroupScopes == AllowedGroupScopes {
		return intersect(person.Scopes, a.AllowedScopes)
	}
	return slices.Clone(person.Scopes)
}

// standing are those scopes of an access token that its application may still have. A
// token keeps what its user's groups brought until it expires, even if the user has left
// them; what was granted to the application ends with the application's right to it.
func standing(scopes []string, app Application, granted []string, person *Person) []string {
	return slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool {
		if slices.Contains(app.AllowedScopes, scope) {
			return false
		}
		if person == nil || app.GroupScopes == AllowedGroupScopes {
			return true
		}
		return slices.Contains(granted, scope) && !slices.Contains(person.Scopes, scope)
	})
}
