package settings

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/web"
	"stonetown/identity"
	"stonetown/identity/factor"
	"stonetown/identity/password"
)

// ofUsers are the settings of users.
var ofUsers = members[identity.Settings]{
	"password_policy/min_length": integer(password.LeastMinLength, password.MostMinLength, func(s *identity.Settings) *int { return &s.PasswordPolicy.MinLength }),
	"password_policy/max_length": integer(password.LeastMaxLength, password.MostMaxLength, func(s *identity.Settings) *int { return &s.PasswordPolicy.MaxLength }),
	"mfa_policy/mode": word([]string{string(identity.MFAOff), string(identity.MFAOptional), string(identity.MFARequired)}, func(s *identity.Settings) *string {
		return (*string)(&s.MFA.Mode)
	}),
	"mfa_policy/kinds":       kinds,
	"session/idle_s":         integer(identity.LeastSessionTime, identity.MostSessionTime, func(s *identity.Settings) *int { return &s.Session.IdleS }),
	"session/absolute_s":     integer(identity.LeastSessionTime, identity.MostSessionTime, func(s *identity.Settings) *int { return &s.Session.AbsoluteS }),
	"sign_up":                word([]string{string(identity.SignUpOpen), string(identity.SignUpClosed)}, func(s *identity.Settings) *string { return (*string)(&s.SignUp) }),
	"require_verified_email": flag(func(s *identity.Settings) *bool { return &s.RequireVerifiedEmail }),
}

// usersOf reads the members of a patch that are about users.
func usersOf(form *SettingsPatch) (change func(*identity.Settings), err error) {
	return ofUsers.read(map[string]jsontext.Value{
		"password_policy": form.PasswordPolicy, "mfa_policy": form.MfaPolicy, "session": form.Session,
		"sign_up": form.SignUp, "require_verified_email": form.RequireVerifiedEmail,
	}, identity.DefaultSettings())
}

// kinds are those of factors that can be added.
var kinds = set(func(v *web.Validation, field string, value jsontext.Value, into *[]factor.Kind) {
	if json.Unmarshal(value, into) != nil || slices.ContainsFunc(*into, func(k factor.Kind) bool { return !slices.Contains(factor.Kinds, k) }) {
		v.Add(field, "unknown_value", "must be a list of webauthn, totp and sms, or null")
	}
	slices.Sort(*into)
	*into = slices.Compact(*into)
}, func(s *identity.Settings) *[]factor.Kind { return &s.MFA.Kinds })
