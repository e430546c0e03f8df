package serviceprovider

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/samlprotocol/samltest"
)

// wrappings are the attacks XSW 1 to 8 (Somorovsky et al., "On Breaking SAML: Be Whoever You Want
// to Be", 2012, as numbered by SAML Raider), made of a response with a valid signature.
var wrappings = map[string]struct {
	response bool // the response is signed, not the assertion
	attack   func(t *testing.T, root *etree.Element)
}{
	"XSW1: response in the signature of a changed response": {true, func(_ *testing.T, root *etree.Element) {
		original := withoutSignature(root)
		rename(root, "_evil")
		signatureOf(root).AddChild(original)
	}},
	"XSW2: response beside the signature of a changed response": {true, func(_ *testing.T, root *etree.Element) {
		original := withoutSignature(root)
		rename(root, "_evil")
		root.InsertChildAt(signatureOf(root).Index(), original)
	}},
	"XSW3: changed assertion before the signed one": {false, func(_ *testing.T, root *etree.Element) {
		a := assertionOf(root)
		evil := withoutSignature(a)
		rename(evil, "_evil")
		root.InsertChildAt(a.Index(), evil)
	}},
	"XSW4: signed assertion in a changed one": {false, func(_ *testing.T, root *etree.Element) {
		a := assertionOf(root)
		evil := withoutSignature(a)
		rename(evil, "_evil")
		root.InsertChildAt(a.Index(), evil)
		evil.AddChild(a)
	}},
	"XSW5: original assertion after the changed one with its signature": {false, func(_ *testing.T, root *etree.Element) {
		a := assertionOf(root)
		original := withoutSignature(a)
		rename(a, "_evil")
		root.AddChild(original)
	}},
	"XSW6: original assertion in the signature of the changed one": {false, func(_ *testing.T, root *etree.Element) {
		a := assertionOf(root)
		original := withoutSignature(a)
		rename(a, "_evil")
		signatureOf(a).AddChild(original)
	}},
	"XSW7: changed assertion in Extensions": {false, func(_ *testing.T, root *etree.Element) {
		a := assertionOf(root)
		evil := withoutSignature(a)
		rename(evil, "_evil")
		extensions := etree.NewElement("samlp:Extensions")
		extensions.AddChild(evil)
		root.InsertChildAt(a.Index(), extensions)
	}},
	"XSW8: original assertion in an Object of the signature of the changed one": {false, func(_ *testing.T, root *etree.Element) {
		a := assertionOf(root)
		original := withoutSignature(a)
		rename(a, "_evil")
		signatureOf(a).CreateElement("ds:Object").AddChild(original)
	}},
	"changed assertion with the same ID before the signed one": {false, func(_ *testing.T, root *etree.Element) {
		a := assertionOf(root)
		evil := withoutSignature(a)
		rename(evil, "_assertion")
		root.InsertChildAt(a.Index(), evil)
	}},
	"changed assertion encrypted beside the signed one": {false, func(t *testing.T, root *etree.Element) {
		evil := withoutSignature(assertionOf(root))
		rename(evil, "_evil")
		root.AddChild(tree(t, encrypt(spKey(), asText(evil))))
	}},
	"changed assertion, and the response is in Advice": {true, func(t *testing.T, root *etree.Element) {
		original := withoutSignature(root)
		rename(root, "_evil")
		assertionOf(root).CreateElement("saml:Advice").AddChild(original)
	}},
}

func asText(e *etree.Element) string {
	out, err := samlprotocol.Write(samlprotocol.Detach(e))
	if err != nil {
		panic(err)
	}
	return string(out)
}

func assertionOf(root *etree.Element) *etree.Element {
	return samlprotocol.Children(root, samlprotocol.AssertionName)[0]
}

func signatureOf(e *etree.Element) *etree.Element {
	return samlprotocol.Children(e, samlprotocol.SignatureName)[0]
}

func withoutSignature(e *etree.Element) *etree.Element {
	c := samlprotocol.Detach(e)
	c.RemoveChild(signatureOf(c))
	return c
}

// rename gives an element another ID, and the assertion in it another user.
func rename(e *etree.Element, id string) {
	e.CreateAttr("ID", id)
	e.FindElement(".//saml:NameID").SetText("mallory")
}

func TestSignatureWrapping(t *testing.T) {
	for name, w := range wrappings {
		t.Run(name, func(t *testing.T) {
			a := answer{signAssertion: idpKey()}
			if w.response {
				a = answer{signResponse: idpKey()}
			}
			original := a.build(t)
			if identity, err := testProvider().Finish(testPending(), post(original), testNow); err != nil || identity.Subject.Value != "ann" {
				t.Fatal(identity, err)
			}
			root := tree(t, original)
			w.attack(t, root)
			document := serialize(t, root)
			if !strings.Contains(document, "mallory") && !strings.Contains(document, "EncryptedAssertion") {
				t.Fatal("the attack changed nothing")
			}
			_, err := testProvider().Finish(testPending(), post(document), testNow)
			wantClass(t, err, Invalid)
			checkSecondBarrier(t, document)
		})
	}
}

// checkSecondBarrier verifies all elements without the limits of the structure: bytes that are
// returned as signed contain no data of the attacker.
func checkSecondBarrier(t *testing.T, document string) {
	t.Helper()
	certificates := []*x509.Certificate{idpKey().Certificate}
	doc := etree.NewDocument()
	if err := doc.ReadFromString(document); err != nil {
		t.Fatal(err)
	}
	verified := 0
	for _, e := range doc.FindElements("//*[@ID]") {
		covered, err := samlprotocol.Verify(e, certificates, testNow)
		if err == nil {
			verified++
		}
		if strings.Contains(string(covered), "mallory") {
			t.Errorf("verified: %s", covered)
		}
	}
	t.Logf("%d elements have a valid signature", verified)
}

// Changes of a signed response that no signature covers, or that need other algorithms.
func TestAttacks(t *testing.T) {
	good := signed(answer{nameID: "admin@example.com.evil.com"}).build(t)
	evil := func() string { return answer{nameID: "mallory"}.assertion() }
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the response does not contain %s", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	signature := asText(signatureOf(assertionOf(tree(t, good))))
	for name, tc := range map[string]struct{ document, detail string }{
		"comment truncation":                  {replace("admin@example.com.evil.com", "admin@example.com<!-- -->.evil.com"), "comment"},
		"comment elsewhere":                   {replace("<samlp:Status>", "<!-- --><samlp:Status>"), "comment"},
		"changed name":                        {replace("admin@example.com.evil.com", "admin@example.com"), "signature"},
		"changed attribute":                   {replace(">staff<", ">admins<"), "signature"},
		"unsigned":                            {answer{}.build(t), "signed"},
		"signature of another response":       {answer{}.wrap(strings.Replace(evil(), "</saml:Issuer>", "</saml:Issuer>"+signature, 1)), "signature"},
		"empty signature":                     {answer{}.wrap(strings.Replace(evil(), "</saml:Issuer>", `</saml:Issuer><ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"/>`, 1)), "SignedInfo"},
		"two assertions":                      {answer{}.wrap(sign(t, answer{}.assertion(), idpKey(), 0) + sign(t, answer{assertionID: "_second"}.assertion(), idpKey(), 0)), "several assertions"},
		"two assertions in a signed response": {answer{}.wrapSigned(t, answer{}.assertion()+answer{assertionID: "_second"}.assertion()), "several assertions"},
		"no assertion":                        {answer{}.wrapSigned(t, ""), "one assertion"},
		"own key":                             {answer{signAssertion: otherKey()}.build(t), "certificate"},
		"key of this service provider":        {answer{signAssertion: spKey()}.build(t), "certificate"},
		"response signed by another":          {answer{signAssertion: idpKey(), signResponse: otherKey()}.build(t), "certificate"},
		"SHA-1":                               {answer{signAssertion: idpKey(), method: crypto.SHA1}.build(t), "algorithm"},
		"SHA-1 digest": {resign(t, idpKey(), func(info *etree.Element) {
			info.FindElement(".//ds:DigestMethod").CreateAttr("Algorithm", "http://www.w3.org/2000/09/xmldsig#sha1")
		}), "algorithm"},
		"HMAC with the public key": {hmacSigned(t), "algorithm"},
		"no algorithm":             {replace(dsig.RSASHA256SignatureMethod, ""), "algorithm"},
		"other algorithm":          {replace(dsig.RSASHA256SignatureMethod, dsig.ECDSASHA256SignatureMethod), "certificate"},
		"two references": {resign(t, idpKey(), func(info *etree.Element) {
			info.AddChild(info.FindElement("ds:Reference").Copy())
		}), "Reference"},
		"no reference":        {resign(t, idpKey(), func(info *etree.Element) { info.RemoveChild(info.FindElement("ds:Reference")) }), "Reference"},
		"reference to all":    {resign(t, idpKey(), func(info *etree.Element) { info.FindElement("ds:Reference").CreateAttr("URI", "") }), "another element"},
		"reference to a part": {resign(t, idpKey(), func(info *etree.Element) { info.FindElement("ds:Reference").CreateAttr("URI", "#_x") }), "another element"},
		"reference by a pointer": {resign(t, idpKey(), func(info *etree.Element) {
			info.FindElement("ds:Reference").CreateAttr("URI", "#xpointer(id('_assertion'))")
		}), "another element"},
		"transform": {resign(t, idpKey(), func(info *etree.Element) {
			info.FindElement(".//ds:Transforms").CreateElement("ds:Transform").CreateAttr("Algorithm", "http://www.w3.org/TR/1999/REC-xslt-19991116")
		}), "transforms"},
		"XPath transform": {resign(t, idpKey(), func(info *etree.Element) {
			info.FindElements(".//ds:Transform")[1].CreateAttr("Algorithm", "http://www.w3.org/TR/1999/REC-xpath-19991116")
		}), "transforms"},
		"with comments": {resign(t, idpKey(), func(info *etree.Element) {
			info.FindElements(".//ds:Transform")[1].CreateAttr("Algorithm", "http://www.w3.org/2001/10/xml-exc-c14n#WithComments")
		}), "transforms"},
		"no DigestMethod":           {resign(t, idpKey(), func(info *etree.Element) { drop(info.FindElement("ds:Reference/ds:DigestMethod")) }), "misses one"},
		"no DigestValue":            {resign(t, idpKey(), func(info *etree.Element) { drop(info.FindElement("ds:Reference/ds:DigestValue")) }), "misses one"},
		"no Transforms":             {resign(t, idpKey(), func(info *etree.Element) { drop(info.FindElement("ds:Reference/ds:Transforms")) }), "misses one"},
		"no SignatureMethod":        {resign(t, idpKey(), func(info *etree.Element) { drop(info.FindElement("ds:SignatureMethod")) }), "misses one"},
		"no CanonicalizationMethod": {resign(t, idpKey(), func(info *etree.Element) { drop(info.FindElement("ds:CanonicalizationMethod")) }), "misses one"},
		"two digests": {resign(t, idpKey(), func(info *etree.Element) {
			info.FindElement("ds:Reference").CreateElement("ds:DigestValue").SetText("AAAA")
		}), "element twice"},
		"another member": {resign(t, idpKey(), func(info *etree.Element) { info.CreateElement("ds:Manifest") }), "element twice"},
		"inclusive canonicalization": {resign(t, idpKey(), func(info *etree.Element) {
			info.FindElement("ds:CanonicalizationMethod").CreateAttr("Algorithm", "http://www.w3.org/TR/2001/REC-xml-c14n-20010315")
		}), "transforms"},
		"Object":                         {replace("</ds:SignatureValue>", "</ds:SignatureValue><ds:Object/>"), "excludes"},
		"foreign SignatureValue":         {replace("<ds:SignatureValue>", `<x:SignatureValue xmlns:x="urn:x">AAAA</x:SignatureValue><ds:SignatureValue>`), "excludes"},
		"two SignedInfo":                 {strings.Replace(good, "<ds:SignedInfo>", "<ds:SignedInfo/><ds:SignedInfo>", 1), "SignedInfo"},
		"two signatures":                 {replace("</ds:Signature>", "</ds:Signature>"+signature), "signatures"},
		"document type":                  {`<!DOCTYPE x>` + good, "document type"},
		"entity":                         {`<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>` + replace("staff", "&e;"), "document type"},
		"entity without a declaration":   {replace("staff", "&e;"), "well-formed"},
		"billion laughs":                 {`<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>` + replace("staff", "&b;"), "document type"},
		"two IDs":                        {replace(`ID="_assertion"`, `ID="_assertion" Id="_x"`), "two attributes"},
		"ID with a prefix":               {replace(`ID="_assertion"`, `ID="_assertion" xmlns:x="urn:x" x:ID="_x"`), "two attributes"},
		"ID as a namespace":              {replace(`ID="_assertion"`, `xmlns:ID="_assertion" ID="_x"`), "two attributes"},
		"attribute twice":                {replace(`InResponseTo="_request"`, `InResponseTo="_request" InResponseTo="_request"`), "two attributes"},
		"ID twice":                       {replace(`ID="_response"`, `ID="_assertion"`), "ID twice"},
		"deep":                           {replace("<samlp:Status>", strings.Repeat("<a>", 40)+strings.Repeat("</a>", 40)+"<samlp:Status>"), "deep"},
		"wide":                           {replace("<samlp:Status>", strings.Repeat("<a/>", 10_001)+"<samlp:Status>"), "too many"},
		"many attributes":                {replace("<samlp:Status>", "<a"+manyAttributes()+"/><samlp:Status>"), "too many"},
		"large":                          {replace("<samlp:Status>", "<a>"+strings.Repeat("x", MaxDocument)+"</a><samlp:Status>"), "too large"},
		"text after the root":            {good + "x", "outside"},
		"two roots":                      {good + good, "two roots"},
		"two small roots":                {"<a/><b/>", "two roots"},
		"an assertion only":              {sign(t, answer{}.assertion(), idpKey(), 0), "not a Response"},
		"a response of SAML 1":           {strings.ReplaceAll(good, samlprotocol.ProtocolNS, "urn:oasis:names:tc:SAML:1.0:protocol"), "not a Response"},
		"not XML":                        {"<", "well-formed"},
		"not UTF-8":                      {replace("staff", "\xff"), "UTF-8"},
		"UTF-7":                          {`<?xml version="1.0" encoding="UTF-7"?>` + good, "well-formed"},
		"name with two colons":           {replace("<samlp:Status>", "<a:b:c/><samlp:Status>"), "XML"},
		"attribute with an empty prefix": {replace("<samlp:Status>", `<a :ID="_x"/><samlp:Status>`), "invalid name"},
		"attribute in no namespace":      {replace(`ID="_assertion"`, `ID="_assertion" :x="_x"`), "invalid name"},
		"name that is a colon":           {replace("<samlp:Status>", "<:/><samlp:Status>"), "invalid name"},
		"not an assertion":               {answer{}.wrapSigned(t, `<x:Assertion xmlns:x="urn:x"/>`), "one assertion"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testProvider().Finish(testPending(), post(tc.document), testNow)
			e := wantClass(t, err, Invalid)
			if !strings.Contains(e.Detail, tc.detail) {
				t.Errorf("detail %q, want %q", e.Detail, tc.detail)
			}
		})
	}
}

func drop(e *etree.Element) { e.Parent().RemoveChild(e) }

func manyAttributes() string {
	var b strings.Builder
	for i := range 33 {
		b.WriteString(" a" + strings.Repeat("b", i) + `=""`)
	}
	return b.String()
}

// wrapSigned returns a signed response around an assertion.
func (a answer) wrapSigned(t *testing.T, assertion string) string {
	return sign(t, a.wrap(assertion), idpKey(), 0)
}

// resign signs an assertion, changes SignedInfo, and signs this again, as an identity provider that
// makes such signatures.
func resign(t *testing.T, key Key, change func(info *etree.Element)) string {
	t.Helper()
	root := tree(t, signed(answer{}).build(t))
	signature := signatureOf(assertionOf(root))
	info := signature.FindElement("ds:SignedInfo")
	change(info)
	context, err := dsig.NewSigningContext(key.Private, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := context.SignString(string(canonical(t, info)))
	if err != nil {
		t.Fatal(err)
	}
	signature.FindElement("ds:SignatureValue").SetText(base64.StdEncoding.EncodeToString(raw))
	return serialize(t, root)
}

func canonical(t *testing.T, e *etree.Element) []byte {
	t.Helper()
	out, err := dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("").Canonicalize(samlprotocol.Detach(e))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Signing again makes valid signatures: what is refused above is refused for its form.
func TestResign(t *testing.T) {
	document := resign(t, idpKey(), func(*etree.Element) {})
	if _, err := testProvider().Finish(testPending(), post(document), testNow); err != nil {
		t.Fatal(err.(*Error).Detail)
	}
}

// hmacSigned returns a response whose signature is an HMAC with the certificate as its key.
func hmacSigned(t *testing.T) string {
	t.Helper()
	root := tree(t, signed(answer{nameID: "mallory"}).build(t))
	signature := signatureOf(assertionOf(root))
	info := signature.FindElement("ds:SignedInfo")
	info.FindElement("ds:SignatureMethod").CreateAttr("Algorithm", "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256")
	der, err := x509.MarshalPKIXPublicKey(idpKey().Certificate.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	mac.Write(canonical(t, info))
	signature.FindElement("ds:SignatureValue").SetText(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return serialize(t, root)
}

// A signature with two references was verified by one, while another one was read (CVE-2026-33487).
// The first reference is that of another element.
func TestReferenceSwap(t *testing.T) {
	document := resign(t, idpKey(), func(info *etree.Element) {
		second := info.FindElement("ds:Reference").Copy()
		info.FindElement("ds:Reference").CreateAttr("URI", "#other")
		info.AddChild(second)
	})
	_, err := testProvider().Finish(testPending(), post(document), testNow)
	wantClass(t, err, Invalid)
}

// A small key is refused even if the metadata was stored before it was refused there.
func TestSmallKey(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	key := samltest.NewKey(private, testNow)
	p := testProvider()
	p.IdentityProvider.Certificates = [][]byte{key.Certificate.Raw}
	_, err = p.Finish(testPending(), post(answer{signAssertion: key}.build(t)), testNow)
	wantClass(t, err, Invalid)
}

// An expired certificate is a problem of the configuration, and its signature is not accepted.
func TestExpiredCertificate(t *testing.T) {
	form := post(answer{signResponse: idpKey()}.build(t))
	for _, now := range []time.Time{idpKey().Certificate.NotAfter.Add(time.Second), idpKey().Certificate.NotBefore.Add(-time.Second)} {
		_, err := testProvider().Finish(testPending(), form, now)
		wantClass(t, err, Misconfigured)
	}
	p := testProvider()
	p.IdentityProvider.Certificates = [][]byte{[]byte("x")}
	_, err := p.Finish(testPending(), form, testNow)
	wantClass(t, err, Misconfigured)
}
