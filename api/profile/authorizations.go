package profile

import (
	"stonetown/internal/document"
	"stonetown/oauth/access"
)

// Authorization is the representation of an application that a user has signed in to.
type Authorization struct {
	ApplicationID    string             `json:"application_id"`
	ClientID         string             `json:"client_id"`
	Name             string             `json:"name"`
	LogoURI          *string            `json:"logo_uri"`
	FirstParty       bool               `json:"first_party"`
	Scopes           []string           `json:"scopes"`
	Claims           []string           `json:"claims"`
	CreatedAt        document.Timestamp `json:"created_at"`
	LastAuthorizedAt document.Timestamp `json:"last_authorized_at"`
}

// Authorizations returns the representations of a list.
func Authorizations(list []access.Authorization) []Authorization {
	all := make([]Authorization, len(list))
	for i, z := range list {
		a := z.Application
		all[i] = Authorization{
			a.ID, a.ClientID, a.Name, document.OrNull(a.LogoURI), a.FirstParty,
			append([]string{}, z.Scopes...), append([]string{}, z.Claims...), document.Timestamp(z.CreatedAt), document.Timestamp(z.UsedAt),
		}
	}
	return all
}
