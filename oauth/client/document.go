package client

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/document"
	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
)

// Document is the public representation of an application, in responses and in events. It
// contains no secret.
type Document struct {
	ID                    string             `json:"id"`
	ClientID              string             `json:"client_id"`
	Name                  string             `json:"name"`
	Description           string             `json:"description"`
	Type                  Type               `json:"type"`
	State                 State              `json:"state"`
	DynamicallyRegistered bool               `json:"dynamically_registered"`
	CreatedAt             document.Timestamp `json:"created_at"`
	UpdatedAt             document.Timestamp `json:"updated_at"`

	RedirectURIs    []string      `json:"redirect_uris"`
	AllowedOrigins  []string      `json:"allowed_origins"`
	AllowedScopes   []string      `json:"allowed_scopes"`
	Tags            []string      `json:"tags"`
	GrantTypes      []string      `json:"grant_types"`
	Audience        *string       `json:"audience"`
	AccessTokenTTL  int           `json:"access_token_ttl_s"`
	RefreshTokenTTL int           `json:"refresh_token_ttl_s"`
	SigningAlg      keys.Alg      `json:"access_token_signing_alg"`
	TokenExchange   TokenExchange `json:"token_exchange"`

	Profile     Profile        `json:"profile"`
	LogoURI     *string        `json:"logo_uri"`
	FirstParty  bool           `json:"first_party"`
	AuthMethod  AuthMethod     `json:"token_endpoint_auth_method"`
	JWKS        jsontext.Value `json:"jwks"` // null: none
	JWKSURI     *string        `json:"jwks_uri"`
	RequirePAR  bool           `json:"require_pushed_authorization_requests"`
	RequirePKCE bool           `json:"require_pkce"`
	DPoPBound   bool           `json:"dpop_bound_access_tokens"`
	DPoPNonce   bool           `json:"require_dpop_nonce"`
	TLSBound    bool           `json:"tls_client_certificate_bound_access_tokens"`
	SubjectDN   *string        `json:"tls_client_auth_subject_dn"` // one of these is set for tls_client_auth
	SANDNS      *string        `json:"tls_client_auth_san_dns"`
	SANURI      *string        `json:"tls_client_auth_san_uri"`
	SANIP       *string        `json:"tls_client_auth_san_ip"`
	SANEmail    *string        `json:"tls_client_auth_san_email"`
	IDTokenAlg  keys.Alg       `json:"id_token_signed_response_alg"`
	GroupScopes GroupScopes    `json:"group_scopes"`

	AuthorizationAlg keys.Alg `json:"authorization_signed_response_alg"`
	IntrospectionAlg keys.Alg `json:"introspection_signed_response_alg"`

	UserInfoAlg *string  `json:"userinfo_signed_response_alg"`    // null: JSON
	AuthAlg     *string  `json:"token_endpoint_auth_signing_alg"` // null: any
	RequestURIs []string `json:"request_uris"`

	RequestObjectAlg     *string `json:"request_object_signing_alg"` // null: any
	RequireRequestObject bool    `json:"require_signed_request_object"`

	PostLogoutRedirectURIs            []string `json:"post_logout_redirect_uris"`
	BackchannelLogoutURI              *string  `json:"backchannel_logout_uri"`
	BackchannelLogoutSessionRequired  bool     `json:"backchannel_logout_session_required"`
	FrontchannelLogoutURI             *string  `json:"frontchannel_logout_uri"`
	FrontchannelLogoutSessionRequired bool     `json:"frontchannel_logout_session_required"`
	IntrospectAll                     bool     `json:"introspect_all"`
	Claims                            []Claim  `json:"claims"`

	WorkloadIdentities []WorkloadIdentity `json:"workload_identities"`

	*ServiceProvider  // nil unless the type is saml
	*IdentityProvider // nil in events, and unless the type is saml

	SecretRotatedAt *document.Timestamp `json:"secret_last_rotated_at"`
	Audit           AuditSummary        `json:"audit_summary"`

	// The rights of the caller of an operation. False in events, which have none.
	CanRotateSecret bool `json:"can_rotate_secret"`
	CanDisable      bool `json:"can_disable"`
	CanDelete       bool `json:"can_delete"`
}

// IdentityProvider names the tenant's identity provider for an application of the type saml.
type IdentityProvider struct {
	EntityID    string `json:"idp_entity_id"`
	SSOURL      string `json:"idp_sso_url"`
	SLOURL      string `json:"idp_slo_url"`
	MetadataURL string `json:"idp_metadata_url"`
}

// IdentityProviderOf returns the identity provider of a tenant.
func IdentityProviderOf(tenant protocol.Tenant) *IdentityProvider {
	metadata := tenant.BaseURL + protocol.SAMLMetadataPath
	return &IdentityProvider{metadata, tenant.BaseURL + protocol.SAMLSignOnPath, tenant.BaseURL + protocol.SAMLLogoutPath, metadata}
}

// AuditSummary states when an application was last changed and used.
type AuditSummary struct {
	LastChangeAt document.Timestamp  `json:"last_change_at"`
	LastChangeBy *string             `json:"last_change_by"` // null: the product
	LastUsedAt   *document.Timestamp `json:"last_used_at"`   // to within an hour; null: never
}

// Document returns the public representation of the application.
func (a Application) Document() Document {
	d := Document{
		ID: a.ID, ClientID: a.ClientID, Name: a.Name, Description: a.Description, Type: a.Type, State: a.State,
		DynamicallyRegistered: a.Registration != nil, CreatedAt: document.Timestamp(a.CreatedAt), UpdatedAt: document.Timestamp(a.UpdatedAt),

		RedirectURIs: a.RedirectURIs, AllowedOrigins: a.AllowedOrigins, AllowedScopes: a.AllowedScopes, Tags: a.Tags, GrantTypes: a.GrantTypes(),
		Audience: document.OrNull(a.Audience), AccessTokenTTL: wholeSeconds(a.AccessTokenTTL), RefreshTokenTTL: wholeSeconds(a.RefreshTokenTTL),
		SigningAlg: a.SigningAlg, TokenExchange: a.TokenExchange,

		Profile: a.Profile, LogoURI: document.OrNull(a.LogoURI), FirstParty: a.FirstParty, AuthMethod: a.AuthMethod, JWKS: jsontext.Value(a.JWKS), JWKSURI: document.OrNull(a.JWKSURI),
		RequirePAR: a.RequirePAR, RequirePKCE: a.RequirePKCE, DPoPBound: a.DPoPBound, DPoPNonce: a.RequireDPoPNonce, TLSBound: a.CertificateBound,
		SubjectDN: document.OrNull(a.Certificate.SubjectDN), SANDNS: document.OrNull(a.Certificate.DNS), SANURI: document.OrNull(a.Certificate.URI),
		SANIP: document.OrNull(a.Certificate.IP), SANEmail: document.OrNull(a.Certificate.Email),
		IDTokenAlg: a.IDTokenAlg, GroupScopes: a.GroupScopes,
		AuthorizationAlg: a.AuthorizationAlg, IntrospectionAlg: a.IntrospectionAlg, RequestObjectAlg: document.OrNull(a.RequestObjectAlg), RequireRequestObject: a.RequireRequestObject,
		UserInfoAlg: document.OrNull(string(a.UserInfoAlg)), AuthAlg: document.OrNull(a.AuthAlg), RequestURIs: a.RequestURIs,

		PostLogoutRedirectURIs: a.PostLogoutRedirectURIs, BackchannelLogoutURI: document.OrNull(a.BackchannelLogoutURI),
		BackchannelLogoutSessionRequired: a.BackchannelLogoutSessionRequired,
		FrontchannelLogoutURI:            document.OrNull(a.FrontchannelLogoutURI), FrontchannelLogoutSessionRequired: a.FrontchannelLogoutSessionRequired,
		IntrospectAll: a.IntrospectAll, Claims: a.Claims, WorkloadIdentities: a.WorkloadIdentities,

		SecretRotatedAt: document.TimeOrNull(a.SecretRotatedAt),
		Audit:           AuditSummary{document.Timestamp(a.UpdatedAt), document.OrNull(a.ChangedBy), document.TimeOrNull(a.LastUsedAt)},
	}
	if a.Type == SAML {
		d.ServiceProvider = &a.ServiceProvider
	}
	return d
}

func wholeSeconds(d time.Duration) int { return int(d.Seconds()) }

// Ref names an application in an event.
type Ref struct {
	ID       string `json:"id"`
	ClientID string `json:"client_id"`
}

func (a Application) Ref() Ref { return Ref{a.ID, a.ClientID} }
