package saml

import (
	"slices"
	"strings"

	"stonetown/oauth/client"
)

// The scopes of attributes that are not those of OpenID Connect. They exist in the consent of users
// only.
const (
	groupsScope     = "saml:groups"
	attributesScope = "saml:attributes"
)

// scopeOf returns the scope that an attribute's value belongs to.
func scopeOf(value string) string {
	switch {
	case value == "id":
		return "openid"
	case value == "email", value == "email_verified":
		return "email"
	case value == "groups":
		return groupsScope
	case strings.HasPrefix(value, "attributes."):
		return attributesScope
	}
	return "profile"
}

// scopesOf returns the scopes of all that assertions for a service provider state.
func scopesOf(sp client.ServiceProvider) []string {
	list := []string{"openid"}
	if sp.NameIDFormat == "emailAddress" {
		list = append(list, "email")
	}
	for _, a := range sp.AttributeStatements {
		if name := scopeOf(a.Value); !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}
