package serviceprovider

import (
	"bytes"
	"crypto"
	"crypto/elliptic"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	"github.com/google/go-cmp/cmp"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/samlprotocol/samltest"
)

// pysaml2 is an identity provider that runs testdata/identityprovider.py.
type pysaml2 struct{ *samltest.Peer }

// pysaml2Answer is the answer to an operation; each has some of the members.
type pysaml2Answer struct {
	Metadata   string
	Message    samltest.Message
	Name       string
	Sessions   []string
	OK         bool
	RelayState string `json:"relay_state"`
}

// do sends an operation, and returns its answer.
func (p *pysaml2) do(operation any) (answer pysaml2Answer) {
	p.Do(operation, &answer)
	return answer
}

// openPysaml2 starts an identity provider for a service provider, whose identity provider it
// becomes by its metadata.
func openPysaml2(t *testing.T, p *Provider) *pysaml2 {
	t.Helper()
	document, err := p.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	private, certificate := samltest.Files(t, samltest.NewKey(idpKey().Private, time.Now()))
	idp := &pysaml2{samltest.Start(t, samltest.Python(t), "testdata/identityprovider.py")}
	answer := idp.do(map[string]string{
		"entity": testIDP, "sso": testSSOURL, "slo": testSLOURL, "key": private, "certificate": certificate,
		"service_provider": samltest.File(t, "sp.xml", document), "service_provider_entity": testEntity, "service_provider_slo": testSLO,
	})
	metadata, err := ParseMetadata([]byte(answer.Metadata), time.Now())
	if err != nil {
		t.Fatalf("%v\n%s", err, answer.Metadata)
	}
	p.IdentityProvider = *metadata
	return idp
}

// Users of pysaml2 sign in and out, with both bindings, and with each form of signature and
// encryption.
func TestPysaml2(t *testing.T) {
	p := testProvider()
	p.Keys = []Key{samltest.NewKey(spKey().Private, time.Now())}
	p.NameIDFormat = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
	idp := openPysaml2(t, p)
	services := p.IdentityProvider
	if len(services.SingleSignOn) != 2 || len(services.SingleLogout) != 2 || len(services.Certificates) != 1 {
		t.Fatalf("%+v", services)
	}
	for _, binding := range []string{Redirect, Post} {
		p.IdentityProvider.SingleSignOn = only(services.SingleSignOn, binding)
		p.IdentityProvider.SingleLogout = only(services.SingleLogout, binding)
		var identity Identity
		for _, how := range []struct{ assertion, response, encrypt bool }{{true, false, false}, {false, true, false}, {true, true, false}, {true, false, true}, {true, true, true}} {
			message, pending, err := p.Begin(Request{ForceAuthn: true}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			answer := idp.do(map[string]any{
				"operation": "sign_in", "message": samltest.Message(message),
				"sign_assertion": how.assertion, "sign_response": how.response, "encrypt": how.encrypt,
			})
			if document, err := base64.StdEncoding.DecodeString(answer.Message.Form.Get("SAMLResponse")); err != nil || bytes.Contains(document, []byte("EncryptedData")) != how.encrypt {
				t.Fatalf("%s %v", document, err)
			}
			if identity, err = p.Finish(&pending, answer.Message.Form, time.Now()); err != nil {
				t.Fatalf("%+v: %s", how, err.(*Error).Detail)
			}
			want := Identity{
				Subject: NameID{Value: "ann", Format: p.NameIDFormat, NameQualifier: testIDP, SPNameQualifier: testEntity},
				Attributes: map[string]any{
					"urn:oid:0.9.2342.19200300.100.1.3": []string{"ann@example.com"}, "urn:oid:1.3.6.1.4.1.5923.1.1.1.7": []string{"staff", "R&D <ops>"},
				},
				SessionIndex: identity.SessionIndex, AuthnContext: "urn:oasis:names:tc:SAML:2.0:ac:classes:Password",
				AuthnInstant: identity.AuthnInstant, AssertionID: identity.AssertionID, NotOnOrAfter: identity.NotOnOrAfter,
			}
			if diff := cmp.Diff(want, identity); diff != "" || identity.SessionIndex == "" || identity.AssertionID == "" {
				t.Errorf("%+v: %s", how, diff)
			}
		}
		message, pending, err := p.Begin(Request{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		answer := idp.do(map[string]any{"operation": "refuse", "message": samltest.Message(message)})
		_, err = p.Finish(&pending, answer.Message.Form, time.Now())
		if e := wantClass(t, err, Denied); !strings.Contains(e.Detail, "the user canceled") {
			t.Error(e.Detail)
		}

		message, logout, err := p.BeginLogout(identity.Subject, identity.SessionIndex, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		answer = idp.do(map[string]any{"operation": "answer_logout", "message": samltest.Message(message)})
		if answer.Name != "ann" || !slices.Equal(answer.Sessions, []string{identity.SessionIndex}) {
			t.Error(answer)
		}
		response, err := p.read(t, Message(answer.Message), time.Now())
		if err != nil {
			t.Fatal(err.(*Error).Detail)
		}
		if complete, err := p.FinishLogout(logout, response); !complete || err != nil {
			t.Error(complete, err)
		}

		answer = idp.do(map[string]any{"operation": "begin_logout", "binding": binding, "subject": identity.Subject, "session": identity.SessionIndex})
		request, err := p.read(t, Message(answer.Message), time.Now())
		if err != nil {
			t.Fatal(err.(*Error).Detail)
		}
		if request.Request == nil || request.Request.Subject != identity.Subject || !slices.Equal(request.Request.SessionIndexes, []string{identity.SessionIndex}) {
			t.Errorf("%+v", request.Request)
		}
		message, err = p.AnswerLogout(*request.Request, request.RelayState, false, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		end := idp.do(map[string]any{"operation": "finish_logout", "message": samltest.Message(message)})
		if !end.OK || end.RelayState != "state" {
			t.Error(end)
		}
	}
}

func only(list []Service, binding string) []Service {
	return slices.DeleteFunc(slices.Clone(list), func(s Service) bool { return s.Binding != binding })
}

// peerKeys are keys of each kind, by the algorithm of their signatures.
func peerKeys() map[string]Key {
	now := time.Now()
	return map[string]Key{
		"rsa-sha256":   samltest.NewKey(idpKey().Private, now),
		"ecdsa-sha256": samltest.NewKey(samltest.ECDSA(elliptic.P256()).Private, now),
		"ecdsa-sha384": samltest.NewKey(samltest.ECDSA(elliptic.P384()).Private, now),
		"ecdsa-sha512": samltest.NewKey(samltest.ECDSA(elliptic.P521()).Private, now),
	}
}

// xmlsec1 verifies the signatures of requests.
func TestXMLSecVerifies(t *testing.T) {
	for method, key := range peerKeys() {
		t.Run(method, func(t *testing.T) {
			p := testProvider()
			p.Keys = []Key{key}
			p.IdentityProvider.SingleSignOn = []Service{{Binding: Post, Location: testSSOURL}}
			p.IdentityProvider.SingleLogout = []Service{{Binding: Post, Location: testSLOURL}}
			signIn, _, err := p.Begin(Request{AuthnContexts: []string{"urn:a"}}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			logout, _, err := p.BeginLogout(NameID{Value: "ann"}, "s1", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			answered, err := p.AnswerLogout(LogoutRequest{ID: "_r"}, "", true, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			_, certificate := samltest.Files(t, key)
			for name, encoded := range map[string]string{
				"AuthnRequest": signIn.Form.Get("SAMLRequest"), "LogoutRequest": logout.Form.Get("SAMLRequest"), "LogoutResponse": answered.Form.Get("SAMLResponse"),
			} {
				document, err := base64.StdEncoding.DecodeString(encoded)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Contains(document, []byte("xmldsig-more#"+method)) {
					t.Errorf("%s has another algorithm: %s", name, document)
				}
				samltest.XMLSec1(t, "--verify", "--pubkey-cert-pem", certificate, "--id-attr:ID", samlprotocol.ProtocolNS+":"+name, samltest.File(t, "message.xml", document))
			}
		})
	}
}

// xmlsec1 signs and encrypts assertions.
func TestXMLSecSigns(t *testing.T) {
	const template = `<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:SignedInfo><ds:CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/><ds:SignatureMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#METHOD"/>
		<ds:Reference URI="#_assertion"><ds:Transforms><ds:Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/><ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"><ec:InclusiveNamespaces xmlns:ec="http://www.w3.org/2001/10/xml-exc-c14n#" PrefixList="xs"/></ds:Transform></ds:Transforms><ds:DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/><ds:DigestValue/></ds:Reference></ds:SignedInfo><ds:SignatureValue/><ds:KeyInfo><ds:X509Data/></ds:KeyInfo></ds:Signature>`
	for method, key := range peerKeys() {
		t.Run(method, func(t *testing.T) {
			p := testProvider()
			p.IdentityProvider.Certificates = [][]byte{samltest.NewKey(key.Private, testNow).Certificate.Raw}
			unsigned := answer{}.wrap(strings.Replace(answer{}.assertion(), "</saml:Issuer>", "</saml:Issuer>"+strings.Replace(template, "METHOD", method, 1), 1))
			private, certificate := samltest.Files(t, key)
			document := samltest.XMLSec1(t, "--sign", "--privkey-pem", private+","+certificate, "--id-attr:ID", samlprotocol.AssertionNS+":Assertion", samltest.File(t, "response.xml", []byte(unsigned)))
			identity, err := p.Finish(testPending(), post(string(document)), testNow)
			if err != nil {
				t.Fatalf("%s\n%s", err.(*Error).Detail, document)
			}
			if identity.Subject.Value != "ann" {
				t.Error(identity)
			}
			root := tree(t, string(document))
			plain := samltest.File(t, "assertion.xml", []byte(asText(assertionOf(root))))
			for _, data := range []string{"http://www.w3.org/2009/xmlenc11#aes256-gcm", "http://www.w3.org/2001/04/xmlenc#aes256-cbc"} {
				x := encryption{data: data, key: oaepWithSHA1Mask, hash: crypto.SHA1, maskHash: crypto.SHA1}
				_, certificate := samltest.Files(t, samltest.NewKey(spKey().Private, time.Now()))
				encrypted := tree(t, x.element("", ""))
				empty := etree.NewDocument()
				empty.SetRoot(samlprotocol.Detach(encrypted.FindElement("xenc:EncryptedData")))
				text, err := empty.WriteToBytes()
				if err != nil {
					t.Fatal(err)
				}
				out := samltest.XMLSec1(t, "--encrypt", "--pubkey-cert-pem", certificate, "--session-key", "aes-256", "--xml-data", plain, samltest.File(t, "template.xml", text))
				response := answer{}.wrap("<saml:EncryptedAssertion>" + serialize(t, tree(t, string(out))) + "</saml:EncryptedAssertion>")
				if _, err := p.Finish(testPending(), post(response), testNow); err != nil {
					t.Errorf("%s: %s\n%s", data, err.(*Error).Detail, response)
				}
			}
		})
	}
}
