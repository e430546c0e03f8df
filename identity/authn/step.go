package authn

import (
	"slices"

	"stonetown/identity"
	"stonetown/identity/flow"
)

// account is the part of the state of an account that the next step depends on: the user, the
// number of second factors, and whether the device is remembered.
type account struct {
	user       identity.User
	factors    int
	remembered bool
}

// nextStep returns the step after a proof, by the settings of the tenant and the demands of its
// sign-in flow, which only add to them. Every step of a sign-in ends with it, so that no step can be
// omitted. It fails with [ErrDisabled], with [identity.ErrManaged] for a managed user and a proof that
// is not an entry of that person from the control plane, or with [*flow.DeniedError] if a second factor is demanded of a
// tenant without second factors.
func nextStep(a account, p proof, s identity.Settings, more flow.Demands) (Status, error) {
	useFactors := s.MFA.Mode != identity.MFAOff && !p.Second
	switch {
	case a.user.State == identity.Disabled:
		return "", ErrDisabled
	case a.user.ManagedBy != p.person():
		return "", identity.ErrManaged
	case a.user.ManagedBy != "": // the control plane demands of its users what it demands
		return Complete, nil
	case a.user.State == identity.Pending && s.RequireVerifiedEmail, more.VerifiedEmail && !a.user.EmailVerified:
		return EmailRequired, nil
	case useFactors && a.factors > 0 && (!a.remembered || more.Factor):
		return MFARequired, nil
	case a.user.PasswordMustBeReset && slices.Contains(p.Methods, "pwd"):
		return PasswordRequired, nil
	case more.Factor && s.MFA.Mode == identity.MFAOff && !p.Second:
		return "", &flow.DeniedError{}
	case useFactors && a.factors == 0 && (a.user.MustEnrol || s.MFA.Mode == identity.MFARequired || more.Factor):
		return EnrolmentRequired, nil
	default:
		return Complete, nil
	}
}
