package serviceprovider

import (
	"crypto/x509"
	"encoding/xml"
	"time"

	"github.com/beevik/etree"

	"stonetown/internal/samlprotocol"
)

// isProvider reports whether issuers are the identity provider, once.
func (p *Provider) isProvider(issuers []samlprotocol.Issuer) bool {
	return samlprotocol.IsFrom(issuers, p.IdentityProvider.EntityID)
}

// openResponse verifies a response, and returns the bytes of its assertion that are signed.
func (p *Provider) openResponse(document []byte, inResponseTo string, now time.Time) ([]byte, error) {
	root, err := samlprotocol.Parse(document, samlprotocol.ResponseName)
	if err != nil {
		return nil, err
	}
	certificates, err := p.IdentityProvider.Signers()
	if err != nil {
		return nil, err
	}
	signed := len(samlprotocol.Children(root, samlprotocol.SignatureName)) > 0
	if signed { // all that follows is read from the signed bytes
		if document, err = samlprotocol.Verify(root, certificates, now); err == nil {
			root, err = samlprotocol.Parse(document, samlprotocol.ResponseName)
		}
		if err != nil {
			return nil, err
		}
	}
	var e samlprotocol.Envelope
	if xml.Unmarshal(document, &e) != nil {
		return nil, samlprotocol.Refused("the response is not XML")
	}
	if err := e.Check(p.IdentityProvider.EntityID, p.ACS, signed, now); err != nil {
		return nil, err
	}
	if e.InResponseTo != inResponseTo {
		return nil, samlprotocol.Failed(Stale, "the response is not for the request of this sign-in (InResponseTo)")
	}
	if err := e.CheckStatus(); err != nil {
		return nil, err
	}
	return p.openAssertion(root, signed, certificates, now)
}

// openAssertion returns the signed bytes of the assertion of a response, whose own signature was
// verified if it has one.
func (p *Provider) openAssertion(response *etree.Element, signed bool, certificates []*x509.Certificate, now time.Time) ([]byte, error) {
	if list := samlprotocol.Children(response, samlprotocol.EncryptedAssertionName); len(list) == 1 {
		plain, err := samlprotocol.Decrypt(list[0], p.Keys)
		if err != nil {
			return nil, err
		}
		// The signature must be inside: anybody can encrypt to this service provider.
		if assertion, err := samlprotocol.Parse(plain, samlprotocol.AssertionName); err == nil {
			if covered, err := samlprotocol.Verify(assertion, certificates, now); err == nil {
				return covered, nil
			}
		}
		return nil, samlprotocol.ErrDecrypt
	}
	list := samlprotocol.Children(response, samlprotocol.AssertionName)
	if len(list) != 1 {
		return nil, samlprotocol.Refused("the response does not have one assertion")
	}
	switch {
	case len(samlprotocol.Children(list[0], samlprotocol.SignatureName)) > 0:
		return samlprotocol.Verify(list[0], certificates, now)
	case signed:
		return samlprotocol.Write(samlprotocol.Detach(list[0]))
	}
	return nil, samlprotocol.Refused("neither the assertion nor the response is signed")
}
