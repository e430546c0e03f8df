package protocol

// The paths of the OAuth endpoints on a tenant's host.
const (
	AuthorizePath  = "/oauth2/authorize"
	ResumePath     = "/oauth2/authorize/resume"
	PushPath       = "/oauth2/par"
	DevicePath     = "/oauth2/device_authorization"
	DevicePagePath = "/device"
	TokenPath      = "/oauth2/token"
	UserInfoPath   = "/oauth2/userinfo"
	RevokePath     = "/oauth2/revoke"
	IntrospectPath = "/oauth2/introspect"
	EndSessionPath = "/oauth2/logout"
	RegisterPath   = "/oauth2/register"
	JWKSPath       = "/.well-known/jwks.json"

	ProtectedResourcePath = "/.well-known/oauth-protected-resource" // RFC 9728 §3
)

// The paths of the SAML identity provider on a tenant's host. The URL of the metadata is its entity
// id.
const (
	SAMLMetadataPath = "/saml/idp/metadata"
	SAMLSignOnPath   = "/saml/idp/sso"
	SAMLLogoutPath   = "/saml/idp/slo"
)
