package federation

import (
	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/document"
)

// Document is the public representation of a connection, in responses and in events. It has no
// secrets, and not the XML of metadata, which can be large.
type Document struct {
	ID    string `json:"id"`
	Slug  string `json:"slug"`
	Kind  Kind   `json:"kind"`
	Name  string `json:"name"`
	State State  `json:"state"`

	AttributeMapping map[string]string `json:"attribute_mapping"`
	GroupMapping     []GroupRule       `json:"group_mapping"`
	JITProvisioning  bool              `json:"jit_provisioning"`
	LinkPolicy       LinkPolicy        `json:"link_policy"`
	TrustEmail       bool              `json:"trust_email"`
	SecondFactor     SecondFactor      `json:"second_factor"`
	Domains          []string          `json:"domains"`

	*ClientDocument    // nil for SAML
	*MicrosoftDocument // nil for other kinds
	*AppleDocument
	*OpenIDDocument
	*SAMLDocument

	MetadataRefreshedAt  *document.Timestamp `json:"metadata_refreshed_at"`  // null: there is no metadata
	MetadataFailingSince *document.Timestamp `json:"metadata_failing_since"` // null: the last refresh succeeded
	CreatedAt            document.Timestamp  `json:"created_at"`
	UpdatedAt            document.Timestamp  `json:"updated_at"`
}

// ClientDocument is the client of a connection at an OAuth 2.0 provider.
type ClientDocument struct {
	ClientID        string   `json:"client_id"`
	ClientSecretSet bool     `json:"client_secret_set"`
	Scopes          []string `json:"scopes"`
	CallbackURL     string   `json:"callback_url"`
}

// MicrosoftDocument is the directory whose users sign in.
type MicrosoftDocument struct {
	Tenant string `json:"tenant"`
}

// AppleDocument is the key that signs client secrets.
type AppleDocument struct {
	TeamID        *string `json:"team_id"`
	KeyID         *string `json:"key_id"`
	PrivateKeySet bool    `json:"private_key_set"`
}

// OpenIDDocument is an OpenID provider.
type OpenIDDocument struct {
	Issuer        string  `json:"issuer"`
	UseDiscovery  bool    `json:"use_discovery"`
	Authorization string  `json:"authorization_endpoint"`
	Token         string  `json:"token_endpoint"`
	JWKS          string  `json:"jwks_uri"`
	UserInfo      *string `json:"userinfo_endpoint"`
	EndSession    *string `json:"end_session_endpoint"`
	PostLogout    string  `json:"post_logout_url"`
	Logout        string  `json:"backchannel_logout_url"`
}

// SAMLDocument is a SAML identity provider, and the service provider that it must know.
type SAMLDocument struct {
	MetadataURL          *string               `json:"idp_metadata_url"` // null: XML was sent
	IDPEntityID          string                `json:"idp_entity_id"`
	IDPSSOURL            string                `json:"idp_sso_url"`
	IDPSLOURL            *string               `json:"idp_slo_url"`
	IDPCertificates      []CertificateDocument `json:"idp_certificates"`
	AllowIDPInitiated    bool                  `json:"allow_idp_initiated"`
	WantAssertionsSigned bool                  `json:"want_assertions_signed"` // always true
	ACSURL               string                `json:"acs_url"`
	SLOURL               string                `json:"slo_url"`
	SPEntityID           string                `json:"sp_entity_id"`
	SPMetadataURL        string                `json:"sp_metadata_url"`
}

// CertificateDocument is a signing certificate.
type CertificateDocument struct {
	Fingerprint string             `json:"fingerprint"`
	NotAfter    document.Timestamp `json:"not_after"`
}

func certificateDocument(c serviceprovider.Certificate) CertificateDocument {
	return CertificateDocument{c.Fingerprint, document.Timestamp(c.NotAfter)}
}

// Document returns the public representation of a connection of a tenant.
func (c Connection) Document(t Tenant) Document {
	urls := c.URLs(t)
	d := Document{
		ID: c.ID, Slug: c.Slug, Kind: c.Kind, Name: c.Name, State: c.State,
		AttributeMapping: c.AttributeMapping, GroupMapping: listed(c.GroupMapping), JITProvisioning: c.JITProvisioning,
		LinkPolicy: c.LinkPolicy, TrustEmail: c.TrustEmail, SecondFactor: c.SecondFactor, Domains: listed(c.Domains),
		MetadataRefreshedAt: document.TimeOrNull(c.Metadata.RefreshedAt), MetadataFailingSince: document.TimeOrNull(c.Metadata.FailingSince),
		CreatedAt: document.Timestamp(c.CreatedAt), UpdatedAt: document.Timestamp(c.UpdatedAt),
	}
	if d.AttributeMapping == nil {
		d.AttributeMapping = map[string]string{}
	}
	if c.Kind != SAML {
		d.ClientDocument = &ClientDocument{c.ClientID, c.ClientSecret.IsSet(), listed(c.Scopes), urls.Callback}
	}
	switch c.Kind {
	case Microsoft:
		d.MicrosoftDocument = &MicrosoftDocument{c.MicrosoftTenant}
	case Apple:
		d.AppleDocument = &AppleDocument{document.OrNull(c.TeamID), document.OrNull(c.KeyID), c.PrivateKey.IsSet()}
	case OIDC:
		m := c.providerMetadata()
		d.OpenIDDocument = &OpenIDDocument{
			c.Issuer, c.UseDiscovery, m.AuthorizationEndpoint, m.TokenEndpoint, m.JWKSURI, document.OrNull(m.UserinfoEndpoint), document.OrNull(m.EndSessionEndpoint), urls.PostLogout, urls.Logout,
		}
	case SAML:
		d.SAMLDocument = &SAMLDocument{
			MetadataURL: document.OrNull(c.MetadataURL), AllowIDPInitiated: c.AllowIDPInitiated, WantAssertionsSigned: true, IDPCertificates: []CertificateDocument{},
			ACSURL: urls.ACS, SLOURL: urls.SLO, SPEntityID: urls.EntityID, SPMetadataURL: urls.SPMetadata,
		}
		if idp := c.Metadata.IdentityProvider; idp != nil {
			d.IDPEntityID, d.IDPSSOURL = idp.EntityID, idp.SingleSignOn[0].Location
			if len(idp.SingleLogout) > 0 {
				d.IDPSLOURL = &idp.SingleLogout[0].Location
			}
			for _, c := range describe(idp) {
				d.IDPCertificates = append(d.IDPCertificates, certificateDocument(c))
			}
		}
	}
	return d
}

// listed is a list that is never null.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
