package federation

import (
	"maps"
	"slices"
	"time"

	"stonetown/identity/authn"
	"stonetown/identity/federation/claims"
	"stonetown/identity/federation/relyingparty"
)

// Kind is the kind of a connection. It never changes.
type Kind string

// The kinds.
const (
	Google    Kind = "social.google"
	GitHub    Kind = "social.github"
	Microsoft Kind = "social.microsoft"
	Apple     Kind = "social.apple"
	OIDC      Kind = "oidc" // an OpenID provider
	SAML      Kind = "saml" // a SAML 2.0 identity provider
)

// Kinds are all kinds.
var Kinds = []Kind{Google, GitHub, Microsoft, Apple, OIDC, SAML}

// Preset returns the defaults of the attribute mapping.
func (k Kind) Preset() claims.Preset {
	switch k {
	case Google:
		return claims.Google
	case GitHub:
		return claims.GitHub
	case Microsoft:
		return claims.Microsoft
	case Apple:
		return claims.Apple
	case SAML:
		return claims.SAML
	}
	return claims.OpenID
}

// IsOpenID reports whether the provider issues ID tokens: all kinds but GitHub and SAML.
func (k Kind) IsOpenID() bool { return k != GitHub && k != SAML }

// State is the state of a connection.
type State string

// The states.
const (
	Enabled  State = "enabled"
	Disabled State = "disabled" // no user can sign in with it
)

// LinkPolicy decides whether a new user of the provider gets the account that has the same
// address.
type LinkPolicy = authn.LinkPolicy

// The policies.
const (
	// LinkVerified links them if the provider and the account have both verified the address;
	// otherwise the user must prove that the account is theirs.
	LinkVerified = authn.LinkVerified
	// LinkPrompt requires that proof each time.
	LinkPrompt = authn.LinkPrompt
	// LinkNever links none: the sign-in is refused.
	LinkNever = authn.LinkNever
)

// SecondFactor decides about second factors of the users of a provider.
type SecondFactor string

// The policies.
const (
	// AskSecondFactor asks for one here, where the tenant's policy does so after a password.
	AskSecondFactor SecondFactor = "ask"
	// AcceptSecondFactor also accepts one of the provider: amr or acr of an ID token, or the
	// authentication context of an assertion.
	AcceptSecondFactor SecondFactor = "accept"
)

// GroupRule makes users with a value among their groups at the provider members of a group.
type GroupRule struct {
	Value   string `json:"value"`
	GroupID string `json:"group_id"`
}

// Endpoints are the endpoints of an OpenID provider. UserInfo and EndSession may be empty.
type Endpoints struct {
	Authorization string `json:"authorization_endpoint,omitempty"`
	Token         string `json:"token_endpoint,omitempty"`
	JWKS          string `json:"jwks_uri,omitempty"`
	UserInfo      string `json:"userinfo_endpoint,omitempty"`
	EndSession    string `json:"end_session_endpoint,omitempty"`
}

// Settings are what an administrator sets. Those that do not apply to the kind are zero. They
// are stored as JSON.
type Settings struct {
	AttributeMapping map[string]string `json:"attribute_mapping,omitempty"` // sources by target
	GroupMapping     []GroupRule       `json:"group_mapping,omitempty"`
	JITProvisioning  bool              `json:"jit_provisioning"` // new users of the provider get an account
	LinkPolicy       LinkPolicy        `json:"link_policy"`
	TrustEmail       bool              `json:"trust_email"` // addresses count as verified without a claim
	SecondFactor     SecondFactor      `json:"second_factor"`
	Domains          []string          `json:"domains,omitempty"` // whose addresses lead to this connection; lower-case ASCII

	// All kinds but SAML.
	ClientID string   `json:"client_id,omitempty"`
	Scopes   []string `json:"scopes,omitempty"`

	MicrosoftTenant string `json:"tenant,omitempty"` // common, organizations, consumers, an id, or a domain; lower case

	// Apple, for its client secret, which is a JWT: either these with the private key, or a
	// client secret.
	TeamID string `json:"team_id,omitempty"`
	KeyID  string `json:"key_id,omitempty"`

	// OIDC. Endpoints are set unless UseDiscovery.
	Issuer       string    `json:"issuer,omitempty"`
	UseDiscovery bool      `json:"use_discovery,omitempty"`
	Endpoints    Endpoints `json:"endpoints,omitzero"`

	// SAML. One of the two is set; the XML is stored apart.
	MetadataURL       string `json:"idp_metadata_url,omitempty"`
	MetadataXML       string `json:"-"`
	AllowIDPInitiated bool   `json:"allow_idp_initiated,omitempty"`
}

// Connection connects a tenant to an identity provider.
type Connection struct {
	ID       string
	TenantID string
	Slug     string // unique in the tenant; part of the URLs; never changes
	Kind     Kind
	Name     string
	State    State
	Settings

	ClientSecret Secret
	PrivateKey   Secret // of Apple, in PEM

	// Metadata is what the provider publishes. Zero for social kinds, and for an OpenID
	// provider without discovery.
	Metadata Metadata

	CreatedAt time.Time // UTC
	UpdatedAt time.Time // by an administrator

	version int64
	warned  time.Time // end of the certificate about which there was an event
}

// Summary is a connection in a list.
type Summary struct {
	ID        string
	Slug      string
	Kind      Kind
	Name      string
	State     State
	CreatedAt time.Time
}

// Defaults returns a connection of a kind with the default settings. LinkPolicy is empty, which
// [Registry.Create] sets to [LinkVerified] or [LinkPrompt].
func (k Kind) Defaults() Connection {
	c := Connection{Kind: k, State: Enabled, Settings: Settings{JITProvisioning: true, SecondFactor: AskSecondFactor}}
	c.Scopes = relyingparty.Presets()[relyingparty.Kind(k)].Scopes
	switch k {
	case Microsoft:
		c.MicrosoftTenant = "common"
	case OIDC:
		c.UseDiscovery = true
	}
	return c
}

// clone returns a copy that shares nothing that can be changed.
func (c Connection) clone() Connection {
	c.AttributeMapping, c.GroupMapping = maps.Clone(c.AttributeMapping), slices.Clone(c.GroupMapping)
	c.Domains, c.Scopes = slices.Clone(c.Domains), slices.Clone(c.Scopes)
	return c
}

// summary returns the connection as lists have it.
func (c Connection) summary() Summary {
	return Summary{c.ID, c.Slug, c.Kind, c.Name, c.State, c.CreatedAt}
}

// RequestedScopes returns the scopes of an authorization request: those of the connection, with
// openid if the provider issues ID tokens.
func (c Connection) RequestedScopes() []string {
	if !c.Kind.IsOpenID() || slices.Contains(c.Scopes, "openid") {
		return slices.Clone(c.Scopes)
	}
	return append([]string{"openid"}, c.Scopes...)
}

// Mapping returns the attribute mapping, with the defaults of the kind.
func (c Connection) Mapping() (claims.Mapping, error) {
	return claims.New(c.Kind.Preset(), c.AttributeMapping)
}

// hasMetadata reports whether the provider publishes metadata that the connection uses.
func (c Connection) hasMetadata() bool { return c.Kind == SAML || c.Kind == OIDC && c.UseDiscovery }

// source returns the URL of the metadata; empty if there is none.
func (c Connection) source() string {
	switch {
	case c.Kind == SAML:
		return c.MetadataURL
	case c.Kind == OIDC && c.UseDiscovery:
		return relyingparty.MetadataURL(c.Issuer)
	}
	return ""
}
