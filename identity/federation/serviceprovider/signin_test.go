package serviceprovider

import (
	"crypto"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/crewjam/saml"
	"github.com/google/go-cmp/cmp"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/samlprotocol/samltest"
)

func TestBegin(t *testing.T) {
	p := testProvider()
	p.NameIDFormat = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
	p.IdentityProvider.SingleSignOn = []Service{{Binding: Post, Location: "https://idp.example.com/post"}, {Binding: Redirect, Location: testSSOURL + "?tenant=1"}}
	message, pending, err := p.Begin(Request{ForceAuthn: true, Passive: true, AuthnContexts: []string{"urn:a", "urn:b"}}, testNow)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Pending{RequestID: pending.RequestID, RelayState: pending.RelayState, Provider: testIDP, Begun: testNow, ForceAuthn: true, AuthnContexts: []string{"urn:a", "urn:b"}}, pending); diff != "" {
		t.Error(diff)
	}
	if len(pending.RelayState) < 22 || len(pending.RelayState) > 80 || len(pending.RequestID) < 23 {
		t.Errorf("%+v", pending)
	}
	u, err := url.Parse(message.URL)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	if message.Form != nil || !strings.HasPrefix(message.URL, testSSOURL+"?tenant=1&SAMLRequest=") || query.Get("RelayState") != pending.RelayState {
		t.Error(message)
	}
	received, err := samlprotocol.ReadQuery(u.RawQuery)
	if err != nil {
		t.Fatal(err)
	}
	document, err := received.Document()
	if err != nil {
		t.Fatal(err)
	}
	var request saml.AuthnRequest
	if err := xml.Unmarshal(document, &request); err != nil {
		t.Fatal(err)
	}
	if request.ID != pending.RequestID || request.Destination != testSSOURL+"?tenant=1" || request.Issuer.Value != testEntity ||
		request.AssertionConsumerServiceURL != testACS || request.ProtocolBinding != Post || !*request.ForceAuthn || !*request.IsPassive ||
		*request.NameIDPolicy.Format != p.NameIDFormat || !request.IssueInstant.Equal(testNow) {
		t.Errorf("%s", document)
	}
	if contexts := samlprotocol.Children(tree(t, string(document)), xml.Name{Space: samlprotocol.ProtocolNS, Local: "RequestedAuthnContext"}); len(contexts) != 1 || len(contexts[0].ChildElements()) != 2 {
		t.Errorf("%s", document)
	}
	// The signature covers the parameters only, not the query of the service's URL.
	signed, signature, _ := strings.Cut(strings.TrimPrefix(message.URL, testSSOURL+"?tenant=1&"), "&Signature=")
	signature, err = url.QueryUnescape(signature)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err == nil {
		err = spKey().Certificate.CheckSignature(x509.SHA256WithRSA, []byte(signed), raw)
	}
	if err != nil {
		t.Error(err)
	}
	other, again, err := p.Begin(Request{}, testNow)
	if err != nil || again.RequestID == pending.RequestID || again.RelayState == pending.RelayState || other.URL == message.URL {
		t.Error("two sign-ins have the same values")
	}
}

func TestBeginByPost(t *testing.T) {
	for _, key := range []Key{spKey(), samltest.ECDSA(elliptic.P256()), samltest.ECDSA(elliptic.P384()), samltest.ECDSA(elliptic.P521())} {
		p := testProvider()
		p.Keys = []Key{key}
		p.IdentityProvider.SingleSignOn = []Service{{Binding: Post, Location: testSSOURL}}
		message, pending, err := p.Begin(Request{}, testNow)
		if err != nil {
			t.Fatal(err)
		}
		if message.URL != testSSOURL || message.Form.Get("RelayState") != pending.RelayState {
			t.Error(message)
		}
		document, err := base64.StdEncoding.DecodeString(message.Form.Get("SAMLRequest"))
		if err != nil {
			t.Fatal(err)
		}
		root, err := samlprotocol.Parse(document, xml.Name{Space: samlprotocol.ProtocolNS, Local: "AuthnRequest"})
		if err != nil {
			t.Fatal(err)
		}
		if root.ChildElements()[1] != signatureOf(root) { // the schema has it after Issuer
			t.Errorf("%s", document)
		}
		if _, err := samlprotocol.Verify(root, []*x509.Certificate{key.Certificate}, testNow); err != nil {
			t.Error(err)
		}
	}
}

func TestBeginWithoutKey(t *testing.T) {
	p := testProvider()
	p.Keys = nil
	message, _, err := p.Begin(Request{}, testNow)
	if err != nil || strings.Contains(message.URL, "Signature") {
		t.Error(message, err)
	}
	p.IdentityProvider.SingleSignOn[0].Binding = Post
	message, _, err = p.Begin(Request{}, testNow)
	if err != nil || !message.Form.Has("SAMLRequest") {
		t.Error(message, err)
	}
	p.IdentityProvider.WantRequestsSigned = true
	_, _, err = p.Begin(Request{}, testNow)
	wantClass(t, err, Misconfigured)
	p = testProvider()
	p.IdentityProvider.SingleSignOn = nil
	_, _, err = p.Begin(Request{}, testNow)
	wantClass(t, err, Misconfigured)
	if !p.CanLogout() {
		t.Error("logout requires more than a key, a URL and a service")
	}
	p.ACS = ""
	_, _, err = p.Begin(Request{}, testNow)
	wantClass(t, err, Misconfigured)
}

// The metadata of the service provider has all keys, and another library reads it.
func TestMetadata(t *testing.T) {
	p := testProvider()
	next := samltest.ECDSA(elliptic.P256())
	p.Keys = append(p.Keys, next)
	p.NameIDFormat = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
	document, err := p.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	var e saml.EntityDescriptor
	if err := xml.Unmarshal(document, &e); err != nil {
		t.Fatal(err)
	}
	sp := e.SPSSODescriptors[0]
	if e.EntityID != testEntity || !*sp.AuthnRequestsSigned || !*sp.WantAssertionsSigned || sp.AssertionConsumerServices[0].Location != testACS ||
		sp.AssertionConsumerServices[0].Binding != Post || len(sp.SingleLogoutServices) != 2 || sp.SingleLogoutServices[0].Location != testSLO {
		t.Errorf("%s", document)
	}
	var uses []string
	for _, key := range sp.KeyDescriptors {
		certificate := spKey().Certificate
		if len(uses) == 2 {
			certificate = next.Certificate
		}
		if key.KeyInfo.X509Data.X509Certificates[0].Data != base64.StdEncoding.EncodeToString(certificate.Raw) {
			t.Error("another certificate")
		}
		uses = append(uses, key.Use)
	}
	if !slices.Equal(uses, []string{"signing", "encryption", "signing"}) {
		t.Error(uses)
	}
	p.Keys, p.SLO = nil, ""
	if document, err = p.Metadata(); err != nil || strings.Contains(string(document), "Key") || strings.Contains(string(document), "Logout") || !strings.Contains(string(document), `AuthnRequestsSigned="false"`) {
		t.Errorf("%s %v", document, err)
	}
	p.EntityID = ""
	_, err = p.Metadata()
	wantClass(t, err, Misconfigured)
}

// brokenSigner is a key that cannot sign, such as one of a module that is not reachable.
type brokenSigner struct{ crypto.Signer }

func (brokenSigner) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("no signature")
}

func TestBrokenKey(t *testing.T) {
	for _, binding := range []string{Redirect, Post} {
		p := testProvider()
		p.IdentityProvider.SingleSignOn[0].Binding = binding
		p.Keys[0].Private = brokenSigner{spKey().Private}
		message, _, err := p.Begin(Request{}, testNow)
		if wantClass(t, err, Misconfigured); message.URL != "" {
			t.Error(message)
		}
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil || public == nil {
		t.Fatal(err)
	}
	p := testProvider()
	p.Keys[0].Private = private // no algorithm of XML signatures
	_, _, err = p.Begin(Request{}, testNow)
	wantClass(t, err, Misconfigured)
}
