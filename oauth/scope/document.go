package scope

import (
	"stonetown/internal/document"
)

// Document is the public representation of a scope, in responses and in events.
type Document struct {
	Name        string              `json:"name"`
	Description string              `json:"description"`
	Entitlement Entitlement         `json:"entitlement"`
	BuiltIn     bool                `json:"built_in"`
	CreatedAt   *document.Timestamp `json:"created_at"` // null: it is built in
}

// Document returns the public representation of the scope.
func (s Scope) Document() Document {
	return Document{s.Name, s.Description, s.Entitlement, s.BuiltIn, document.TimeOrNull(s.CreatedAt)}
}
