package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"stonetown/internal/jwks"
	"stonetown/internal/text"
	"stonetown/oauth/assertion"
	"stonetown/oauth/keys"
	"stonetown/oauth/mtls"
	"stonetown/oauth/requestobject"
)

// Options are the less common settings of an application. They are stored together, as JSON.
type Options struct {
	Profile Profile `json:"profile,omitempty"`

	LogoURI string `json:"logo_uri,omitempty"` // https; empty: none
	// FirstParty applications are the tenant's own. Users are not asked for consent.
	FirstParty bool `json:"first_party"`

	AuthMethod AuthMethod `json:"token_endpoint_auth_method"`
	// JWKS and JWKSURI have the keys with which the application signs: the set itself (RFC
	// 7517) or its address. At most one is set.
	JWKS    json.RawMessage `json:"jwks,omitempty"`
	JWKSURI string          `json:"jwks_uri,omitempty"`

	// Certificate has the name of the certificate of [TLSClientAuth].
	Certificate mtls.Names `json:"certificate,omitzero"`
	// CertificateBound binds tokens to the certificate of the connection (RFC 8705 §3).
	CertificateBound bool `json:"tls_client_certificate_bound_access_tokens,omitempty"`

	PostLogoutRedirectURIs []string `json:"post_logout_redirect_uris,omitempty"` // compared byte for byte
	// BackchannelLogoutURI gets a logout token when a session ends (OIDC Back-Channel Logout);
	// empty: none is sent.
	BackchannelLogoutURI             string `json:"backchannel_logout_uri,omitempty"`
	BackchannelLogoutSessionRequired bool   `json:"backchannel_logout_session_required"`
	// FrontchannelLogoutURI is loaded in a frame of the browser when its session ends (OIDC
	// Front-Channel Logout), always with iss and sid; empty: none is.
	FrontchannelLogoutURI             string `json:"frontchannel_logout_uri,omitempty"`
	FrontchannelLogoutSessionRequired bool   `json:"frontchannel_logout_session_required,omitempty"`

	RequirePAR  bool `json:"require_pushed_authorization_requests"`
	RequirePKCE bool `json:"require_pkce"` // only a confidential client can do without (RFC 9700 §2.1.1)
	DPoPBound   bool `json:"dpop_bound_access_tokens"`
	// RequireDPoPNonce demands a nonce of the tenant in DPoP proofs (RFC 9449 §8, §9): those of
	// requests for tokens at once, those of tokens as they are issued.
	RequireDPoPNonce bool        `json:"require_dpop_nonce,omitempty"`
	IDTokenAlg       keys.Alg    `json:"id_token_signed_response_alg"`
	GroupScopes      GroupScopes `json:"group_scopes"`

	// AuthorizationAlg signs the responses to authorization requests (JARM), and IntrospectionAlg
	// those of the introspection endpoint (RFC 9701), if they are JWTs.
	AuthorizationAlg keys.Alg `json:"authorization_signed_response_alg"`
	IntrospectionAlg keys.Alg `json:"introspection_signed_response_alg"`

	// UserInfoAlg signs the responses of the UserInfo endpoint (OIDC Core §5.3.2); empty: they are JSON.
	UserInfoAlg keys.Alg `json:"userinfo_signed_response_alg,omitempty"`

	// AuthAlg is the algorithm of its client assertions; empty: any of [assertion.Algs].
	AuthAlg string `json:"token_endpoint_auth_signing_alg,omitempty"`

	// RequestURIs are the addresses from which its request objects are fetched (OIDC Core §6.2). A
	// fragment may be the SHA-256 of the content.
	RequestURIs []string `json:"request_uris,omitempty"`

	// RequestObjectAlg is the algorithm of its request objects (RFC 9101); empty: any of
	// [requestobject.Algs]. RequireRequestObject refuses requests without one.
	RequestObjectAlg     string `json:"request_object_signing_alg,omitempty"`
	RequireRequestObject bool   `json:"require_signed_request_object"`

	// IntrospectAll allows the application to introspect every token of the tenant, not only
	// those that were issued to it or name it as audience.
	IntrospectAll bool `json:"introspect_all"`
	// Claims are those of its tokens beside the claims of the protocols.
	Claims []Claim `json:"claims,omitempty"`

	// WorkloadIdentities are the workloads that get tokens of the application with tokens of their
	// own issuer. They are stored twice, as [TokenExchange] is: the relations decide.
	WorkloadIdentities []WorkloadIdentity `json:"workload_identities,omitempty"`

	// Registration is set if the client registered the application. It is replaced and never
	// changed, because copies of the application share it.
	Registration *Registration `json:"registration,omitempty"`
}

// GroupScopes decides which scopes of users' groups tokens carry.
type GroupScopes string

// All scopes, or those that the application is allowed.
const (
	AllGroupScopes     GroupScopes = "all"
	AllowedGroupScopes GroupScopes = "allowed_only"
)

// registeredIDTokenAlg is the default algorithm of the ID tokens of clients that register
// themselves (OIDC Dynamic Client Registration §2), and of the responses to them (JARM §3, RFC 9701
// §6). It was that of all applications once, so it is
// also that of those which were stored without one.
const registeredIDTokenAlg = keys.RS256

// DefaultOptions returns the options of a new application of a type. Its ID tokens are signed as
// its access tokens are, because an RSA signature takes thirty times as long.
func (t Type) DefaultOptions() Options {
	o := Options{Profile: DefaultProfile, FirstParty: true, AuthMethod: NoClientAuth, RequirePKCE: true, IDTokenAlg: keys.ES256, AuthorizationAlg: keys.ES256, IntrospectionAlg: keys.ES256, GroupScopes: AllGroupScopes}
	if t.Confidential() {
		o.AuthMethod = ClientSecretBasic
	}
	return o
}

// authMethods returns the methods of authentication of a type.
func (t Type) authMethods(certificates bool) []AuthMethod {
	if t.Confidential() {
		return AuthMethods(certificates)
	}
	return []AuthMethod{NoClientAuth}
}

func (o Options) validate(of Type, addresses allowed) error {
	switch {
	case !slices.Contains(of.authMethods(addresses.certificates), o.AuthMethod):
		return &ValidationError{"token_endpoint_auth_method", "unknown_value", fmt.Sprintf("must be one of %q for this type", of.authMethods(addresses.certificates))}
	case !o.IDTokenAlg.Valid():
		return &ValidationError{"id_token_signed_response_alg", "unknown_value", fmt.Sprintf("must be one of %q", keys.Algs)}
	case !o.AuthorizationAlg.Valid():
		return &ValidationError{"authorization_signed_response_alg", "unknown_value", fmt.Sprintf("must be one of %q", keys.Algs)}
	case !o.IntrospectionAlg.Valid():
		return &ValidationError{"introspection_signed_response_alg", "unknown_value", fmt.Sprintf("must be one of %q", keys.Algs)}
	case o.UserInfoAlg != "" && !o.UserInfoAlg.Valid():
		return &ValidationError{"userinfo_signed_response_alg", "unknown_value", fmt.Sprintf("must be null or one of %q", keys.Algs)}
	case len(o.RequestURIs) > maxRequestURIs:
		return &ValidationError{"request_uris", "too_many", fmt.Sprintf("must be at most %d", maxRequestURIs)}
	case o.GroupScopes != AllGroupScopes && o.GroupScopes != AllowedGroupScopes:
		return &ValidationError{"group_scopes", "unknown_value", "must be all or allowed_only"}
	case !o.RequirePKCE && of != Server:
		return &ValidationError{"require_pkce", "invalid", "must be true unless the type is server"}
	case o.IntrospectAll && !of.Confidential():
		return &ValidationError{"introspect_all", "invalid", "must be false for applications without a secret"}
	case len(o.PostLogoutRedirectURIs) > maxRedirectURIs:
		return &ValidationError{"post_logout_redirect_uris", "too_many", fmt.Sprintf("must be at most %d", maxRedirectURIs)}
	}
	if o.LogoURI != "" && !text.IsSecureURL(o.LogoURI) {
		return &ValidationError{"logo_uri", "invalid", fmt.Sprintf("must be an https URL without fragment, of at most %d characters", maxURI)}
	}
	for field, uri := range map[string]string{"jwks_uri": o.JWKSURI, "backchannel_logout_uri": o.BackchannelLogoutURI} {
		if uri != "" && addresses.fetch.CheckURL(uri) != nil {
			return &ValidationError{field, "invalid", fmt.Sprintf("must be an https URL on the public Internet, without user information and fragment, of at most %d characters", maxURI)}
		}
	}
	for _, uri := range o.RequestURIs {
		address, _, _ := strings.Cut(uri, "#")
		if len(uri) > maxRequestURI || addresses.fetch.CheckURL(address) != nil || !visible(uri) {
			return &ValidationError{"request_uris", "invalid", fmt.Sprintf("must each be an https URL on the public Internet, without user information, of at most %d characters", maxRequestURI)}
		}
	}
	if err := cmp.Or(o.validateKeys(), o.validateCertificate(addresses)); err != nil {
		return err
	}
	for _, uri := range o.PostLogoutRedirectURIs {
		if err := addresses.validateRedirectURI(of, uri); err != nil {
			return err
		}
	}
	return nil
}

// validateKeys refuses keys that cannot verify assertions.
func (o Options) validateKeys() error {
	switch {
	case o.JWKS != nil && o.JWKSURI != "":
		return &ValidationError{"jwks_uri", "invalid", "cannot be combined with jwks"}
	case o.AuthMethod == PrivateKeyJWT && o.JWKS == nil && o.JWKSURI == "":
		return &ValidationError{"jwks", "required", "or jwks_uri is required for private_key_jwt"}
	case o.RequestObjectAlg != "" && !slices.Contains(requestobject.Algs, o.RequestObjectAlg):
		return &ValidationError{"request_object_signing_alg", "unknown_value", fmt.Sprintf("must be null or one of %q", requestobject.Algs)}
	case o.AuthAlg != "" && !slices.Contains(assertion.Algs, o.AuthAlg):
		return &ValidationError{"token_endpoint_auth_signing_alg", "unknown_value", fmt.Sprintf("must be null or one of %q", assertion.Algs)}
	case o.RequireRequestObject && o.JWKS == nil && o.JWKSURI == "":
		return &ValidationError{"jwks", "required", "or jwks_uri is required for require_signed_request_object"}
	case o.JWKS == nil:
		return nil
	}
	keys, err := assertion.ParseKeys(o.JWKS)
	if err != nil {
		return &ValidationError{"jwks", "invalid", err.Error()}
	}
	if o.AuthMethod == SelfSignedTLS && !slices.ContainsFunc(keys, func(k jwks.Key) bool { return k.Certificate != nil }) {
		return &ValidationError{"jwks", "invalid", "must have a key with x5c for self_signed_tls_client_auth"}
	}
	return nil
}
