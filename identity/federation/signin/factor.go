package signin

import "slices"

// multiFactor are the authentication contexts of a sign-in with several factors: of the product
// itself, NIST SP 800-63B, OpenID PAPE, REFEDS, Microsoft, and SAML 2.0: a registered phone or a
// device with a PIN, and a smart card with a PIN (SAML Authentication Context §3.4).
var multiFactor = []string{
	"aal2", "aal3",
	"http://idmanagement.gov/ns/assurance/aal/2", "http://idmanagement.gov/ns/assurance/aal/3",
	"http://schemas.openid.net/pape/policies/2007/06/multi-factor",
	"https://refeds.org/profile/mfa",
	"http://schemas.microsoft.com/claims/multipleauthn",
	"urn:oasis:names:tc:SAML:2.0:ac:classes:MobileTwoFactorContract", "urn:oasis:names:tc:SAML:2.0:ac:classes:MobileTwoFactorUnregistered",
	"urn:oasis:names:tc:SAML:2.0:ac:classes:SmartcardPKI",
}

// The methods of an authentication (RFC 8176 §2) by the kind of their factor.
var (
	knowledge  = []string{"pwd", "pin", "kba"}
	possession = []string{"hwk", "swk", "otp", "sms", "tel", "sc", "pop"}
	inherence  = []string{"face", "fpt", "iris", "retina", "vbm"}
)

// secondFactor reports whether a provider states that it has verified factors of two kinds.
func secondFactor(methods []string, contexts ...string) bool {
	if slices.Contains(methods, "mfa") || slices.ContainsFunc(contexts, func(c string) bool { return slices.Contains(multiFactor, c) }) {
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
