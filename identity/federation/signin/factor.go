package signin

import "slices"

// multiFactor are the authentication contexts of a sign-in with several factors: of the product
// itself, NIST SP 800-63B, OpenID PAPE, REFEDS and Microsoft.
var multiFactor = []string{
	"aal2", "aal3",
	"http://idmanagement.gov/ns/assurance/aal/2", "http://idmanagement.gov/ns/assurance/aal/3",
	"http://schemas.openid.net/pape/policies/2007/06/multi-factor",
	"https://refeds.org/profile/mfa",
	"http://schemas.microsoft.com/claims/multipleauthn",
}

// The methods of an authentication (RFC 8176 §2) by the kind of their factor.
var (
	knowledge  = []string{"pwd", "pin", "kba"}
	possession = []string{"hwk", "swk", "otp", "sms", "tel", "sc", "pop"}
	inherence  = []string{"face", "fpt", "iris", "retina", "vbm"}
)

// secondFactor reports whether a provider states that it has verified factors of two kinds.
func secondFactor(methods []string, context string) bool {
	if slices.Contains(methods, "mfa") || slices.Contains(multiFactor, context) {
		return true
	}
	kinds := 0
	for _, kind := range [][]string{knowledge, possession, inherence} {
		if slices.ContainsFunc(methods, func(m string) bool { return slices.Contains(kind, m) }) {
			kinds++
		}
	}
	return kinds > 1
}
