package console

import "slices"

// connectionKinds are the kinds of connections, with a description.
var connectionKinds = []choice{
	{"social.google", "Google", "Accounts of Google and Google Workspace."},
	{"social.microsoft", "Microsoft", "Accounts of Microsoft Entra ID, or personal ones."},
	{"social.apple", "Apple", "Sign in with Apple."},
	{"social.github", "GitHub", "Accounts of GitHub."},
	{"oidc", "OpenID Connect", "Any provider with an issuer."},
	{"saml", "SAML 2.0", "Any identity provider with metadata."},
}

const allButSAML = "social.google social.github social.microsoft social.apple oidc"

// connectionFields are the members of a connection that can be changed.
var connectionFields = []section{
	{"General", []field{
		{Name: "name", Label: "Name", Kind: asText, Required: true, Hint: "Users see it on the sign-in page."},
		{Name: "domains", Label: "Domains", Kind: asLines, Hint: "Users with addresses of these domains are led to the connection. One on each line."},
	}},
	{"Provider", []field{
		{Name: "issuer", Label: "Issuer", Kind: asText, Required: true, Hint: "As in the discovery document, byte for byte.", of: "oidc"},
		{Name: "tenant", Label: "Directory", Kind: asText, Hint: "common, organizations, consumers, or the id or a domain of a directory. Empty: common.", of: "social.microsoft"},
		{Name: "client_id", Label: "Client id", Kind: asText, Required: true, of: allButSAML},
		{Name: "client_secret", Label: "Client secret", Kind: asSecret, Hint: "It is not shown. Empty: unchanged.", of: allButSAML},
		{Name: "team_id", Label: "Team id", Kind: asText, of: "social.apple"},
		{Name: "key_id", Label: "Key id", Kind: asText, of: "social.apple"},
		{Name: "private_key", Label: "Private key", Kind: asSecretArea, Hint: "In PEM, instead of a client secret. It is not shown. Empty: unchanged.", of: "social.apple"},
		{Name: "scopes", Label: "Scopes", Kind: asLines, Hint: "One on each line. Empty: the default of the kind.", of: allButSAML},
		{Name: "use_discovery", Label: "Read the endpoints from the discovery document", Kind: asFlag, of: "oidc"},
		{Name: "authorization_endpoint", Label: "Authorization endpoint", Kind: asText, Hint: "The endpoints are for providers without a discovery document.", of: "oidc"},
		{Name: "token_endpoint", Label: "Token endpoint", Kind: asText, of: "oidc"},
		{Name: "jwks_uri", Label: "URL of the keys", Kind: asText, of: "oidc"},
		{Name: "userinfo_endpoint", Label: "UserInfo endpoint", Kind: asText, of: "oidc"},
		{Name: "end_session_endpoint", Label: "End session endpoint", Kind: asText, of: "oidc"},
		{Name: "idp_metadata_url", Label: "URL of the metadata", Kind: asText, Hint: "Either this or the XML.", of: "saml"},
		{Name: "idp_metadata_xml", Label: "Metadata", Kind: asArea, Hint: "XML of at most 256 KiB.", of: "saml"},
		{Name: "allow_idp_initiated", Label: "Users may start at the provider", Kind: asFlag, of: "saml"},
	}},
	{"Accounts", []field{
		{Name: "link_policy", Label: "A new user gets the account with the same address", Kind: asChoice, Required: true, Options: []string{"verified_email", "always_prompt", "never"}},
		{Name: "second_factor", Label: "Second factor", Kind: asChoice, Required: true, Options: []string{"ask", "accept"}},
		{Name: "group_mapping", Label: "Groups", Kind: asJSON, Hint: `Users with a value among their groups become members of a group, such as [{"value": "engineering", "group_id": "grp_…"}]`},
		{Name: "jit_provisioning", Label: "New users of the provider get an account", Kind: asFlag},
		{Name: "trust_email", Label: "Addresses count as verified if the provider does not say", Kind: asFlag},
	}},
}

// newConnectionFields has the slug besides, which cannot be changed.
var newConnectionFields = append([]section{{"Address", []field{
	{Name: "slug", Label: "Slug", Kind: asText, Required: true, Hint: "A part of the URLs of the connection: small letters, digits and hyphens. It cannot be changed."},
}}}, connectionFields...)

// secretFields are the names of fields whose values are never shown.
var secretFields = func() (names []string) {
	for _, s := range slices.Concat(connectionFields, newUserFields) {
		for _, f := range s.Fields {
			if f.Kind == asSecret || f.Kind == asSecretArea {
				names = append(names, f.Name)
			}
		}
	}
	return names
}()

// newConnectionFlags are the flags that a new connection has unless it is said otherwise, and
// newConnectionDefaults what its form shows.
var (
	newConnectionFlags    = object{"use_discovery": true, "jit_provisioning": true}
	newConnectionDefaults = object{"use_discovery": true, "jit_provisioning": true, "link_policy": "always_prompt", "second_factor": "ask"}
)
