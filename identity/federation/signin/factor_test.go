package signin

import (
	"testing"

	"stonetown/identity/federation"
)

func TestSecondFactor(t *testing.T) {
	for _, test := range []struct {
		methods []string
		context string
		want    bool
	}{
		{nil, "", false},
		{[]string{"pwd"}, "", false},
		{[]string{"mfa"}, "", true},
		{[]string{"pwd", "mfa"}, "", true},
		{[]string{"MFA"}, "", false},
		{[]string{"pwd mfa"}, "", false},

		// Factors of two kinds.
		{[]string{"pwd", "otp"}, "", true},
		{[]string{"otp", "pwd"}, "", true},
		{[]string{"pin", "hwk"}, "", true},
		{[]string{"kba", "sms"}, "", true},
		{[]string{"pwd", "fpt"}, "", true},
		{[]string{"swk", "face"}, "", true},
		{[]string{"pwd", "tel", "iris"}, "", true},

		// Several factors of one kind are one.
		{[]string{"pwd", "pin", "kba"}, "", false},
		{[]string{"sms", "tel", "otp", "hwk", "swk", "sc", "pop"}, "", false},
		{[]string{"face", "fpt", "iris", "retina", "vbm"}, "", false},
		{[]string{"pwd", "pwd"}, "", false},

		// Methods that are no factor, or that RFC 8176 does not have.
		{[]string{"pwd", "user"}, "", false},
		{[]string{"pwd", "geo", "rba", "mca", "wia"}, "", false},
		{[]string{"pwd", "x", ""}, "", false},

		{nil, "aal2", true},
		{nil, "aal3", true},
		{[]string{"pwd"}, "http://idmanagement.gov/ns/assurance/aal/2", true},
		{nil, "http://idmanagement.gov/ns/assurance/aal/3", true},
		{nil, "http://schemas.openid.net/pape/policies/2007/06/multi-factor", true},
		{nil, "https://refeds.org/profile/mfa", true},
		{nil, "http://schemas.microsoft.com/claims/multipleauthn", true},

		{[]string{"pwd"}, "aal1", false},
		{nil, "http://idmanagement.gov/ns/assurance/aal/1", false},
		{nil, "https://refeds.org/profile/sfa", false},
		{nil, "aal2 aal3", false},
		{nil, "mfa", false}, // a method, not a context
		{[]string{"aal2"}, "", false},
		{nil, "1", false},
	} {
		if got := secondFactor(test.methods, test.context); got != test.want {
			t.Errorf("amr %q, acr %q: %t", test.methods, test.context, got)
		}
		// Only a connection that accepts second factors asserts one.
		for policy, want := range map[federation.SecondFactor]bool{federation.AcceptSecondFactor: test.want, federation.AskSecondFactor: false, "": false} {
			c := federation.OIDC.Defaults()
			c.SecondFactor = policy
			if got := assertion(c, statement{AMR: test.methods, ACR: []string{test.context}}, federation.User{}, ""); got.SecondFactor != want {
				t.Errorf("amr %q, acr %q with the policy %q: %t", test.methods, test.context, policy, got.SecondFactor)
			}
		}
	}
}
