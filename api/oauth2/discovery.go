package oauth2

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"stonetown/api/web"
	"stonetown/identity/branding"
	"stonetown/oauth/protocol"
)

// GetKeys serves the public signing keys (RFC 7517).
func (h *Handlers) GetKeys(w http.ResponseWriter, r *http.Request) {
	keys, err := h.Keys.JWKS(r.Context(), tenantOf(r))
	if err != nil {
		h.Server.Fail(w, r, err)
		return
	}
	web.Document{Body: keys, MediaType: "application/json", CacheControl: "public, max-age=900"}.Serve(w, r)
}

// RedirectToKeys redirects from the address at which other servers have their keys.
func (h *Handlers) RedirectToKeys(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Location", protocol.JWKSPath)
	w.WriteHeader(http.StatusPermanentRedirect)
}

// metadata is the discovery document (RFC 8414 §2). Members that do not apply are absent. The
// conversion below compiles only while all members are there.
type metadata struct {
	Issuer                             string   `json:"issuer"`
	AuthorizationEndpoint              string   `json:"authorization_endpoint"`
	TokenEndpoint                      string   `json:"token_endpoint"`
	UserInfoEndpoint                   string   `json:"userinfo_endpoint"`
	DeviceAuthorizationEndpoint        string   `json:"device_authorization_endpoint"`
	PushedRequestEndpoint              string   `json:"pushed_authorization_request_endpoint"`
	RevocationEndpoint                 string   `json:"revocation_endpoint"`
	IntrospectionEndpoint              string   `json:"introspection_endpoint"`
	EndSessionEndpoint                 string   `json:"end_session_endpoint"`
	JWKSURI                            string   `json:"jwks_uri"`
	RegistrationEndpoint               string   `json:"registration_endpoint,omitzero"`
	ClientIDDocumentsSupported         bool     `json:"client_id_metadata_document_supported"`
	ScopesSupported                    []string `json:"scopes_supported"`
	ResponseTypesSupported             []string `json:"response_types_supported"`
	ResponseModesSupported             []string `json:"response_modes_supported"`
	GrantTypesSupported                []string `json:"grant_types_supported"`
	SubjectTypesSupported              []string `json:"subject_types_supported"`
	IDTokenSigningAlgValuesSupported   []string `json:"id_token_signing_alg_values_supported"`
	TokenEndpointAuthMethodsSupported  []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuthMethodsSupported     []string `json:"revocation_endpoint_auth_methods_supported"`
	IntrospectionAuthMethodsSupported  []string `json:"introspection_endpoint_auth_methods_supported"`
	TokenEndpointAuthAlgsSupported     []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	RevocationAuthAlgsSupported        []string `json:"revocation_endpoint_auth_signing_alg_values_supported"`
	IntrospectionAuthAlgsSupported     []string `json:"introspection_endpoint_auth_signing_alg_values_supported"`
	AuthorizationAlgsSupported         []string `json:"authorization_signing_alg_values_supported"`
	IntrospectionAlgsSupported         []string `json:"introspection_signing_alg_values_supported"`
	UserInfoAlgsSupported              []string `json:"userinfo_signing_alg_values_supported"`
	CodeChallengeMethodsSupported      []string `json:"code_challenge_methods_supported"`
	DPoPSigningAlgValuesSupported      []string `json:"dpop_signing_alg_values_supported"`
	CertificateBoundTokens             bool     `json:"tls_client_certificate_bound_access_tokens,omitzero"`
	AuthorizationResponseISSSupported  bool     `json:"authorization_response_iss_parameter_supported"`
	ACRValuesSupported                 []string `json:"acr_values_supported"`
	ClaimsSupported                    []string `json:"claims_supported"`
	ClaimsParameterSupported           bool     `json:"claims_parameter_supported"`
	AuthorizationDetailsTypes          []string `json:"authorization_details_types_supported"`
	PromptValuesSupported              []string `json:"prompt_values_supported"`
	BackchannelLogoutSupported         bool     `json:"backchannel_logout_supported"`
	BackchannelLogoutSessionSupported  bool     `json:"backchannel_logout_session_supported"`
	FrontchannelLogoutSupported        bool     `json:"frontchannel_logout_supported"`
	FrontchannelLogoutSessionSupported bool     `json:"frontchannel_logout_session_supported"`
	RequestParameterSupported          bool     `json:"request_parameter_supported"`
	RequestObjectAlgsSupported         []string `json:"request_object_signing_alg_values_supported"`
	RequestURIParameterSupported       bool     `json:"request_uri_parameter_supported"`
	RequestURIRegistrationRequired     bool     `json:"require_request_uri_registration"`
	RequirePushedRequests              bool     `json:"require_pushed_authorization_requests"`
	UILocalesSupported                 []string `json:"ui_locales_supported"`
	ServiceDocumentation               string   `json:"service_documentation"`
	PolicyURI                          string   `json:"op_policy_uri,omitzero"`
	TermsURI                           string   `json:"op_tos_uri,omitzero"`
}

// GetAuthorizationServer serves the discovery document (RFC 8414).
func (h *Handlers) GetAuthorizationServer(w http.ResponseWriter, r *http.Request) {
	said, err := h.Describer.Metadata(r.Context(), tenantOf(r))
	var own *branding.Branding
	if err == nil {
		info := web.InfoOf(r.Context())
		own, err = h.Brandings.Of(r.Context(), info.Tenant.ID, info.Tenant.Branding)
	}
	var body []byte
	if err == nil {
		said.UILocalesSupported = own.Offered()
		said.PolicyURI, said.TermsURI = own.Links.Privacy, own.Links.Terms
		body, err = json.Marshal(metadata(said))
	}
	if err != nil {
		h.Server.Fail(w, r, err)
		return
	}
	web.Document{Body: body, MediaType: "application/json", CacheControl: "public, max-age=300"}.Serve(w, r)
}

// GetOpenIDConfiguration serves the same document at the address of OpenID Connect.
func (h *Handlers) GetOpenIDConfiguration(w http.ResponseWriter, r *http.Request) {
	h.GetAuthorizationServer(w, r)
}

// GetProtectedResource serves the metadata of the API as a resource (RFC 9728).
func (h *Handlers) GetProtectedResource(w http.ResponseWriter, r *http.Request) {
	body, err := json.Marshal(h.Describer.ProtectedResource(tenantOf(r)))
	if err != nil {
		h.Server.Fail(w, r, err)
		return
	}
	web.Document{Body: body, MediaType: "application/json", CacheControl: "public, max-age=300"}.Serve(w, r)
}
