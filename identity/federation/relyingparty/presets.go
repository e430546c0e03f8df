package relyingparty

// Kind is a kind of provider.
type Kind string

// The kinds of providers.
const (
	Google    Kind = "social.google"
	GitHub    Kind = "social.github"
	Microsoft Kind = "social.microsoft"
	Apple     Kind = "social.apple"
	OIDC      Kind = "oidc"
)

// Methods of client authentication (RFC 7591 §2).
const (
	ClientSecretBasic = "client_secret_basic"
	ClientSecretPost  = "client_secret_post"
	NoAuthentication  = "none"
)

// Preset is how a kind of provider differs from OpenID Connect with discovery. The zero Preset is
// that of the kind [OIDC] without scopes.
type Preset struct {
	// Issuer is the issuer of the kind; empty: the tenant sets it. With Directories, it contains
	// {tenantid}: the issuer of an ID token has the claim tid, the id of the user's directory,
	// in this place.
	Issuer string
	// OtherIssuer is another issuer that ID tokens may have.
	OtherIssuer string
	// DiscoveryURL is the address of the metadata; empty: that of the issuer. With Directories,
	// it contains {tenant}, the place of [Provider.Directory].
	DiscoveryURL string
	// Directories are the directories of a provider that has many, by their common names; nil:
	// the provider has none.
	Directories map[string]Directories
	// Metadata is that of a provider without discovery.
	Metadata *Metadata
	// API identifies the user at a provider without ID tokens.
	API *API

	// Scopes are the scopes if the tenant sets none.
	Scopes []string
	// ResponseMode is the parameter response_mode; empty: the provider's default, query.
	ResponseMode string
	// AuthMethod is the method of client authentication; empty: as the metadata states.
	AuthMethod string
	// NoUserinfo states that the ID token has all claims.
	NoUserinfo bool
	// Again is the value of prompt with which the provider lets the user authenticate again or, if
	// it cannot, choose an account; empty: there is none.
	Again string
	// VerifiedClaim is the claim which states that email was verified; empty: email_verified.
	VerifiedClaim string
	// HostedClaim is the claim without which an address counts as verified only if it ends with
	// HostedDomain; empty: there is none.
	HostedClaim, HostedDomain string
}

// API has the addresses of GitHub's API.
type API struct {
	User   string // the user who signed in
	Emails string // and the user's addresses
}

// consumers is the directory of all personal accounts of Microsoft.
const consumers = "9188040d-6c67-4c5b-b112-36a304b66dad"

// Presets returns the presets of all kinds. The caller may change the result.
func Presets() map[Kind]Preset {
	return map[Kind]Preset{
		OIDC: {
			Scopes: []string{"openid", "profile", "email"},
			Again:  "login",
		},
		// Google is authoritative for addresses of Gmail, and for those of an organisation, hd. The
		// owner of another address can have changed since Google verified it
		// (https://developers.google.com/identity/gsi/web/guides/verify-google-id-token).
		Google: {
			Issuer:      "https://accounts.google.com",
			OtherIssuer: "accounts.google.com", // which older documentation of Google names as well
			Scopes:      []string{"openid", "profile", "email"},
			AuthMethod:  ClientSecretPost, // as in the documentation, as for Microsoft
			NoUserinfo:  true,
			Again:       "select_account",
			HostedClaim: "hd", HostedDomain: "@gmail.com",
		},
		// A directory's administrator can give users any address as email, so only xms_edov,
		// which Microsoft sets if the domain of the address belongs to the directory, states a
		// verified one.
		Microsoft: {
			Issuer:       "https://login.microsoftonline.com/" + placeOfID + "/v2.0",
			DiscoveryURL: "https://login.microsoftonline.com/" + placeOfDirectory + "/v2.0" + wellKnown,
			Directories: map[string]Directories{
				"common":        {},
				"organizations": {Except: consumers},
				"consumers":     {Only: consumers},
			},
			Scopes:        []string{"openid", "profile", "email"},
			AuthMethod:    ClientSecretPost,
			NoUserinfo:    true,
			Again:         "login",
			VerifiedClaim: "xms_edov",
		},
		// The scopes name and email require form_post. The name is not in the ID token but in
		// the form, and only at the first sign-in.
		Apple: {
			Issuer:       "https://appleid.apple.com",
			Scopes:       []string{"openid", "name", "email"},
			ResponseMode: "form_post",
			AuthMethod:   ClientSecretPost,
			NoUserinfo:   true,
		},
		GitHub: {
			Issuer: "https://github.com/login/oauth",
			Metadata: &Metadata{
				Issuer:                "https://github.com/login/oauth",
				AuthorizationEndpoint: "https://github.com/login/oauth/authorize",
				TokenEndpoint:         "https://github.com/login/oauth/access_token",
			},
			API:        &API{User: "https://api.github.com/user", Emails: "https://api.github.com/user/emails"},
			Scopes:     []string{"read:user", "user:email"},
			AuthMethod: ClientSecretPost,
			Again:      "select_account",
		},
	}
}
