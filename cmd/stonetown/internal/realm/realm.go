// Package realm reads the exports of identity providers: users with the hashes of their passwords,
// groups and applications. What Stonetown has no equivalent of is in the report, and never guessed.
package realm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Realm is the content of an export.
type Realm struct {
	Users        []User
	Groups       []Group
	Applications []Application
	Report       []Finding
}

// User is a row of an import of users. Its JSON is that of the API.
type User struct {
	Email               string         `json:"email"`
	EmailVerified       bool           `json:"email_verified"`
	Name                string         `json:"name,omitempty"`
	GivenName           string         `json:"given_name,omitempty"`
	FamilyName          string         `json:"family_name,omitempty"`
	Picture             string         `json:"picture,omitempty"`
	Locale              string         `json:"locale,omitempty"`
	Attributes          map[string]any `json:"attributes,omitempty"`
	PasswordHash        *PasswordHash  `json:"password_hash,omitempty"`
	PasswordMustBeReset bool           `json:"password_must_be_reset,omitempty"`
	Groups              []string       `json:"groups,omitempty"` // slugs
	Disabled            bool           `json:"disabled,omitempty"`
}

// PasswordHash is the hash of a password, in one of the forms that imports of users accept.
type PasswordHash struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"value"`
}

// Group is a group to create.
type Group struct {
	Slug        string `json:"slug"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Application is an application to create. Its client id and secret are new.
type Application struct {
	FormerID               string   `json:"-"` // the client id at the other provider
	Name                   string   `json:"name"`
	Type                   string   `json:"type"` // m2m, server, spa or native
	Description            string   `json:"description,omitempty"`
	RedirectURIs           []string `json:"redirect_uris,omitempty"`
	AllowedOrigins         []string `json:"allowed_origins,omitempty"`
	PostLogoutRedirectURIs []string `json:"post_logout_redirect_uris,omitempty"`
	BackchannelLogoutURI   string   `json:"backchannel_logout_uri,omitempty"`
}

// Finding is something in an export that is not imported as it was. Equal ones are counted.
type Finding struct {
	Subject string // such as "user ann@example.com"; empty for findings about many
	Message string
	Count   int
}

func (f Finding) String() string {
	text := f.Message
	if f.Subject != "" {
		text = f.Subject + ": " + text
	}
	if f.Count > 1 {
		text = fmt.Sprintf("%s (%d times)", text, f.Count)
	}
	return text
}

// note adds a finding.
func (r *Realm) note(subject, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	for i := range r.Report {
		if f := &r.Report[i]; f.Subject == subject && f.Message == message {
			f.Count++
			return
		}
	}
	r.Report = append(r.Report, Finding{Subject: subject, Message: message, Count: 1})
}

// add adds a user. One without an address, or with that of another user, is left out.
func (r *Realm) add(u User, name string, seen map[string]bool) {
	email := strings.ToLower(u.Email)
	switch {
	case email == "":
		r.note("user "+name, "has no e-mail address, by which users are known here: left out")
	case seen[email]:
		r.note("user "+u.Email, "the address belongs to another user of the export: left out")
	default:
		seen[email] = true
		r.Users = append(r.Users, u)
	}
}

// Slug returns the slug of a group's path: "/Sales/North America" is "sales-north-america". It is
// empty if nothing is left.
func Slug(path string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(path) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if s := b.String(); s != "" && !strings.HasSuffix(s, "-") {
			b.WriteByte('-')
		}
	}
	slug := b.String()
	return strings.Trim(slug[:min(len(slug), maxSlug)], "-")
}

const maxSlug = 63

// sort orders a realm, so that equal exports are imported alike.
func (r *Realm) sort() {
	slices.SortFunc(r.Groups, func(a, b Group) int { return cmp.Compare(a.Slug, b.Slug) })
	slices.SortFunc(r.Applications, func(a, b Application) int { return cmp.Compare(a.FormerID, b.FormerID) })
}

// first returns the first value of an attribute that can have several.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// decode decodes JSON, and names its source in errors without quoting it: exports have hashes.
func decode(data []byte, source string, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s is not JSON of the expected form", source)
	}
	return nil
}
