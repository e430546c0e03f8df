package samlprotocol

import (
	"crypto/rsa"
	"encoding/base64"
	"net/url"
	"slices"

	"github.com/beevik/etree"

	"stonetown/internal/text"
)

// Service is an endpoint of the other side. Its URLs have the scheme https or http.
type Service struct {
	Binding          string `json:"binding"` // Redirect or Post
	Location         string `json:"location"`
	ResponseLocation string `json:"response_location,omitempty"` // of responses; empty: Location
}

// ChooseService returns the service for a message: that of the redirect binding, or of POST.
func ChooseService(list []Service) (Service, bool) {
	for _, binding := range []string{Redirect, Post} {
		if i := slices.IndexFunc(list, func(s Service) bool { return s.Binding == binding }); i >= 0 {
			return list[i], true
		}
	}
	return Service{}, false
}

// IsWebURL reports whether browsers can be sent to a URL. A URL of another scheme, such as
// javascript, would run as a program of this site.
func IsWebURL(location string) bool {
	u, err := url.Parse(location)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && u.Fragment == "" && text.IsLine(location)
}

// Metadata is the metadata of an entity with one role (SAML Metadata §2.3.2), while it is written.
// The order of the members of the role is that of the schema: keys, services, name identifiers.
type Metadata struct {
	root *etree.Element
	Role *etree.Element
}

// NewMetadata returns metadata without members. Role is the name of the role's element, such as
// IDPSSODescriptor.
func NewMetadata(entityID, role string) Metadata {
	root := etree.NewElement("md:EntityDescriptor")
	root.CreateAttr("xmlns:md", MetadataNS)
	root.CreateAttr("entityID", entityID)
	m := Metadata{root, root.CreateElement("md:" + role)}
	m.Role.CreateAttr("protocolSupportEnumeration", ProtocolNS)
	return m
}

// AddKey adds the certificate of a key for signatures, or for encryption, with the names of the
// algorithms that [Decrypt] accepts.
func (m Metadata) AddKey(key Key, encryption bool) {
	e := m.Role.CreateElement("md:KeyDescriptor")
	use := "signing"
	if encryption {
		use = "encryption"
	}
	e.CreateAttr("use", use)
	info := e.CreateElement("ds:KeyInfo")
	info.CreateAttr("xmlns:ds", SignatureNS)
	info.CreateElement("ds:X509Data").CreateElement("ds:X509Certificate").SetText(base64.StdEncoding.EncodeToString(key.Certificate.Raw))
	if !encryption {
		return
	}
	for _, name := range []string{
		"http://www.w3.org/2009/xmlenc11#aes256-gcm", "http://www.w3.org/2009/xmlenc11#aes128-gcm",
		"http://www.w3.org/2001/04/xmlenc#aes256-cbc", "http://www.w3.org/2001/04/xmlenc#aes128-cbc", oaepWithSHA1Mask,
	} {
		e.CreateElement("md:EncryptionMethod").CreateAttr("Algorithm", name)
	}
}

// CanDecrypt reports whether a key is RSA, which others can encrypt to.
func (k Key) CanDecrypt() bool {
	_, ok := k.Certificate.PublicKey.(*rsa.PublicKey)
	return ok
}

// AddService adds a service with a binding, and returns its element.
func (m Metadata) AddService(name, binding, location string) *etree.Element {
	e := m.Role.CreateElement("md:" + name)
	e.CreateAttr("Binding", binding)
	e.CreateAttr("Location", location)
	return e
}

// AddNameIDFormat adds a supported format of name identifiers.
func (m Metadata) AddNameIDFormat(format string) {
	m.Role.CreateElement("md:NameIDFormat").SetText(format)
}

// Document returns the document.
func (m Metadata) Document() ([]byte, error) {
	doc := etree.NewDocument()
	doc.CreateProcInst("xml", `version="1.0" encoding="UTF-8"`)
	doc.SetRoot(m.root)
	doc.Indent(2)
	return doc.WriteToBytes()
}
