package claims

import (
	"reflect"
	"slices"
)

// Preset has the format of the claims of a kind of provider, and the rules of targets for which
// a mapping has none.
type Preset struct {
	format Format
	rules  []rule
}

// has reports whether a source is the first of the rule of a target.
func (p Preset) has(target, from string) bool {
	parsed, err := sourceOf(p.format, from)
	return err == nil && slices.ContainsFunc(p.rules, func(r rule) bool { return r.target == target && reflect.DeepEqual(r.sources[0], parsed) })
}

// The presets.
var (
	// OpenID has the standard claims (OpenID Connect Core 1.0 §5.1).
	OpenID = preset(Object, with(standard, "email_verified", "$.email_verified"))

	// Google is OpenID.
	Google = OpenID

	// GitHub has the members of its user resource, and the primary address with email_verified.
	GitHub = preset(Object, map[string][]string{
		"email": {"$.email"}, "email_verified": {"$.email_verified"}, "name": {"$.name", "$.login"}, "picture": {"$.avatar_url"},
	})

	// Microsoft is OpenID, but an address is verified only if xms_edov says so: the owner of any
	// directory can set the addresses of its users.
	Microsoft = preset(Object, with(standard, "email_verified", "$.xms_edov"))

	// Apple is OpenID; it sends the name beside the ID token, at the first sign-in only.
	Apple = OpenID

	// SAML has the names that identity providers use for attributes: plain ones, those of
	// X.500 as URIs (SAML 2.0 Profiles §8.2), and those of WS-Federation. A NameID is an attribute
	// with the name of its format.
	SAML = preset(Attributes, map[string][]string{
		"email":       {"email", "mail", "urn:oid:0.9.2342.19200300.100.1.3", "urn:oid:1.2.840.113549.1.9.1", ws + "emailaddress", "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"},
		"name":        {"name", "displayName", "urn:oid:2.16.840.1.113730.3.1.241", "http://schemas.microsoft.com/identity/claims/displayname", "cn", "urn:oid:2.5.4.3"},
		"given_name":  {"given_name", "first_name", "givenName", "firstName", "urn:oid:2.5.4.42", ws + "givenname"},
		"family_name": {"family_name", "last_name", "sn", "surname", "lastName", "urn:oid:2.5.4.4", ws + "surname"},
		"locale":      {"locale", "preferredLanguage", "urn:oid:2.16.840.1.113730.3.1.39"},
		"groups":      {"groups", "memberOf", "isMemberOf", "urn:oid:1.3.6.1.4.1.5923.1.5.1.1", "http://schemas.microsoft.com/ws/2008/06/identity/claims/groups", "http://schemas.xmlsoap.org/claims/Group"},
	})
)

const ws = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"

// standard are the claims of OpenID Connect, without email_verified.
var standard = map[string][]string{
	"email": {"$.email"}, "name": {"$.name"}, "given_name": {"$.given_name"}, "family_name": {"$.family_name"},
	"picture": {"$.picture"}, "locale": {"$.locale"}, "groups": {"$.groups"},
}

func with(rules map[string][]string, target, from string) map[string][]string {
	all := map[string][]string{target: {from}}
	for other, sources := range rules {
		all[other] = sources
	}
	return all
}

func preset(format Format, rules map[string][]string) Preset {
	p := Preset{format: format}
	for target, sources := range rules {
		r := rule{key: target, target: target}
		for _, from := range sources {
			parsed, err := sourceOf(format, from)
			if err != nil {
				panic("claims: preset: " + err.Error()) // of this file
			}
			r.sources = append(r.sources, parsed)
		}
		p.rules = append(p.rules, r)
	}
	return p
}
