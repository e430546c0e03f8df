package access

import (
	"encoding/json"
	"slices"

	"stonetown/oauth/scope"
)

// StandardClaims are the claims about users that [User.Claims] returns (OIDC Core §5.1).
var StandardClaims = slices.Concat(
	[]string{"sub", "name", "given_name", "family_name", "picture", "locale", "updated_at", "email", "email_verified"},
	profileAttributes, []string{"phone_number", "phone_number_verified", "address"},
)

// profileAttributes are the claims of the scope profile that are attributes of a user.
var profileAttributes = []string{"middle_name", "nickname", "preferred_username", "profile", "website", "gender", "birthdate", "zoneinfo"}

// addressMembers are the members of the claim address (OIDC Core §5.1.1).
var addressMembers = []string{"formatted", "street_address", "locality", "region", "postal_code", "country"}

// maxClaim bounds a text that is an attribute, in bytes.
const maxClaim = 2048

// Claims returns the claims about the user that scopes permit (OIDC Core §5.4). Attributes are
// claims if they have the name and the type of one. Users can change them, so no phone number is
// verified.
func (p User) Claims(scopes scope.Set) map[string]any {
	c := map[string]any{"sub": p.ID}
	put := func(name, value string) {
		if value != "" {
			c[name] = value
		}
	}
	var attributes map[string]any
	if len(p.Attributes) > 0 && (scopes.Has("profile") || scopes.Has("phone") || scopes.Has("address")) && json.Unmarshal(p.Attributes, &attributes) != nil {
		attributes = nil
	}
	if scopes.Has("profile") {
		put("name", p.Name)
		put("given_name", p.GivenName)
		put("family_name", p.FamilyName)
		put("picture", p.Picture)
		put("locale", p.Locale)
		for _, name := range profileAttributes {
			put(name, text(attributes[name]))
		}
		c["updated_at"] = p.UpdatedAt.Unix()
	}
	if scopes.Has("email") {
		c["email"], c["email_verified"] = p.Email, p.EmailVerified
	}
	if number := text(attributes["phone_number"]); scopes.Has("phone") && number != "" {
		c["phone_number"], c["phone_number_verified"] = number, false
	}
	if scopes.Has("address") {
		if address := addressOf(attributes["address"]); len(address) > 0 {
			c["address"] = address
		}
	}
	return c
}

// text returns an attribute that is a text; empty: it is none, or too long.
func text(attribute any) string {
	value, _ := attribute.(string)
	if len(value) > maxClaim {
		return ""
	}
	return value
}

func addressOf(attribute any) map[string]string {
	members, _ := attribute.(map[string]any)
	address := map[string]string{}
	for _, name := range addressMembers {
		if value := text(members[name]); value != "" {
			address[name] = value
		}
	}
	return address
}
