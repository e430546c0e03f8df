// Package identityprovider signs users in at service providers of SAML 2.0: the Web Browser SSO
// profile (SAML Profiles §4.1) and Single Logout (§4.4) of an identity provider. It is the protocol
// only: it has no database, no HTTP handlers, and no users.
//
// A sign-in has these steps:
//
//	samlprotocol.ReadQuery,  the message that the browser carries
//	samlprotocol.ReadForm
//	Received.Issuer          the service provider that it claims to be from, by which the caller
//	                         finds a [ServiceProvider]
//	Provider.ReadRequest     the validated [Request], which the caller stores while the user signs in
//	Provider.Respond,        the form with the assertion or with an error, which the browser posts to
//	Provider.Refuse          the service provider
//
// [Unsolicited] returns the Request of a sign-in that begins here. [Provider.SingleLogout] has the
// messages of sign-outs.
//
// # Destinations of assertions
//
// An assertion goes only to an assertion consumer service that is registered for the service
// provider, is encrypted only with its registered certificate, and names it as the audience. Nothing
// of a request changes this: requests need not be signed, so anybody can write one.
//
// Errors are [*samlprotocol.Error], or [*UnsupportedError].
package identityprovider

import (
	"crypto/x509"
	"slices"

	"stonetown/internal/samlprotocol"
)

// The formats of name identifiers (SAML Core §8.3).
const (
	Unspecified  = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
	EmailAddress = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
	Persistent   = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
	Transient    = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
)

// Provider is the identity provider.
type Provider struct {
	// EntityID is the name of the identity provider: the URL of its metadata.
	EntityID string
	// SSO is the URL for requests of sign-ins.
	SSO string
	// SLO is the URL for single logout; empty: there is none.
	SLO string
	// Keys are the keys of the identity provider. The first signs; all are published.
	Keys []samlprotocol.Key
	// AuthnContexts are the URIs of the classes of authentication that assertions can have, the
	// weakest first (SAML Core §3.3.2.2.1).
	AuthnContexts []string
}

// ServiceProvider is what is registered of a service provider.
type ServiceProvider struct {
	EntityID string
	// ACS are the URLs of assertion consumer services, with the POST binding; the first is the
	// default.
	ACS []string
	// SLO is the URL for messages of single logout, with the redirect binding; empty: there is none.
	SLO string
	// Certificates verify the signatures of the service provider. The first encrypts. Without
	// certificates, signatures of requests are not verified, and single logout and encryption
	// are not possible.
	Certificates []*x509.Certificate
	// WantRequestsSigned refuses requests without a signature.
	WantRequestsSigned bool
	// SignAssertion and SignResponse select the signed elements. The assertion is also signed if
	// both are false, and if it is encrypted, because anybody can encrypt.
	SignAssertion, SignResponse bool
	// Encrypt encrypts assertions for the RSA key of the first certificate.
	Encrypt bool
	// NameIDFormat is the format of name identifiers.
	NameIDFormat string
}

// NameID returns the name of a user at a service provider, in its format. The names of the two
// providers qualify one that is meaningful to them only (SAML Core §8.3.7, §8.3.8).
func (p *Provider) NameID(sp ServiceProvider, value string) samlprotocol.NameID {
	n := samlprotocol.NameID{Value: value, Format: sp.NameIDFormat}
	if n.Format == Persistent || n.Format == Transient {
		n.NameQualifier, n.SPNameQualifier = p.EntityID, sp.EntityID
	}
	return n
}

// SingleLogout returns single logout between the identity provider and a service provider. The caller
// finds the service provider of a received message by its issuer.
func (p *Provider) SingleLogout(sp ServiceProvider) samlprotocol.SingleLogout {
	l := samlprotocol.SingleLogout{EntityID: p.EntityID, URL: p.SLO, Keys: p.Keys, Peer: sp.EntityID, Certificates: sp.Certificates}
	if sp.SLO != "" {
		l.Services = []samlprotocol.Service{{Binding: samlprotocol.Redirect, Location: sp.SLO}}
	}
	return l
}

// Metadata returns the metadata document of the identity provider (SAML Metadata §2.4.3). Whether
// requests must be signed depends on the service provider.
func (p *Provider) Metadata() ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	m := samlprotocol.NewMetadata(p.EntityID, "IDPSSODescriptor")
	m.Role.CreateAttr("WantAuthnRequestsSigned", "false")
	for _, key := range p.Keys {
		m.AddKey(key, false)
	}
	bindings := []string{samlprotocol.Redirect, samlprotocol.Post}
	if p.SLO != "" {
		for _, binding := range bindings {
			m.AddService("SingleLogoutService", binding, p.SLO)
		}
	}
	for _, format := range []string{Persistent, EmailAddress, Transient} {
		m.AddNameIDFormat(format)
	}
	for _, binding := range bindings {
		m.AddService("SingleSignOnService", binding, p.SSO)
	}
	return m.Document()
}

// check refuses a configuration without the names that messages have, or without a key.
func (p *Provider) check() error {
	if slices.Contains([]string{p.EntityID, p.SSO}, "") || samlprotocol.Signer(p.Keys) == nil {
		return samlprotocol.Failed(samlprotocol.Misconfigured, "the identity provider has no entity id, no URL, or no key")
	}
	return nil
}
