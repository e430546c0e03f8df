package oauth

import (
	"context"
	"slices"

	"stonetown/internal/sqldb"
	"stonetown/internal/translation"
	"stonetown/oauth/access"
	"stonetown/oauth/assertion"
	"stonetown/oauth/authorization"
	"stonetown/oauth/client"
	"stonetown/oauth/dpop"
	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
	"stonetown/oauth/requestobject"
	"stonetown/oauth/scope"
	"stonetown/oauth/workload"
)

// Metadata describes the authorization server of a tenant (RFC 8414 §2, OIDC Discovery §3).
type Metadata struct {
	Issuer                             string
	AuthorizationEndpoint              string
	TokenEndpoint                      string
	UserInfoEndpoint                   string
	DeviceAuthorizationEndpoint        string
	PushedRequestEndpoint              string
	RevocationEndpoint                 string
	IntrospectionEndpoint              string
	EndSessionEndpoint                 string
	JWKSURI                            string
	RegistrationEndpoint               string // empty: there is none
	ClientIDDocumentsSupported         bool
	ScopesSupported                    []string
	ResponseTypesSupported             []string
	ResponseModesSupported             []string
	GrantTypesSupported                []string
	SubjectTypesSupported              []string
	IDTokenSigningAlgValuesSupported   []string
	TokenEndpointAuthMethodsSupported  []string
	RevocationAuthMethodsSupported     []string
	IntrospectionAuthMethodsSupported  []string
	TokenEndpointAuthAlgsSupported     []string
	RevocationAuthAlgsSupported        []string
	IntrospectionAuthAlgsSupported     []string
	AuthorizationAlgsSupported         []string // JARM §4
	IntrospectionAlgsSupported         []string // RFC 9701 §7
	UserInfoAlgsSupported              []string // OIDC Discovery §3
	CodeChallengeMethodsSupported      []string
	DPoPSigningAlgValuesSupported      []string // RFC 9449 §5.1
	CertificateBoundTokens             bool     // RFC 8705 §3.3
	AuthorizationResponseISSSupported  bool     // RFC 9207
	ACRValuesSupported                 []string
	ClaimsSupported                    []string
	ClaimsParameterSupported           bool     // OIDC Core §5.5
	AuthorizationDetailsTypes          []string // RFC 9396 §10
	PromptValuesSupported              []string
	BackchannelLogoutSupported         bool
	BackchannelLogoutSessionSupported  bool
	FrontchannelLogoutSupported        bool
	FrontchannelLogoutSessionSupported bool
	RequestParameterSupported          bool
	RequestObjectAlgsSupported         []string // RFC 9101 §10.5
	RequestURIParameterSupported       bool
	RequestURIRegistrationRequired     bool
	RequirePushedRequests              bool
	UILocalesSupported                 []string
	ServiceDocumentation               string
	// Of the branding, which is not known here.
	PolicyURI, TermsURI string
}

// Metadata returns the content of a tenant's discovery documents.
func (s *Service) Metadata(ctx context.Context, tenant protocol.Tenant) (Metadata, error) {
	var b sqldb.Batch
	readSettings, configured, workloads := client.QueueSettings(&b, tenant.ID), client.QueueClaimNames(&b, tenant.ID), workload.Any(&b, tenant.ID)
	if err := s.db.Send(ctx, &b); err != nil {
		return Metadata{}, err
	}
	settings, err := readSettings()
	if err != nil {
		return Metadata{}, err
	}
	types, err := s.details.Types(ctx, tenant.ID)
	if err != nil {
		return Metadata{}, err
	}
	registration := ""
	if settings.DCRMode != client.DCROff {
		registration = tenant.BaseURL + protocol.RegisterPath
	}
	grantTypes := slices.Clone(protocol.GrantTypes)
	if workloads() {
		grantTypes = append(grantTypes, protocol.GrantJWTBearer)
	}
	return Metadata{
		Issuer:                             tenant.BaseURL,
		AuthorizationEndpoint:              tenant.BaseURL + protocol.AuthorizePath,
		TokenEndpoint:                      tenant.BaseURL + protocol.TokenPath,
		UserInfoEndpoint:                   tenant.BaseURL + protocol.UserInfoPath,
		DeviceAuthorizationEndpoint:        tenant.BaseURL + protocol.DevicePath,
		PushedRequestEndpoint:              tenant.BaseURL + protocol.PushPath,
		RevocationEndpoint:                 tenant.BaseURL + protocol.RevokePath,
		IntrospectionEndpoint:              tenant.BaseURL + protocol.IntrospectPath,
		EndSessionEndpoint:                 tenant.BaseURL + protocol.EndSessionPath,
		JWKSURI:                            tenant.BaseURL + protocol.JWKSPath,
		RegistrationEndpoint:               registration,
		ClientIDDocumentsSupported:         settings.ClientIDDocuments != client.DocumentsOff,
		ScopesSupported:                    append(append([]string{}, scope.OIDC...), scope.Builtin...),
		ResponseTypesSupported:             []string{protocol.ResponseTypeCode},
		ResponseModesSupported:             authorization.ResponseModes,
		GrantTypesSupported:                grantTypes,
		SubjectTypesSupported:              []string{"public"},
		IDTokenSigningAlgValuesSupported:   algNames(),
		TokenEndpointAuthMethodsSupported:  append(s.authMethods(), string(client.NoClientAuth)),
		RevocationAuthMethodsSupported:     append(s.authMethods(), string(client.NoClientAuth)),
		IntrospectionAuthMethodsSupported:  s.authMethods(),
		TokenEndpointAuthAlgsSupported:     assertion.Algs,
		RevocationAuthAlgsSupported:        assertion.Algs,
		IntrospectionAuthAlgsSupported:     assertion.Algs,
		AuthorizationAlgsSupported:         algNames(),
		IntrospectionAlgsSupported:         algNames(),
		UserInfoAlgsSupported:              algNames(),
		CodeChallengeMethodsSupported:      []string{"S256"},
		DPoPSigningAlgValuesSupported:      dpop.Algs,
		CertificateBoundTokens:             s.certificates,
		AuthorizationResponseISSSupported:  true,
		ACRValuesSupported:                 []string{protocol.AAL1, protocol.AAL2},
		ClaimsSupported:                    claimsSupported(configured()),
		ClaimsParameterSupported:           true,
		AuthorizationDetailsTypes:          types,
		PromptValuesSupported:              authorization.Prompts,
		UILocalesSupported:                 languages(), // of the hosted pages
		ServiceDocumentation:               tenant.BaseURL + "/api/v1/openapi.yaml",
		RequestParameterSupported:          true,
		RequestURIParameterSupported:       true,
		RequestURIRegistrationRequired:     true,
		RequestObjectAlgsSupported:         requestobject.Algs,
		BackchannelLogoutSupported:         true,
		BackchannelLogoutSessionSupported:  true,
		FrontchannelLogoutSupported:        true,
		FrontchannelLogoutSessionSupported: true,
	}, nil
}

// ProtectedResource describes the API of a tenant as a resource (RFC 9728 §2).
type ProtectedResource struct {
	Resource                    string   `json:"resource"`
	AuthorizationServers        []string `json:"authorization_servers"`
	ScopesSupported             []string `json:"scopes_supported"`
	BearerMethodsSupported      []string `json:"bearer_methods_supported"`
	ResourceName                string   `json:"resource_name"`
	ResourceDocumentation       string   `json:"resource_documentation"`
	DPoPSigningAlgs             []string `json:"dpop_signing_alg_values_supported"`
	CertificateBoundTokens      bool     `json:"tls_client_certificate_bound_access_tokens,omitempty"`
	DPoPBoundAccessTokensNeeded bool     `json:"dpop_bound_access_tokens_required"`
}

// ProtectedResource returns the metadata of a tenant's API, whose tokens name the address of the
// tenant as audience.
func (s *Service) ProtectedResource(tenant protocol.Tenant) ProtectedResource {
	return ProtectedResource{
		Resource: tenant.BaseURL, AuthorizationServers: []string{tenant.BaseURL}, ScopesSupported: scope.Builtin,
		BearerMethodsSupported: []string{"header"}, ResourceName: "Stonetown", ResourceDocumentation: tenant.BaseURL + "/api/v1/openapi.yaml",
		DPoPSigningAlgs: dpop.Algs, CertificateBoundTokens: s.certificates,
	}
}

// claimsSupported returns the claims of tokens and of the UserInfo endpoint, with those that are
// configured for some application: clients may refuse to map a claim that is not listed.
func claimsSupported(configured []string) []string {
	all := slices.Concat([]string{"iss", "aud", "azp", "exp", "iat", "auth_time", "nonce", "acr", "amr", "sid", "at_hash"}, access.StandardClaims)
	for _, name := range configured {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

func (s *Service) authMethods() (names []string) {
	for _, method := range client.AuthMethods(s.certificates) {
		names = append(names, string(method))
	}
	return names
}

func algNames() (names []string) {
	for _, alg := range keys.Algs {
		names = append(names, string(alg))
	}
	return names
}

// languages returns the tags of the supported languages.
func languages() (tags []string) {
	for _, l := range translation.Languages() {
		tags = append(tags, l.Tag())
	}
	return tags
}
