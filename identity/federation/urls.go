package federation

// Tenant is the tenant of a connection. Its base URL is part of the URLs that the provider must
// know.
type Tenant struct {
	ID      string
	BaseURL string
}

// URLs are the URLs of a connection. Those of SAML are empty for other kinds, and Callback is
// empty for SAML.
type URLs struct {
	Callback   string // redirect URI (RFC 6749 §3.1.2)
	ACS        string // assertion consumer service
	SLO        string // single logout service
	EntityID   string // of the service provider; also the URL of its metadata (SAML 2.0 Metadata §4.1)
	SPMetadata string
}

// URLs returns the URLs of a connection of a tenant.
func (c Connection) URLs(t Tenant) URLs {
	if c.Kind != SAML {
		return URLs{Callback: t.BaseURL + "/federation/" + c.Slug + "/callback"}
	}
	at := t.BaseURL + "/saml/sp/" + c.Slug
	return URLs{ACS: at + "/acs", SLO: at + "/slo", EntityID: at + "/metadata", SPMetadata: at + "/metadata"}
}
