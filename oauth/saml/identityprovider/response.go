package identityprovider

import (
	"cmp"
	"slices"
	"time"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"

	"stonetown/internal/samlprotocol"
)

// AssertionLifetime is the time in which a service provider accepts an assertion.
const AssertionLifetime = 5 * time.Minute

// Assertion describes the assertion of a sign-in (SAML Core §2.3.3).
type Assertion struct {
	NameID samlprotocol.NameID // see [Provider.NameID]
	// SessionIndex names the session in messages of single logout. It must not be the identifier of
	// a session here, and must differ between service providers (SAML Core §2.7.2).
	SessionIndex string
	// SessionEnds is the time at which the service provider must end its session; zero: not stated.
	SessionEnds  time.Time
	AuthnInstant time.Time
	AuthnContext string // URI of the class; empty: unspecified
	Attributes   []Attribute
}

// Attribute is an attribute of a user (SAML Core §2.7.3.1). One without values is stated as such.
type Attribute struct {
	Name         string
	NameFormat   string // URI; empty: unspecified
	FriendlyName string // empty: none
	Values       []string
}

// Status is the second-level code of a response without an assertion (SAML Core §3.2.2.2).
type Status string

// The statuses of responses without an assertion.
const (
	AuthnFailed         Status = saml.StatusAuthnFailed
	InvalidNameIDPolicy Status = saml.StatusInvalidNameIDPolicy
	NoAuthnContext      Status = saml.StatusNoAuthnContext // the user cannot authenticate as requested
	NoPassive           Status = saml.StatusNoPassive
	RequestDenied       Status = saml.StatusRequestDenied // by the user, or by a rule
	RequestUnsupported  Status = saml.StatusRequestUnsupported
	UnknownPrincipal    Status = saml.StatusUnknownPrincipal
	UnsupportedBinding  Status = saml.StatusUnsupportedBinding
)

// ofRequester are the statuses that are errors of the service provider.
var ofRequester = []Status{InvalidNameIDPolicy, RequestUnsupported, UnsupportedBinding}

// Respond returns the form with the assertion for a request. The service provider accepts it once,
// within [AssertionLifetime]. It fails with [*UnsupportedError] if the assertion is not about the
// requested subject, or does not have a requested class of authentication.
func (p *Provider) Respond(sp ServiceProvider, r Request, a Assertion, now time.Time) (samlprotocol.Message, error) {
	if err := p.checkAnswer(sp, r); err != nil {
		return samlprotocol.Message{}, err
	}
	switch {
	case a.NameID.Value == "":
		return samlprotocol.Message{}, samlprotocol.Failed(samlprotocol.Misconfigured, "the user has no name in the format of the service provider: %s", sp.NameIDFormat)
	case r.Subject != nil && !sameSubject(*r.Subject, a.NameID):
		return samlprotocol.Message{}, unsupported(UnknownPrincipal, "another user signed in than the requested subject")
	case len(r.AuthnContexts) > 0 && !slices.Contains(r.AuthnContexts, a.AuthnContext):
		return samlprotocol.Message{}, unsupported(NoAuthnContext, "the user did not authenticate with a requested class")
	}
	assertion := p.assertion(sp, r, a, now)
	if sp.SignAssertion || sp.Encrypt || !sp.SignResponse {
		if err := samlprotocol.Sign(assertion, p.Keys[0]); err != nil {
			return samlprotocol.Message{}, err
		}
	}
	if sp.Encrypt {
		if len(sp.Certificates) == 0 {
			return samlprotocol.Message{}, samlprotocol.Failed(samlprotocol.Misconfigured, "assertions must be encrypted, and the service provider has no certificate")
		}
		var err error
		if assertion, err = samlprotocol.Encrypt(assertion, sp.Certificates[0]); err != nil {
			return samlprotocol.Message{}, err
		}
	}
	response := p.response(r, saml.StatusCode{Value: saml.StatusSuccess}, now)
	response.AddChild(assertion)
	return p.post(r, response, sp.SignResponse)
}

// Refuse returns the form with a signed response without an assertion.
func (p *Provider) Refuse(sp ServiceProvider, r Request, status Status, now time.Time) (samlprotocol.Message, error) {
	if err := p.checkAnswer(sp, r); err != nil {
		return samlprotocol.Message{}, err
	}
	code := saml.StatusCode{Value: saml.StatusResponder, StatusCode: &saml.StatusCode{Value: string(status)}}
	if slices.Contains(ofRequester, status) {
		code.Value = saml.StatusRequester
	}
	return p.post(r, p.response(r, code, now), true)
}

// checkAnswer refuses an answer to another service provider than the requesting one, and to a URL that
// is not registered any more.
func (p *Provider) checkAnswer(sp ServiceProvider, r Request) error {
	if err := p.check(); err != nil {
		return err
	}
	if sp.EntityID == "" || r.ServiceProvider != sp.EntityID || !slices.Contains(sp.ACS, r.ACS) || !samlprotocol.IsWebURL(r.ACS) {
		return samlprotocol.Failed(samlprotocol.Misconfigured, "the service provider of the request has another entity id or other URLs by now")
	}
	return nil
}

// sameSubject reports whether an assertion is about the requested subject. Its members that are not
// stated do not matter.
func sameSubject(requested, got samlprotocol.NameID) bool {
	return requested.Value == got.Value && (requested.Format == "" || requested.Format == Unspecified || requested.Format == got.Format)
}

// response returns a response without an assertion.
func (p *Provider) response(r Request, code saml.StatusCode, now time.Time) *etree.Element {
	response := saml.Response{
		ID: samlprotocol.NewID(), InResponseTo: r.ID, Version: samlprotocol.Version, IssueInstant: samlprotocol.Instant(now),
		Destination: r.ACS, Issuer: &saml.Issuer{Value: p.EntityID}, Status: saml.Status{StatusCode: code},
	}
	return response.Element()
}

// post returns the form with a response.
func (p *Provider) post(r Request, response *etree.Element, sign bool) (samlprotocol.Message, error) {
	o := samlprotocol.Outgoing{Binding: samlprotocol.Post, To: r.ACS, IsResponse: true, Document: response, RelayState: r.RelayState}
	if sign {
		o.Key = samlprotocol.Signer(p.Keys)
	}
	return o.Message()
}

// assertion returns an assertion without a signature (SAML Profiles §4.1.4.2).
func (p *Provider) assertion(sp ServiceProvider, r Request, a Assertion, now time.Time) *etree.Element {
	end := samlprotocol.Instant(now.Add(AssertionLifetime))
	e := etree.NewElement("saml:Assertion")
	e.CreateAttr("xmlns:saml", samlprotocol.AssertionNS)
	e.CreateAttr("ID", samlprotocol.NewID())
	e.CreateAttr("Version", samlprotocol.Version)
	e.CreateAttr("IssueInstant", samlprotocol.Instant(now).Format(time.RFC3339Nano))
	e.CreateElement("saml:Issuer").SetText(p.EntityID)

	subject := saml.Subject{NameID: a.NameID.XML(), SubjectConfirmations: []saml.SubjectConfirmation{{
		Method:                  "urn:oasis:names:tc:SAML:2.0:cm:bearer",
		SubjectConfirmationData: &saml.SubjectConfirmationData{NotOnOrAfter: end, Recipient: r.ACS, InResponseTo: r.ID},
	}}}
	e.AddChild(subject.Element())
	conditions := saml.Conditions{
		NotBefore: samlprotocol.Instant(now.Add(-samlprotocol.Skew)), NotOnOrAfter: end,
		AudienceRestrictions: []saml.AudienceRestriction{{Audience: saml.Audience{Value: sp.EntityID}}},
	}
	e.AddChild(conditions.Element())
	authn := saml.AuthnStatement{
		AuthnInstant: samlprotocol.Instant(a.AuthnInstant), SessionIndex: a.SessionIndex,
		AuthnContext: saml.AuthnContext{AuthnContextClassRef: &saml.AuthnContextClassRef{Value: cmp.Or(a.AuthnContext, anyContext)}},
	}
	if !a.SessionEnds.IsZero() {
		authn.SessionNotOnOrAfter = new(samlprotocol.Instant(a.SessionEnds))
	}
	e.AddChild(authn.Element())
	if len(a.Attributes) > 0 { // an AttributeStatement has at least one
		statement := e.CreateElement("saml:AttributeStatement")
		for _, attribute := range a.Attributes {
			statement.AddChild(attribute.element())
		}
	}
	return e
}

func (a Attribute) element() *etree.Element {
	attribute := saml.Attribute{Name: a.Name, NameFormat: a.NameFormat, FriendlyName: a.FriendlyName}
	for _, value := range a.Values {
		attribute.Values = append(attribute.Values, saml.AttributeValue{Type: "xs:string", Value: value})
	}
	return attribute.Element()
}
