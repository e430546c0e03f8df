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
}

// Administrative are the built-in scopes that not every user has.
var Administrative = slices.DeleteFunc(slices.Clone(Builtin), IsSelf)

// maxScopeParameter bounds the scope parameter of a request, in bytes.
const maxScopeParameter = 16 << 10

// Set is a set of scopes. It is not changed after it was made.
type Set map[string]struct{}

// Has reports whether the set holds a scope.
func (s Set) Has(scope string) bool {
	_, ok := s[scope]
	return ok
}

// SetOf makes a set of a space-separated list.
func SetOf(list string) Set {
	set := make(Set)
	for scope := range strings.FieldsSeq(list) {
		set[scope] = struct{}{}
	}
	return set
}

// Parse splits a scope parameter (RFC 6749 §3.3), keeping the order and
// dropping repetitions, in time linear in its length.
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

// Valid follows scope-token in RFC 6749 §3.3: printable ASCII without
// space, quotation mark and backslash.
func Valid(scope string) bool {
	// The engine, which keeps who holds a scope, takes the asterisk for a wildcard.
	return scope != "" && scope != "*" && !strings.ContainsFunc(scope, func(r rune) bool {
		return r <= ' ' || r == '"' || r == '\\' || r > '~'
	})
}

func IsBuiltin(scope string) bool { return slices.Contains(Builtin, scope) }

// IsSelf reports whether every user has a scope: those of OpenID Connect, and those for
// their own account.
func IsSelf(scope string) bool {
	return slices.Contains(OIDC, scope) || IsBuiltin(scope) && strings.HasPrefix(scope, "me:")
}

// Intersect are those of some that are among others.
func Intersect(some, others []string) []string {
	var both []string
	for _, item := range some {
		if slices.Contains(others, item) {
			both = append(both, item)
		}
	}
	return both
}

// OfflineAccess is the scope of grants that outlive their session.
const OfflineAccess = "offline_access"

// OIDC are those that say what an application learns about a user who signs in.
var OIDC = []string{"openid", "profile", "email", "offline_access"}
