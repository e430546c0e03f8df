package serviceprovider

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/text"
)

// The limits of metadata.
const (
	maxCertificates = 20
	maxServices     = 20
)

// ErrMetadataTooLarge is returned for metadata of more than [MaxDocument] bytes.
var ErrMetadataTooLarge = fmt.Errorf("the metadata has more than %d bytes", MaxDocument)

// IdentityProvider is what is used of the metadata of an identity provider (SAML Metadata §2.4.3).
// It can be stored as JSON.
type IdentityProvider struct {
	EntityID     string    `json:"entity_id"`
	SingleSignOn []Service `json:"single_sign_on"`
	SingleLogout []Service `json:"single_logout,omitempty"`
	// Certificates of its signing keys, in DER, in the order of the metadata. A signature with
	// any of them is accepted while the certificate is valid.
	Certificates       [][]byte  `json:"certificates"`
	WantRequestsSigned bool      `json:"want_requests_signed,omitempty"`
	NameIDFormats      []string  `json:"name_id_formats,omitempty"`
	ValidUntil         time.Time `json:"valid_until,omitzero"` // the first validUntil that applies; zero: none
}

// Certificate describes a signing certificate.
type Certificate struct {
	Fingerprint string    // SHA-256 of the DER, in lower-case hexadecimal
	NotAfter    time.Time // UTC
}

// Signers returns the signing certificates.
func (p *IdentityProvider) Signers() (list []*x509.Certificate, err error) {
	for _, der := range p.Certificates {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, samlprotocol.Failed(Misconfigured, "a stored signing certificate is not X.509")
		}
		list = append(list, c)
	}
	return list, nil
}

// Describe returns descriptions of the signing certificates.
func (p *IdentityProvider) Describe() (list []Certificate, err error) {
	signers, err := p.Signers()
	for _, c := range signers {
		sum := sha256.Sum256(c.Raw)
		list = append(list, Certificate{hex.EncodeToString(sum[:]), c.NotAfter.UTC()})
	}
	return list, err
}

// descriptor is EntitiesDescriptor or EntityDescriptor. The types of crewjam/saml do not read some
// valid durations.
type descriptor struct {
	ValidUntil string       `xml:"validUntil,attr"`
	EntityID   string       `xml:"entityID,attr"`
	Groups     []descriptor `xml:"urn:oasis:names:tc:SAML:2.0:metadata EntitiesDescriptor"`
	Entities   []descriptor `xml:"urn:oasis:names:tc:SAML:2.0:metadata EntityDescriptor"`
	Providers  []struct {
		ValidUntil         string `xml:"validUntil,attr"`
		Protocols          string `xml:"protocolSupportEnumeration,attr"`
		WantRequestsSigned string `xml:"WantAuthnRequestsSigned,attr"`
		Keys               []struct {
			Use   string `xml:"use,attr"`
			Infos []struct {
				Data []struct {
					Certificates []string `xml:"http://www.w3.org/2000/09/xmldsig# X509Certificate"`
				} `xml:"http://www.w3.org/2000/09/xmldsig# X509Data"`
			} `xml:"http://www.w3.org/2000/09/xmldsig# KeyInfo"`
		} `xml:"urn:oasis:names:tc:SAML:2.0:metadata KeyDescriptor"`
		SingleSignOn  []endpoint `xml:"urn:oasis:names:tc:SAML:2.0:metadata SingleSignOnService"`
		SingleLogout  []endpoint `xml:"urn:oasis:names:tc:SAML:2.0:metadata SingleLogoutService"`
		NameIDFormats []string   `xml:"urn:oasis:names:tc:SAML:2.0:metadata NameIDFormat"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:metadata IDPSSODescriptor"`
}

type endpoint struct {
	Binding          string `xml:"Binding,attr"`
	Location         string `xml:"Location,attr"`
	ResponseLocation string `xml:"ResponseLocation,attr"`
}

// ParseMetadata parses and validates metadata: an EntityDescriptor, or an EntitiesDescriptor with
// one identity provider among its entities. A signature of the metadata is not verified: metadata
// is trusted because of its source, which an administrator has set.
//
// The text of an error is safe for a person and does not quote the document. The caller may have
// further rules for the URLs of services, to which browsers are sent.
func ParseMetadata(document []byte, now time.Time) (*IdentityProvider, error) {
	if len(document) > MaxDocument {
		return nil, ErrMetadataTooLarge
	}
	root, err := samlprotocol.Inspect(document, true)
	if err != nil {
		return nil, fmt.Errorf("the metadata %w", err)
	}
	var d descriptor
	if root.Space != samlprotocol.MetadataNS || root.Local != "EntityDescriptor" && root.Local != "EntitiesDescriptor" || xml.Unmarshal(document, &d) != nil {
		return nil, errors.New("the document is not SAML 2.0 metadata")
	}
	p := new(IdentityProvider)
	entity, err := p.find(d, now)
	if err != nil {
		return nil, err
	}
	if entity == nil || len(entity.Providers) != 1 {
		return nil, errors.New("the metadata must describe one identity provider")
	}
	return p, p.read(*entity, now)
}

// find returns the descriptor of the only entity that is an identity provider. It is nil for none.
func (p *IdentityProvider) find(d descriptor, now time.Time) (found *descriptor, err error) {
	if len(d.Providers) > 0 {
		found = &d
	}
	for _, inner := range slices.Concat(d.Entities, d.Groups) {
		other, err := p.find(inner, now)
		if err != nil {
			return nil, err
		}
		if other != nil && found != nil {
			return nil, errors.New("the metadata must describe one identity provider")
		}
		if other != nil {
			found = other
		}
	}
	if found != nil { // validUntil of other entities does not matter
		err = p.limit(d.ValidUntil, now)
	}
	return found, err
}

// limit applies validUntil.
func (p *IdentityProvider) limit(until string, now time.Time) error {
	if until == "" {
		return nil
	}
	at, err := samlprotocol.ParseTime(until)
	if err != nil {
		return errors.New("validUntil of the metadata is not a time")
	}
	if !now.Before(at) {
		return errors.New("the metadata has expired (validUntil)")
	}
	if p.ValidUntil.IsZero() || at.Before(p.ValidUntil) {
		p.ValidUntil = at
	}
	return nil
}

// read validates the descriptor of an identity provider.
func (p *IdentityProvider) read(d descriptor, now time.Time) (err error) {
	idp := d.Providers[0]
	p.EntityID = strings.TrimSpace(d.EntityID)
	p.WantRequestsSigned = samlprotocol.IsTrue(idp.WantRequestsSigned)
	switch {
	case p.EntityID == "" || len(p.EntityID) > samlprotocol.MaxText || !text.IsLine(p.EntityID):
		return fmt.Errorf("the metadata must have an entityID of 1 to %d bytes", samlprotocol.MaxText)
	case !slices.Contains(strings.Fields(idp.Protocols), samlprotocol.ProtocolNS):
		return errors.New("the identity provider does not support SAML 2.0")
	}
	if err := p.limit(idp.ValidUntil, now); err != nil {
		return err
	}
	if p.SingleSignOn, err = services(idp.SingleSignOn); err != nil {
		return err
	}
	if len(p.SingleSignOn) == 0 {
		return errors.New("the identity provider has no single sign-on service with the redirect or POST binding")
	}
	if p.SingleLogout, err = services(idp.SingleLogout); err != nil {
		return err
	}
	for _, format := range idp.NameIDFormats {
		if name := strings.TrimSpace(format); name != "" && len(name) <= samlprotocol.MaxText && text.IsLine(name) && len(p.NameIDFormats) < maxServices {
			p.NameIDFormats = append(p.NameIDFormats, name)
		}
	}
	for _, key := range idp.Keys {
		if key.Use != "" && key.Use != "signing" {
			continue
		}
		for _, info := range key.Infos {
			for _, data := range info.Data {
				for _, encoded := range data.Certificates {
					if err := p.addCertificate(encoded); err != nil {
						return err
					}
				}
			}
		}
	}
	if len(p.Certificates) == 0 {
		return errors.New("the metadata has no signing certificate")
	}
	return nil
}

// addCertificate adds a signing certificate, once.
func (p *IdentityProvider) addCertificate(encoded string) error {
	der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
	var c *x509.Certificate
	if err == nil {
		c, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return errors.New("the metadata has a signing certificate that is not X.509 in base64")
	}
	if key, ok := c.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() < samlprotocol.MinRSA {
		return fmt.Errorf("the metadata has a signing certificate with an RSA key of less than %d bits", samlprotocol.MinRSA)
	}
	if slices.ContainsFunc(p.Certificates, func(have []byte) bool { return bytes.Equal(have, der) }) {
		return nil
	}
	if p.Certificates = append(p.Certificates, der); len(p.Certificates) > maxCertificates {
		return fmt.Errorf("the metadata has more than %d signing certificates", maxCertificates)
	}
	return nil
}

// services returns the endpoints with a binding that is supported.
func services(all []endpoint) (list []Service, err error) {
	for _, e := range all {
		if e.Binding != Redirect && e.Binding != Post {
			continue
		}
		s := Service{Binding: e.Binding, Location: strings.TrimSpace(e.Location), ResponseLocation: strings.TrimSpace(e.ResponseLocation)}
		if !samlprotocol.IsWebURL(s.Location) || s.ResponseLocation != "" && !samlprotocol.IsWebURL(s.ResponseLocation) {
			return nil, errors.New("a service of the identity provider has an invalid URL")
		}
		if list = append(list, s); len(list) > maxServices {
			return nil, fmt.Errorf("the identity provider has more than %d services of a kind", maxServices)
		}
	}
	return list, nil
}

// Metadata returns the metadata document of the service provider.
func (p *Provider) Metadata() ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	m := samlprotocol.NewMetadata(p.EntityID, "SPSSODescriptor")
	m.Role.CreateAttr("AuthnRequestsSigned", fmt.Sprint(samlprotocol.Signer(p.Keys) != nil))
	m.Role.CreateAttr("WantAssertionsSigned", "true")
	for _, key := range p.Keys {
		m.AddKey(key, false)
		if key.CanDecrypt() {
			m.AddKey(key, true)
		}
	}
	if p.SLO != "" {
		m.AddService("SingleLogoutService", Redirect, p.SLO)
		m.AddService("SingleLogoutService", Post, p.SLO)
	}
	if p.NameIDFormat != "" {
		m.AddNameIDFormat(p.NameIDFormat)
	}
	acs := m.AddService("AssertionConsumerService", Post, p.ACS)
	acs.CreateAttr("index", "0")
	acs.CreateAttr("isDefault", "true")
	return m.Document()
}
