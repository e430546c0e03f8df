package identity

import (
	"strings"

	"stonetown/internal/id"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Managed reports whether an object's relations are kept by the directory and by
// nobody else: who is in one of its groups, and who holds a scope, and that its users
// exist. scope is what it takes to change them.
func Managed(o tuplestore.Object) (scope string, managed bool) {
	switch {
	case o.Type == schema.UserType && strings.HasPrefix(o.ID, id.User+"_"):
		return "users:write", true
	case o.Type == schema.GroupType && strings.HasPrefix(o.ID, id.Group+"_"), o.Type == schema.ScopeType:
		return "groups:write", true
	}
	return "", false
}
