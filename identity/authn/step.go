package authn

import (
	"slices"

	"stonetown/identity"
)

// account is what the next step of a sign-in depends on besides the proofs: a user, how
// many second factors the user has, and whether the device is remembered.
type account struct {
	user       identity.User
	factors    int
	remembered bool
}

// nextStep is the step that follows a proof, by the settings of the tenant. All sign-ins
// go through it, so no step can be skipped by continuing elsewhere. It fails with
// [ErrDisabled].
func nextStep(a account, p proof, s identity.Settings) (Status, error) {
	asksForFactors := s.MFA.Mode != identity.MFAOff && !p.Second
	switch {
	case a.user.State == identity.Disabled:
		return "", ErrDisabled
	case a.user.State == identity.Pending && s.RequireVerifiedEmail:
		return EmailRequired, nil
	case asksForFactors && a.factors > 0 && !a.remembered:
		return MFARequired, nil
	case a.user.PasswordMustBeReset && slices.Contains(p.Methods, "pwd"):
		return PasswordRequired, nil
	case asksForFactors && a.factors == 0 && (a.user.MustEnrol || s.MFA.Mode == identity.MFARequired):
		return EnrolmentRequired, nil
	default:
		return Complete, nil
	}
}
