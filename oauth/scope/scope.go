// Package scope has the scopes of a tenant: the syntax of the scope parameter (RFC 6749 §3.3),
// the built-in scopes of the product's own API, those of OpenID Connect, and the registry of
// the scopes that the tenant defines.
package scope

import (
	"slices"
	"strings"

	"stonetown/oauth/protocol"
)

// Builtin are the scopes of the product's own API.
var Builtin = []string{
	"me:read", "me:write",
	"users:read", "users:write",
	"groups:read", "groups:write",
	"applications:read", "applications:write",
	"federation:read", "federation:write",
	"resources:read", "resources:write",
	"webhooks:read", "webhooks:write",
	"settings:read", "settings:write",
	"scim:write",
	"audit:read",
	"incidents:write",
}

// Administrative are the built-in scopes that not every user has.
var Administrative = slices.DeleteFunc(slices.Clone(Builtin), IsSelf)

// maxScopeParameter bounds the scope parameter of a request, in bytes.
const maxScopeParameter = 16 << 10

// Set is a set of scopes. It must not be changed.
type Set map[string]struct{}

// Has reports whether the set contains a scope.
func (s Set) Has(scope string) bool {
	_, ok := s[scope]
	return ok
}

// SetOf returns the set of a list of scopes that are separated by spaces.
func SetOf(list string) Set {
	set := make(Set)
	for scope := range strings.FieldsSeq(list) {
		set[scope] = struct{}{}
	}
	return set
}

// Parse splits a scope parameter (RFC 6749 §3.3), in time linear in its length. It keeps the
// order and drops repetitions. It fails with [*protocol.Error].
func Parse(parameter string) ([]string, error) {
	if len(parameter) > maxScopeParameter {
		return nil, protocol.NewError(protocol.InvalidScope, "scope is too long")
	}
	var (
		list []string
		seen = make(Set)
	)
	for scope := range strings.SplitSeq(parameter, " ") {
		if scope == "" || seen.Has(scope) {
			continue
		}
		if !Valid(scope) {
			return nil, protocol.NewError(protocol.InvalidScope, "scope contains a character that is not allowed")
		}
		seen[scope] = struct{}{}
		list = append(list, scope)
	}
	return list, nil
}

// Valid reports whether a text is a scope-token of RFC 6749 §3.3: printable ASCII without
// space, quotation mark and backslash. The asterisk is excluded, because the engine, which
// stores the holders of scopes, reads it as a wildcard.
func Valid(scope string) bool {
	return scope != "" && scope != "*" && !strings.ContainsFunc(scope, func(r rune) bool {
		return r <= ' ' || r == '"' || r == '\\' || r > '~'
	})
}

// IsBuiltin reports whether a scope is one of [Builtin].
func IsBuiltin(scope string) bool { return slices.Contains(Builtin, scope) }

// IsSelf reports whether every user has a scope: those of OpenID Connect, and the built-in
// ones for the user's own account.
func IsSelf(scope string) bool {
	return slices.Contains(OIDC, scope) || IsBuiltin(scope) && strings.HasPrefix(scope, "me:")
}

// Intersect returns the elements of some that are also in others, in their order.
func Intersect(some, others []string) []string {
	var both []string
	for _, item := range some {
		if slices.Contains(others, item) {
			both = append(both, item)
		}
	}
	return both
}

// OfflineAccess is the scope of grants that outlive their session (OIDC Core §11).
const OfflineAccess = "offline_access"

// OIDC are the scopes of OpenID Connect (OIDC Core §5.4, §11). Those except openid and
// offline_access decide which claims about a user an application gets.
var OIDC = []string{"openid", "profile", "email", "offline_access", "phone", "address"}

// Default are the scopes of OpenID Connect that applications get by default. Few need a phone
// number or an address.
var Default = OIDC[:4:4]
