package serviceprovider

import (
	"crypto/x509"
	"encoding/xml"
	"strings"
	"time"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"
)

// envelope is what messages of the protocol have in common (SAML Core §3.2).
type envelope struct {
	ID           string   `xml:"ID,attr"`
	Version      string   `xml:"Version,attr"`
	IssueInstant string   `xml:"IssueInstant,attr"`
	Destination  string   `xml:"Destination,attr"`
	InResponseTo string   `xml:"InResponseTo,attr"`
	Issuers      []issuer `xml:"urn:oasis:names:tc:SAML:2.0:assertion Issuer"`
	Statuses     []status `xml:"urn:oasis:names:tc:SAML:2.0:protocol Status"`
}

type issuer struct {
	Format string `xml:"Format,attr"`
	Value  string `xml:",chardata"`
}

type status struct {
	Codes []struct {
		Value  string `xml:"Value,attr"`
		Second []struct {
			Value string `xml:"Value,attr"`
		} `xml:"urn:oasis:names:tc:SAML:2.0:protocol StatusCode"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:protocol StatusCode"`
	Message string `xml:"urn:oasis:names:tc:SAML:2.0:protocol StatusMessage"`
}

const entityFormat = "urn:oasis:names:tc:SAML:2.0:nameid-format:entity"

// isProvider reports whether issuers are the identity provider, once.
func (p *Provider) isProvider(issuers []issuer) bool {
	return len(issuers) == 1 && (issuers[0].Format == "" || issuers[0].Format == entityFormat) &&
		strings.TrimSpace(issuers[0].Value) == p.IdentityProvider.EntityID
}

// check refuses a message that is not from the identity provider, or not for this address.
func (e envelope) check(p *Provider, destination string, signed bool, now time.Time) error {
	at, err := parseTime(e.IssueInstant)
	switch {
	case e.Version != version || e.ID == "" || len(e.ID) > maxText:
		return refused("the message has another version than 2.0, or no ID")
	case err != nil || !sentWithin(at, now):
		return refused("the message was issued in the future, or has no time")
	case e.Destination != destination && (e.Destination != "" || signed): // required for signed messages (SAML Bindings §3.5.5.2)
		return refused("Destination is %s, not %s", quote(e.Destination), quote(destination))
	case !p.isProvider(e.Issuers) && (len(e.Issuers) > 0 || signed):
		return refused("the issuer of the message is not the identity provider")
	}
	return nil
}

// statuses are the classes of errors of status codes (SAML Core §3.2.2.2), of the second level
// first.
var statuses = map[string]Class{
	saml.StatusAuthnFailed:              Denied,
	saml.StatusRequestDenied:            Denied,
	saml.StatusUnknownPrincipal:         Denied,
	saml.StatusNoAuthnContext:           Denied,
	saml.StatusNoPassive:                InteractionRequired,
	saml.StatusInvalidNameIDPolicy:      Misconfigured,
	saml.StatusRequestUnsupported:       Misconfigured,
	saml.StatusUnsupportedBinding:       Misconfigured,
	saml.StatusRequestVersionTooHigh:    Misconfigured,
	saml.StatusRequestVersionTooLow:     Misconfigured,
	saml.StatusRequestVersionDeprecated: Misconfigured,
	saml.StatusVersionMismatch:          Misconfigured,
	saml.StatusRequester:                Misconfigured,
	saml.StatusResponder:                Unavailable,
}

// check returns the error of a status; nil for success.
func (s status) check() error {
	if len(s.Codes) != 1 {
		return refused("the message does not have one status")
	}
	top := s.Codes[0]
	if top.Value == saml.StatusSuccess {
		return nil
	}
	second := ""
	if len(top.Second) > 0 {
		second = top.Second[0].Value
	}
	class, ok := statuses[second]
	if !ok {
		class, ok = statuses[top.Value]
	}
	if !ok {
		class = Unavailable
	}
	detail := "the identity provider answers " + quote(top.Value)
	if second != "" {
		detail += ", " + quote(second)
	}
	if message := strings.TrimSpace(s.Message); message != "" {
		detail += ": " + quote(message)
	}
	return failed(class, "%s", detail)
}

// openResponse verifies a response, and returns the bytes of its assertion that are signed.
func (p *Provider) openResponse(document []byte, inResponseTo string, now time.Time) ([]byte, error) {
	root, err := parse(document, responseName)
	if err != nil {
		return nil, err
	}
	certificates, err := p.IdentityProvider.Signers()
	if err != nil {
		return nil, err
	}
	signed := len(children(root, signatureName)) > 0
	if signed { // all that follows is read from the signed bytes
		if document, err = verify(root, certificates, now); err == nil {
			root, err = parse(document, responseName)
		}
		if err != nil {
			return nil, err
		}
	}
	var e envelope
	if xml.Unmarshal(document, &e) != nil {
		return nil, refused("the response is not XML")
	}
	if err := e.check(p, p.ACS, signed, now); err != nil {
		return nil, err
	}
	if e.InResponseTo != inResponseTo {
		return nil, failed(Stale, "the response is not for the request of this sign-in (InResponseTo)")
	}
	if len(e.Statuses) != 1 {
		return nil, refused("the message does not have one status")
	}
	if err := e.Statuses[0].check(); err != nil {
		return nil, err
	}
	return p.openAssertion(root, signed, certificates, now)
}

// openAssertion returns the signed bytes of the assertion of a response, whose own signature was
// verified if it has one.
func (p *Provider) openAssertion(response *etree.Element, signed bool, certificates []*x509.Certificate, now time.Time) ([]byte, error) {
	if list := children(response, encryptedAssertionName); len(list) == 1 {
		plain, err := p.decrypt(list[0])
		if err != nil {
			return nil, err
		}
		// The signature must be inside: anybody can encrypt to this service provider.
		if assertion, err := parse(plain, assertionName); err == nil {
			if covered, err := verify(assertion, certificates, now); err == nil {
				return covered, nil
			}
		}
		return nil, errDecrypt
	}
	list := children(response, assertionName)
	if len(list) != 1 {
		return nil, refused("the response does not have one assertion")
	}
	switch {
	case len(children(list[0], signatureName)) > 0:
		return verify(list[0], certificates, now)
	case signed:
		return write(detach(list[0]))
	}
	return nil, refused("neither the assertion nor the response is signed")
}
