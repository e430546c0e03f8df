// Package profile reads and writes the parts of a user's representation that administrators and
// users share: the profile, external identities, authorized applications, locations.
package profile

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/language"

	"stonetown/api/web"
	"stonetown/identity"
	texts "stonetown/internal/text"
)

const (
	// MaxText is the maximum length of a text, in bytes.
	MaxText = 500
	// MaxAttributes is the maximum size of the attributes, in bytes of compact JSON.
	MaxAttributes = 16 << 10
)

// Validation reads the members of a user and collects their errors.
type Validation struct{ web.Validation }

// member reads a text into a field. Null clears the field, and an absent value leaves it.
func (v *Validation) member(name string, value jsontext.Value, field *string) {
	switch value.Kind() {
	case 0:
		return
	case 'n':
		*field = ""
		return
	case '"':
	default:
		v.Add(name, "type_invalid", "must be a string or null")
		return
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		v.Add(name, "invalid", "is not valid JSON")
		return
	}
	switch {
	case strings.IndexByte(text, 0) >= 0:
		v.Add(name, "nul_refused", "must not contain NUL")
	case !texts.IsLine(text):
		v.Add(name, "control_character", "must be one line without control characters")
	case len(text) > MaxText:
		v.Add(name, "too_long", fmt.Sprintf("must have at most %d bytes", MaxText))
	case name == "picture" && text != "" && !isWebAddress(text):
		v.Add(name, "invalid", "must be an https URL")
	case name == "locale" && text != "" && !isLocale(text):
		v.Add(name, "invalid", "must be a language tag (BCP 47)")
	default:
		*field = text
	}
}

func isWebAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil
}

func isLocale(text string) bool {
	_, err := language.Parse(text)
	return err == nil
}

// attributes reads an object. Null clears the field, and an absent value leaves it.
func (v *Validation) attributes(value jsontext.Value, field *[]byte) {
	switch value.Kind() {
	case 0:
	case 'n':
		*field = nil
	case '{':
		value = value.Clone() // the form can be read again
		if err := value.Compact(); err != nil {
			v.Add("attributes", "invalid", "is not valid JSON")
		} else if len(value) > MaxAttributes {
			v.Add("attributes", "too_large", fmt.Sprintf("must have at most %d bytes", MaxAttributes))
		} else {
			*field = value
		}
	default:
		v.Add("attributes", "type_invalid", "must be an object or null")
	}
}

// Profile reads members into p. Null clears a field, and absent values leave it.
func (v *Validation) Profile(p *identity.Profile, name, givenName, familyName, picture, locale, attributes jsontext.Value) {
	v.member("name", name, &p.Name)
	v.member("given_name", givenName, &p.GivenName)
	v.member("family_name", familyName, &p.FamilyName)
	v.member("picture", picture, &p.Picture)
	v.member("locale", locale, &p.Locale)
	v.attributes(attributes, &p.Attributes)
}
