package people

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/language"

	"stonetown/api/web"
	"stonetown/identity"
)

const (
	// maxText is the longest text about a user, in bytes.
	maxText = 500
	// maxWords is the longest text that is looked for, in bytes.
	maxWords = 254
	// maxAttributes is the largest attributes object, in bytes of compact JSON.
	maxAttributes = 16 << 10
)

// validation reads the members of a user and collects what is wrong with them.
type validation struct{ web.Validation }

// text reads a text into a field, if it is there; null clears it.
func (v *validation) text(name string, value jsontext.Value, field *string) {
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
	case len(text) > maxText:
		v.Add(name, "too_long", fmt.Sprintf("must have at most %d bytes", maxText))
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

// attributes reads an object, if it is there; null clears it.
func (v *validation) attributes(value jsontext.Value, field *[]byte) {
	switch value.Kind() {
	case 0:
	case 'n':
		*field = nil
	case '{':
		if err := value.Compact(); err != nil {
			v.Add("attributes", "invalid", "is not valid JSON")
		} else if len(value) > maxAttributes {
			v.Add("attributes", "too_large", fmt.Sprintf("must have at most %d bytes", maxAttributes))
		} else {
			*field = value
		}
	default:
		v.Add("attributes", "type_invalid", "must be an object or null")
	}
}

// profile reads what both forms have in common.
func (v *validation) profile(p *identity.Profile, name, givenName, familyName, picture, locale, attributes jsontext.Value) {
	v.text("name", name, &p.Name)
	v.text("given_name", givenName, &p.GivenName)
	v.text("family_name", familyName, &p.FamilyName)
	v.text("picture", picture, &p.Picture)
	v.text("locale", locale, &p.Locale)
	v.attributes(attributes, &p.Attributes)
}

// password reads a new password; absent and null are none.
func (v *validation) password(value jsontext.Value) (password string, given bool) {
	switch value.Kind() {
	case 0, 'n':
		return "", false
	case '"':
		if json.Unmarshal(value, &password) == nil {
			return password, true
		}
	}
	v.Add("password", "type_invalid", "must be a string or null")
	return "", false
}

// newUser reads the form of a new user.
func (s *Surface) newUser(ctx context.Context, call *web.Call, form *UserInput) (n identity.NewUser, err error) {
	var v validation
	n = identity.NewUser{Email: form.Email, EmailVerified: form.EmailVerified, PasswordMustBeReset: form.PasswordMustBeReset}
	v.Text("", "email", form.Email)
	v.profile(&n.Profile, form.Name, form.GivenName, form.FamilyName, form.Picture, form.Locale, form.Attributes)
	password, given := v.password(form.Password)
	if err := v.Err(); err != nil {
		return n, err
	}
	if given {
		about := identity.User{Email: n.Email, Profile: n.Profile}
		n.PasswordHash, err = s.Directory.NewPassword(ctx, call.Tenant.ID, password, about)
	}
	return n, err
}

// patch reads the form of a change, and the new password in it.
func patch(form *UserPatch) (change func(*identity.User), password string, given bool, err error) {
	if err := web.RefuseImmutable(
		web.Member{Name: "id", Value: form.ID}, web.Member{Name: "email", Value: form.Email}, web.Member{Name: "created_at", Value: form.CreatedAt},
	); err != nil {
		return nil, "", false, err
	}
	var v validation
	apply := func(p *identity.Profile) {
		v.profile(p, form.Name, form.GivenName, form.FamilyName, form.Picture, form.Locale, form.Attributes)
	}
	apply(new(identity.Profile))
	password, given = v.password(form.Password)
	return func(u *identity.User) {
		apply(&u.Profile)
		if form.Password.Kind() == 'n' {
			u.PasswordHash = ""
		}
		if form.PasswordMustBeReset != nil {
			u.PasswordMustBeReset = *form.PasswordMustBeReset
		}
		if form.EmailVerified != nil {
			u.VerifyEmail(*form.EmailVerified)
		}
	}, password, given, v.Err()
}

// filterOf reads what a list is asked for.
func filterOf(p ListUsersParams) (identity.Filter, error) {
	var v web.Validation
	f := identity.Filter{Email: p.Email, State: identity.State(p.State), Query: p.Q}
	switch f.State {
	case "", identity.Pending, identity.Active, identity.Disabled:
	default:
		v.Add("state", "unknown_value", "must be pending, active or disabled")
	}
	if p.CreatedAfter != "" {
		var err error
		if f.CreatedAfter, err = time.Parse(time.RFC3339Nano, p.CreatedAfter); err != nil {
			v.Add("created_after", "invalid", "must be an instant (RFC 3339)")
		}
	}
	words(&v, "email", p.Email)
	words(&v, "q", p.Q)
	return f, v.Err()
}

// words checks what is looked for.
func words(v *web.Validation, field, text string) {
	if text != "" && v.Text("", field, text) && len(text) > maxWords {
		v.Add(field, "too_long", fmt.Sprintf("must have at most %d bytes", maxWords))
	}
}

// label checks the name of something, which it must have.
func (v *validation) label(field, text string) {
	if v.Text("", field, text) && len(text) > maxText {
		v.Add(field, "too_long", fmt.Sprintf("must have at most %d bytes", maxText))
	}
}

// wire is a user as clients get it.
func wire(u identity.User) User {
	return User{
		ID: u.ID, Email: u.Email, EmailVerified: u.EmailVerified, State: UserState(u.State),
		Name: orNull(u.Name), GivenName: orNull(u.GivenName), FamilyName: orNull(u.FamilyName), Picture: orNull(u.Picture), Locale: orNull(u.Locale),
		Attributes: attributesOrNull(u.Attributes), PasswordSet: u.PasswordHash != "", PasswordMustBeReset: u.PasswordMustBeReset,
		CreatedAt: web.Timestamp(u.CreatedAt), UpdatedAt: web.Timestamp(u.UpdatedAt), LastSignedInAt: timeOrNull(u.LastSignedInAt),
	}
}

// detail is what is answered about one user.
func detail(u identity.User, groups []identity.Group) UserDetail {
	w := wire(u)
	d := UserDetail{
		ID: w.ID, Email: w.Email, EmailVerified: w.EmailVerified, State: w.State,
		Name: w.Name, GivenName: w.GivenName, FamilyName: w.FamilyName, Picture: w.Picture, Locale: w.Locale,
		Attributes: w.Attributes, PasswordSet: w.PasswordSet, PasswordMustBeReset: w.PasswordMustBeReset,
		CreatedAt: w.CreatedAt, UpdatedAt: w.UpdatedAt, LastSignedInAt: w.LastSignedInAt, Groups: []GroupSummary{},
	}
	for _, g := range groups {
		d.Groups = append(d.Groups, GroupSummary{ID: g.ID, Name: g.Name})
	}
	return d
}

func listItem(u identity.User) UserListItem {
	return UserListItem{
		ID: u.ID, Email: u.Email, EmailVerified: u.EmailVerified, State: UserState(u.State), Name: orNull(u.Name),
		CreatedAt: web.Timestamp(u.CreatedAt), LastSignedInAt: timeOrNull(u.LastSignedInAt),
	}
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func timeOrNull(t time.Time) *web.Timestamp {
	if t.IsZero() {
		return nil
	}
	at := web.Timestamp(t)
	return &at
}

func attributesOrNull(object []byte) Attributes {
	if object == nil {
		return Attributes("null")
	}
	return object
}
