package authn

import (
	"errors"
	"testing"

	"stonetown/identity"
	"stonetown/identity/flow"
)

func TestNextStep(t *testing.T) {
	password := proof{Methods: []string{"pwd"}}
	both := password.withSecond("otp")
	passkey := proof{Methods: []string{"hwk", "user"}, Second: true}
	active := identity.User{State: identity.Active}
	mustReset := identity.User{State: identity.Active, PasswordMustBeReset: true}
	mustEnrol := identity.User{State: identity.Active, MustEnrol: true}
	pending := identity.User{State: identity.Pending, PasswordMustBeReset: true, MustEnrol: true}
	managed := identity.User{State: identity.Active, ManagedBy: "usr_boss", MustEnrol: true}
	managedDisabled := identity.User{State: identity.Disabled, ManagedBy: "usr_boss"}
	otherManaged := identity.User{State: identity.Active, ManagedBy: "usr_other"}
	entering := proof{Methods: []string{"control_plane"}, Entry: &entry{origin: bossOrigin}}
	disabled := identity.User{State: identity.Disabled, PasswordMustBeReset: true}

	for name, c := range map[string]struct {
		user       identity.User
		factors    int
		remembered bool
		proof      proof
		mode       identity.MFAMode
		verified   bool // the tenant requires a verified address
		want       Status
		err        error
	}{
		"password alone":                            {user: active, proof: password, mode: identity.MFAOptional, want: Complete},
		"password of a user with a factor":          {user: active, factors: 1, proof: password, mode: identity.MFAOptional, want: MFARequired},
		"factor after the password":                 {user: active, factors: 1, proof: both, mode: identity.MFAOptional, want: Complete},
		"passkey counts as two":                     {user: active, factors: 1, proof: passkey, mode: identity.MFARequired, want: Complete},
		"remembered device":                         {user: active, factors: 1, remembered: true, proof: password, mode: identity.MFARequired, want: Complete},
		"factors are switched off":                  {user: active, factors: 1, proof: password, mode: identity.MFAOff, want: Complete},
		"factor required, none there":               {user: active, proof: password, mode: identity.MFARequired, want: EnrolmentRequired},
		"factor required, passkey used":             {user: active, proof: passkey, mode: identity.MFARequired, want: Complete},
		"user must enrol":                           {user: mustEnrol, proof: password, mode: identity.MFAOptional, want: EnrolmentRequired},
		"user must enrol, factors are switched off": {user: mustEnrol, proof: password, mode: identity.MFAOff, want: Complete},
		"user must enrol and has a factor":          {user: mustEnrol, factors: 1, proof: password, mode: identity.MFAOptional, want: MFARequired},
		"forced reset":                              {user: mustReset, proof: password, mode: identity.MFAOptional, want: PasswordRequired},
		"forced reset, factor first":                {user: mustReset, factors: 1, proof: password, mode: identity.MFAOptional, want: MFARequired},
		"forced reset after the factor":             {user: mustReset, factors: 1, proof: both, mode: identity.MFAOptional, want: PasswordRequired},
		"forced reset before enrolment":             {user: mustReset, proof: password, mode: identity.MFARequired, want: PasswordRequired},
		"forced reset does not concern a passkey":   {user: mustReset, factors: 1, proof: passkey, mode: identity.MFAOptional, want: Complete},
		"pending, address required":                 {user: pending, factors: 1, proof: password, mode: identity.MFARequired, verified: true, want: EmailRequired},
		"pending, passkey, address required":        {user: pending, proof: passkey, mode: identity.MFAOptional, verified: true, want: EmailRequired},
		"pending, address not required":             {user: pending, proof: password, mode: identity.MFAOptional, want: PasswordRequired},
		"managed, by a password":                    {user: managed, proof: password, mode: identity.MFAOff, err: identity.ErrManaged},
		"managed, by a passkey":                     {user: managed, proof: passkey, mode: identity.MFAOff, err: identity.ErrManaged},
		"managed, entering":                         {user: managed, proof: entering, mode: identity.MFARequired, verified: true, want: Complete},
		"managed, disabled":                         {user: managedDisabled, proof: entering, mode: identity.MFAOff, err: ErrDisabled},
		"another person's managed user":             {user: otherManaged, proof: entering, mode: identity.MFAOff, err: identity.ErrManaged},
		"not managed, entering":                     {user: active, proof: entering, mode: identity.MFAOff, err: identity.ErrManaged},
		"disabled":                                  {user: disabled, factors: 1, proof: both, mode: identity.MFARequired, verified: true, err: ErrDisabled},
	} {
		t.Run(name, func(t *testing.T) {
			s := identity.Settings{RequireVerifiedEmail: c.verified, MFA: identity.MFAPolicy{Mode: c.mode}}
			got, err := nextStep(account{c.user, c.factors, c.remembered}, c.proof, s, flow.Demands{})
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("%q, %v, want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}
