package saml

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"stonetown/oauth/client"
	"stonetown/oauth/saml/identityprovider"
)

// nameFormat begins the URIs of name formats (SAML Core §8.2).
const nameFormat = "urn:oasis:names:tc:SAML:2.0:attrname-format:"

// attributes returns the attributes of a user for a service provider, as far as scopes permit. One
// without a value is left out.
func attributes(sp client.ServiceProvider, user Person, scopes []string) (list []identityprovider.Attribute) {
	for _, statement := range sp.AttributeStatements {
		if !slices.Contains(scopes, scopeOf(statement.Value)) {
			continue
		}
		if values := user.values(statement.Value); len(values) > 0 {
			list = append(list, identityprovider.Attribute{Name: statement.Name, NameFormat: nameFormat + statement.NameFormat, Values: values})
		}
	}
	return list
}

// values returns the values of an attribute of the user.
func (p Person) values(name string) []string {
	if member, custom := strings.CutPrefix(name, "attributes."); custom {
		var all map[string]json.RawMessage
		if json.Unmarshal(p.Attributes, &all) != nil {
			return nil
		}
		return texts(all[member])
	}
	if name == "groups" {
		return p.Groups
	}
	one := map[string]string{
		"id": p.ID, "email_verified": strconv.FormatBool(p.EmailVerified), "name": p.Name, "given_name": p.GivenName, "family_name": p.FamilyName,
		"locale": p.Locale, "picture": p.Picture,
	}
	if p.EmailVerified {
		one["email"] = p.Email
	}
	if one[name] == "" {
		return nil
	}
	return []string{one[name]}
}

// texts returns a JSON value as texts: a text, a number or a boolean, or an array of them. Other
// values have none.
func texts(value json.RawMessage) []string {
	if len(value) == 0 {
		return nil
	}
	switch value[0] {
	case '"':
		var text string
		if json.Unmarshal(value, &text) != nil || text == "" {
			return nil
		}
		return []string{text}
	case '[':
		var items []json.RawMessage
		if json.Unmarshal(value, &items) != nil {
			return nil
		}
		var list []string
		for _, item := range items {
			if len(item) > 0 && item[0] != '[' {
				list = append(list, texts(item)...)
			}
		}
		return list
	case '{', 'n':
		return nil
	}
	return []string{string(value)}
}
