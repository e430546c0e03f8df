package claims

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/text/language"

	"stonetown/internal/text"
)

// The limits of what is taken from claims; what is beyond them is left out.
const (
	MaxText       = 500      // bytes of a text
	MaxEmail      = 254      // bytes of an address (RFC 5321 §4.5.3.1.3)
	MaxGroups     = 2000     // values of groups that are read
	MaxGroup      = 256      // bytes of one of them
	MaxAttributes = 16 << 10 // bytes of the attributes, as JSON
	maxDepth      = 16       // of the value of an attribute
)

// Profile is what claims state about a user. Fields of absent claims are zero.
type Profile struct {
	Email string
	// EmailVerified is what the provider states about the address; nil if it states nothing.
	EmailVerified *bool
	Name          string
	GivenName     string
	FamilyName    string
	Picture       string // an https URL
	Locale        string // BCP 47
	Groups        []string
	Attributes    []byte // a JSON object; nil if it would be empty
}

// Warning is a value that is missing from a profile, or not as the claims have it.
type Warning struct {
	Target  string `json:"target"` // the key of the rule
	Code    string `json:"code"`   // one of the constants
	Message string `json:"message"`
}

// The codes of warnings.
const (
	Missing       = "missing"        // the claims have no value
	TypeInvalid   = "type_invalid"   // the value has a type that the target cannot have
	Invalid       = "invalid"        // nor this value
	TooLong       = "too_long"       // the value is longer than the limit
	TooManyValues = "too_many"       // there are more values than the limit
	SeveralValues = "several_values" // the first of several is used
)

// reading is one application of a mapping.
type reading struct {
	rule
	warnings *[]Warning
}

func (r reading) warn(code, message string, args ...any) {
	*r.warnings = append(*r.warnings, Warning{r.key, code, fmt.Sprintf(message, args...)})
}

// Map applies the mapping to claims, as decoded from JSON; the values of SAML attributes are
// strings or lists of strings. A missing value is a warning if the mapping has a rule for it,
// other than a default, or if it is the address.
func (m Mapping) Map(claims map[string]any) (p Profile, warnings []Warning) {
	attributes := map[string]json.RawMessage{}
	size := len("{}")
	for _, one := range m.rules {
		r := reading{one, &warnings}
		value := m.valueOf(one, claims)
		if value == nil {
			if one.set || one.target == "email" {
				r.warn(Missing, "the claims have no value for %s", one.target)
			}
			continue
		}
		switch one.target {
		case "email":
			p.Email = r.email(m.single(r, value))
		case "email_verified":
			p.EmailVerified = r.flag(m.single(r, value))
		case "name":
			p.Name = r.line(m.single(r, value), MaxText)
		case "given_name":
			p.GivenName = r.line(m.single(r, value), MaxText)
		case "family_name":
			p.FamilyName = r.line(m.single(r, value), MaxText)
		case "picture":
			p.Picture = r.picture(m.single(r, value))
		case "locale":
			p.Locale = r.locale(m.single(r, value))
		case "groups":
			p.Groups = r.groups(value)
		default:
			name := strings.TrimPrefix(one.target, attributesPrefix)
			if encoded := r.attribute(name, value, MaxAttributes-size); encoded != nil {
				attributes[name] = encoded
				size += attributeSize(name, encoded)
			}
		}
	}
	if len(attributes) > 0 {
		p.Attributes = encode(attributes)
	}
	return p, warnings
}

// valueOf returns the value of a rule; nil if there is none. A list of strings is one of any.
func (m Mapping) valueOf(r rule, claims map[string]any) any {
	for _, from := range r.sources {
		value := any(nil)
		if m.format == Attributes {
			value = claims[from.name]
		} else {
			value = find(claims, from.path)
		}
		list, ok := value.([]string)
		if ok {
			values := make([]any, 0, min(len(list), MaxGroups+1))
			for _, item := range list[:min(len(list), MaxGroups+1)] {
				values = append(values, item)
			}
			value = values
		}
		if values, isList := value.([]any); m.format == Attributes && isList {
			switch len(values) {
			case 0:
				value = nil
			case 1:
				value = values[0]
			}
		}
		if value != nil {
			return value
		}
	}
	return nil
}

// single returns the first value of an attribute with several.
func (m Mapping) single(r reading, value any) any {
	if values, ok := value.([]any); ok && m.format == Attributes {
		r.warn(SeveralValues, "has several values; the first is used")
		return values[0]
	}
	return value
}

// line returns a text of one line.
func (r reading) line(value any, limit int) string {
	s, ok := value.(string)
	switch {
	case !ok:
		r.warn(TypeInvalid, "is not a string")
	case len(s) > limit:
		r.warn(TooLong, "has more than %d bytes", limit)
	case !text.IsLine(s):
		r.warn(Invalid, "is not one line of UTF-8 without control characters")
	default:
		return s
	}
	return ""
}

func (r reading) email(value any) string {
	s := r.line(value, MaxEmail)
	if s == "" {
		return ""
	}
	if local, domain, ok := strings.Cut(s, "@"); !ok || local == "" || domain == "" {
		r.warn(Invalid, "is not an e-mail address")
		return ""
	}
	return s
}

// flag accepts the forms of true and false that providers send: Apple and SAML send strings,
// Microsoft also numbers.
func (r reading) flag(value any) *bool {
	switch fmt.Sprint(limited(value)) {
	case "true", "True", "TRUE", "1":
		return new(true)
	case "false", "False", "FALSE", "0":
		return new(false)
	}
	r.warn(TypeInvalid, "is neither true nor false")
	return nil
}

// limited returns a value that is short when printed; nil for others.
func limited(value any) any {
	switch v := value.(type) {
	case bool, float64, int, int64:
		return v
	case json.Number:
		return limited(string(v))
	case string:
		if len(v) <= len("false") {
			return v
		}
	}
	return nil
}

func (r reading) picture(value any) string {
	s := r.line(value, MaxText)
	if u, err := url.Parse(s); s != "" && (err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil) {
		r.warn(Invalid, "is not an https URL")
		return ""
	}
	return s
}

func (r reading) locale(value any) string {
	s := r.line(value, MaxText)
	if _, err := language.Parse(s); s != "" && err != nil {
		r.warn(Invalid, "is not a language tag (BCP 47)")
		return ""
	}
	return s
}

// groups returns the values of groups, each once.
func (r reading) groups(value any) (groups []string) {
	values, ok := value.([]any)
	if !ok {
		values = []any{value}
	}
	if len(values) > MaxGroups {
		r.warn(TooManyValues, "has more than %d values; the others are ignored", MaxGroups)
		values = values[:MaxGroups]
	}
	seen := map[string]bool{}
	unusable := 0
	for _, one := range values {
		s, ok := one.(string)
		if !ok || s == "" || len(s) > MaxGroup || !text.IsLine(s) {
			unusable++
			continue
		}
		if !seen[s] {
			seen[s] = true
			groups = append(groups, s)
		}
	}
	if unusable > 0 {
		r.warn(Invalid, "has %d values that are not lines of 1 to %d bytes", unusable, MaxGroup)
	}
	return groups
}

// attribute returns the JSON of a value, which has at most room bytes with its name; nil if it
// is left out.
func (r reading) attribute(name string, value any, room int) json.RawMessage {
	if !fits(value, maxDepth, new(MaxAttributes)) {
		r.warn(TooLong, "is deeper than %d levels, or the attributes have more than %d bytes", maxDepth, MaxAttributes)
		return nil
	}
	encoded := encode(value)
	if encoded == nil {
		r.warn(TypeInvalid, "is not a JSON value")
		return nil
	}
	if attributeSize(name, encoded) > room {
		r.warn(TooLong, "the attributes have more than %d bytes", MaxAttributes)
		return nil
	}
	return encoded
}

// attributeSize is the size of a member of the attributes.
func attributeSize(name string, encoded json.RawMessage) int {
	return len(encode(name)) + len(":") + len(encoded) + len(",")
}

// encode returns the JSON of a value, compact; nil if it has none. Bytes that are not UTF-8
// become U+FFFD.
func encode(value any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// fits reports whether a value has at most depth levels and, roughly, room bytes. It stops at
// the first excess, so that a hostile value is not encoded.
func fits(value any, depth int, room *int) bool {
	*room--
	if *room < 0 {
		return false
	}
	switch v := value.(type) {
	case string:
		*room -= len(v)
	case json.Number:
		*room -= len(v)
	case []any:
		if depth == 0 {
			return false
		}
		for _, item := range v {
			if !fits(item, depth-1, room) {
				return false
			}
		}
	case map[string]any:
		if depth == 0 {
			return false
		}
		for name, item := range v {
			if *room -= len(name); !fits(item, depth-1, room) {
				return false
			}
		}
	}
	return *room >= 0
}
