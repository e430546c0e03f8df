package samlprotocol_test

import (
	"crypto/elliptic"
	"crypto/x509"
	"encoding/xml"
	"net/url"
	"strings"
	"testing"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/samlprotocol/samltest"
)

// The tests of serviceprovider and of oauth/saml/identityprovider attack messages. Those here are of
// the parts that no message shows.

func TestInspect(t *testing.T) {
	root, err := samlprotocol.Inspect([]byte(`<?xml version="1.0"?><a:b xmlns:a="urn:a" ID="1"> text <!-- --></a:b> `), true)
	if err != nil || root != (xml.Name{Space: "urn:a", Local: "b"}) {
		t.Error(root, err)
	}
	for _, document := range []string{"", " ", "<a/><?xml version='1.0'?>", "<a><b></a></b>", "<a>"} {
		if _, err := samlprotocol.Inspect([]byte(document), true); err == nil {
			t.Errorf("%q is accepted", document)
		}
	}
}

// The algorithm of a signature is that of the key and its size, with both bindings, and its own
// certificate verifies it.
func TestSigningMethods(t *testing.T) {
	name := xml.Name{Space: samlprotocol.ProtocolNS, Local: "LogoutRequest"}
	for want, key := range map[string]samlprotocol.Key{
		dsig.RSASHA256SignatureMethod: samltest.RSA(2048), dsig.ECDSASHA256SignatureMethod: samltest.ECDSA(elliptic.P256()),
		dsig.ECDSASHA384SignatureMethod: samltest.ECDSA(elliptic.P384()), dsig.ECDSASHA512SignatureMethod: samltest.ECDSA(elliptic.P521()),
	} {
		message := func(binding string) samlprotocol.Received {
			document := etree.NewElement("samlp:LogoutRequest")
			document.CreateAttr("xmlns:samlp", samlprotocol.ProtocolNS)
			document.CreateAttr("ID", samlprotocol.NewID())
			document.CreateElement("samlp:Issuer").SetText("x")
			m, err := samlprotocol.Outgoing{Binding: binding, To: "https://x", Document: document, Key: &key}.Message()
			if err != nil {
				t.Fatal(err)
			}
			received, err := samlprotocol.ReadForm(m.Form)
			if binding == samlprotocol.Redirect {
				_, query, _ := strings.Cut(m.URL, "?")
				if !strings.Contains(query, url.QueryEscape(want)) {
					t.Errorf("%s has another algorithm than %s", query, want)
				}
				received, err = samlprotocol.ReadQuery(query)
			}
			if err != nil {
				t.Fatal(err)
			}
			return received
		}
		for _, binding := range []string{samlprotocol.Redirect, samlprotocol.Post} {
			m := message(binding)
			if document, signed, err := m.Open(name, []*x509.Certificate{key.Certificate}, samltest.Now); !signed || err != nil || len(document) == 0 {
				t.Errorf("%s: %v, %v", want, signed, err)
			}
			if _, signed, err := m.Open(name, nil, samltest.Now); signed || err != nil {
				t.Errorf("%s without certificates: %v, %v", want, signed, err)
			}
			other := samltest.ECDSA(elliptic.P256())
			if _, signed, err := m.Open(name, []*x509.Certificate{other.Certificate}, samltest.Now); signed || err == nil {
				t.Errorf("%s with another certificate: %v, %v", want, signed, err)
			}
		}
	}
}

// An element is signed with the declarations of namespaces of its ancestors, and is not changed but
// for the signature, although a canonical form has no declarations that only values need.
func TestSignInPlace(t *testing.T) {
	key := samltest.RSA(2048)
	root := samltest.Parse(t, `<a:root xmlns:a="urn:a" xmlns:b="urn:b"><b:child ID="_1"><a:Issuer/><b:value xmlns:xs="urn:xs" a:type="xs:string">&#xD;</b:value></b:child></a:root>`)
	child := root.ChildElements()[0]
	if err := samlprotocol.Sign(child, key); err != nil {
		t.Fatal(err)
	}
	document := samltest.Write(t, root)
	if !strings.Contains(document, `<b:child ID="_1"><a:Issuer/><ds:Signature `) || !strings.Contains(document, `<b:value xmlns:xs="urn:xs" a:type="xs:string">&#xD;</b:value>`) {
		t.Error(document)
	}
	covered, err := samlprotocol.Verify(samltest.Parse(t, document).ChildElements()[0], []*x509.Certificate{key.Certificate}, samltest.Now)
	if err != nil || !strings.Contains(string(covered), "&#xD;") {
		t.Errorf("%s %v", covered, err)
	}
}
