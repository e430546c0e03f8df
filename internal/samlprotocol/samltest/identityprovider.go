package samltest

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"

	"stonetown/internal/samlprotocol"
)

// IdentityProvider is an identity provider whose users do what a test says.
type IdentityProvider struct {
	EntityID string
	SSO, SLO string
	Bindings []string // of SSO and SLO; default: that of redirects
	Key      samlprotocol.Key
	Clock    func() time.Time
}

// Metadata returns the metadata of the identity provider, with the certificates of its key and of
// others.
func (p *IdentityProvider) Metadata(others ...samlprotocol.Key) string {
	m := samlprotocol.NewMetadata(p.EntityID, "IDPSSODescriptor")
	for _, key := range append([]samlprotocol.Key{p.Key}, others...) {
		m.AddKey(key, false)
	}
	bindings := p.Bindings
	if len(bindings) == 0 {
		bindings = []string{samlprotocol.Redirect}
	}
	for _, binding := range bindings {
		if p.SLO != "" {
			m.AddService("SingleLogoutService", binding, p.SLO)
		}
	}
	for _, binding := range bindings {
		m.AddService("SingleSignOnService", binding, p.SSO)
	}
	document, err := m.Document()
	if err != nil {
		panic(err)
	}
	return string(document)
}

// Request is an AuthnRequest.
type Request struct {
	ID         string `xml:"ID,attr"`
	ACS        string `xml:"AssertionConsumerServiceURL,attr"`
	ForceAuthn bool   `xml:"ForceAuthn,attr"`
	Issuer     string `xml:"urn:oasis:names:tc:SAML:2.0:assertion Issuer"`
	RelayState string `xml:"-"`
}

// Read reads the request of a message: of a URL or, if there is a form, of the form.
func (p *IdentityProvider) Read(t testing.TB, to string, form url.Values) (r Request) {
	t.Helper()
	params := form
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	if form == nil {
		params = u.Query()
		u.RawQuery = ""
	}
	document, err := base64.StdEncoding.DecodeString(params.Get("SAMLRequest"))
	if err == nil && form == nil {
		document, err = io.ReadAll(flate.NewReader(bytes.NewReader(document)))
	}
	if err == nil {
		err = xml.Unmarshal(document, &r)
	}
	if err != nil || u.String() != p.SSO || r.ID == "" {
		t.Fatalf("the request to %s is %q: %v", to, document, err)
	}
	r.RelayState = params.Get("RelayState")
	return r
}

// Response is what a response states. Empty members have good values.
type Response struct {
	NameID     samlprotocol.NameID // default: ann, persistent
	Attributes map[string][]string
	Context    string // class of the authentication
	Session    string
	Age        time.Duration // since the user authenticated
	Status     string        // the second status code of a failure
	// InResponseTo replaces the ID of the request; "-": none.
	InResponseTo string
	AssertionID  string
	// ACS and Audience replace those of the request.
	ACS, Audience string
}

// Respond returns the form with a signed response to a request. A response to no request has a
// Request with ACS and Issuer.
func (p *IdentityProvider) Respond(t testing.TB, to Request, r Response) url.Values {
	t.Helper()
	now := p.Clock().UTC()
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339Nano) }
	e := html.EscapeString
	request := cmp.Or(r.InResponseTo, to.ID)
	inResponseTo := ""
	if request != "" && request != "-" {
		inResponseTo = ` InResponseTo="` + e(request) + `"`
	}
	acs, audience := cmp.Or(r.ACS, to.ACS), cmp.Or(r.Audience, to.Issuer)
	if r.NameID == (samlprotocol.NameID{}) {
		r.NameID = samlprotocol.NameID{Value: "ann", Format: "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"}
	}
	name := ""
	for attribute, value := range map[string]string{"Format": r.NameID.Format, "NameQualifier": r.NameID.NameQualifier, "SPNameQualifier": r.NameID.SPNameQualifier} {
		if value != "" {
			name += fmt.Sprintf(` %s="%s"`, attribute, e(value))
		}
	}
	var attributes strings.Builder
	for _, key := range slices.Sorted(maps.Keys(r.Attributes)) {
		fmt.Fprintf(&attributes, `<saml:Attribute Name="%s">`, e(key))
		for _, value := range r.Attributes[key] {
			attributes.WriteString(`<saml:AttributeValue>` + e(value) + `</saml:AttributeValue>`)
		}
		attributes.WriteString(`</saml:Attribute>`)
	}
	assertion := fmt.Sprintf(`<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="%s" Version="2.0" IssueInstant="%s"><saml:Issuer>%s</saml:Issuer>`,
		e(cmp.Or(r.AssertionID, samlprotocol.NewID())), at(0), e(p.EntityID)) +
		fmt.Sprintf(`<saml:Subject><saml:NameID%s>%s</saml:NameID><saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData Recipient="%s" NotOnOrAfter="%s"%s/></saml:SubjectConfirmation></saml:Subject>`,
			name, e(r.NameID.Value), e(acs), at(5*time.Minute), inResponseTo) +
		fmt.Sprintf(`<saml:Conditions NotBefore="%s" NotOnOrAfter="%s"><saml:AudienceRestriction><saml:Audience>%s</saml:Audience></saml:AudienceRestriction></saml:Conditions>`,
			at(-time.Minute), at(10*time.Minute), e(audience)) +
		fmt.Sprintf(`<saml:AuthnStatement AuthnInstant="%s" SessionIndex="%s"><saml:AuthnContext><saml:AuthnContextClassRef>%s</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>`,
			at(-r.Age), e(cmp.Or(r.Session, "s1")), e(cmp.Or(r.Context, "urn:oasis:names:tc:SAML:2.0:ac:classes:Password"))) +
		`<saml:AttributeStatement>` + attributes.String() + `</saml:AttributeStatement></saml:Assertion>`
	status := `<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/>`
	if r.Status != "" {
		assertion, status = "", fmt.Sprintf(`<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Responder"><samlp:StatusCode Value="%s"/></samlp:StatusCode><samlp:StatusMessage>sent by the provider</samlp:StatusMessage>`, e(r.Status))
	} else {
		assertion = p.sign(t, assertion)
	}
	response := fmt.Sprintf(`<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="%s" Version="2.0" IssueInstant="%s" Destination="%s"%s><saml:Issuer>%s</saml:Issuer><samlp:Status>%s</samlp:Status>%s</samlp:Response>`,
		samlprotocol.NewID(), at(0), e(acs), inResponseTo, e(p.EntityID), status, assertion)
	form := url.Values{"SAMLResponse": {base64.StdEncoding.EncodeToString([]byte(response))}}
	if to.RelayState != "" {
		form.Set("RelayState", to.RelayState)
	}
	return form
}

// sign signs the root of a document.
func (p *IdentityProvider) sign(t testing.TB, document string) string {
	t.Helper()
	doc := etree.NewDocument()
	if err := doc.ReadFromString(document); err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	if err := samlprotocol.Sign(doc.Root(), p.Key); err != nil {
		t.Fatal(err)
	}
	signed, err := samlprotocol.Write(doc.Root())
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}
