package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/web"
	"stonetown/identity"
	"stonetown/identity/factor"
)

// member reads a member of a patch and returns what it changes. otherwise are the
// defaults, which null brings back.
type member func(v *web.Validation, field string, value jsontext.Value) func(s *identity.Settings, otherwise identity.Settings)

// members are what a tenant decides about its users, by where that is in a patch.
var members = map[string]member{
	"password_policy/min_length": integer(identity.LeastMinLength, identity.MostMinLength, func(s *identity.Settings) *int { return &s.PasswordPolicy.MinLength }),
	"password_policy/max_length": integer(identity.LeastMaxLength, identity.MostMaxLength, func(s *identity.Settings) *int { return &s.PasswordPolicy.MaxLength }),
	"mfa_policy/mode": word([]string{string(identity.MFAOff), string(identity.MFAOptional), string(identity.MFARequired)}, func(s *identity.Settings) *string {
		return (*string)(&s.MFA.Mode)
	}),
	"mfa_policy/kinds":       kinds,
	"session/idle_s":         integer(identity.LeastSessionTime, identity.MostSessionTime, func(s *identity.Settings) *int { return &s.Session.IdleS }),
	"session/absolute_s":     integer(identity.LeastSessionTime, identity.MostSessionTime, func(s *identity.Settings) *int { return &s.Session.AbsoluteS }),
	"sign_up":                word([]string{string(identity.SignUpOpen), string(identity.SignUpClosed)}, func(s *identity.Settings) *string { return (*string)(&s.SignUp) }),
	"require_verified_email": flag(func(s *identity.Settings) *bool { return &s.RequireVerifiedEmail }),
}

// usersOf reads the members of a merge patch (RFC 7396) that are about users.
func usersOf(form *SettingsPatch) (change func(*identity.Settings), err error) {
	var v web.Validation
	var changes []func(*identity.Settings, identity.Settings)
	given := map[string]jsontext.Value{
		"password_policy": form.PasswordPolicy, "mfa_policy": form.MfaPolicy, "session": form.Session,
		"sign_up": form.SignUp, "require_verified_email": form.RequireVerifiedEmail,
	}
	for _, path := range slices.Sorted(maps.Keys(members)) {
		name, inner, nested := strings.Cut(path, "/")
		value := given[name]
		if nested && value.Kind() != 0 && value.Kind() != 'n' { // null takes all of it back
			var object map[string]jsontext.Value
			if json.Unmarshal(value, &object) != nil {
				v.Add(name, "type_invalid", "must be an object or null")
				given[name] = nil // said once
				continue
			}
			value = object[inner]
		}
		if value.Kind() == 0 {
			continue
		}
		changes = append(changes, members[path](&v, path, value))
	}
	return func(s *identity.Settings) {
		for _, change := range changes {
			change(s, identity.DefaultSettings())
		}
	}, v.Err()
}

// set is a member that is one value of the settings.
func set[T any](read func(v *web.Validation, field string, value jsontext.Value, into *T), of func(*identity.Settings) *T) member {
	return func(v *web.Validation, field string, value jsontext.Value) func(*identity.Settings, identity.Settings) {
		if value.Kind() == 'n' {
			return func(s *identity.Settings, otherwise identity.Settings) { *of(s) = *of(&otherwise) }
		}
		var now T
		read(v, field, value, &now)
		return func(s *identity.Settings, _ identity.Settings) { *of(s) = now }
	}
}

func integer(least, most int, of func(*identity.Settings) *int) member {
	return set(func(v *web.Validation, field string, value jsontext.Value, into *int) {
		if json.Unmarshal(value, into) != nil || *into < least || *into > most {
			v.Add(field, "out_of_range", fmt.Sprintf("must be between %d and %d, or null", least, most))
		}
	}, of)
}

func word(words []string, of func(*identity.Settings) *string) member {
	return set(func(v *web.Validation, field string, value jsontext.Value, into *string) {
		if json.Unmarshal(value, into) != nil || !slices.Contains(words, *into) {
			v.Add(field, "unknown_value", "must be one of "+strings.Join(words, ", ")+", or null")
		}
	}, of)
}

func flag(of func(*identity.Settings) *bool) member {
	return set(func(v *web.Validation, field string, value jsontext.Value, into *bool) {
		if json.Unmarshal(value, into) != nil {
			v.Add(field, "type_invalid", "must be true, false or null")
		}
	}, of)
}

// kinds are those of factors that can be added.
var kinds = set(func(v *web.Validation, field string, value jsontext.Value, into *[]factor.Kind) {
	if json.Unmarshal(value, into) != nil || slices.ContainsFunc(*into, func(k factor.Kind) bool { return !slices.Contains(factor.Kinds, k) }) {
		v.Add(field, "unknown_value", "must be a list of webauthn, totp and sms, or null")
	}
	slices.Sort(*into)
	*into = slices.Compact(*into)
}, func(s *identity.Settings) *[]factor.Kind { return &s.MFA.Kinds })

// wireUsers are the settings about users as clients get them.
func wireUsers(s identity.Settings) (w Settings) {
	w.PasswordPolicy = PasswordPolicy{MinLength: s.PasswordPolicy.MinLength, MaxLength: s.PasswordPolicy.MaxLength}
	w.MfaPolicy = MfaPolicy{Mode: string(s.MFA.Mode), Kinds: []string{}}
	for _, kind := range s.MFA.Kinds {
		w.MfaPolicy.Kinds = append(w.MfaPolicy.Kinds, string(kind))
	}
	w.Session = SessionSettings{IdleS: s.Session.IdleS, AbsoluteS: s.Session.AbsoluteS}
	w.SignUp, w.RequireVerifiedEmail = string(s.SignUp), s.RequireVerifiedEmail
	return w
}
