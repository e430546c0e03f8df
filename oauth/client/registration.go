package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

// Registration is what is kept of an application that was registered by a client
// (RFC 7591), beside what it is set up with.
type Registration struct {
	// TokenHash is of the secret by which the client manages the application (RFC 7592).
	TokenHash string `json:"token_hash"`

	// What the client says about itself; nothing follows from it.
	ClientURI       string   `json:"client_uri,omitempty"`
	TOSURI          string   `json:"tos_uri,omitempty"`
	PolicyURI       string   `json:"policy_uri,omitempty"`
	Contacts        []string `json:"contacts,omitempty"`
	SoftwareID      string   `json:"software_id,omitempty"`
	SoftwareVersion string   `json:"software_version,omitempty"`
}

// Metadata is what a client says about itself (RFC 7591 §2, OIDC Registration §2), or
// what has become of that. What is zero has not been said.
type Metadata struct {
	// ClientID and ClientSecret come with an update, if they are right (RFC 7592 §2.2), and
	// with an answer, the secret when it is new.
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
	// SoftwareStatement is somebody else's word for all this, which nobody's is taken for.
	SoftwareStatement string

	JWKS       json.RawMessage
	JWKSURI    string
	IDTokenAlg keys.Alg

	PostLogoutRedirectURIs           []string
	BackchannelLogoutURI             string
	BackchannelLogoutSessionRequired bool

	RequirePAR bool
	DPoPBound  bool
}

// The kinds of client (OIDC Registration §2).
const (
	WebClient    = "web"
	NativeClient = "native"
)

// maxContacts bounds the contacts of a client.
const maxContacts = 20

// Registered is an application that was registered by a client, with the secrets that
// are new. They cannot be had again.
type Registered struct {
	Application Application
	Secret      string // empty: none, or it is the old one
	Token       string // by which it is managed: rat_ and 256 random bits
}

// ErrRegistrationToken is returned where a client is to be managed with a token that is not
// its own, or that is not there.
var ErrRegistrationToken = errors.New("the registration access token is not valid for this client")

// Register adds an application as a client describes it (RFC 7591 §3); by is who lets
// it. It is not one of the tenant's own, and has nothing that a user could not let it have.
// Refusals are [*Error].
func (s *Registry) Register(ctx context.Context, tenant protocol.Tenant, m Metadata, by string) (c Registered, err error) {
	m = m.withDefaults(Server)
	change, err := s.described(ctx, tenant, m)
	if err != nil {
		return c, err
	}
	c.Token = protocol.NewToken(registrationTokenPrefix)
	a := *m.applicationType().Defaults()
	a.AllowedScopes, a.FirstParty, a.GroupScopes, a.ChangedBy = nil, false, AllowedGroupScopes, by
	a.Registration = &Registration{TokenHash: protocol.Hash(c.Token)}
	change(&a)
	c.Application, c.Secret, err = s.Create(ctx, tenant.ID, a)
	return c, refusedMetadata(err)
}

// registrationTokenPrefix begins the tokens by which clients are managed.
const registrationTokenPrefix = "rat_"

// Managed is the application that a registration access token is for (RFC 7592 §2). It
// fails with [ErrRegistrationToken], and with [*Error] where somebody has disabled it.
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

// UpdateRegistered makes of an application what its client says now (RFC 7592 §2.2): what is not
// said is the default again. The token is replaced. What an administrator has set up, and
// clients have no say in, stays. It fails as [Service.ManagedClient] does, and with [*Error].
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
	case m.applicationType() != a.Type: // by which it is decided what it may be and do
		return c, metadataError("token_endpoint_auth_method and application_type cannot change the type of the client")
	}
	c.Token = protocol.NewToken(registrationTokenPrefix)
	mine := false
	c.Application, err = s.Update(ctx, tenant.ID, a.ID, clientID, func(a *Application) {
		if mine = a.managedWith(token); !mine { // somebody was faster
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

// DeleteRegistered removes an application at the wish of its client (RFC 7592 §2.3), and ends
// what users have let it do: that people are signed in to it is its own affair. It fails as
// [Service.ManagedClient] does.
func (s *Registry) DeleteRegistered(ctx context.Context, tenant protocol.Tenant, clientID, token string) error {
	a, err := s.Managed(ctx, tenant, clientID, token)
	if err == nil {
		err = s.remove(ctx, a, clientID)
	}
	if IsNotFound(err) {
		return ErrRegistrationToken
	}
	return err
}

// metadataError refuses what a client says about itself.
func metadataError(description string) *protocol.Error {
	return protocol.NewError(protocol.InvalidClientMetadata, description)
}

// refusedMetadata states in the words of RFC 7591 §3.2.2 what is wrong with an application.
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

// withDefaults says what was left out, of a client that is of a type already or, as RFC 7591
// §2 has it, of a new one of the type [Server].
func (m Metadata) withDefaults(t Type) Metadata {
	m.AuthMethod = cmp.Or(m.AuthMethod, t.DefaultOptions().AuthMethod)
	m.ApplicationType = cmp.Or(m.ApplicationType, t.clientKind())
	m.IDTokenAlg = cmp.Or(m.IDTokenAlg, t.DefaultOptions().IDTokenAlg)
	if string(bytes.TrimSpace(m.JWKS)) == "null" {
		m.JWKS = nil
	}
	return m
}

// clientKind is what OpenID Connect calls an application.
func (t Type) clientKind() string {
	if t == Native {
		return NativeClient
	}
	return WebClient
}

// applicationType is what a client becomes: who cannot keep a secret is told from who can by
// how it authenticates.
func (m Metadata) applicationType() Type {
	switch {
	case m.AuthMethod != NoClientAuth:
		return Server
	case m.ApplicationType == NativeClient:
		return Native
	}
	return SPA
}

// described judges what a client says about itself, with defaults, and returns what makes an
// application of it. What is judged of all applications is left to that. It fails with
// [*Error].
func (s *Registry) described(ctx context.Context, tenant protocol.Tenant, m Metadata) (change func(*Application), err error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	asked, err := scope.Parse(m.Scope)
	if err != nil {
		return nil, metadataError("scope is malformed")
	}
	if len(asked) == 0 {
		asked = scope.OIDC
	}
	registered, err := scope.Registered(ctx, s.db, tenant.ID)
	if err != nil {
		return nil, fmt.Errorf("read scopes: %w", err)
	}
	return func(a *Application) { m.describe(a, asked, registered) }, nil
}

// describe makes of an application what a client says of it, who asked for some scopes: what
// clients have no say in stays.
func (m Metadata) describe(a *Application, asked []string, registered map[string]scope.Scope) {
	var scopes []string
	for _, scope1 := range asked {
		// What an administrator has let it have, it may keep.
		if slices.Contains(scope.OIDC, scope1) || registered[scope1].Entitlement == scope.BySelf || slices.Contains(a.AllowedScopes, scope1) {
			scopes = append(scopes, scope1)
		}
	}
	if a.Type == SPA { // whose scripts have to read what it is answered
		named := originsOf(a.RedirectURIs)
		others := slices.DeleteFunc(slices.Clone(a.AllowedOrigins), func(origin string) bool { return slices.Contains(named, origin) })
		a.AllowedOrigins = append(originsOf(m.RedirectURIs), others...)
	}
	a.AllowedScopes, a.RedirectURIs, a.Name = scopes, m.RedirectURIs, m.name()
	a.LogoURI, a.AuthMethod, a.JWKS, a.JWKSURI, a.IDTokenAlg = m.LogoURI, m.AuthMethod, m.JWKS, m.JWKSURI, m.IDTokenAlg
	a.PostLogoutRedirectURIs = m.PostLogoutRedirectURIs
	a.BackchannelLogoutURI, a.BackchannelLogoutSessionRequired = m.BackchannelLogoutURI, m.BackchannelLogoutSessionRequired
	// What is demanded of it may be an administrator's demand: it can add to that only.
	a.RequirePAR, a.DPoPBound = a.RequirePAR || m.RequirePAR, a.DPoPBound || m.DPoPBound
	a.Registration = &Registration{
		TokenHash: a.Registration.TokenHash,
		ClientURI: m.ClientURI, TOSURI: m.TOSURI, PolicyURI: m.PolicyURI, Contacts: m.Contacts, SoftwareID: m.SoftwareID, SoftwareVersion: m.SoftwareVersion,
	}
}

// validate refuses what no client can be.
func (m Metadata) validate() error {
	t := m.applicationType()
	grants := t.grantsOfUsers()
	switch {
	case m.SoftwareStatement != "":
		return protocol.NewError(protocol.InvalidSoftwareStatement, "software statements are not supported")
	case m.ApplicationType != WebClient && m.ApplicationType != NativeClient:
		return metadataError("application_type must be web or native")
	case !slices.Contains(t.authMethods(), m.AuthMethod):
		return metadataError("token_endpoint_auth_method must be one of " + strings.Join(ClientAuthMethods, ", "))
	case slices.ContainsFunc(m.GrantTypes, func(grant string) bool { return !slices.Contains(grants, grant) }):
		return metadataError("grant_types must be among " + strings.Join(grants, ", ") + " for this client")
	case slices.ContainsFunc(m.ResponseTypes, func(response string) bool { return response != protocol.ResponseTypeCode }):
		return metadataError("response_types must be code")
	case len(m.RedirectURIs) == 0 && (len(m.GrantTypes) == 0 || slices.Contains(m.GrantTypes, protocol.GrantAuthorizationCode)):
		return protocol.NewError(protocol.InvalidRedirectURI, "redirect_uris is required for the grant "+protocol.GrantAuthorizationCode)
	case len(m.Contacts) > maxContacts:
		return metadataError(fmt.Sprintf("contacts must be at most %d", maxContacts))
	}
	for _, uri := range m.RedirectURIs {
		if err := validateRedirectURI(t, uri); err != nil {
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
	for _, page := range [][2]string{{"client_uri", m.ClientURI}, {"tos_uri", m.TOSURI}, {"policy_uri", m.PolicyURI}} {
		if page[1] != "" && !secureURL(page[1]) {
			return metadataError(fmt.Sprintf("%s must be an https URL without fragment, of at most %d characters", page[0], maxURI))
		}
	}
	return nil
}

// name is what the client is called: without a name, by where it has people sent back to.
func (m Metadata) name() string {
	where := ""
	if len(m.RedirectURIs) > 0 {
		if u, err := url.Parse(m.RedirectURIs[0]); err == nil {
			where = cmp.Or(u.Hostname(), u.Scheme)
		}
	}
	return cmp.Or(m.ClientName, where, "Application")
}

// originsOf are the web origins of redirect URIs that were accepted.
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

// Metadata is what a client is told that registered the application.
func (c Registered) Metadata() Metadata {
	a := c.Application
	return Metadata{
		ClientID: a.ClientID, ClientSecret: c.Secret,
		RedirectURIs: a.RedirectURIs, AuthMethod: a.AuthMethod, GrantTypes: a.GrantTypes(), ResponseTypes: []string{protocol.ResponseTypeCode},
		ApplicationType: a.Type.clientKind(), Scope: strings.Join(a.AllowedScopes, " "),
		ClientName: a.Name, ClientURI: a.Registration.ClientURI, LogoURI: a.LogoURI, TOSURI: a.Registration.TOSURI, PolicyURI: a.Registration.PolicyURI,
		Contacts: a.Registration.Contacts, SoftwareID: a.Registration.SoftwareID, SoftwareVersion: a.Registration.SoftwareVersion,
		JWKS: a.JWKS, JWKSURI: a.JWKSURI, IDTokenAlg: a.IDTokenAlg,
		PostLogoutRedirectURIs: a.PostLogoutRedirectURIs, BackchannelLogoutURI: a.BackchannelLogoutURI, BackchannelLogoutSessionRequired: a.BackchannelLogoutSessionRequired,
		RequirePAR: a.RequirePAR, DPoPBound: a.DPoPBound,
	}
}
