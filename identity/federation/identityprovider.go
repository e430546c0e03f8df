package federation

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/crewjam/saml"
	xrv "github.com/mattermost/xml-roundtrip-validator"

	"stonetown/internal/outbound"
	"stonetown/internal/text"
)

// IdentityProvider is what is used of the metadata of a SAML identity provider (SAML 2.0
// Metadata §2.4.3).
type IdentityProvider struct {
	EntityID     string    `json:"entity_id"`
	SingleSignOn []Service `json:"single_sign_on"`
	SingleLogout []Service `json:"single_logout,omitempty"`
	// Certificates of its signing keys, in DER. A signature with any of them is accepted.
	Certificates       [][]byte `json:"certificates"`
	WantRequestsSigned bool     `json:"want_requests_signed,omitempty"`
	NameIDFormats      []string `json:"name_id_formats,omitempty"`
}

// Service is an endpoint of an identity provider, with the binding of requests to it.
type Service struct {
	Binding          string `json:"binding"` // saml.HTTPRedirectBinding or saml.HTTPPostBinding
	Location         string `json:"location"`
	ResponseLocation string `json:"response_location,omitempty"` // empty: Location
}

// Certificate describes a signing certificate.
type Certificate struct {
	Fingerprint string    // SHA-256 of the DER, in lower-case hexadecimal
	NotAfter    time.Time // UTC
}

const (
	protocolSAML2   = "urn:oasis:names:tc:SAML:2.0:protocol"
	maxEntityID     = 1024 // bytes (SAML 2.0 Core §8.3.6)
	maxCertificates = 20
	maxServices     = 20
)

var errTooLarge = fmt.Errorf("the metadata has more than %d bytes", MaxMetadata)

// Signers returns the signing certificates.
func (p *IdentityProvider) Signers() (list []*x509.Certificate, err error) {
	for _, der := range p.Certificates {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("signing certificate of an identity provider: %w", err)
		}
		list = append(list, c)
	}
	return list, nil
}

// describe returns descriptions of the signing certificates. Those that are stored are valid.
func (p *IdentityProvider) describe() (list []Certificate) {
	signers, err := p.Signers()
	if err != nil {
		return nil
	}
	for _, c := range signers {
		sum := sha256.Sum256(c.Raw)
		list = append(list, Certificate{hex.EncodeToString(sum[:]), c.NotAfter.UTC()})
	}
	return list
}

// lastCertificate returns the signing certificate that expires last.
func (p *IdentityProvider) lastCertificate() (last Certificate) {
	for _, c := range p.describe() {
		if c.NotAfter.After(last.NotAfter) {
			last = c
		}
	}
	return last
}

// parseIdentityProvider parses and validates metadata: an entity descriptor, or a document of
// several with one identity provider. A document type is refused, because it can declare
// entities. The signature of metadata is not verified: it is trusted because of its source,
// which an administrator has set.
func parseIdentityProvider(document []byte, now time.Time, client *outbound.Client) (*IdentityProvider, error) {
	if len(document) > MaxMetadata {
		return nil, errTooLarge
	}
	root, err := checkXML(document)
	if err != nil {
		return nil, err
	}
	var entities []saml.EntityDescriptor
	notMetadata := errors.New("the document is not SAML 2.0 metadata")
	switch root {
	case "EntityDescriptor":
		entities = make([]saml.EntityDescriptor, 1)
		if xml.Unmarshal(document, &entities[0]) != nil {
			return nil, notMetadata
		}
	case "EntitiesDescriptor":
		var all saml.EntitiesDescriptor
		if xml.Unmarshal(document, &all) != nil {
			return nil, notMetadata
		}
		if expired(all.ValidUntil, now) {
			return nil, errors.New("the metadata has expired (validUntil)")
		}
		entities = flatten(all)
	default:
		return nil, notMetadata
	}
	entities = slices.DeleteFunc(entities, func(e saml.EntityDescriptor) bool { return len(e.IDPSSODescriptors) == 0 })
	if len(entities) != 1 || len(entities[0].IDPSSODescriptors) != 1 {
		return nil, errors.New("the metadata must describe one identity provider")
	}
	return identityProviderOf(entities[0], now, client)
}

// checkXML reads all tokens, and returns the name of the root element. It refuses a document
// type, and XML that could be read in more than one way.
func checkXML(document []byte) (root string, err error) {
	d := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", errors.New("the metadata is not XML in UTF-8")
		}
		switch token := token.(type) {
		case xml.Directive:
			return "", errors.New("the metadata must have no document type")
		case xml.StartElement:
			if root == "" {
				root = token.Name.Local
			}
		}
	}
	if xrv.Validate(bytes.NewReader(document)) != nil {
		return "", errors.New("the metadata is not XML that is read in one way only")
	}
	return root, nil
}

// flatten returns the descriptors of a document and of the groups in it.
func flatten(all saml.EntitiesDescriptor) []saml.EntityDescriptor {
	entities := all.EntityDescriptors
	for _, group := range all.EntitiesDescriptors {
		entities = append(entities, flatten(group)...)
	}
	return entities
}

func expired(until *time.Time, now time.Time) bool {
	return until != nil && !until.IsZero() && !now.Before(*until)
}

// identityProviderOf validates a descriptor.
func identityProviderOf(e saml.EntityDescriptor, now time.Time, client *outbound.Client) (*IdentityProvider, error) {
	idp := e.IDPSSODescriptors[0]
	p := &IdentityProvider{EntityID: e.EntityID, WantRequestsSigned: idp.WantAuthnRequestsSigned != nil && *idp.WantAuthnRequestsSigned}
	switch {
	case p.EntityID == "" || len(p.EntityID) > maxEntityID || !text.IsLine(p.EntityID):
		return nil, fmt.Errorf("the metadata must have an entityID of 1 to %d bytes", maxEntityID)
	case !e.ValidUntil.IsZero() && expired(&e.ValidUntil, now) || expired(idp.ValidUntil, now):
		return nil, errors.New("the metadata has expired (validUntil)")
	case !slices.Contains(strings.Fields(idp.ProtocolSupportEnumeration), protocolSAML2):
		return nil, errors.New("the identity provider does not support SAML 2.0")
	}
	var err error
	if p.SingleSignOn, err = services(idp.SingleSignOnServices, client); err != nil {
		return nil, err
	}
	if len(p.SingleSignOn) == 0 {
		return nil, errors.New("the identity provider has no single sign-on service with the redirect or POST binding")
	}
	if p.SingleLogout, err = services(idp.SingleLogoutServices, client); err != nil {
		return nil, err
	}
	for _, format := range idp.NameIDFormats {
		if name := strings.TrimSpace(string(format)); name != "" && text.IsLine(name) {
			p.NameIDFormats = append(p.NameIDFormats, name)
		}
	}
	p.Certificates, err = certificates(idp.KeyDescriptors)
	return p, err
}

// services returns the endpoints with a binding that is supported.
func services(all []saml.Endpoint, client *outbound.Client) (list []Service, err error) {
	for _, e := range all {
		if e.Binding != saml.HTTPRedirectBinding && e.Binding != saml.HTTPPostBinding {
			continue
		}
		s := Service{e.Binding, e.Location, e.ResponseLocation}
		for _, at := range []string{s.Location, s.ResponseLocation} {
			if at == "" && s.Location != "" {
				continue
			}
			if err := checkBrowserURL(client, at); err != nil {
				return nil, fmt.Errorf("a service of the identity provider has an invalid URL: %w", err)
			}
		}
		if list = append(list, s); len(list) > maxServices {
			return nil, fmt.Errorf("the identity provider has more than %d services of a kind", maxServices)
		}
	}
	return list, nil
}

// certificates returns the signing certificates: those of keys for signing, or for any use.
func certificates(keys []saml.KeyDescriptor) (list [][]byte, err error) {
	for _, key := range keys {
		if key.Use != "" && key.Use != "signing" {
			continue
		}
		for _, c := range key.KeyInfo.X509Data.X509Certificates {
			der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(c.Data), ""))
			if err == nil {
				_, err = x509.ParseCertificate(der)
			}
			if err != nil {
				return nil, errors.New("the metadata has a signing certificate that is not X.509 in base64")
			}
			if slices.ContainsFunc(list, func(have []byte) bool { return bytes.Equal(have, der) }) {
				continue
			}
			if list = append(list, der); len(list) > maxCertificates {
				return nil, fmt.Errorf("the metadata has more than %d signing certificates", maxCertificates)
			}
		}
	}
	if len(list) == 0 {
		return nil, errors.New("the metadata has no signing certificate")
	}
	return list, nil
}
