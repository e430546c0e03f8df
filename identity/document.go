package identity

import (
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/document"
)

// UserDocument is the public representation of a user, in responses and in events. It contains
// no secrets.
type UserDocument struct {
	ID                  string              `json:"id"`
	Email               string              `json:"email"`
	EmailVerified       bool                `json:"email_verified"`
	State               State               `json:"state"`
	Name                *string             `json:"name"`
	GivenName           *string             `json:"given_name"`
	FamilyName          *string             `json:"family_name"`
	Picture             *string             `json:"picture"`
	Locale              *string             `json:"locale"`
	Attributes          jsontext.Value      `json:"attributes"` // an object or null
	PasswordSet         bool                `json:"password_set"`
	PasswordMustBeReset bool                `json:"password_must_be_reset"`
	CreatedAt           document.Timestamp  `json:"created_at"`
	UpdatedAt           document.Timestamp  `json:"updated_at"`
	LastSignedInAt      *document.Timestamp `json:"last_signed_in_at"`
	ManagedBy           *string             `json:"managed_by"` // [ManagedByControlPlane] or null
}

// Document returns the public representation of a user.
func (u User) Document() UserDocument {
	d := UserDocument{
		ID: u.ID, Email: u.Email, EmailVerified: u.EmailVerified, State: u.State,
		Name: document.OrNull(u.Name), GivenName: document.OrNull(u.GivenName), FamilyName: document.OrNull(u.FamilyName),
		Picture: document.OrNull(u.Picture), Locale: document.OrNull(u.Locale), Attributes: u.Attributes,
		PasswordSet: u.PasswordHash != "", PasswordMustBeReset: u.PasswordMustBeReset,
		CreatedAt: document.Timestamp(u.CreatedAt), UpdatedAt: document.Timestamp(u.UpdatedAt), LastSignedInAt: document.TimeOrNull(u.LastSignedInAt),
	}
	if u.ManagedBy != "" {
		d.ManagedBy = new(ManagedByControlPlane)
	}
	if u.Attributes == nil {
		d.Attributes = jsontext.Value("null")
	}
	return d
}

// GroupDocument is the public representation of a group.
type GroupDocument struct {
	ID          string             `json:"id"`
	Slug        string             `json:"slug"`
	Name        string             `json:"name"`
	Description string             `json:"description"`
	Scopes      []string           `json:"scopes"`
	MemberCount int                `json:"member_count"`
	CreatedAt   document.Timestamp `json:"created_at"`
}

// Document returns the public representation of a group.
func (g Group) Document() GroupDocument {
	return GroupDocument{
		ID: g.ID, Slug: g.Slug, Name: g.Name, Description: g.Description, Scopes: append([]string{}, g.Scopes...),
		MemberCount: g.MemberCount, CreatedAt: document.Timestamp(g.CreatedAt),
	}
}
