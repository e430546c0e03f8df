package identity

import (
	"strings"

	"stonetown/internal/id"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Managed reports whether only the operations on users and groups change a relation of an object:
// the members of groups, the holders of scopes, and all relations of users except those that
// permit acting as them. The empty relation represents the object itself. scope is the scope that
// those operations require.
func Managed(o tuplestore.Object, relation string) (scope string, managed bool) {
	switch {
	case o.Type == schema.UserType && strings.HasPrefix(o.ID, id.User+"_"):
		return "users:write", relation != schema.ActAs
	case o.Type == schema.GroupType && strings.HasPrefix(o.ID, id.Group+"_"), o.Type == schema.ScopeType:
		return "groups:write", true
	}
	return "", false
}
