package oauth

import (
	"slices"
	"strings"
)

// BuiltinScopes are the scopes of the product's own API.
var BuiltinScopes = []string{
	"me:read", "me:write",
	"users:read", "users:write",
	"groups:read", "groups:write",
	"applications:read", "applications:write",
	"federation:read", "federation:write",
	"resources:read", "resources:write",
	"webhooks:read", "webhooks:write",
	"settings:read", "settings:write",
}

// AdministrativeScopes are the built-in scopes that not every user has.
var AdministrativeScopes = slices.DeleteFunc(slices.Clone(BuiltinScopes), isSelf)

// maxScopeParameter bounds the scope parameter of a request, in bytes.
const maxScopeParameter = 16 << 10

// Scopes is a set of scopes. It is not changed after it was made.
type Scopes map[string]struct{}

// Has reports whether the set holds a scope.
func (s Scopes) Has(scope string) bool {
	_, ok := s[scope]
	return ok
}

// ScopeSet makes a set of a space-separated list.
func ScopeSet(list string) Scopes {
	set := make(Scopes)
	for scope := range strings.FieldsSeq(list) {
		set[scope] = struct{}{}
	}
	return set
}

// parseScopes splits a scope parameter (RFC 6749 §3.3), keeping the order and
// dropping repetitions, in time linear in its length.
func parseScopes(parameter string) ([]string, error) {
	if len(parameter) > maxScopeParameter {
		return nil, &Error{InvalidScope, "scope is too long"}
	}
	var (
		list []string
		seen = make(Scopes)
	)
	for scope := range strings.SplitSeq(parameter, " ") {
		if scope == "" || seen.Has(scope) {
			continue
		}
		if !validScope(scope) {
			return nil, &Error{InvalidScope, "scope contains a character that is not allowed"}
		}
		seen[scope] = struct{}{}
		list = append(list, scope)
	}
	return list, nil
}

// validScope follows scope-token in RFC 6749 §3.3: printable ASCII without
// space, quotation mark and backslash.
func validScope(scope string) bool {
	// The engine, which keeps who holds a scope, takes the asterisk for a wildcard.
	return scope != "" && scope != "*" && !strings.ContainsFunc(scope, func(r rune) bool {
		return r <= ' ' || r == '"' || r == '\\' || r > '~'
	})
}

func isBuiltin(scope string) bool { return slices.Contains(BuiltinScopes, scope) }
