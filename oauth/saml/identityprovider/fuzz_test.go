package identityprovider_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/samlprotocol/samltest"
	"stonetown/oauth/saml/identityprovider"
)

// checkRequest fails unless a request or an error is one that callers can rely on.
func checkRequest(t *testing.T, r identityprovider.Request, err error) {
	t.Helper()
	var failure *samlprotocol.Error
	if errors.As(err, &failure) {
		if failure.Error() == "" || strings.ContainsAny(failure.Detail, "\n\x00") {
			t.Errorf("%#v", failure)
		}
		return
	}
	var unsupported *identityprovider.UnsupportedError
	if err != nil && !errors.As(err, &unsupported) {
		t.Errorf("%#v", err)
	}
	if r.ID == "" || r.ServiceProvider != testSP || !slices.Contains(registered().ACS, r.ACS) || len(r.RelayState) > samlprotocol.MaxRelayState {
		t.Errorf("%+v", r)
	}
	for _, class := range r.AuthnContexts {
		if !slices.Contains(testProvider().AuthnContexts, class) {
			t.Errorf("%+v", r)
		}
	}
	if _, err := testProvider().Refuse(registered(), r, identityprovider.RequestDenied, samltest.Now); err != nil {
		t.Error(err)
	}
}

func requests() []string {
	return []string{
		requestXML("", ""),
		requestXML(`AssertionConsumerServiceURL="`+testACS2+`" IsPassive="true" ForceAuthn="1"`, `<saml:Subject><saml:NameID>ann</saml:NameID></saml:Subject><samlp:NameIDPolicy Format="urn:x"/>`),
		requestXML(`AssertionConsumerServiceIndex="1"`, `<samlp:RequestedAuthnContext Comparison="minimum"><saml:AuthnContextClassRef>`+password+`</saml:AuthnContextClassRef></samlp:RequestedAuthnContext>`),
	}
}

// Whatever the request, an answer goes to a registered URL.
func FuzzRequestForm(f *testing.F) {
	for _, document := range requests() {
		f.Add(document, "")
		f.Add(samltest.Sign(f, document, spKey()), "state")
	}
	f.Fuzz(func(t *testing.T, document, relayState string) {
		form := samltest.Form("SAMLRequest", document)
		form.Set("RelayState", relayState)
		r, err := readForm(testProvider(), registered(), form)
		checkRequest(t, r, err)
	})
}

// No change of a signed query is accepted as signed.
func FuzzRequestQuery(f *testing.F) {
	for _, document := range requests() {
		query := samltest.Query(f, "SAMLRequest", document)
		f.Add(query)
		f.Add(samltest.SignQuery(f, query, otherKey()))
	}
	good := samltest.SignQuery(f, samltest.Query(f, "SAMLRequest", requests()[0])+"&RelayState=a", spKey())
	want, err := readQuery(testProvider(), registered(), good)
	if err != nil || !want.Signed {
		f.Fatal(want, err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, query string) {
		r, err := readQuery(testProvider(), registered(), query)
		checkRequest(t, r, err)
		if r.Signed && (r.ForceAuthn || r.RelayState != "a" || r.ACS != want.ACS) {
			t.Errorf("%+v", r)
		}
	})
}

// Whatever the attributes, the service provider receives them, and the signature is valid.
func FuzzRespond(f *testing.F) {
	f.Add("mail", "ann@example.com", "state")
	f.Add("a\r\n<b", "\x00\ufffe]]>&amp;\r", "\"'")
	p, sp := testProvider(), registered()
	sp.SignResponse = true
	relying := relying(f, p)
	relying.AllowIDPInitiated = true
	f.Fuzz(func(t *testing.T, name, value, relayState string) {
		a := testAssertion()
		a.Attributes = []identityprovider.Attribute{{Name: name, Values: []string{value}}}
		answer, err := p.Respond(sp, identityprovider.Unsolicited(sp, relayState), a, samltest.Now)
		if err != nil {
			t.Fatal(err)
		}
		identity, err := relying.Finish(nil, answer.Form, samltest.Now)
		var failure *samlprotocol.Error
		if errors.As(err, &failure) { // names of attributes, RelayState and documents have limits
			for _, expected := range []string{"name of an attribute", "RelayState is too long", "too large"} {
				if strings.Contains(failure.Detail, expected) {
					return
				}
			}
		}
		if err != nil {
			t.Fatalf("%#v", err)
		}
		if got, _ := identity.Attributes[inXML(name)].([]string); !slices.Equal(got, []string{inXML(value)}) {
			t.Errorf("%q, want %q", identity.Attributes, value)
		}
	})
}

// inXML replaces what is no character of XML 1.0 (§2.2).
func inXML(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && !strings.ContainsRune("\t\n\r", r) || r == '\ufffe' || r == '\uffff' {
			return utf8.RuneError
		}
		return r
	}, text)
}

// BenchmarkRespond measures a response, beside the signature that is in it.
func BenchmarkRespond(b *testing.B) {
	for name, change := range map[string]func(*identityprovider.ServiceProvider){
		"assertion signed": func(*identityprovider.ServiceProvider) {},
		"both signed":      func(sp *identityprovider.ServiceProvider) { sp.SignResponse = true },
		"encrypted":        func(sp *identityprovider.ServiceProvider) { sp.Encrypt = true },
	} {
		b.Run(name, func(b *testing.B) {
			p, sp, a := testProvider(), registered(), testAssertion()
			change(&sp)
			request := identityprovider.Unsolicited(sp, "state")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Respond(sp, request, a, samltest.Now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("RSA-2048 signature alone", func(b *testing.B) {
		digest := sha256.Sum256([]byte("x"))
		for b.Loop() {
			if _, err := idpKey().Private.Sign(rand.Reader, digest[:], crypto.SHA256); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkReadRequest measures the validation of requests, beside that of their signature.
func BenchmarkReadRequest(b *testing.B) {
	query := samltest.Query(b, "SAMLRequest", requests()[2])
	for name, text := range map[string]string{"unsigned": query, "signed": samltest.SignQuery(b, query, spKey())} {
		b.Run(name, func(b *testing.B) {
			p, sp := testProvider(), registered()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := readQuery(p, sp, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	form := samltest.Form("SAMLRequest", samltest.Sign(b, requests()[2], spKey()))
	b.Run("signed, POST", func(b *testing.B) {
		p, sp := testProvider(), registered()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := readForm(p, sp, form); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("RSA-2048 verification alone", func(b *testing.B) {
		digest := sha256.Sum256([]byte("x"))
		signature, err := spKey().Private.Sign(rand.Reader, digest[:], crypto.SHA256)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := rsa.VerifyPKCS1v15(spKey().Certificate.PublicKey.(*rsa.PublicKey), crypto.SHA256, digest[:], signature); err != nil {
				b.Fatal(err)
			}
		}
	})
}
