package realm

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// The parts of a realm's export (kc.sh export --users same_file) that are read.
type keycloakRealm struct {
	Realm    string                                  `json:"realm"`
	Users    []keycloakUser                          `json:"users"`
	Groups   []keycloakGroup                         `json:"groups"`
	Clients  []keycloakClient                        `json:"clients"`
	Provider []struct{ Alias string }                `json:"identityProviders"`
	Roles    struct{ Realm []struct{ Name string } } `json:"roles"`
}

type keycloakUser struct {
	Username      string              `json:"username"`
	Email         string              `json:"email"`
	EmailVerified bool                `json:"emailVerified"`
	Enabled       *bool               `json:"enabled"`
	FirstName     string              `json:"firstName"`
	LastName      string              `json:"lastName"`
	Attributes    map[string][]string `json:"attributes"`
	Credentials   []keycloakSecret    `json:"credentials"`
	Groups        []string            `json:"groups"` // paths
	RealmRoles    []string            `json:"realmRoles"`
	ClientRoles   map[string][]string `json:"clientRoles"`
	Actions       []string            `json:"requiredActions"`
	Identities    []struct{}          `json:"federatedIdentities"`
	Service       string              `json:"serviceAccountClientId"`
}

// keycloakSecret is a credential. Its data are JSON in strings.
type keycloakSecret struct {
	Type       string `json:"type"`
	Secret     string `json:"secretData"`
	Credential string `json:"credentialData"`
}

type keycloakGroup struct {
	Name      string          `json:"name"`
	Path      string          `json:"path"`
	SubGroups []keycloakGroup `json:"subGroups"`
	Roles     []string        `json:"realmRoles"`
}

type keycloakClient struct {
	ID              string            `json:"clientId"`
	Name            string            `json:"name"`
	Description     string            `json:"description"`
	Enabled         bool              `json:"enabled"`
	Protocol        string            `json:"protocol"`
	Public          bool              `json:"publicClient"`
	BearerOnly      bool              `json:"bearerOnly"`
	StandardFlow    bool              `json:"standardFlowEnabled"`
	ImplicitFlow    bool              `json:"implicitFlowEnabled"`
	DirectAccess    bool              `json:"directAccessGrantsEnabled"`
	ServiceAccounts bool              `json:"serviceAccountsEnabled"`
	RedirectURIs    []string          `json:"redirectUris"`
	WebOrigins      []string          `json:"webOrigins"`
	RootURL         string            `json:"rootUrl"`
	Attributes      map[string]string `json:"attributes"`
}

// ownClients are the clients that every realm has.
var ownClients = []string{"account", "account-console", "admin-cli", "broker", "realm-management", "security-admin-console"}

// Keycloak reads the export of a realm of Keycloak.
func Keycloak(data []byte) (*Realm, error) {
	var from keycloakRealm
	if err := decode(data, "the export of the realm", &from); err != nil {
		return nil, err
	}
	if from.Realm == "" {
		return nil, fmt.Errorf("the export has no realm: kc.sh export --realm NAME --users same_file --file FILE writes one")
	}
	r := &Realm{}
	slugs := r.keycloakGroups(from.Groups)
	seen := map[string]bool{}
	for _, u := range from.Users {
		r.keycloakUser(u, slugs, seen)
	}
	for _, c := range from.Clients {
		r.keycloakClient(c)
	}
	for _, p := range from.Provider {
		r.note("identity provider "+p.Alias, "has to be set up again as a connection, whose secret you have")
	}
	r.sort()
	return r, nil
}

// keycloakGroups adds the groups of a tree, and returns their slugs by path. Groups are flat here:
// a member of a group is not a member of the groups above or below it, as in Keycloak.
func (r *Realm) keycloakGroups(tree []keycloakGroup) map[string]string {
	slugs := map[string]string{}
	taken := map[string]string{}
	var add func(groups []keycloakGroup, above string)
	add = func(groups []keycloakGroup, above string) {
		for _, g := range groups {
			path := g.Path
			if path == "" {
				path = above + "/" + g.Name
			}
			slug := Slug(path)
			switch other, used := taken[slug]; {
			case slug == "":
				r.note("group "+path, "its name has no letter or digit of a slug: left out")
			case used:
				r.note("group "+path, "has the slug %s, as %s: left out", slug, other)
			default:
				taken[slug], slugs[path] = path, slug
				r.Groups = append(r.Groups, Group{Slug: slug, Name: strings.TrimPrefix(path, "/")})
			}
			if len(g.Roles) > 0 {
				r.note("group "+path, "gives roles, which are relations here: define them in a model")
			}
			add(g.SubGroups, path)
		}
	}
	add(tree, "")
	return slugs
}

func (r *Realm) keycloakUser(from keycloakUser, slugs map[string]string, seen map[string]bool) {
	if from.Service != "" { // the account of an application, which needs none here
		return
	}
	u := User{
		Email: from.Email, EmailVerified: from.EmailVerified, GivenName: from.FirstName, FamilyName: from.LastName,
		Name: strings.TrimSpace(from.FirstName + " " + from.LastName), Disabled: from.Enabled != nil && !*from.Enabled,
		PasswordMustBeReset: slices.Contains(from.Actions, "UPDATE_PASSWORD"),
	}
	name := "user " + from.Username
	for key, values := range from.Attributes {
		switch key {
		case "locale":
			u.Locale = first(values)
		case "picture":
			u.Picture = first(values)
		default:
			r.note("attribute "+key, "users can change their attributes here: permit nothing by it")
			if u.Attributes == nil {
				u.Attributes = map[string]any{}
			}
			if len(values) == 1 {
				u.Attributes[key] = values[0]
			} else {
				u.Attributes[key] = values
			}
		}
	}
	if from.Username != "" && !strings.EqualFold(from.Username, from.Email) {
		if u.Attributes == nil {
			u.Attributes = map[string]any{}
		}
		u.Attributes["username"] = from.Username
	}
	for _, path := range from.Groups {
		if slug, ok := slugs[path]; ok {
			u.Groups = append(u.Groups, slug)
		} else {
			r.note(name, "is in the group %s, which is left out", path)
		}
	}
	for _, c := range from.Credentials {
		if c.Type != "password" {
			r.note("", "a second factor or passkey (%s) cannot be moved: its user adds a new one", c.Type)
			continue
		}
		hash, err := keycloakHash(c)
		if err != nil {
			r.note(name, "the password is left out, and the user has to choose a new one: %v", err)
			continue
		}
		u.PasswordHash = hash
	}
	if len(from.Identities) > 0 {
		r.note("", "links with other identity providers are not moved: users link again, or are linked by their verified address at the first sign-in")
	}
	for _, role := range from.RealmRoles {
		if !strings.HasPrefix(role, "default-roles-") && role != "offline_access" && role != "uma_authorization" {
			r.note("realm role "+role, "roles of users are relations here: define one in a model and write it")
		}
	}
	for client, roles := range from.ClientRoles {
		if !slices.Contains(ownClients, client) && len(roles) > 0 {
			r.note("roles of client "+client, "roles of users are relations here: define them in a model and write them")
		}
	}
	r.add(u, from.Username, seen)
}

// keycloakHash returns the hash of a password in the form of a PHC string.
func keycloakHash(c keycloakSecret) (*PasswordHash, error) {
	var secret struct {
		Value string `json:"value"`
		Salt  string `json:"salt"`
	}
	var how struct {
		Iterations int                 `json:"hashIterations"`
		Algorithm  string              `json:"algorithm"`
		More       map[string][]string `json:"additionalParameters"`
	}
	if err := decode([]byte(c.Secret), "the secret of the credential", &secret); err != nil {
		return nil, err
	}
	if err := decode([]byte(c.Credential), "the credential", &how); err != nil {
		return nil, err
	}
	var parts []string
	for _, text := range []string{secret.Salt, secret.Value} {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(raw) == 0 {
			return nil, fmt.Errorf("the hash or its salt is not base64")
		}
		parts = append(parts, base64.RawStdEncoding.EncodeToString(raw))
	}
	salt, value := parts[0], parts[1]
	switch how.Algorithm {
	case "argon2":
		more := func(name, otherwise string) string {
			if v := first(how.More[name]); v != "" {
				return v
			}
			return otherwise
		}
		if kind, version := more("type", "id"), more("version", "1.3"); kind != "id" || version != "1.3" {
			return nil, fmt.Errorf("it is hashed with argon2%s of version %s", kind, version)
		}
		return &PasswordHash{"argon2id", fmt.Sprintf("$argon2id$v=19$m=%s,t=%d,p=%s$%s$%s", more("memory", "7168"), how.Iterations, more("parallelism", "1"), salt, value)}, nil
	case "pbkdf2-sha256", "pbkdf2-sha512":
		return &PasswordHash{strings.ReplaceAll(how.Algorithm, "-", "_"), fmt.Sprintf("$%s$i=%d$%s$%s", how.Algorithm, how.Iterations, salt, value)}, nil
	}
	return nil, fmt.Errorf("it is hashed with %q", how.Algorithm)
}

func (r *Realm) keycloakClient(from keycloakClient) {
	name := "client " + from.ID
	switch {
	case slices.Contains(ownClients, from.ID):
		return
	case from.Protocol != "" && from.Protocol != "openid-connect":
		r.note(name, "speaks %s: create it by hand", from.Protocol)
		return
	case from.BearerOnly:
		r.note(name, "only verifies tokens, which needs no application here: left out")
		return
	case !from.Enabled:
		r.note(name, "is disabled: left out")
		return
	case !from.StandardFlow && !from.ServiceAccounts:
		r.note(name, "uses no grant type that exists here: left out")
		return
	}
	a := Application{FormerID: from.ID, Name: from.Name, Description: from.Description}
	if a.Name == "" || strings.HasPrefix(a.Name, "${") { // the key of a translation
		a.Name = from.ID
	}
	if from.ImplicitFlow || from.DirectAccess {
		r.note(name, "the implicit flow and the password grant do not exist here: use the code flow")
	}
	if from.StandardFlow {
		a.RedirectURIs = r.uris(name, "redirect URI", from.RootURL, from.RedirectURIs)
		a.PostLogoutRedirectURIs = r.uris(name, "post-logout redirect URI", from.RootURL, strings.Split(from.Attributes["post.logout.redirect.uris"], "##"))
	}
	a.BackchannelLogoutURI = from.Attributes["backchannel.logout.url"]
	switch {
	case !from.StandardFlow:
		a.Type = "m2m"
	case !from.Public:
		a.Type = "server"
	case slices.ContainsFunc(a.RedirectURIs, func(uri string) bool { return !strings.HasPrefix(uri, "http") }):
		a.Type = "native"
	default:
		a.Type = "spa"
	}
	if a.Type == "spa" {
		for _, origin := range from.WebOrigins {
			switch origin {
			case "": // none
			case "+": // those of the redirect URIs
				for _, uri := range a.RedirectURIs {
					if u, err := url.Parse(uri); err == nil && !slices.Contains(a.AllowedOrigins, u.Scheme+"://"+u.Host) {
						a.AllowedOrigins = append(a.AllowedOrigins, u.Scheme+"://"+u.Host)
					}
				}
			case "*", "/*":
				r.note(name, "allows all web origins, which have to be named here")
			default:
				a.AllowedOrigins = append(a.AllowedOrigins, strings.TrimSuffix(origin, "/"))
			}
		}
	}
	if from.StandardFlow && from.ServiceAccounts {
		r.note(name, "is used with client credentials, too: create an application of the type m2m for that")
	}
	if from.StandardFlow && len(a.RedirectURIs) == 0 {
		r.note(name, "has no redirect URI that can be moved: add one before users sign in to it")
	}
	r.Applications = append(r.Applications, a)
}

// uris returns the URIs without patterns. Relative ones are below the root URL.
func (r *Realm) uris(name, what, root string, from []string) (uris []string) {
	for _, uri := range from {
		switch {
		case uri == "" || uri == "+" || uri == "-":
		case strings.Contains(uri, "*"):
			r.note(name, "the %s %s is a pattern, which does not exist here: add the exact URIs", what, uri)
		case strings.HasPrefix(uri, "/") && root != "":
			uris = append(uris, strings.TrimSuffix(root, "/")+uri)
		case strings.HasPrefix(uri, "/"):
			r.note(name, "the %s %s is relative, and the client has no root URL: add the exact URI", what, uri)
		default:
			uris = append(uris, uri)
		}
	}
	return uris
}
