package oauth

// Metadata describes a tenant's authorization server (RFC 8414 §2): only what
// exists.
type Metadata struct {
	Issuer                            string
	TokenEndpoint                     string
	JWKSURI                           string
	ScopesSupported                   []string
	GrantTypesSupported               []string
	TokenEndpointAuthMethodsSupported []string

	// ResponseTypesSupported is required by the RFC and empty, for there is no
	// authorization endpoint.
	ResponseTypesSupported []string
}

// The paths of the OAuth endpoints on a tenant's host.
const (
	TokenPath = "/oauth2/token"
	JWKSPath  = "/.well-known/jwks.json"
)

// Metadata returns what the discovery documents of a tenant say.
func (s *Service) Metadata(tenant Tenant) Metadata {
	return Metadata{
		Issuer:                            tenant.BaseURL,
		TokenEndpoint:                     tenant.BaseURL + TokenPath,
		JWKSURI:                           tenant.BaseURL + JWKSPath,
		ScopesSupported:                   BuiltinScopes,
		GrantTypesSupported:               []string{GrantClientCredentials},
		TokenEndpointAuthMethodsSupported: []string{string(ClientSecretBasic), string(ClientSecretPost)},
		ResponseTypesSupported:            []string{},
	}
}
