package identityprovider_test

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/samlprotocol"
	"stonetown/internal/samlprotocol/samltest"
	"stonetown/oauth/saml/identityprovider"
)

const (
	testIDP    = "https://acme.example/saml/idp/metadata"
	testSSO    = "https://acme.example/saml/idp/sso"
	testSLO    = "https://acme.example/saml/idp/slo"
	testSP     = "https://app.example.com/saml/metadata"
	testACS    = "https://app.example.com/saml/acs"
	testACS2   = "https://app.example.com/saml/acs/2"
	testSPSLO  = "https://app.example.com/saml/slo"
	password   = "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport"
	secondOnce = "urn:oasis:names:tc:SAML:2.0:ac:classes:TimeSyncToken"
	multi      = "https://refeds.org/profile/mfa"
)

var (
	idpKey   = sync.OnceValue(func() samlprotocol.Key { return samltest.RSA(2048) })
	spKey    = sync.OnceValue(func() samlprotocol.Key { return samltest.RSA(2048) })
	otherKey = sync.OnceValue(func() samlprotocol.Key { return samltest.RSA(2048) })
)

func testProvider() *identityprovider.Provider {
	return &identityprovider.Provider{
		EntityID: testIDP, SSO: testSSO, SLO: testSLO, Keys: []samlprotocol.Key{idpKey()},
		AuthnContexts: []string{password, secondOnce, multi},
	}
}

// registered is the test's service provider, as the identity provider knows it.
func registered() identityprovider.ServiceProvider {
	return identityprovider.ServiceProvider{
		EntityID: testSP, ACS: []string{testACS, testACS2}, SLO: testSPSLO, Certificates: []*x509.Certificate{spKey().Certificate},
		SignAssertion: true, NameIDFormat: identityprovider.Persistent,
	}
}

// relying is the test's service provider itself. It knows the identity provider by its metadata.
func relying(t testing.TB, p *identityprovider.Provider) *serviceprovider.Provider {
	t.Helper()
	document, err := p.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := serviceprovider.ParseMetadata(document, samltest.Now)
	if err != nil {
		t.Fatal(err)
	}
	return &serviceprovider.Provider{EntityID: testSP, ACS: testACS, SLO: testSPSLO, Keys: []samlprotocol.Key{spKey()}, IdentityProvider: *metadata}
}

// receive reads a message at its receiver.
func receive(t testing.TB, m samlprotocol.Message) samlprotocol.Received {
	t.Helper()
	received, err := samlprotocol.ReadForm(m.Form)
	if m.Form == nil {
		_, query, _ := strings.Cut(m.URL, "?")
		received, err = samlprotocol.ReadQuery(query)
	}
	if err != nil {
		t.Fatal(err)
	}
	return received
}

func testAssertion() identityprovider.Assertion {
	return identityprovider.Assertion{
		NameID: testProvider().NameID(registered(), "ann"), SessionIndex: "s1", SessionEnds: samltest.Now.Add(time.Hour),
		AuthnInstant: samltest.Now.Add(-time.Minute), AuthnContext: password,
		Attributes: []identityprovider.Attribute{
			{Name: "mail", Values: []string{"ann@example.com"}},
			{Name: "urn:oid:1.3.6.1.4.1.5923.1.1.1.7", NameFormat: "urn:oasis:names:tc:SAML:2.0:attrname-format:uri", FriendlyName: "eduPersonEntitlement", Values: []string{"staff", `R&D <ops> "it's"`}},
			{Name: "empty"},
			{Name: "lines", Values: []string{"", " a\r\nb\tc\n", "\x00\xff\ufffe]]>"}},
		},
	}
}

// testAttributes are the attributes as they are received. Characters that XML does not have are
// replaced.
func testAttributes() map[string]any {
	return map[string]any{
		"mail": []string{"ann@example.com"}, "urn:oid:1.3.6.1.4.1.5923.1.1.1.7": []string{"staff", `R&D <ops> "it's"`},
		"empty": []string{}, "lines": []string{"", " a\r\nb\tc\n", "\ufffd\ufffd\ufffd]]>"},
	}
}

// documentOf returns the XML of a response.
func documentOf(t testing.TB, m samlprotocol.Message) string {
	t.Helper()
	document, err := base64.StdEncoding.DecodeString(m.Form.Get("SAMLResponse"))
	if err != nil || len(document) == 0 {
		t.Fatalf("%v: %v", m, err)
	}
	return string(document)
}

// detail returns an error with its cause.
func detail(err error) string {
	var failure *samlprotocol.Error
	if errors.As(err, &failure) {
		return err.Error() + ": " + failure.Detail
	}
	return fmt.Sprint(err)
}

// wantClass fails unless an error has a class, and text for a person.
func wantClass(t testing.TB, err error, class samlprotocol.Class, detail string) {
	t.Helper()
	var failure *samlprotocol.Error
	if !errors.As(err, &failure) {
		t.Fatalf("error %v, want %s", err, class)
	}
	if failure.Class != class || !strings.Contains(failure.Detail, detail) || failure.Error() == "" {
		t.Errorf("%s: %s, want %s: %s", failure.Class, failure.Detail, class, detail)
	}
}

// wantUnsupported fails unless an error has a status.
func wantUnsupported(t testing.TB, err error, status identityprovider.Status) {
	t.Helper()
	var failure *identityprovider.UnsupportedError
	if !errors.As(err, &failure) || failure.Status != status || failure.Detail == "" || failure.Error() == "" {
		t.Errorf("error %v, want the status %s", err, status)
	}
}

// requestXML returns a request, with attributes and members beside the required ones.
func requestXML(attributes, members string) string {
	return `<samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_r" Version="2.0" IssueInstant="2026-11-22T12:00:00Z" Destination="` + testSSO + `" ` + attributes + `><saml:Issuer>` + testSP + `</saml:Issuer>` + members + `</samlp:AuthnRequest>`
}

// readQuery reads a request of the redirect binding.
func readQuery(p *identityprovider.Provider, sp identityprovider.ServiceProvider, query string) (identityprovider.Request, error) {
	m, err := samlprotocol.ReadQuery(query)
	if err != nil {
		return identityprovider.Request{}, err
	}
	return p.ReadRequest(sp, m, samltest.Now)
}

// readForm reads a request of the POST binding.
func readForm(p *identityprovider.Provider, sp identityprovider.ServiceProvider, form url.Values) (identityprovider.Request, error) {
	m, err := samlprotocol.ReadForm(form)
	if err != nil {
		return identityprovider.Request{}, err
	}
	return p.ReadRequest(sp, m, samltest.Now)
}
