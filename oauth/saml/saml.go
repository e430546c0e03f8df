// Package saml is the SAML 2.0 identity provider of a tenant: it signs users in to the applications
// of type saml, which are service providers. Its protocol is package identityprovider.
//
// A message of a service provider becomes an [authorization.Request] ([Service.Read]), as does the
// visit of a user who starts at the tenant ([Service.Launch]). From there on it is treated like the
// request of an OAuth client: it waits while the user signs in, is bound to the browser, and needs
// the consent of the user unless the application is first party. At its end there is an assertion
// ([Service.Respond]) instead of a code, or a status ([Service.Refuse]). What cannot be sent to the
// service provider, because it is not known to be one, is an [*authorization.PageError].
//
// # Data of users
//
// An assertion has the attributes that the application is configured to get and, of a third-party
// application, those of them to which the user agreed. Consent is stored as scopes (scopes.go).
//
// The e-mail address of a user who has not proved it is never stated, neither as a name nor as an
// attribute: service providers find accounts by it.
//
// # Sessions
//
// A sign-in is a grant of package access, which ends with the session. Its id is the SessionIndex at
// the application, by which single logout finds the session again (logout.go). A sign-out that an
// application requests, or that begins at the tenant, is led to all other applications of the session
// (propagation.go).
package saml

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"stonetown/internal/samlkeys"
	"stonetown/internal/samlprotocol"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/authorization"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/saml/identityprovider"
)

// Users are the users about whom assertions are made.
type Users interface {
	// Person returns a user. It fails with [access.ErrUserGone].
	Person(ctx context.Context, tenantID, userID string) (Person, error)
	// SessionLive reports whether a session has not ended.
	SessionLive(ctx context.Context, tenantID, sessionID string) (bool, error)
}

// Person has the members of a user that attributes can state.
type Person struct {
	access.User
	Attributes json.RawMessage // a JSON object; nil: there is none
	Groups     []string        // slugs
}

// Keys are the keys of the identity provider, the one that signs first.
type Keys interface {
	Keys(ctx context.Context, tenantID string, use samlkeys.Use) ([]samlkeys.Key, error)
}

// Config is the configuration of a [Service]. All fields are required.
type Config struct {
	DB      *sqldb.DB
	Seal    *seal.Key
	Clients *client.Registry
	Access  *access.Store
	Users   Users
	Keys    Keys
	Clock   func() time.Time
	Logger  *slog.Logger // receives the causes of refusals
}

// Service is the identity provider of all tenants. It is safe for concurrent use.
type Service struct{ Config }

// New returns the service.
func New(c Config) *Service { return &Service{c} }

// The classes of authentication that assertions state (SAML Core §2.7.2.2), the weakest first. The
// first two are satisfied by every sign-in, as a passkey is no weaker than a password; the others
// require a second factor.
var contexts = []string{
	"urn:oasis:names:tc:SAML:2.0:ac:classes:Password",
	"urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport",
	"https://refeds.org/profile/mfa",
	"http://schemas.microsoft.com/claims/multipleauthn",
}

const (
	plainContext  = 1 // index of the class that is stated for a sign-in without a second factor
	strongContext = 2 // index of the first class that requires a second factor
)

// provider returns the identity provider of a tenant.
func (s *Service) provider(ctx context.Context, tenant protocol.Tenant) (*identityprovider.Provider, error) {
	found, err := s.Keys.Keys(ctx, tenant.ID, samlkeys.IdentityProvider)
	if err != nil {
		return nil, err
	}
	p := &identityprovider.Provider{
		EntityID: tenant.BaseURL + protocol.SAMLMetadataPath, SSO: tenant.BaseURL + protocol.SAMLSignOnPath, SLO: tenant.BaseURL + protocol.SAMLLogoutPath,
		AuthnContexts: contexts,
	}
	for _, k := range found {
		p.Keys = append(p.Keys, samlprotocol.Key{Private: k.Private, Certificate: k.Certificate})
	}
	return p, nil
}

// Metadata returns the metadata of a tenant's identity provider. It has the certificate that signs,
// the next one, and the previous one.
func (s *Service) Metadata(ctx context.Context, tenant protocol.Tenant) ([]byte, error) {
	p, err := s.provider(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return p.Metadata()
}

// nameIDFormats are the values of name_id_format.
var nameIDFormats = map[string]string{
	"persistent": identityprovider.Persistent, "emailAddress": identityprovider.EmailAddress, "transient": identityprovider.Transient,
}

// serviceProvider returns what the protocol needs of an application.
func serviceProvider(app client.Application) (identityprovider.ServiceProvider, error) {
	c := app.ServiceProvider
	sp := identityprovider.ServiceProvider{
		EntityID: c.EntityID, ACS: append([]string{c.ACSURL}, c.ACSURLs...), SLO: c.SLOURL,
		WantRequestsSigned: c.SignedRequests, SignAssertion: c.SignAssertion, SignResponse: c.SignResponse, Encrypt: c.EncryptAssertion,
		NameIDFormat: nameIDFormats[c.NameIDFormat],
	}
	if c.Certificate != "" {
		block, _ := pem.Decode([]byte(c.Certificate))
		if block == nil {
			return sp, fmt.Errorf("certificate of application %s: not PEM", app.ID)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return sp, fmt.Errorf("certificate of application %s: %w", app.ID, err)
		}
		sp.Certificates = []*x509.Certificate{certificate}
	}
	return sp, nil
}

// application finds the application of type saml that an entity id names, enabled or not. It fails
// with [*authorization.PageError].
func (s *Service) application(ctx context.Context, tenant protocol.Tenant, entityID string) (client.Application, identityprovider.ServiceProvider, error) {
	app, err := client.SelectByEntityID(ctx, s.DB, tenant.ID, entityID)
	if client.IsNotFound(err) || err == nil && app.Type != client.SAML {
		err = &authorization.PageError{Description: "the application is unknown"}
	}
	if err != nil {
		return app, identityprovider.ServiceProvider{}, err
	}
	sp, err := serviceProvider(app)
	return app, sp, err
}

// refusal returns the page for a message that is not valid, and logs the cause, which the
// administrator of the service provider needs. Other errors are returned unchanged.
func (s *Service) refusal(ctx context.Context, tenant protocol.Tenant, app client.Application, err error) error {
	var refused *samlprotocol.Error
	if !errors.As(err, &refused) {
		return err
	}
	s.Logger.InfoContext(ctx, "SAML message refused", "tenant", tenant.ID, "application", app.ID, "class", string(refused.Class), "detail", refused.Detail)
	return &authorization.PageError{Description: cmp.Or(pageTexts[refused.Class], pageTexts[samlprotocol.Invalid])}
}

// pageTexts are shown to users. Nothing of the message is in them.
var pageTexts = map[samlprotocol.Class]string{
	samlprotocol.Invalid:       "the application sent a message that is not valid",
	samlprotocol.Stale:         "the message of the application is too old, or was already used; go back to the application and start again",
	samlprotocol.Misconfigured: "the application is not configured for this message",
}
