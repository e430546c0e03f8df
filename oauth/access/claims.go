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

// attributeClaims are the claims that depend on the attributes of a user.
var attributeClaims = append([]string{"phone_number", "phone_number_verified", "address"}, profileAttributes...)

// addressMembers are the members of the claim address (OIDC Core §5.1.1).
var addressMembers = []string{"formatted", "street_address", "locality", "region", "postal_code", "country"}

// maxClaim bounds a text that is an attribute, in bytes.
const maxClaim = 2048

// Claims returns the claims about the user that scopes permit (OIDC Core §5.4), and those of some
// that were requested by their names (§5.5). Attributes are claims if they have the name and the type
// of one. Users can change them, so no phone number is verified.
func (p User) Claims(scopes scope.Set, requested []string) map[string]any {
	has := permits(scopes, requested)
	c := map[string]any{"sub": p.ID}
	put := func(name, value string) {
		if value != "" && has(name) {
			c[name] = value
		}
	}
	var attributes map[string]any
	if len(p.Attributes) > 0 && slices.ContainsFunc(attributeClaims, has) && json.Unmarshal(p.Attributes, &attributes) != nil {
		attributes = nil
	}
	put("name", p.Name)
	put("given_name", p.GivenName)
	put("family_name", p.FamilyName)
	put("picture", p.Picture)
	put("locale", p.Locale)
	for _, name := range profileAttributes {
		put(name, text(attributes[name]))
	}
	number := text(attributes["phone_number"])
	put("phone_number", number)
	put("email", p.Email)
	if has("updated_at") {
		c["updated_at"] = p.UpdatedAt.Unix()
	}
	if has("email_verified") {
		c["email_verified"] = p.EmailVerified
	}
	if number != "" && has("phone_number_verified") {
		c["phone_number_verified"] = false
	}
	if address := addressOf(attributes["address"]); len(address) > 0 && has("address") {
		c["address"] = address
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
