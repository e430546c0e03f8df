package settings

import (
	"stonetown/identity"
	"stonetown/identity/factor"
	"stonetown/oauth/client"
)

// Document is the public representation of settings, in responses and events. Times are in
// seconds.
type Document struct {
	RateLimits map[string]string `json:"rate_limits"` // in the format of package ratelimit

	PasswordPolicy       PasswordPolicy  `json:"password_policy"`
	MFAPolicy            MFAPolicy       `json:"mfa_policy"`
	Session              Session         `json:"session"`
	SignUp               identity.SignUp `json:"sign_up"`
	RequireVerifiedEmail bool            `json:"require_verified_email"`

	DCRMode               client.DCRMode      `json:"dcr_mode"`
	DCRRequirePKCE        bool                `json:"dcr_require_pkce"`
	ClientIDDocuments     client.DocumentMode `json:"client_id_documents"`
	ClientIDDocumentHosts []string            `json:"client_id_document_hosts"`
	RequireState          bool                `json:"require_state"`
	RefreshReuseLeewayS   int                 `json:"refresh_reuse_leeway_s"`
	RefreshFamilyMaxS     int                 `json:"refresh_family_max_s"`
	PreviousSecretTTLS    int                 `json:"previous_secret_ttl_s"`
	ClientAssertionMaxS   int                 `json:"client_assertion_max_s"`
	TokenDefaults         client.Lifetimes    `json:"token_defaults"`
	TrustedOrigins        []string            `json:"trusted_origins"`
}

// PasswordPolicy bounds the length of passwords, in characters.
type PasswordPolicy struct {
	MinLength int `json:"min_length"`
	MaxLength int `json:"max_length"`
}

// MFAPolicy is the policy for second factors: whether they are required, and the kinds.
type MFAPolicy struct {
	Mode  identity.MFAMode `json:"mode"`
	Kinds []factor.Kind    `json:"kinds"`
}

// Session has the lifetimes of sessions.
type Session struct {
	IdleS     int `json:"idle_s"` // without use
	AbsoluteS int `json:"absolute_s"`
}

// Document is the public representation of the settings.
func (s Settings) Document() Document {
	u, a := s.Users, s.Applications
	return Document{
		RateLimits: s.RateLimits.Text(),

		PasswordPolicy: PasswordPolicy{u.PasswordPolicy.MinLength, u.PasswordPolicy.MaxLength},
		MFAPolicy:      MFAPolicy{u.MFA.Mode, u.MFA.Kinds},
		Session:        Session{u.Session.IdleS, u.Session.AbsoluteS},
		SignUp:         u.SignUp, RequireVerifiedEmail: u.RequireVerifiedEmail,

		DCRMode: a.DCRMode, DCRRequirePKCE: a.DCRRequirePKCE, RequireState: a.RequireState,
		ClientIDDocuments: a.ClientIDDocuments, ClientIDDocumentHosts: a.ClientIDDocumentHosts,
		RefreshReuseLeewayS: a.RefreshReuseLeewayS, RefreshFamilyMaxS: a.RefreshFamilyMaxS, PreviousSecretTTLS: a.PreviousSecretTTLS,
		ClientAssertionMaxS: a.ClientAssertionMaxS,
		TokenDefaults:       a.Tokens, TrustedOrigins: a.TrustedOrigins,
	}
}
