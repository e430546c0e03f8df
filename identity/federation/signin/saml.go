package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"strings"

	"stonetown/identity/federation"
	"stonetown/identity/federation/claims"
	"stonetown/identity/federation/serviceprovider"
)

// Keys are the keys with which tenants sign and decrypt messages of SAML as service providers.
type Keys interface {
	// Keys returns the keys of a tenant as [serviceprovider.Provider] has them.
	Keys(ctx context.Context, tenantID string) ([]serviceprovider.Key, error)
}

// serviceProvider returns a connection of the kind SAML as package serviceprovider uses it.
//
// Requests name no format of NameIDs, because the subjects of all users would change when the
// metadata of the identity provider begins to list another one. The identity provider decides, by
// its configuration or by the metadata of the service provider; see [Service.Metadata].
func (s *Service) serviceProvider(ctx context.Context, t federation.Tenant, c federation.Connection) (*serviceprovider.Provider, error) {
	keys, err := s.Keys.Keys(ctx, t.ID)
	if err != nil {
		return nil, fmt.Errorf("keys of a service provider: %w", err)
	}
	urls := c.URLs(t)
	p := &serviceprovider.Provider{EntityID: urls.EntityID, ACS: urls.ACS, SLO: urls.SLO, Keys: keys, AllowIDPInitiated: c.AllowIDPInitiated}
	if c.Metadata.IdentityProvider != nil {
		p.IdentityProvider = *c.Metadata.IdentityProvider
	}
	return p, nil
}

// Metadata returns the SAML metadata of a connection: that of this service provider, for the identity
// provider, also while the connection is disabled. It fails with [federation.ErrNotFound].
func (s *Service) Metadata(ctx context.Context, t federation.Tenant, slug string) ([]byte, error) {
	c, err := s.Connections.BySlug(ctx, t.ID, slug)
	if err == nil && c.Kind != federation.SAML {
		err = federation.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	p, err := s.serviceProvider(ctx, t, c)
	if err != nil {
		return nil, err
	}
	p.NameIDFormat = persistent
	return p.Metadata()
}

// beginSAML begins a sign-in at a SAML identity provider.
func (s *Service) beginSAML(ctx context.Context, t federation.Tenant, c federation.Connection, d Demands) (b Begun, p serviceprovider.Pending, err error) {
	provider, err := s.serviceProvider(ctx, t, c)
	if err != nil {
		return Begun{}, p, err
	}
	message, p, err := provider.Begin(serviceprovider.Request{ForceAuthn: d.Fresh || d.MaxAge != nil}, s.now())
	return Begun{URL: message.URL, Form: message.Form, State: p.RelayState}, p, err
}

// unsolicited returns the connection of a response to no request of this browser. Only its state is
// examined here: package serviceprovider refuses the response unless the connection allows such ones.
func (s *Service) unsolicited(ctx context.Context, tenantID, slug string) (federation.Connection, error) {
	c, err := s.Connections.BySlug(ctx, tenantID, slug)
	switch {
	case errors.Is(err, federation.ErrNotFound), err == nil && c.Kind != federation.SAML:
		err = ErrExpired
	case err == nil && c.State != federation.Enabled:
		err = ErrDisabled
	}
	return c, err
}

// finishSAML verifies the response of a SAML identity provider to a request or, if p is nil, to none,
// and accepts its assertion once. If it fails because of the NameID, the statement has the claims.
func (s *Service) finishSAML(ctx context.Context, t federation.Tenant, c federation.Connection, p *serviceprovider.Pending, form url.Values) (statement, error) {
	var i serviceprovider.Identity
	provider, err := s.verified(ctx, t, c, func(provider *serviceprovider.Provider) (err error) {
		i, err = provider.Finish(p, form, s.now())
		return err
	})
	if err != nil {
		return statement{}, err
	}
	if err := s.useAssertion(ctx, c, i); err != nil {
		return statement{}, err
	}
	hint, err := json.Marshal(i.Subject)
	if err != nil {
		return statement{}, err
	}
	subject, problem := subjectOf(provider, i.Subject)
	received := statement{
		Subject: subject, Claims: maps.Clone(i.Attributes), ACR: []string{i.AuthnContext}, AuthTime: i.AuthnInstant,
		SessionID: i.SessionIndex, Hint: string(hint), Warnings: nameWarnings(i.Subject),
	}
	received.Claims[formatOf(i.Subject)] = []string{i.Subject.Value}
	methods, _ := i.Attributes[microsoftMethods].([]string)
	received.ACR = append(received.ACR, methods...)
	return received, problem
}

// verified returns the provider with which a message was verified. If the message is not valid, the key
// can be a new one, so it is verified again if the metadata of the identity provider has another.
func (s *Service) verified(ctx context.Context, t federation.Tenant, c federation.Connection, verify func(*serviceprovider.Provider) error) (*serviceprovider.Provider, error) {
	provider, err := s.serviceProvider(ctx, t, c)
	if err != nil {
		return nil, err
	}
	problem := verify(provider)
	if e, ok := errors.AsType[*serviceprovider.Error](problem); ok && e.Class == serviceprovider.Invalid {
		fresh, err := s.refreshed(ctx, t, c)
		if err != nil {
			return nil, err
		}
		if !reflect.DeepEqual(fresh.IdentityProvider.Certificates, provider.IdentityProvider.Certificates) {
			provider, problem = fresh, verify(fresh)
		}
	}
	return provider, problem
}

// refreshed is serviceProvider after the metadata of the identity provider is read again, which is
// not more often than [federation.MinRefresh].
func (s *Service) refreshed(ctx context.Context, t federation.Tenant, c federation.Connection) (*serviceprovider.Provider, error) {
	c, err := s.Connections.Refresh(ctx, t.ID, c.ID)
	if errors.Is(err, federation.ErrNotFound) { // deleted meanwhile
		err = ErrExpired
	}
	if err != nil {
		return nil, err
	}
	return s.serviceProvider(ctx, t, c)
}

// The formats of NameIDs (SAML Core §8.3) that the package treats in their own way.
const (
	formats11 = "urn:oasis:names:tc:SAML:1.1:nameid-format:"
	formats20 = "urn:oasis:names:tc:SAML:2.0:nameid-format:"

	unspecified  = formats11 + "unspecified"
	emailAddress = formats11 + "emailAddress"
	persistent   = formats20 + "persistent"
	transient    = formats20 + "transient"
)

// microsoftMethods is the attribute of Microsoft's identity providers with the methods of the
// authentication, among them those of [multiFactor].
const microsoftMethods = "http://schemas.microsoft.com/claims/authnmethodsreferences"

// formatOf returns the format of a NameID. Without one, it is unspecified (SAML Core §2.2.2).
func formatOf(n serviceprovider.NameID) string {
	if n.Format == "" {
		return unspecified
	}
	return n.Format
}

// subjectOf returns the subject of a NameID: the key of links, which must name one user for ever.
//
//	persistent 8f14e45f                    NameID 8f14e45f with the format persistent
//	emailAddress ann@example.com
//	persistent 1 [line break] other.example [line break] sp.example
//
// The format is part of the subject, because one value can name two users in two formats: the user
// name that one of them has chosen, and the address of the other. The user who signs in can choose
// the format, unless the identity provider verifies the signatures of requests. NameQualifier and
// SPNameQualifier, the second and third line, are part of the subject unless they name the identity
// provider and this service provider, which is what their absence means (SAML Core §8.3.7): an
// identity provider that forwards the users of others distinguishes them in this way.
//
// A transient NameID (SAML Core §8.3.8) has no subject.
func subjectOf(p *serviceprovider.Provider, n serviceprovider.NameID) (string, error) {
	misconfigured := func(format string, args ...any) (string, error) {
		return "", &serviceprovider.Error{Class: serviceprovider.Misconfigured, Detail: fmt.Sprintf(format, args...)}
	}
	format := formatOf(n)
	if strings.Contains(format, " ") || !strings.Contains(format, ":") {
		return misconfigured("the format of the NameID is not a URI")
	}
	if name := strings.TrimPrefix(strings.TrimPrefix(format, formats11), formats20); !strings.Contains(name, ":") {
		format = name
	}
	if format == "transient" {
		return misconfigured("the NameID is transient, so it does not name the user at the next sign-in; the identity provider must send a persistent one")
	}
	subject := format + " " + n.Value
	if other(n.NameQualifier, p.IdentityProvider.EntityID) || other(n.SPNameQualifier, p.EntityID) {
		subject += "\n" + n.NameQualifier + "\n" + n.SPNameQualifier
	}
	if len(subject) > maxSubject {
		return misconfigured("the NameID, with its format and qualifiers, has more than %d bytes", maxSubject)
	}
	return subject, nil
}

// maxSubject is the limit of package external, in bytes.
const maxSubject = 1024

// other reports whether a qualifier is stated and is not the default.
func other(qualifier, standard string) bool { return qualifier != "" && qualifier != standard }

// nameWarnings returns warnings about a NameID whose format does not promise that its value is never
// that of another user.
func nameWarnings(n serviceprovider.NameID) []claims.Warning {
	switch format := formatOf(n); format {
	case persistent, transient:
		return nil
	case emailAddress:
		return []claims.Warning{{Target: "subject", Code: "reassignable", Message: "the NameID is an e-mail address: a user whose address changes loses the account, and the next user with the address gets it; prefer a persistent NameID"}}
	default:
		return []claims.Warning{{Target: "subject", Code: "reassignable", Message: "the format of the NameID does not say that its value never names another user; prefer a persistent NameID"}}
	}
}
