package federation

// Tenant is the tenant of a connection. Its base URL is part of the URLs that the provider must
// know.
type Tenant struct {
	ID      string
	BaseURL string
}

// URLs are the URLs of a connection. The first three are empty for SAML, and the others for other
// kinds.
type URLs struct {
	Callback   string // redirect URI (RFC 6749 §3.1.2)
	PostLogout string // post-logout redirect URI (RP-Initiated Logout 1.0 §3.1); of OIDC only
	Logout     string // back-channel logout URI (Back-Channel Logout 1.0 §2.2); of OIDC only
	ACS        string // assertion consumer service
	SLO        string // single logout service
	EntityID   string // of the service provider; also the URL of its metadata (SAML 2.0 Metadata §4.1)
	SPMetadata string
}

// URLs returns the URLs of a connection of a tenant.
func (c Connection) URLs(t Tenant) URLs {
	if c.Kind != SAML {
		at := t.BaseURL + "/federation/" + c.Slug
		u := URLs{Callback: at + "/callback"}
		if c.Kind == OIDC {
			u.PostLogout, u.Logout = at+"/logged-out", at+"/backchannel-logout"
		}
		return u
	}
	at := t.BaseURL + "/saml/sp/" + c.Slug
	return URLs{ACS: at + "/acs", SLO: at + "/slo", EntityID: at + "/metadata", SPMetadata: at + "/metadata"}
}
