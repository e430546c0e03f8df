package identity

import (
	"strings"

	"stonetown/internal/id"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Managed reports whether a relation of an object is kept by the directory and by nobody
// else: who is in one of its groups, who holds a scope, and all of its users but who may
// act as them. The empty relation stands for the object itself. scope is what it takes to
// change them.
func Managed(o tuplestore.Object, relation string) (scope string, managed bool) {
	switch {
	case o.Type == schema.UserType && strings.HasPrefix(o.ID, id.User+"_"):
		return "users:write", relation != schema.ActAs
	case o.Type == schema.GroupType && strings.HasPrefix(o.ID, id.Group+"_"), o.Type == schema.ScopeType:
		return "groups:write", true
	}
	return "", false
}
