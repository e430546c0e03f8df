package serviceprovider

import (
	"crypto"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"stonetown/internal/samlprotocol/samltest"
)

const (
	testEntity = "https://sp.example.com/saml/sp/staff/metadata"
	testACS    = "https://sp.example.com/saml/sp/staff/acs"
	testSLO    = "https://sp.example.com/saml/sp/staff/slo"
	testIDP    = "https://idp.example.com/metadata"
	testSSOURL = "https://idp.example.com/sso"
	testSLOURL = "https://idp.example.com/slo"
)

var testNow = samltest.Now

var (
	idpKey   = sync.OnceValue(func() Key { return samltest.RSA(2048) })
	spKey    = sync.OnceValue(func() Key { return samltest.RSA(2048) })
	otherKey = sync.OnceValue(func() Key { return samltest.RSA(2048) })
)

func testProvider() *Provider {
	return &Provider{
		EntityID: testEntity, ACS: testACS, SLO: testSLO, Keys: []Key{spKey()},
		IdentityProvider: IdentityProvider{
			EntityID:     testIDP,
			SingleSignOn: []Service{{Binding: Redirect, Location: testSSOURL}},
			SingleLogout: []Service{{Binding: Redirect, Location: testSLOURL}},
			Certificates: [][]byte{idpKey().Certificate.Raw},
		},
	}
}

func testPending() *Pending {
	return &Pending{RequestID: "_request", RelayState: "relay", Provider: testIDP, Begun: testNow.Add(-time.Minute)}
}

// answer is a response of the test's identity provider. Zero members have good values; "-" omits
// an attribute or an element.
type answer struct {
	responseID, assertionID                               string
	destination, responseTo, responseIssuer, status       string
	issued, issuer, nameID, recipient, confirmTo          string
	confirmNotBefore, confirmEnd, notBefore, notOnOrAfter string
	audience, conditions, authn, attributes, subject      string

	signAssertion, signResponse Key
	method                      crypto.Hash
}

func at(d time.Duration) string { return testNow.Add(d).Format(time.RFC3339) }

func attr(name, value string) string {
	if value == "-" {
		return ""
	}
	return fmt.Sprintf(" %s=%q", name, value)
}

func or(value, standard string) string {
	if value == "" {
		return standard
	}
	return value
}

const success = `<samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>`

func (a answer) assertion() string {
	audience := ""
	if a.audience != "-" {
		audience = "<saml:AudienceRestriction><saml:Audience>" + or(a.audience, testEntity) + "</saml:Audience></saml:AudienceRestriction>"
	}
	subject := a.subject
	if subject == "" {
		subject = `<saml:Subject><saml:NameID Format="urn:oasis:names:tc:SAML:2.0:nameid-format:persistent">` + or(a.nameID, "ann") + `</saml:NameID>` +
			`<saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData` +
			attr("Recipient", or(a.recipient, testACS)) + attr("InResponseTo", or(a.confirmTo, "_request")) +
			attr("NotBefore", or(a.confirmNotBefore, "-")) + attr("NotOnOrAfter", or(a.confirmEnd, at(5*time.Minute))) +
			`/></saml:SubjectConfirmation></saml:Subject>`
	}
	authn := or(a.authn, `<saml:AuthnStatement AuthnInstant="`+at(-time.Minute)+`" SessionIndex="s1"><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>`)
	attributes := or(a.attributes, `<saml:AttributeStatement><saml:Attribute Name="mail"><saml:AttributeValue xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="xs:string">ann@example.com</saml:AttributeValue></saml:Attribute><saml:Attribute Name="groups"><saml:AttributeValue>staff</saml:AttributeValue><saml:AttributeValue>R&amp;D</saml:AttributeValue></saml:Attribute></saml:AttributeStatement>`)
	conditions := or(a.conditions, `<saml:Conditions`+attr("NotBefore", or(a.notBefore, at(-time.Minute)))+attr("NotOnOrAfter", or(a.notOnOrAfter, at(10*time.Minute)))+`>`+audience+`</saml:Conditions>`)
	return `<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"` + attr("ID", or(a.assertionID, "_assertion")) + ` Version="2.0"` + attr("IssueInstant", or(a.issued, at(0))) + `>` +
		`<saml:Issuer>` + or(a.issuer, testIDP) + `</saml:Issuer>` +
		strings.Trim(subject, "-") + strings.Trim(conditions, "-") + strings.Trim(authn, "-") + strings.Trim(attributes, "-") + `</saml:Assertion>`
}

// wrap returns the response with an assertion as it is given.
func (a answer) wrap(assertion string) string {
	issuer := ""
	if a.responseIssuer != "-" {
		issuer = `<saml:Issuer>` + or(a.responseIssuer, testIDP) + `</saml:Issuer>`
	}
	return `<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"` +
		attr("ID", or(a.responseID, "_response")) + ` Version="2.0"` + attr("IssueInstant", at(0)) +
		attr("Destination", or(a.destination, testACS)) + attr("InResponseTo", or(a.responseTo, "_request")) + `>` +
		issuer + or(a.status, success) + assertion + `</samlp:Response>`
}

// build returns the response, with its signatures.
func (a answer) build(t testing.TB) string {
	t.Helper()
	assertion := a.assertion()
	if a.signAssertion.Private != nil {
		assertion = sign(t, assertion, a.signAssertion, a.method)
	}
	response := a.wrap(assertion)
	if a.signResponse.Private != nil {
		response = sign(t, response, a.signResponse, a.method)
	}
	return response
}

// signed returns an answer with a signed assertion.
func signed(a answer) answer {
	a.signAssertion = idpKey()
	return a
}

// sign signs the root of a document, with a hash that RSA keys do not have by default, or 0.
func sign(t testing.TB, document string, key Key, hash crypto.Hash) string {
	t.Helper()
	if hash == 0 {
		return samltest.Sign(t, document, key)
	}
	root := tree(t, document)
	context, err := dsig.NewSigningContext(key.Private, [][]byte{key.Certificate.Raw})
	if err != nil {
		t.Fatal(err)
	}
	context.Hash = hash
	context.Canonicalizer = dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("")
	signature, err := context.ConstructSignature(root, true)
	if err != nil {
		t.Fatal(err)
	}
	root.InsertChildAt(root.ChildElements()[0].Index()+1, signature)
	return serialize(t, root)
}

func tree(t testing.TB, document string) *etree.Element {
	t.Helper()
	return samltest.Parse(t, document)
}

func serialize(t testing.TB, root *etree.Element) string {
	t.Helper()
	return samltest.Write(t, root)
}

func post(document string) url.Values {
	return url.Values{"SAMLResponse": {base64.StdEncoding.EncodeToString([]byte(document))}, "RelayState": {"relay"}}
}

// wantClass fails unless an error has a class, and text for a person.
func wantClass(t *testing.T, err error, class Class) *Error {
	t.Helper()
	var failure *Error
	if !errors.As(err, &failure) {
		t.Fatalf("error %v, want %s", err, class)
	}
	if failure.Class != class {
		t.Errorf("class %s (%s), want %s", failure.Class, failure.Detail, class)
	}
	if failure.Error() == "" || failure.Detail == "" {
		t.Errorf("the error has no text or no detail: %#v", failure)
	}
	return failure
}
