package serviceprovider

import (
	"crypto/rand"
	"net/url"
	"slices"
	"time"

	"github.com/crewjam/saml"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/text"
)

// Request describes a sign-in.
type Request struct {
	// ForceAuthn requires that the user authenticates again. [Provider.Finish] refuses an
	// authentication before the request.
	ForceAuthn bool
	// Passive forbids the identity provider to ask the user.
	Passive bool
	// AuthnContexts are URIs of classes of authentication, one of which is required exactly;
	// empty: any. Finish refuses others.
	AuthnContexts []string
}

// Pending is a sign-in between [Provider.Begin] and [Provider.Finish]. The caller must delete it
// before Finish, so that it is used once, and accept it only from the browser for which it was made.
// It finds it by the RelayState of the form.
type Pending struct {
	RequestID     string
	RelayState    string // random
	Provider      string // entity id of the identity provider
	Begun         time.Time
	ForceAuthn    bool
	AuthnContexts []string
}

// Begin returns the message that requests a sign-in.
func (p *Provider) Begin(r Request, now time.Time) (Message, Pending, error) {
	if err := p.check(); err != nil {
		return Message{}, Pending{}, err
	}
	key := samlprotocol.Signer(p.Keys)
	if key == nil && p.IdentityProvider.WantRequestsSigned {
		return Message{}, Pending{}, samlprotocol.Failed(Misconfigured, "the identity provider requires signed requests, and there is no key")
	}
	service, ok := samlprotocol.ChooseService(p.IdentityProvider.SingleSignOn)
	if !ok {
		return Message{}, Pending{}, samlprotocol.Failed(Misconfigured, "the identity provider has no single sign-on service")
	}
	pending := Pending{
		RequestID: samlprotocol.NewID(), RelayState: rand.Text(), Provider: p.IdentityProvider.EntityID, Begun: now.UTC(),
		ForceAuthn: r.ForceAuthn, AuthnContexts: r.AuthnContexts,
	}
	request := saml.AuthnRequest{
		ID: pending.RequestID, Version: samlprotocol.Version, IssueInstant: samlprotocol.Instant(now), Destination: service.Location,
		Issuer: &saml.Issuer{Value: p.EntityID}, AssertionConsumerServiceURL: p.ACS, ProtocolBinding: Post,
		NameIDPolicy: &saml.NameIDPolicy{AllowCreate: new(true)},
	}
	if p.NameIDFormat != "" {
		request.NameIDPolicy.Format = &p.NameIDFormat
	}
	if r.ForceAuthn {
		request.ForceAuthn = new(true)
	}
	if r.Passive {
		request.IsPassive = new(true)
	}
	element := request.Element()
	if len(r.AuthnContexts) > 0 {
		contexts := element.CreateElement("samlp:RequestedAuthnContext")
		contexts.CreateAttr("Comparison", "exact")
		for _, class := range r.AuthnContexts {
			contexts.CreateElement("saml:AuthnContextClassRef").SetText(class)
		}
	}
	message, err := samlprotocol.Outgoing{
		Binding: service.Binding, To: service.Location, Document: element, RelayState: pending.RelayState, Key: key,
	}.Message()
	return message, pending, err
}

// Finish completes a sign-in with the form that the browser posts to the assertion consumer
// service. Pending is nil for a form whose RelayState belongs to no sign-in: a response to no
// request, which is accepted if the Provider allows it. Such a response can be sent by any site
// that gets one, so that the user of the browser signs in as somebody else (login CSRF); the caller
// must treat its RelayState, see [RelayState], as untrusted.
func (p *Provider) Finish(pending *Pending, form url.Values, now time.Time) (Identity, error) {
	if err := p.check(); err != nil {
		return Identity{}, err
	}
	m, err := samlprotocol.ReadForm(form)
	if err != nil {
		return Identity{}, err
	}
	inResponseTo := ""
	switch {
	case m.IsRequest:
		return Identity{}, samlprotocol.Refused("there is a request where a response is expected")
	case pending == nil && !p.AllowIDPInitiated:
		return Identity{}, samlprotocol.Failed(Stale, "the response belongs to no sign-in, and the connection does not allow sign-ins that the identity provider begins")
	case pending == nil:
	case pending.RequestID == "" || pending.RelayState == "" || m.RelayState != pending.RelayState:
		return Identity{}, samlprotocol.Failed(Stale, "RelayState is not that of the sign-in")
	case pending.Provider != p.IdentityProvider.EntityID:
		return Identity{}, samlprotocol.Failed(Stale, "the sign-in began at another identity provider, or before the connection was changed")
	default:
		inResponseTo = pending.RequestID
	}
	document, err := m.Document()
	if err != nil {
		return Identity{}, err
	}
	if document, err = p.openResponse(document, inResponseTo, now); err != nil {
		return Identity{}, err
	}
	a, err := readAssertion(document)
	if err != nil {
		return Identity{}, err
	}
	identity, err := p.accept(a, inResponseTo, now)
	if err != nil {
		return Identity{}, err
	}
	if pending == nil {
		identity.Unsolicited = true
		return identity, nil
	}
	return identity, pending.check(identity)
}

// check refuses an authentication other than the requested one.
func (p *Pending) check(identity Identity) error {
	switch {
	case p.ForceAuthn && identity.AuthnInstant.Before(p.Begun.Add(-Skew)):
		return samlprotocol.Refused("the user authenticated before the request, which requires a new authentication")
	case len(p.AuthnContexts) > 0 && !slices.Contains(p.AuthnContexts, identity.AuthnContext):
		return samlprotocol.Failed(Denied, "the class of the authentication is none that was requested: %s", text.Quote(identity.AuthnContext))
	}
	return nil
}

// RelayState returns the RelayState of a form or a query, by which the caller finds a [Pending];
// empty: there is none, or several.
func RelayState(values url.Values) string { return samlprotocol.RelayState(values) }
