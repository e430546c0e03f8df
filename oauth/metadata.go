package oauth

import (
	"context"
	"slices"

	"stonetown/oauth/assertion"
	"stonetown/oauth/dpop"
)

// Metadata describes a tenant's authorization server (RFC 8414 §2, OIDC Discovery §3):
// only what exists.
type Metadata struct {
	Issuer                            string
	AuthorizationEndpoint             string
	TokenEndpoint                     string
	UserInfoEndpoint                  string
	DeviceAuthorizationEndpoint       string
	PushedRequestEndpoint             string
	RevocationEndpoint                string
	IntrospectionEndpoint             string
	EndSessionEndpoint                string
	JWKSURI                           string
	RegistrationEndpoint              string // empty: there is none
	ScopesSupported                   []string
	ResponseTypesSupported            []string
	ResponseModesSupported            []string
	GrantTypesSupported               []string
	SubjectTypesSupported             []string
	IDTokenSigningAlgValuesSupported  []string
	TokenEndpointAuthMethodsSupported []string
	RevocationAuthMethodsSupported    []string
	IntrospectionAuthMethodsSupported []string
	TokenEndpointAuthAlgsSupported    []string
	RevocationAuthAlgsSupported       []string
	IntrospectionAuthAlgsSupported    []string
	CodeChallengeMethodsSupported     []string
	DPoPSigningAlgValuesSupported     []string // RFC 9449 §5.1
	AuthorizationResponseISSSupported bool     // RFC 9207
	ACRValuesSupported                []string
	ClaimsSupported                   []string
	PromptValuesSupported             []string
	BackchannelLogoutSupported        bool
	BackchannelLogoutSessionSupported bool
	RequestParameterSupported         bool
	RequestURIParameterSupported      bool
	RequirePushedRequests             bool
	UILocalesSupported                []string
	ServiceDocumentation              string
}

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
)

// Metadata returns what the discovery documents of a tenant say.
func (s *Service) Metadata(ctx context.Context, tenant Tenant) (Metadata, error) {
	settings, err := selectSettings(ctx, s.db, tenant.ID)
	if err != nil {
		return Metadata{}, err
	}
	registration := ""
	if settings.DCRMode != DCROff {
		registration = tenant.BaseURL + RegisterPath
	}
	return Metadata{
		Issuer:                            tenant.BaseURL,
		AuthorizationEndpoint:             tenant.BaseURL + AuthorizePath,
		TokenEndpoint:                     tenant.BaseURL + TokenPath,
		UserInfoEndpoint:                  tenant.BaseURL + UserInfoPath,
		DeviceAuthorizationEndpoint:       tenant.BaseURL + DevicePath,
		PushedRequestEndpoint:             tenant.BaseURL + PushPath,
		RevocationEndpoint:                tenant.BaseURL + RevokePath,
		IntrospectionEndpoint:             tenant.BaseURL + IntrospectPath,
		EndSessionEndpoint:                tenant.BaseURL + EndSessionPath,
		JWKSURI:                           tenant.BaseURL + JWKSPath,
		RegistrationEndpoint:              registration,
		ScopesSupported:                   append(append([]string{}, OIDCScopes...), BuiltinScopes...),
		ResponseTypesSupported:            []string{responseTypeCode},
		ResponseModesSupported:            responseModes,
		GrantTypesSupported:               grantTypes,
		SubjectTypesSupported:             []string{"public"},
		IDTokenSigningAlgValuesSupported:  []string{string(RS256), string(ES256)},
		TokenEndpointAuthMethodsSupported: clientAuthMethods,
		RevocationAuthMethodsSupported:    clientAuthMethods,
		IntrospectionAuthMethodsSupported: confidentialAuthMethods,
		TokenEndpointAuthAlgsSupported:    assertion.Algs,
		RevocationAuthAlgsSupported:       assertion.Algs,
		IntrospectionAuthAlgsSupported:    assertion.Algs,
		CodeChallengeMethodsSupported:     []string{"S256"},
		DPoPSigningAlgValuesSupported:     dpop.Algs,
		AuthorizationResponseISSSupported: true,
		ACRValuesSupported:                []string{AAL1, AAL2},
		ClaimsSupported: []string{
			"sub", "iss", "aud", "azp", "exp", "iat", "auth_time", "nonce", "acr", "amr", "sid", "at_hash",
			"name", "given_name", "family_name", "picture", "locale", "updated_at", "email", "email_verified",
		},
		PromptValuesSupported:             prompts,
		UILocalesSupported:                []string{"en"}, // which the pages speak
		ServiceDocumentation:              tenant.BaseURL + "/api/v1/openapi.yaml",
		BackchannelLogoutSupported:        true,
		BackchannelLogoutSessionSupported: true,
	}, nil
}

var (
	confidentialAuthMethods = []string{string(ClientSecretBasic), string(ClientSecretPost), string(PrivateKeyJWT)}
	clientAuthMethods       = append(slices.Clone(confidentialAuthMethods), string(NoClientAuth))
)

// grantTypes are the ways to get tokens.
var grantTypes = []string{GrantAuthorizationCode, GrantRefreshToken, GrantClientCredentials, GrantDeviceCode, GrantTokenExchange}
