package profile

import (
	"stonetown/identity/external"
	"stonetown/internal/document"
)

// Identity is the representation of an external identity.
type Identity struct {
	ConnectionID string              `json:"connection_id"`
	Slug         string              `json:"slug"`
	Kind         string              `json:"kind"`
	Subject      string              `json:"subject"`
	Email        *string             `json:"email"`
	LinkedAt     document.Timestamp  `json:"linked_at"`
	LastUsedAt   *document.Timestamp `json:"last_used_at"`
}

// Identities returns the representations of a list.
func Identities(list []external.Identity) []Identity {
	all := make([]Identity, len(list))
	for n, i := range list {
		all[n] = Identity{i.ConnectionID, i.Slug, i.Kind, i.Subject, document.OrNull(i.Email), document.Timestamp(i.LinkedAt), document.TimeOrNull(i.LastUsedAt)}
	}
	return all
}
