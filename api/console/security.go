package console

const securityPage = "/console/security"

// securityAreas are the pages of the area Security.
var securityAreas = []area{
	{"Policies", policiesPage, "Rules for passwords, second factors, sessions, sign-up, tokens, registration and rate limits.", "settings:read"},
	{"Signing keys", keysPage, "The keys that tokens are signed with, and their replacement.", "settings:read"},
	{"SAML certificates", certificatesPage, "The certificates that SAML messages are signed with, and their replacement.", "settings:read"},
	{"Threat feeds", threatsPage, "Lists of addresses and mail domains from which sign-ins and sign-ups are recorded or refused.", "settings:read"},
	{"Scopes", scopesPage, "The rights that tokens carry: those that are built in, and those that you define for your services.", "applications:read"},
	{"Trusted issuers", issuersPage, "Platforms such as Kubernetes and GitHub Actions whose workloads get tokens of applications.", "applications:read"},
}

// security leads to the pages of the area that the person may read.
func security(v *visit) error {
	if len(v.readable(securityAreas)) == 0 {
		return v.require("settings:read")
	}
	return v.show("security.html", "Security", object{"Areas": v.readable(securityAreas)})
}
