package serviceprovider

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"

	dsig "github.com/russellhaering/goxmldsig"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/samlprotocol/samltest"
)

// signedXML are the documents that fuzz targets begin with.
func signedXML(t testing.TB) []string {
	var list []string
	for _, a := range []answer{{signAssertion: idpKey()}, {signResponse: idpKey()}, {signAssertion: idpKey(), signResponse: idpKey()}, {}} {
		list = append(list, a.build(t))
	}
	return append(list, answer{}.wrap(encrypt(spKey(), sign(t, answer{}.assertion(), idpKey(), 0))))
}

// No change of a response gives another user: what is accepted is that of the identity provider.
func FuzzResponse(f *testing.F) {
	for _, document := range signedXML(f) {
		f.Add(document)
		root := tree(f, document)
		if list := samlprotocol.Children(root, samlprotocol.AssertionName); len(list) == 1 && len(samlprotocol.Children(list[0], samlprotocol.SignatureName)) == 1 {
			evil := withoutSignature(list[0])
			rename(evil, "_evil")
			root.InsertChildAt(list[0].Index(), evil)
			f.Add(serialize(f, root))
		}
	}
	f.Fuzz(func(t *testing.T, document string) {
		identity, err := testProvider().Finish(testPending(), post(document), testNow)
		if err != nil {
			checkError(t, err)
			return
		}
		if identity.Subject.Value != "ann" || identity.AssertionID != "_assertion" {
			t.Errorf("%+v", identity)
		}
	})
}

// checkError fails unless an error has the package's type and a text for a person.
func checkError(t *testing.T, err error) {
	t.Helper()
	var failure *Error
	if !errors.As(err, &failure) || failure.Error() == "" || strings.ContainsAny(failure.Detail, "\n\x00") {
		t.Errorf("%#v", err)
	}
}

// An assertion that was signed by the identity provider, with any content, gives an identity within
// the limits or an error.
func FuzzAssertion(f *testing.F) {
	f.Add(answer{}.assertion())
	f.Fuzz(func(t *testing.T, document string) {
		a, err := readAssertion([]byte(document))
		if err != nil {
			checkError(t, err)
			return
		}
		identity, err := testProvider().accept(a, "_request", testNow)
		if err != nil {
			checkError(t, err)
			return
		}
		if identity.Subject.Value == "" || len(identity.Subject.Value) > samlprotocol.MaxText || identity.AssertionID == "" || !identity.NotOnOrAfter.After(testNow) || identity.AuthnInstant.IsZero() {
			t.Errorf("%+v", identity)
		}
	})
}

func FuzzDecrypt(f *testing.F) {
	f.Add(encrypt(spKey(), "<a/>"))
	x := cbc()
	f.Add(x.encrypt(spKey(), "<a/>"))
	f.Fuzz(func(t *testing.T, document string) {
		root, err := samlprotocol.Inspect([]byte(document), false)
		if err != nil || root != samlprotocol.EncryptedAssertionName {
			return
		}
		if _, err := samlprotocol.Decrypt(tree(t, document), []Key{spKey()}); err != nil {
			checkError(t, err)
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add(entity(`entityID="https://idp.example.com"`, goodDescriptor()))
	f.Add(`<EntitiesDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata">` + entity(`entityID="x" validUntil="2027-01-01T00:00:00Z"`, goodDescriptor()) + `</EntitiesDescriptor>`)
	f.Fuzz(func(t *testing.T, document string) {
		p, err := ParseMetadata([]byte(document), testNow)
		if err != nil {
			return
		}
		if p.EntityID == "" || len(p.SingleSignOn) == 0 || len(p.Certificates) == 0 {
			t.Errorf("%+v", p)
		}
		for _, s := range append(p.SingleSignOn, p.SingleLogout...) {
			for _, location := range []string{s.Location, s.ResponseLocation} {
				if u, err := url.Parse(location); err != nil || location != "" && u.Scheme != "https" && u.Scheme != "http" {
					t.Errorf("%q", location)
				}
			}
		}
		if _, err := p.Describe(); err != nil {
			t.Error(err)
		}
	})
}

// No change of a query gives another message than the signed one.
func FuzzLogoutQuery(f *testing.F) {
	key := samltest.RSA(2048)
	good := signQuery(f, "SAMLRequest", logoutRequestXML, key)
	f.Add(good)
	f.Add(signQuery(f, "SAMLResponse", logoutResponseXML, key) + "&x=%41")
	f.Fuzz(func(t *testing.T, query string) {
		p := testProvider()
		p.IdentityProvider.Certificates = [][]byte{key.Certificate.Raw}
		l, err := p.ReadLogoutQuery(query, testNow)
		if err != nil {
			checkError(t, err)
			return
		}
		if l.Request != nil && l.Request.Subject.Value != "ann" || l.Response != nil && l.Response.InResponseTo != "_r" || l.RelayState != "" {
			t.Errorf("%+v", l)
		}
	})
}

// BenchmarkFinish measures the validation of a response, beside that of its signature alone.
func BenchmarkFinish(b *testing.B) {
	assertion := answer{}.assertion()
	for name, document := range map[string]string{
		"assertion signed": answer{signAssertion: idpKey()}.build(b),
		"both signed":      answer{signAssertion: idpKey(), signResponse: idpKey()}.build(b),
		"encrypted":        answer{}.wrap(encrypt(spKey(), sign(b, assertion, idpKey(), 0))),
	} {
		b.Run(name, func(b *testing.B) {
			p, pending, form := testProvider(), testPending(), post(document)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Finish(pending, form, testNow); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("RSA-2048 verification alone", func(b *testing.B) {
		context, err := dsig.NewSigningContext(idpKey().Private, nil)
		if err != nil {
			b.Fatal(err)
		}
		raw, err := context.SignString(assertion)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := idpKey().Certificate.CheckSignature(x509.SHA256WithRSA, []byte(assertion), raw); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("refused, large", func(b *testing.B) { // before any signature
		p, pending := testProvider(), testPending()
		form := post(answer{}.wrap(strings.Repeat("<a b='c'/>", 9000)))
		if n := base64.StdEncoding.DecodedLen(len(form.Get("SAMLResponse"))); n < 80_000 {
			b.Fatal(n)
		}
		for b.Loop() {
			if _, err := p.Finish(pending, form, testNow); err == nil {
				b.Fatal("accepted")
			}
		}
	})
}
