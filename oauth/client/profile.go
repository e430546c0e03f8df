package client

import (
	"fmt"
	"slices"
	"strings"

	"stonetown/oauth/keys"
	"stonetown/oauth/requestobject"
)

// Profile is a set of rules for an application, beyond those for all.
type Profile string

// The profiles.
const (
	DefaultProfile Profile = "default"
	// FAPI2 is the FAPI 2.0 Security Profile. It fixes the settings that decide about security:
	// a change of one is refused as long as the application has the profile.
	FAPI2 Profile = "fapi2"
)

// fapi2AuthMethods are the methods of authentication that FAPI 2.0 permits (Security Profile §5.3.2.1).
var fapi2AuthMethods = []AuthMethod{PrivateKeyJWT, TLSClientAuth, SelfSignedTLS}

// fapi2Algs are the signature algorithms that FAPI 2.0 permits (Security Profile §5.4.1).
var fapi2Algs = []string{string(keys.ES256), string(keys.PS256), string(keys.EdDSA)}

// UseProfile gives the application a profile, with the settings that the profile fixes.
func (a *Application) UseProfile(p Profile) {
	if a.Profile = p; p != FAPI2 {
		return
	}
	a.RequirePAR, a.RequirePKCE = true, true
	a.RequestURIs = nil // requests are pushed
	if !slices.Contains(fapi2AuthMethods, a.AuthMethod) {
		a.AuthMethod = PrivateKeyJWT
	}
	if !a.CertificateBound {
		a.DPoPBound = true
	}
	for _, alg := range []*string{&a.RequestObjectAlg, &a.AuthAlg} {
		if !slices.Contains(fapi2Algs, *alg) {
			*alg = ""
		}
	}
	if a.UserInfoAlg != "" && !slices.Contains(fapi2Algs, string(a.UserInfoAlg)) {
		a.UserInfoAlg = keys.ES256
	}
	for _, alg := range []*keys.Alg{&a.SigningAlg, &a.IDTokenAlg, &a.AuthorizationAlg, &a.IntrospectionAlg} {
		if !slices.Contains(fapi2Algs, string(*alg)) {
			*alg = keys.ES256
		}
	}
}

// validateProfile refuses settings that contradict the profile.
func (a Application) validateProfile() error {
	locked := func(field, must string) error {
		return &ValidationError{field, "locked", must + " with the profile fapi2"}
	}
	switch {
	case a.Profile == DefaultProfile:
		return nil
	case a.Profile != FAPI2:
		return &ValidationError{"profile", "unknown_value", fmt.Sprintf("must be %s or %s", DefaultProfile, FAPI2)}
	case !a.Type.Confidential():
		return &ValidationError{"profile", "invalid", "must be default unless the type is server or m2m, which can authenticate"}
	case !slices.Contains(fapi2AuthMethods, a.AuthMethod):
		return locked("token_endpoint_auth_method", fmt.Sprintf("must be one of %q", fapi2AuthMethods))
	case !a.RequirePAR:
		return locked("require_pushed_authorization_requests", "must be true")
	case !a.RequirePKCE:
		return locked("require_pkce", "must be true")
	case !a.DPoPBound && !a.CertificateBound:
		return locked("dpop_bound_access_tokens", "must be true, or tls_client_certificate_bound_access_tokens,")
	case !slices.Contains(fapi2Algs, string(a.SigningAlg)):
		return locked("access_token_signing_alg", fmt.Sprintf("must be one of %q", fapi2Algs))
	case !slices.Contains(fapi2Algs, string(a.IDTokenAlg)):
		return locked("id_token_signed_response_alg", fmt.Sprintf("must be one of %q", fapi2Algs))
	case !slices.Contains(fapi2Algs, string(a.AuthorizationAlg)):
		return locked("authorization_signed_response_alg", fmt.Sprintf("must be one of %q", fapi2Algs))
	case !slices.Contains(fapi2Algs, string(a.IntrospectionAlg)):
		return locked("introspection_signed_response_alg", fmt.Sprintf("must be one of %q", fapi2Algs))
	case a.UserInfoAlg != "" && !slices.Contains(fapi2Algs, string(a.UserInfoAlg)):
		return locked("userinfo_signed_response_alg", fmt.Sprintf("must be null or one of %q", fapi2Algs))
	case a.AuthAlg != "" && !slices.Contains(fapi2Algs, a.AuthAlg):
		return locked("token_endpoint_auth_signing_alg", fmt.Sprintf("must be null or one of %q", fapi2Algs))
	case len(a.RequestURIs) > 0:
		return locked("request_uris", "must be empty")
	case a.RequestObjectAlg != "" && !slices.Contains(fapi2Algs, a.RequestObjectAlg):
		return locked("request_object_signing_alg", fmt.Sprintf("must be null or one of %q", fapi2Algs))
	case len(a.WorkloadIdentities) > 0: // their tokens are not client authentication (Security Profile §5.3.2.1)
		return locked("workload_identities", "must be empty")
	case slices.ContainsFunc(a.RedirectURIs, func(uri string) bool { return !strings.HasPrefix(uri, "https://") }):
		return locked("redirect_uris", "must each be https")
	}
	return nil
}

// RequestObjectAlgs returns the algorithms by which the application may sign request objects.
func (a Application) RequestObjectAlgs() []string {
	switch {
	case a.RequestObjectAlg != "":
		return []string{a.RequestObjectAlg}
	case a.Profile == FAPI2:
		return fapi2Algs
	}
	return requestobject.Algs
}

// RotatesRefreshTokens reports whether each use of a refresh token replaces it. FAPI 2.0 forbids
// that (Security Profile §5.3.2.1): the client is authenticated, its tokens are bound to a key,
// and a lost response must not cost the grant.
func (a Application) RotatesRefreshTokens() bool { return a.Profile != FAPI2 }
