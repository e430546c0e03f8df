package people

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/profile"
	"stonetown/api/web"
	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/password"
	"stonetown/oauth/access"
)

// maxWords is the maximum length of a search text, in bytes.
const maxWords = 254

// validation reads the members of a user and collects their errors.
type validation struct{ profile.Validation }

// password reads a new password. It returns false if the member is absent or null.
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
func (h *Handlers) newUser(ctx context.Context, info *web.RequestInfo, form *UserInput) (n identity.NewUser, err error) {
	var v validation
	n = identity.NewUser{Email: form.Email, EmailVerified: form.EmailVerified, PasswordMustBeReset: form.PasswordMustBeReset}
	v.Text("", "email", form.Email)
	v.Profile(&n.Profile, form.Name, form.GivenName, form.FamilyName, form.Picture, form.Locale, form.Attributes)
	password, given := v.password(form.Password)
	if err := v.Err(); err != nil {
		return n, err
	}
	if given {
		about := identity.User{Email: n.Email, Profile: n.Profile}
		n.PasswordHash, err = h.newPassword(ctx, info, password, about)
	}
	return n, err
}

// newPassword hashes a password that an administrator sets for a user, who may not exist yet.
func (h *Handlers) newPassword(ctx context.Context, info *web.RequestInfo, password string, u identity.User) (password.Hash, error) {
	hash, err := h.Directory.NewPassword(ctx, info.Tenant.ID, password, u)
	return hash, h.Access.RecordRefusal(ctx, info.Tenant.ID, u, err)
}

// patch reads the form of a change and the new password, if there is one.
func patch(form *UserPatch) (change func(*identity.User), password string, given bool, err error) {
	if err := web.RefuseImmutable(
		web.Member{Name: "id", Value: form.ID}, web.Member{Name: "email", Value: form.Email}, web.Member{Name: "created_at", Value: form.CreatedAt},
	); err != nil {
		return nil, "", false, err
	}
	var v validation
	apply := func(p *identity.Profile) {
		v.Profile(p, form.Name, form.GivenName, form.FamilyName, form.Picture, form.Locale, form.Attributes)
	}
	apply(new(identity.Profile))
	password, given = v.password(form.Password)
	return func(u *identity.User) {
		apply(&u.Profile)
		if form.Password.Kind() == 'n' {
			u.SetPassword("")
		}
		if form.PasswordMustBeReset != nil {
			u.PasswordMustBeReset = *form.PasswordMustBeReset
		}
		if form.EmailVerified != nil {
			u.VerifyEmail(*form.EmailVerified)
		}
	}, password, given, v.Err()
}

// filterOf reads the filter of a list.
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
			v.Add("created_after", "invalid", "must be an RFC 3339 time")
		}
	}
	words(&v, "email", p.Email)
	words(&v, "q", p.Q)
	return f, v.Err()
}

// words validates a search text.
func words(v *web.Validation, field, text string) {
	if text != "" && v.Text("", field, text) && len(text) > maxWords {
		v.Add(field, "too_long", fmt.Sprintf("must have at most %d bytes", maxWords))
	}
}

// userDetail is the representation of one user.
type userDetail struct {
	identity.UserDocument `json:",inline"`
	Groups                []groupSummary     `json:"groups"`
	MfaFactors            []factorCount      `json:"mfa_factors"`
	ApplicationsUsed      []string           `json:"applications_used"`
	ExternalIdentities    []ExternalIdentity `json:"external_identities"`
}

type groupSummary struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type factorCount struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

func detail(u identity.User, groups []identity.Group, factors []factor.Factor, identities []external.Identity, used []access.Authorization) userDetail {
	d := userDetail{
		UserDocument: u.Document(), Groups: []groupSummary{}, MfaFactors: []factorCount{}, ApplicationsUsed: []string{},
		ExternalIdentities: profile.Identities(identities),
	}
	for _, z := range used {
		d.ApplicationsUsed = append(d.ApplicationsUsed, z.Application.ID)
	}
	for _, kind := range factor.Kinds {
		if n := len(slices.DeleteFunc(slices.Clone(factors), func(f factor.Factor) bool { return f.Kind != kind })); n > 0 {
			d.MfaFactors = append(d.MfaFactors, factorCount{Kind: string(kind), Count: n})
		}
	}
	for _, g := range groups {
		d.Groups = append(d.Groups, groupSummary{ID: g.ID, Name: g.Name})
	}
	return d
}

func listItem(u identity.User) UserListItem {
	d := u.Document()
	return UserListItem{
		ID: d.ID, Email: d.Email, EmailVerified: d.EmailVerified, State: UserState(d.State), Name: d.Name, CreatedAt: d.CreatedAt, LastSignedInAt: d.LastSignedInAt, ManagedBy: d.ManagedBy,
	}
}
