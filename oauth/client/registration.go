package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"

	"stonetown/internal/text"
	"stonetown/oauth/keys"
	"stonetown/oauth/mtls"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

// Registration is stored for an application that its client registered (RFC 7591).
type Registration struct {
	// TokenHash is the hash of the registration access token (RFC 7592).
	TokenHash string `json:"token_hash"`

	// GrantTypes are the grants that the client can use.
	GrantTypes []string `json:"grant_types"`
	// DefaultMaxAge is the max_age of requests that have none; nil: there is none.
	DefaultMaxAge *int `json:"default_max_age,omitempty"`
	// RequireAuthTime is the wish for auth_time, which every ID token has.
	RequireAuthTime bool `json:"require_auth_time,omitempty"`
	// SectorIdentifierURI was verified to list the redirect URIs (OIDC Registration §5). Subjects
	// are public, so nothing depends on it.
	SectorIdentifierURI string `json:"sector_identifier_uri,omitempty"`
	// InitiateLoginURI is where another party can begin a sign-in at the client (OIDC Core §4).
	InitiateLoginURI string `json:"initiate_login_uri,omitempty"`

	// Members without effect.
	ClientURI       string   `json:"client_uri,omitempty"`
	TOSURI          string   `json:"tos_uri,omitempty"`
	PolicyURI       string   `json:"policy_uri,omitempty"`
	Contacts        []string `json:"contacts,omitempty"`
	SoftwareID      string   `json:"software_id,omitempty"`
	SoftwareVersion string   `json:"software_version,omitempty"`
}

// Metadata is the client metadata of a registration request or response (RFC 7591 §2, OIDC
// Registration §2). The zero value of a member means that it is absent.
type Metadata struct {
	// ClientID and ClientSecret are part of an update, where they must be right (RFC 7592
	// §2.2), and of a response, the secret if it is new.
	ClientID     string
	ClientSecret string

	RedirectURIs    []string
	AuthMethod      AuthMethod
	GrantTypes      []string
	ResponseTypes   []string
	ApplicationType string // [WebClient] or [NativeClient]
	Scope           string // names separated by spaces

	ClientName      string
	ClientURI       string
	LogoURI         string
	TOSURI          string
	PolicyURI       string
	Contacts        []string
	SoftwareID      string
	SoftwareVersion string
	// SoftwareStatement is refused (RFC 7591 §2.3).
	SoftwareStatement string

	JWKS       json.RawMessage
	JWKSURI    string
	IDTokenAlg keys.Alg

	AuthorizationAlg     keys.Alg
	IntrospectionAlg     keys.Alg
	UserInfoAlg          keys.Alg
	AuthAlg              string
	RequestURIs          []string
	RequestObjectAlg     string
	RequireRequestObject bool

	PostLogoutRedirectURIs            []string
	BackchannelLogoutURI              string
	BackchannelLogoutSessionRequired  bool
	FrontchannelLogoutURI             string
	FrontchannelLogoutSessionRequired bool

	RequirePAR          bool
	DPoPBound           bool
	Certificate         mtls.Names
	CertificateBound    bool
	DefaultMaxAge       *int
	RequireAuthTime     bool
	SectorIdentifierURI string
	InitiateLoginURI    string

	// Others are the other members of a request. Those that would change what the client gets are
	// refused.
	Others map[string]json.RawMessage
}

// unsupported are members that a client could rely on, so that they cannot be ignored (RFC 7591
// §2), with the value that states what the product does; empty: there is none.
var unsupported = map[string]string{
	"subject_type":                         `"public"`,
	"id_token_encrypted_response_alg":      "",
	"id_token_encrypted_response_enc":      "",
	"userinfo_encrypted_response_alg":      "",
	"userinfo_encrypted_response_enc":      "",
	"introspection_encrypted_response_alg": "",
	"introspection_encrypted_response_enc": "",
	"authorization_encrypted_response_alg": "",
	"authorization_encrypted_response_enc": "",
	"request_object_encryption_alg":        "",
	"request_object_encryption_enc":        "",
	"default_acr_values":                   "",
}

// The values of application_type (OIDC Registration §2).
const (
	WebClient    = "web"
	NativeClient = "native"
)

// maxContacts bounds the contacts of a client.
const maxContacts = 20

// Registered is an application that its client registered, with the secrets that are new. They
// cannot be read again.
type Registered struct {
	Application Application
	Secret      string // empty: there is none, or the old one stays
	Token       string // the registration access token: rat_ and 256 random bits
}

// ErrRegistrationToken is returned for a registration access token that is missing or of
// another client.
var ErrRegistrationToken = errors.New("the registration access token is not valid for this client")

// Register creates an application from client metadata (RFC 7591 §3). by is the caller that
// permits it; empty: the mode [DCROpen] does. The application is not first party, and gets nothing that requires an
// administrator. Refusals are [*protocol.Error].
func (s *Registry) Register(ctx context.Context, tenant protocol.Tenant, m Metadata, by string) (c Registered, err error) {
	m = m.withDefaults(Server)
	change, err := s.described(ctx, tenant, m)
	if err != nil {
		return c, err
	}
	settings, err := SelectSettings(ctx, s.db, tenant.ID)
	if err != nil {
		return c, err
	}
	c.Token = protocol.NewToken(registrationTokenPrefix)
	a := *m.applicationType().Defaults()
	a.RequirePKCE = settings.DCRRequirePKCE || a.Type != Server
	a.AllowedScopes, a.FirstParty, a.GroupScopes, a.ChangedBy = nil, false, AllowedGroupScopes, by
	a.Registration = &Registration{TokenHash: protocol.Hash(c.Token)}
	if by == "" {
		a.Source = FromAnyone
	}
	change(&a)
	c.Application, c.Secret, err = s.Create(ctx, tenant.ID, a)
	return c, refusedMetadata(err)
}

// registrationTokenPrefix begins registration access tokens.
const registrationTokenPrefix = "rat_"

// Managed returns the application of a registration access token (RFC 7592 §2). It fails with
// [ErrRegistrationToken], and with [*protocol.Error] if the application is disabled.
func (s *Registry) Managed(ctx context.Context, tenant protocol.Tenant, clientID, token string) (Application, error) {
	a, err := Select(ctx, s.db, tenant.ID, clientID)
	switch {
	case IsNotFound(err) || err == nil && !a.managedWith(token):
		return Application{}, ErrRegistrationToken
	case err == nil && a.State != Enabled:
		return Application{}, protocol.NewError(protocol.UnauthorizedClient, "the application is disabled")
	}
	return a, err
}

func (a Application) managedWith(token string) bool {
	return a.Registration != nil && subtle.ConstantTimeCompare([]byte(protocol.Hash(token)), []byte(a.Registration.TokenHash)) == 1
}

// UpdateRegistered replaces the metadata of an application (RFC 7592 §2.2); absent members get
// their defaults. The registration access token is replaced. Settings that are not client
// metadata stay. It fails as [Registry.Managed] does, and with [*protocol.Error].
func (s *Registry) UpdateRegistered(ctx context.Context, tenant protocol.Tenant, clientID, token string, m Metadata) (c Registered, err error) {
	a, err := s.Managed(ctx, tenant, clientID, token)
	if err != nil {
		return c, err
	}
	m = m.withDefaults(a.Type)
	switch {
	case m.ClientID != clientID:
		return c, metadataError("client_id is required and must be the client's own")
	case m.ClientSecret != "" && !a.secrets.match(m.ClientSecret, s.clock()):
		return c, metadataError("client_secret is not the secret of this client")
	}
	describe, err := s.described(ctx, tenant, m)
	switch {
	case err != nil:
		return c, err
	case m.applicationType() != a.Type: // which decides about its grants and its authentication
		return c, metadataError("token_endpoint_auth_method and application_type cannot change the type of the client")
	}
	c.Token = protocol.NewToken(registrationTokenPrefix)
	mine := false
	c.Application, err = s.Update(ctx, tenant.ID, a.ID, clientID, func(a *Application) {
		if mine = a.managedWith(token); !mine { // another request was first
			return
		}
		c.Secret = ""
		a.Registration = &Registration{TokenHash: protocol.Hash(c.Token)}
		describe(a)
		if a.HasSecret() && a.secrets.current == (secretHash{}) {
			c.Secret = newSecret()
			a.secrets.current = hashSecret(c.Secret)
		}
	})
	if IsNotFound(err) || err == nil && !mine {
		err = ErrRegistrationToken
	}
	if err != nil {
		return Registered{}, refusedMetadata(err)
	}
	return c, nil
}

// DeleteRegistered deletes an application at the request of its client (RFC 7592 §2.3), and
// revokes its grants, even if users are signed in to it. It fails as [Registry.Managed] does.
func (s *Registry) DeleteRegistered(ctx context.Context, tenant protocol.Tenant, clientID, token string) error {
	a, err := s.Managed(ctx, tenant, clientID, token)
	if err == nil {
		err = s.remove(ctx, a, clientID, true)
	}
	if IsNotFound(err) {
		return ErrRegistrationToken
	}
	return err
}

// metadataError refuses client metadata.
func metadataError(description string) *protocol.Error {
	return protocol.NewError(protocol.InvalidClientMetadata, description)
}

// refusedMetadata returns the refusal of an application with the error codes of RFC 7591
// §3.2.2.
func refusedMetadata(err error) error {
	if uri, ok := errors.AsType[*RedirectURIError](err); ok {
		return protocol.NewError(protocol.InvalidRedirectURI, uri.Error())
	}
	if field, ok := errors.AsType[*ValidationError](err); ok {
		return metadataError(field.Error())
	}
	if unknown, ok := errors.AsType[*UnknownScopesError](err); ok {
		return metadataError(unknown.Error())
	}
	return err
}

// withDefaults adds the defaults of absent members, for an application of a type; a new one
// has the type [Server] (RFC 7591 §2).
func (m Metadata) withDefaults(t Type) Metadata {
	m.AuthMethod = cmp.Or(m.AuthMethod, t.DefaultOptions().AuthMethod)
	m.ApplicationType = cmp.Or(m.ApplicationType, t.clientKind())
	for _, alg := range []*keys.Alg{&m.IDTokenAlg, &m.AuthorizationAlg, &m.IntrospectionAlg} {
		*alg = cmp.Or(*alg, registeredIDTokenAlg)
	}
	if len(m.GrantTypes) == 0 {
		m.GrantTypes = []string{protocol.GrantAuthorizationCode}
	}
	if string(bytes.TrimSpace(m.JWKS)) == "null" {
		m.JWKS = nil
	}
	return m
}

// clientKind returns the application_type of OpenID Connect.
func (t Type) clientKind() string {
	if t == Native {
		return NativeClient
	}
	return WebClient
}

// applicationType returns the type of an application with this metadata. A client without
// authentication is public.
func (m Metadata) applicationType() Type {
	switch {
	case m.AuthMethod != NoClientAuth:
		return Server
	case m.ApplicationType == NativeClient:
		return Native
	}
	return SPA
}

// described validates client metadata that has its defaults, and returns the change of an
// application that it describes. It fails with [*protocol.Error].
func (s *Registry) described(ctx context.Context, tenant protocol.Tenant, m Metadata) (change func(*Application), err error) {
	if err := m.validate(s.allowed); err != nil {
		return nil, err
	}
	if err := s.verifySector(ctx, m); err != nil {
		return nil, err
	}
	asked, err := scope.Parse(m.Scope)
	if err != nil {
		return nil, metadataError("scope is malformed")
	}
	if len(asked) == 0 {
		asked = scope.Default
	}
	registered, err := scope.Registered(ctx, s.db, tenant.ID)
	if err != nil {
		return nil, fmt.Errorf("read scopes: %w", err)
	}
	return func(a *Application) { m.describe(a, asked, registered) }, nil
}

// describe changes an application to the metadata of its client, which requested some scopes.
// Everything else stays.
func (m Metadata) describe(a *Application, asked []string, registered map[string]scope.Scope) {
	var scopes []string
	for _, name := range asked {
		// Scopes that an administrator has allowed stay.
		if slices.Contains(scope.OIDC, name) || registered[name].Entitlement == scope.BySelf || slices.Contains(a.AllowedScopes, name) {
			scopes = append(scopes, name)
		}
	}
	if a.Source != FromAdministrator {
		// A client learns step by step which scopes it needs (RFC 6750 §3.1). Each request asks the
		// user, so it can have those that users have by themselves.
		for _, name := range slices.Sorted(maps.Keys(registered)) {
			if registered[name].Entitlement == scope.BySelf && !slices.Contains(scopes, name) {
				scopes = append(scopes, name)
			}
		}
	}
	if a.Type == SPA { // whose scripts read the responses
		named := originsOf(a.RedirectURIs)
		others := slices.DeleteFunc(slices.Clone(a.AllowedOrigins), func(origin string) bool { return slices.Contains(named, origin) })
		a.AllowedOrigins = append(originsOf(m.RedirectURIs), others...)
	}
	a.AllowedScopes, a.RedirectURIs, a.Name = scopes, m.RedirectURIs, m.name()
	a.LogoURI, a.AuthMethod, a.JWKS, a.JWKSURI, a.IDTokenAlg = m.LogoURI, m.AuthMethod, m.JWKS, m.JWKSURI, m.IDTokenAlg
	a.AuthorizationAlg, a.IntrospectionAlg, a.UserInfoAlg = m.AuthorizationAlg, m.IntrospectionAlg, m.UserInfoAlg
	a.AuthAlg, a.RequestURIs = m.AuthAlg, m.RequestURIs
	a.PostLogoutRedirectURIs = m.PostLogoutRedirectURIs
	a.BackchannelLogoutURI, a.BackchannelLogoutSessionRequired = m.BackchannelLogoutURI, m.BackchannelLogoutSessionRequired
	a.FrontchannelLogoutURI, a.FrontchannelLogoutSessionRequired = m.FrontchannelLogoutURI, m.FrontchannelLogoutSessionRequired
	// These may be requirements of an administrator, so the client can only add them.
	a.RequirePAR, a.DPoPBound, a.CertificateBound = a.RequirePAR || m.RequirePAR, a.DPoPBound || m.DPoPBound, a.CertificateBound || m.CertificateBound
	a.Certificate = m.Certificate
	a.RequestObjectAlg, a.RequireRequestObject = m.RequestObjectAlg, a.RequireRequestObject || m.RequireRequestObject
	a.Registration = &Registration{
		TokenHash:  a.Registration.TokenHash,
		GrantTypes: scope.Intersect(a.Type.grantsOfUsers(), m.GrantTypes), DefaultMaxAge: m.DefaultMaxAge,
		RequireAuthTime: m.RequireAuthTime, SectorIdentifierURI: m.SectorIdentifierURI, InitiateLoginURI: m.InitiateLoginURI,
		ClientURI: m.ClientURI, TOSURI: m.TOSURI, PolicyURI: m.PolicyURI, Contacts: m.Contacts, SoftwareID: m.SoftwareID, SoftwareVersion: m.SoftwareVersion,
	}
}

// validate refuses metadata that no client can have. [Application.validate] checks the rest.
func (m Metadata) validate(addresses allowed) error {
	t := m.applicationType()
	grants := t.grantsOfUsers()
	switch {
	case m.SoftwareStatement != "":
		return protocol.NewError(protocol.InvalidSoftwareStatement, "software statements are not supported")
	case m.ApplicationType != WebClient && m.ApplicationType != NativeClient:
		return metadataError("application_type must be web or native")
	case !slices.Contains(t.authMethods(addresses.certificates), m.AuthMethod):
		return metadataError(fmt.Sprintf("token_endpoint_auth_method must be one of %q", append(AuthMethods(addresses.certificates), NoClientAuth)))
	case slices.ContainsFunc(m.GrantTypes, func(grant string) bool { return !slices.Contains(grants, grant) }):
		return metadataError("grant_types must be among " + strings.Join(grants, ", ") + " for this client")
	case slices.ContainsFunc(m.ResponseTypes, func(response string) bool { return response != protocol.ResponseTypeCode }):
		return metadataError("response_types must be code")
	case len(m.RedirectURIs) == 0 && slices.Contains(m.GrantTypes, protocol.GrantAuthorizationCode):
		return protocol.NewError(protocol.InvalidRedirectURI, "redirect_uris is required for the grant "+protocol.GrantAuthorizationCode)
	case m.DefaultMaxAge != nil && (*m.DefaultMaxAge < 0 || *m.DefaultMaxAge > math.MaxInt32):
		return metadataError(fmt.Sprintf("default_max_age must be 0 to %d seconds", math.MaxInt32))
	case len(m.Contacts) > maxContacts:
		return metadataError(fmt.Sprintf("contacts must be at most %d", maxContacts))
	}
	for _, name := range slices.Sorted(maps.Keys(unsupported)) {
		value := string(bytes.TrimSpace(m.Others[name]))
		if value != "" && value != "null" && value != unsupported[name] {
			return metadataError("this value of " + name + " is not supported")
		}
	}
	for _, uri := range m.RedirectURIs {
		if err := addresses.validateRedirectURI(t, uri); err != nil {
			return refusedMetadata(err)
		}
	}
	texts := [][2]string{{"client_name", m.ClientName}, {"software_id", m.SoftwareID}, {"software_version", m.SoftwareVersion}}
	for _, contact := range m.Contacts {
		texts = append(texts, [2]string{"contacts", contact})
	}
	for _, text := range texts {
		if err := validLine(text[0], text[1]); err != nil {
			return refusedMetadata(err)
		}
	}
	for _, page := range [][2]string{{"client_uri", m.ClientURI}, {"tos_uri", m.TOSURI}, {"policy_uri", m.PolicyURI}, {"initiate_login_uri", m.InitiateLoginURI}} {
		if page[1] != "" && !text.IsSecureURL(page[1]) {
			return metadataError(fmt.Sprintf("%s must be an https URL without fragment, of at most %d characters", page[0], maxURI))
		}
	}
	return nil
}

// name returns the name of the client; without one, the host or scheme of its first redirect
// URI.
func (m Metadata) name() string {
	where := ""
	if len(m.RedirectURIs) > 0 {
		if u, err := url.Parse(m.RedirectURIs[0]); err == nil {
			where = cmp.Or(u.Hostname(), u.Scheme)
		}
	}
	return cmp.Or(m.ClientName, where, "Application")
}

// originsOf returns the web origins of valid redirect URIs.
func originsOf(uris []string) (origins []string) {
	for _, uri := range uris {
		u, err := url.Parse(uri)
		if err != nil {
			continue
		}
		if origin := u.Scheme + "://" + u.Host; !slices.Contains(origins, origin) {
			origins = append(origins, origin)
		}
	}
	return origins
}

// Metadata returns the metadata of the response to the client.
func (c Registered) Metadata() Metadata {
	a := c.Application
	return Metadata{
		ClientID: a.ClientID, ClientSecret: c.Secret,
		RedirectURIs: a.RedirectURIs, AuthMethod: a.AuthMethod, GrantTypes: a.GrantTypes(), ResponseTypes: []string{protocol.ResponseTypeCode},
		ApplicationType: a.Type.clientKind(), Scope: strings.Join(a.AllowedScopes, " "),
		ClientName: a.Name, ClientURI: a.Registration.ClientURI, LogoURI: a.LogoURI, TOSURI: a.Registration.TOSURI, PolicyURI: a.Registration.PolicyURI,
		Contacts: a.Registration.Contacts, SoftwareID: a.Registration.SoftwareID, SoftwareVersion: a.Registration.SoftwareVersion,
		JWKS: a.JWKS, JWKSURI: a.JWKSURI, IDTokenAlg: a.IDTokenAlg,
		AuthorizationAlg: a.AuthorizationAlg, IntrospectionAlg: a.IntrospectionAlg, UserInfoAlg: a.UserInfoAlg, AuthAlg: a.AuthAlg, RequestURIs: a.RequestURIs, RequestObjectAlg: a.RequestObjectAlg, RequireRequestObject: a.RequireRequestObject,
		PostLogoutRedirectURIs: a.PostLogoutRedirectURIs, BackchannelLogoutURI: a.BackchannelLogoutURI, BackchannelLogoutSessionRequired: a.BackchannelLogoutSessionRequired,
		FrontchannelLogoutURI: a.FrontchannelLogoutURI, FrontchannelLogoutSessionRequired: a.FrontchannelLogoutSessionRequired,
		RequirePAR: a.RequirePAR, DPoPBound: a.DPoPBound, Certificate: a.Certificate, CertificateBound: a.CertificateBound, DefaultMaxAge: a.Registration.DefaultMaxAge,
		RequireAuthTime: a.Registration.RequireAuthTime, SectorIdentifierURI: a.Registration.SectorIdentifierURI, InitiateLoginURI: a.Registration.InitiateLoginURI,
	}
}
