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
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"

	"stonetown/internal/text"
)

// The bindings of messages that are supported.
const (
	Redirect = saml.HTTPRedirectBinding
	Post     = saml.HTTPPostBinding
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

// Service is an endpoint of an identity provider. Its URLs have the scheme https or http.
type Service struct {
	Binding          string `json:"binding"` // Redirect or Post
	Location         string `json:"location"`
	ResponseLocation string `json:"response_location,omitempty"` // of responses; empty: Location
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
			return nil, failed(Misconfigured, "a stored signing certificate is not X.509")
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
	root, err := inspect(document, true)
	if err != nil {
		return nil, fmt.Errorf("the metadata %w", err)
	}
	var d descriptor
	if root.Space != metadataNS || root.Local != "EntityDescriptor" && root.Local != "EntitiesDescriptor" || xml.Unmarshal(document, &d) != nil {
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
	at, err := parseTime(until)
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
	p.WantRequestsSigned = isTrue(idp.WantRequestsSigned)
	switch {
	case p.EntityID == "" || len(p.EntityID) > maxText || !text.IsLine(p.EntityID):
		return fmt.Errorf("the metadata must have an entityID of 1 to %d bytes", maxText)
	case !slices.Contains(strings.Fields(idp.Protocols), protocolNS):
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
		if name := strings.TrimSpace(format); name != "" && len(name) <= maxText && text.IsLine(name) && len(p.NameIDFormats) < maxServices {
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
	der, err := decodeBase64(encoded)
	var c *x509.Certificate
	if err == nil {
		c, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return errors.New("the metadata has a signing certificate that is not X.509 in base64")
	}
	if key, ok := c.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() < minRSA {
		return fmt.Errorf("the metadata has a signing certificate with an RSA key of less than %d bits", minRSA)
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
		s := Service{e.Binding, strings.TrimSpace(e.Location), strings.TrimSpace(e.ResponseLocation)}
		if !isWebURL(s.Location) || s.ResponseLocation != "" && !isWebURL(s.ResponseLocation) {
			return nil, errors.New("a service of the identity provider has an invalid URL")
		}
		if list = append(list, s); len(list) > maxServices {
			return nil, fmt.Errorf("the identity provider has more than %d services of a kind", maxServices)
		}
	}
	return list, nil
}

// isWebURL reports whether browsers can be sent to a URL. A URL of another scheme, such as
// javascript, would run as a program of this site.
func isWebURL(location string) bool {
	u, err := url.Parse(location)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && u.Fragment == "" && text.IsLine(location)
}

// isTrue reads an xs:boolean.
func isTrue(value string) bool { return value == "true" || value == "1" }

// Metadata returns the metadata document of the service provider.
func (p *Provider) Metadata() ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	_, signed := p.signs()
	root := etree.NewElement("md:EntityDescriptor")
	root.CreateAttr("xmlns:md", metadataNS)
	root.CreateAttr("entityID", p.EntityID)
	sp := root.CreateElement("md:SPSSODescriptor")
	sp.CreateAttr("AuthnRequestsSigned", fmt.Sprint(signed))
	sp.CreateAttr("WantAssertionsSigned", "true")
	sp.CreateAttr("protocolSupportEnumeration", protocolNS)
	for _, key := range p.Keys {
		_, canDecrypt := key.Certificate.PublicKey.(*rsa.PublicKey)
		addKey(sp, "signing", key)
		if canDecrypt {
			addKey(sp, "encryption", key)
		}
	}
	if p.SLO != "" {
		for _, binding := range []string{Redirect, Post} {
			addEndpoint(sp, "md:SingleLogoutService", binding, p.SLO)
		}
	}
	if p.NameIDFormat != "" {
		sp.CreateElement("md:NameIDFormat").SetText(p.NameIDFormat)
	}
	acs := addEndpoint(sp, "md:AssertionConsumerService", Post, p.ACS)
	acs.CreateAttr("index", "0")
	acs.CreateAttr("isDefault", "true")
	doc := etree.NewDocument()
	doc.CreateProcInst("xml", `version="1.0" encoding="UTF-8"`)
	doc.SetRoot(root)
	doc.Indent(2)
	return doc.WriteToBytes()
}

func addEndpoint(sp *etree.Element, name, binding, location string) *etree.Element {
	e := sp.CreateElement(name)
	e.CreateAttr("Binding", binding)
	e.CreateAttr("Location", location)
	return e
}

// addKey adds the certificate of a key. For encryption, it names the accepted algorithms.
func addKey(sp *etree.Element, use string, key Key) {
	e := sp.CreateElement("md:KeyDescriptor")
	e.CreateAttr("use", use)
	info := e.CreateElement("ds:KeyInfo")
	info.CreateAttr("xmlns:ds", signatureNS)
	info.CreateElement("ds:X509Data").CreateElement("ds:X509Certificate").SetText(base64.StdEncoding.EncodeToString(key.Certificate.Raw))
	if use != "encryption" {
		return
	}
	for _, name := range []string{
		"http://www.w3.org/2009/xmlenc11#aes256-gcm", "http://www.w3.org/2009/xmlenc11#aes128-gcm",
		"http://www.w3.org/2001/04/xmlenc#aes256-cbc", "http://www.w3.org/2001/04/xmlenc#aes128-cbc", oaepWithSHA1Mask,
	} {
		e.CreateElement("md:EncryptionMethod").CreateAttr("Algorithm", name)
	}
}
