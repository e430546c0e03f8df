package console

import (
	"slices"
	"strings"
)

// The types of applications, by what they have.
const (
	withUsers      = "spa native server" // sign in users by redirects
	confidential   = "server m2m"        // authenticate
	withTokens     = "spa native server m2m"
	withAssertions = "saml"
)

var algorithms = []string{"ES256", "RS256", "PS256", "EdDSA"}

// certificateMethods are the ways to authenticate for which a server needs the certificate of the client.
var certificateMethods = []string{"tls_client_auth", "self_signed_tls_client_auth"}

// withoutCertificates returns the sections for a server that gets no certificates of clients: without
// what depends on them, but with all that is stored in an application, so that nothing is lost when
// its form is sent.
func withoutCertificates(all []section, stored object) (some []section) {
	for _, s := range all {
		var fields []field
		for _, f := range s.Fields {
			now := stored[f.Name]
			switch {
			case f.Name == authMethodField.Name:
				f.Options = slices.DeleteFunc(slices.Clone(f.Options), func(method string) bool {
					return slices.Contains(certificateMethods, method) && method != now
				})
			case strings.HasPrefix(f.Name, "tls_client_") && (now == nil || now == "" || now == false):
				continue
			}
			fields = append(fields, f)
		}
		some = append(some, section{s.Title, fields})
	}
	return some
}

// newApplicationFields are the members that a new application has to have, or mostly has.
var newApplicationFields = []section{
	{"General", []field{nameField, descriptionField, firstPartyField}},
	{"Addresses", []field{redirectsField, signedOutField, originsField}},
	{"Authentication", []field{authMethodField, keySetURLField}},
	{"Tokens", []field{
		{Name: "allowed_scopes", Label: "Scopes", Kind: asLines, Hint: "One on each line. Empty: for applications with users openid, profile, email, offline_access, me:read and me:write; none for others.", of: withTokens},
		audienceField,
	}},
	samlFields,
}

var (
	nameField        = field{Name: "name", Label: "Name", Kind: asText, Required: true, Hint: "Users see it when they sign in."}
	descriptionField = field{Name: "description", Label: "Description", Kind: asArea, Hint: "At most 500 bytes."}
	firstPartyField  = field{Name: "first_party", Label: "First party: users are not asked for consent", Kind: asFlag, of: withTokens}
	redirectsField   = field{Name: "redirect_uris", Label: "Redirect URIs", Kind: asLines, Hint: "One on each line, at most 50. They are compared byte for byte. Use https, or http on localhost.", of: withUsers}
	signedOutField   = field{Name: "post_logout_redirect_uris", Label: "Redirect URIs after sign-out", Kind: asLines, Hint: "One on each line.", of: withUsers}
	originsField     = field{Name: "allowed_origins", Label: "Web origins", Kind: asLines, Hint: "Origins whose scripts may read responses, such as https://shop.example.com. One on each line.", of: withUsers}
	authMethodField  = field{Name: "token_endpoint_auth_method", Label: "Authentication", Kind: asChoice, Options: []string{"client_secret_basic", "client_secret_post", "private_key_jwt", "tls_client_auth", "self_signed_tls_client_auth"}, Hint: "With private_key_jwt, it has keys and no secret.", of: confidential}
	keySetURLField   = field{Name: "jwks_uri", Label: "URL of its keys", Kind: asText, Hint: "An https URL of a JWK set, for private_key_jwt.", of: confidential}
	audienceField    = field{Name: "audience", Label: "Audience", Kind: asText, Hint: "An absolute URL, the aud of its tokens. Empty: the tenant.", of: withTokens}
)

// samlFields are the members of a service provider.
var samlFields = section{"SAML", []field{
	{Name: "entity_id", Label: "Entity ID", Kind: asText, Required: true, of: withAssertions},
	{Name: "acs_url", Label: "Assertion consumer service URL", Kind: asText, Required: true, of: withAssertions},
	{Name: "acs_urls", Label: "Other assertion consumer service URLs", Kind: asLines, Hint: "One on each line, at most 20.", of: withAssertions},
	{Name: "slo_url", Label: "Single logout URL", Kind: asText, of: withAssertions},
	{Name: "certificate", Label: "Certificate", Kind: asArea, Hint: "X.509, in PEM.", of: withAssertions},
	{Name: "name_id_format", Label: "NameID format", Kind: asChoice, Options: []string{"persistent", "emailAddress", "transient"}, of: withAssertions},
	{Name: "attribute_statements", Label: "Attribute statements", Kind: asJSON, Hint: `A JSON list, such as [{"name": "mail", "value": "email"}].`, of: withAssertions},
}}

// applicationFields are the members of an application that can be changed.
var applicationFields = []section{
	{"General", []field{
		nameField, descriptionField,
		{Name: "logo_uri", Label: "Logo", Kind: asText, Hint: "An https URL of a picture."},
		{Name: "tags", Label: "Tags", Kind: asLines, Hint: "One on each line, at most 50."},
		firstPartyField,
	}},
	{"Addresses", []field{
		redirectsField, signedOutField, originsField,
		{Name: "backchannel_logout_uri", Label: "Back-channel logout URI", Kind: asText, Hint: "An https URL that gets a logout token when a session ends.", of: withUsers},
		{Name: "frontchannel_logout_uri", Label: "Front-channel logout URI", Kind: asText, Hint: "A URL that the browser loads when its session ends.", of: withUsers},
		{Name: "backchannel_logout_session_required", Label: "Logout tokens must name the session", Kind: asFlag, of: withUsers},
	}},
	{"Authentication", []field{
		{Name: "profile", Label: "Security profile", Kind: asChoice, Required: true, Options: []string{"default", "fapi2"}, Hint: "FAPI 2.0 requires keys, pushed requests, PKCE and DPoP.", of: confidential},
		authMethodField, keySetURLField,
		{Name: "jwks", Label: "Its keys", Kind: asJSON, Hint: "A JWK set with public keys, instead of the URL.", of: confidential},
		{Name: "token_endpoint_auth_signing_alg", Label: "Algorithm of private_key_jwt", Kind: asChoice, Options: algorithms, Hint: "Default: any of these.", of: confidential},
		{Name: "tls_client_auth_subject_dn", Label: "Subject of its certificate", Kind: asText, Hint: "For tls_client_auth, such as CN=shop,O=Example. That needs exactly one of this and the next four.", of: confidential},
		{Name: "tls_client_auth_san_dns", Label: "DNS name of its certificate", Kind: asText, of: confidential},
		{Name: "tls_client_auth_san_uri", Label: "URI of its certificate", Kind: asText, of: confidential},
		{Name: "tls_client_auth_san_ip", Label: "IP address of its certificate", Kind: asText, of: confidential},
		{Name: "tls_client_auth_san_email", Label: "E-mail address of its certificate", Kind: asText, of: confidential},
		{Name: "workload_identities", Label: "Workloads that may get its tokens", Kind: asJSON, Hint: `A JSON list, such as [{"issuer_id": "iss_…", "subject": "repo:acme/reports:ref:refs/heads/main"}]. The issuer is a trusted issuer of the tenant.`, of: confidential},
		{Name: "request_uris", Label: "Addresses of its request objects", Kind: asLines, Hint: "https URLs, one on each line, at most 20.", of: withUsers},
		{Name: "request_object_signing_alg", Label: "Algorithm of request objects", Kind: asChoice, Options: algorithms, of: withUsers},
		{Name: "require_pkce", Label: "Require PKCE", Kind: asFlag, of: withUsers},
		{Name: "require_pushed_authorization_requests", Label: "Require pushed authorization requests", Kind: asFlag, of: withUsers},
		{Name: "require_signed_request_object", Label: "Require signed request objects", Kind: asFlag, of: withUsers},
	}},
	{"Tokens", []field{
		{Name: "allowed_scopes", Label: "Scopes", Kind: asLines, Hint: "One on each line.", of: withTokens},
		{Name: "group_scopes", Label: "Scopes of groups", Kind: asChoice, Required: true, Options: []string{"all", "allowed_only"}, Hint: "All: tokens carry all scopes of the user's groups. Allowed only: those among the scopes above.", of: withTokens},
		audienceField,
		{Name: "access_token_ttl_s", Label: "Access tokens are valid for (seconds)", Kind: asNumber, Hint: "60 to 86,400; empty: the setting of the tenant.", of: withTokens},
		{Name: "refresh_token_ttl_s", Label: "Refresh tokens are valid for (seconds)", Kind: asNumber, Hint: "300 to 31,536,000; empty: the setting of the tenant.", of: withTokens},
		{Name: "access_token_signing_alg", Label: "Algorithm of access tokens", Kind: asChoice, Required: true, Options: algorithms, of: withTokens},
		{Name: "id_token_signed_response_alg", Label: "Algorithm of ID tokens", Kind: asChoice, Required: true, Options: algorithms, of: withUsers},
		{Name: "userinfo_signed_response_alg", Label: "Algorithm of UserInfo responses", Kind: asChoice, Options: algorithms, Hint: "Default: they are JSON, and not signed.", of: withUsers},
		{Name: "tls_client_certificate_bound_access_tokens", Label: "Bind access tokens to the certificate of the connection (mutual TLS)", Kind: asFlag, of: withTokens},
		{Name: "dpop_bound_access_tokens", Label: "Bind access tokens to a key (DPoP)", Kind: asFlag, of: withTokens},
		{Name: "require_dpop_nonce", Label: "Require a nonce in DPoP proofs", Kind: asFlag, of: withTokens},
		{Name: "introspect_all", Label: "May introspect every token of the tenant", Kind: asFlag, of: confidential},
	}},
	{"Token exchange", []field{
		{Name: "token_exchange/allowed_audiences", Label: "Audiences it may exchange tokens for", Kind: asLines, Hint: "Absolute URIs, one on each line.", of: withTokens},
		{Name: "token_exchange/subject_tokens", Label: "Tokens it may exchange", Kind: asChoice, Required: true, Options: []string{"any", "own"}, Hint: "Any: all of the tenant. Own: issued to it, or with it as audience.", of: withTokens},
		{Name: "token_exchange/act_as/allowed_subject_types", Label: "Delegation is for subjects of the types", Kind: asChoices, Options: []string{"user", "application"}, of: withTokens},
		{Name: "token_exchange/enabled", Label: "May exchange tokens", Kind: asFlag, of: withTokens},
		{Name: "token_exchange/require_client_authentication", Label: "Must authenticate for it", Kind: asFlag, of: confidential},
		{Name: "token_exchange/act_as/enabled", Label: "May let an actor act for the subject (delegation)", Kind: asFlag, of: withTokens},
	}},
	{samlFields.Title, append(samlFields.Fields[:len(samlFields.Fields):len(samlFields.Fields)],
		field{Name: "sign_assertion", Label: "Sign assertions", Kind: asFlag, of: withAssertions},
		field{Name: "sign_response", Label: "Sign responses", Kind: asFlag, of: withAssertions},
		field{Name: "encrypt_assertion", Label: "Encrypt assertions", Kind: asFlag, of: withAssertions},
		field{Name: "want_authn_requests_signed", Label: "Require signed requests", Kind: asFlag, of: withAssertions},
		field{Name: "allow_idp_initiated", Label: "Users may start here, without a request of the application", Kind: asFlag, of: withAssertions},
	)},
}
