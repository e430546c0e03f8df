package serviceprovider

import (
	"crypto/elliptic"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/samlprotocol/samltest"
)

// logoutProvider is the test's identity provider as a Provider: messages of single logout are
// symmetric.
func logoutProvider(key Key, bindings ...string) *Provider {
	p := &Provider{
		EntityID: testIDP, ACS: "https://idp.example.com/unused", SLO: testSLOURL, Keys: []Key{key},
		IdentityProvider: IdentityProvider{EntityID: testEntity, Certificates: [][]byte{spKey().Certificate.Raw}},
	}
	for _, binding := range bindings {
		p.IdentityProvider.SingleLogout = append(p.IdentityProvider.SingleLogout, Service{Binding: binding, Location: testSLO})
	}
	return p
}

// read reads a message at its receiver.
func (p *Provider) read(t *testing.T, m Message, now time.Time) (Logout, error) {
	t.Helper()
	if m.Form != nil {
		return p.ReadLogoutForm(m.Form, now)
	}
	_, query, _ := strings.Cut(m.URL, "?")
	return p.ReadLogoutQuery(query, now)
}

func TestLogout(t *testing.T) {
	subject := NameID{Value: "ann", Format: "urn:f", NameQualifier: "q", SPNameQualifier: "s", SPProvidedID: "p"}
	p256 := samltest.ECDSA(elliptic.P256())
	for name, key := range map[string]Key{"RSA": idpKey(), "ECDSA": p256} {
		for _, binding := range []string{Redirect, Post} {
			t.Run(name+" "+binding, func(t *testing.T) {
				idp := logoutProvider(key, binding)
				sp := testProvider()
				sp.IdentityProvider.Certificates = [][]byte{key.Certificate.Raw}
				sp.IdentityProvider.SingleLogout = []Service{{Binding: binding, Location: testSLOURL}}
				for _, way := range []struct{ from, to *Provider }{{sp, idp}, {idp, sp}} {
					message, pending, err := way.from.BeginLogout(subject, "s1", testNow)
					if err != nil {
						t.Fatal(err)
					}
					got, err := way.to.read(t, message, testNow)
					if err != nil {
						t.Fatal(err.(*Error).Detail)
					}
					want := Logout{Request: &LogoutRequest{ID: pending.RequestID, Subject: subject, SessionIndexes: []string{"s1"}}, RelayState: pending.RelayState}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatal(diff)
					}
					for _, partial := range []bool{false, true} {
						answer, err := way.to.AnswerLogout(*got.Request, got.RelayState, partial, testNow)
						if err != nil {
							t.Fatal(err)
						}
						response, err := way.from.read(t, answer, testNow)
						if err != nil {
							t.Fatal(err.(*Error).Detail)
						}
						if complete, err := way.from.FinishLogout(pending, response); complete == partial || err != nil {
							t.Error(complete, err)
						}
						other := pending
						other.RequestID = "_other"
						_, err = way.from.FinishLogout(other, response)
						wantClass(t, err, Stale)
						other = pending
						other.RelayState = "other"
						_, err = way.from.FinishLogout(other, response)
						wantClass(t, err, Stale)
						_, err = way.from.FinishLogout(PendingLogout{}, response)
						wantClass(t, err, Stale)
						_, err = way.from.FinishLogout(pending, got)
						wantClass(t, err, Invalid)
						_, err = way.from.read(t, answer, testNow.Add(samlprotocol.LogoutLifetime+Skew+time.Second))
						wantClass(t, err, Stale)
					}
					_, err = way.to.read(t, message, testNow.Add(samlprotocol.LogoutLifetime+Skew))
					wantClass(t, err, Stale)
					_, err = way.to.read(t, message, testNow.Add(-2*time.Minute))
					wantClass(t, err, Invalid)
				}
			})
		}
	}
}

func TestLogoutWithout(t *testing.T) {
	p := testProvider()
	p.Keys = nil
	_, _, err := p.BeginLogout(NameID{Value: "ann"}, "", testNow)
	wantClass(t, err, Misconfigured)
	_, err = p.AnswerLogout(LogoutRequest{}, "", false, testNow)
	wantClass(t, err, Misconfigured)
	message, _, err := logoutProvider(idpKey(), Post).BeginLogout(NameID{Value: "ann"}, "", testNow)
	if err != nil {
		t.Fatal(err)
	}
	p.SLO = ""
	_, err = p.read(t, message, testNow)
	wantClass(t, err, Misconfigured)
	p.EntityID = ""
	_, err = p.ReadLogoutForm(message.Form, testNow)
	wantClass(t, err, Misconfigured)
	_, err = p.ReadLogoutQuery("", testNow)
	wantClass(t, err, Misconfigured)
}

const (
	logoutRequestXML  = `<samlp:LogoutRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_l" Version="2.0" IssueInstant="2026-11-22T12:00:00Z" Destination="` + testSLO + `"><saml:Issuer>` + testIDP + `</saml:Issuer><saml:NameID>ann</saml:NameID></samlp:LogoutRequest>`
	logoutResponseXML = `<samlp:LogoutResponse xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_l" InResponseTo="_r" Version="2.0" IssueInstant="2026-11-22T12:00:00Z" Destination="` + testSLO + `"><saml:Issuer>` + testIDP + `</saml:Issuer>` + success + `</samlp:LogoutResponse>`
)

// signQuery returns a signed query of the redirect binding.
func signQuery(t testing.TB, param, document string, key Key) string {
	t.Helper()
	return samltest.SignQuery(t, samltest.Query(t, param, document), key)
}

func TestLogoutQueryAttacks(t *testing.T) {
	good := signQuery(t, "SAMLRequest", logoutRequestXML, idpKey())
	if _, err := testProvider().ReadLogoutQuery(good, testNow); err != nil {
		t.Fatal(err.(*Error).Detail)
	}
	if _, err := testProvider().ReadLogoutQuery("x=1&"+good+"&SAMLEncoding="+url.QueryEscape("urn:oasis:names:tc:SAML:2.0:bindings:URL-Encoding:DEFLATE"), testNow); err != nil {
		t.Fatal(err.(*Error).Detail) // parameters that are no part of the binding
	}
	evil := signQuery(t, "SAMLRequest", strings.ReplaceAll(logoutRequestXML, ">ann<", ">bob<"), otherKey())
	evilMessage, _, _ := strings.Cut(evil, "&")
	unsigned, _, _ := strings.Cut(good, "&")
	_, signature, _ := strings.Cut(good, "&Signature=")
	bomb := strings.Repeat(" ", 64<<20)
	for name, tc := range map[string]struct{ query, detail string }{
		"unsigned request":              {unsigned, "not signed"},
		"unsigned response":             {strings.Split(signQuery(t, "SAMLResponse", logoutResponseXML, idpKey()), "&")[0], "not signed"},
		"empty signature":               {strings.Replace(good, signature, "", 1), "certificate"},
		"another key":                   {evil, "certificate"},
		"two requests, evil first":      {evilMessage + "&" + good, "twice"},
		"two requests, evil last":       {good + "&" + evilMessage, "twice"},
		"two signatures":                {good + "&Signature=x", "twice"},
		"two algorithms":                {good + "&SigAlg=x", "twice"},
		"encoded name":                  {strings.Replace(evilMessage, "SAMLRequest", "SAML%52equest", 1) + "&" + good, "unusual encoding"},
		"invalid name":                  {good + "&%zz=1", "unusual encoding"},
		"invalid value":                 {good + "&x=%zz", "URL-encoded"},
		"response beside the request":   {good + "&SAMLResponse=x", "request and a response"},
		"renamed to a response":         {strings.Replace(good, "SAMLRequest", "SAMLResponse", 1), "certificate"},
		"RelayState added":              {good + "&RelayState=x", "certificate"},
		"RelayState is long":            {good + "&RelayState=" + strings.Repeat("x", 1025), "too long"},
		"another encoding of the value": {good[:12] + fmt.Sprintf("%%%X", good[12]) + good[13:], "certificate"},
		"SHA-1":                         {strings.Replace(good, url.QueryEscape("http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"), url.QueryEscape("http://www.w3.org/2000/09/xmldsig#rsa-sha1"), 1), "not accepted"},
		"SAMLEncoding":                  {good + "&SAMLEncoding=gzip", "encoding"},
		"deflate bomb":                  {signQuery(t, "SAMLRequest", logoutRequestXML+bomb, idpKey()), "too large"},
		"not DEFLATE":                   {samltest.SignQuery(t, "SAMLRequest=AAAA", idpKey()), "DEFLATE"},
		"not base64":                    {samltest.SignQuery(t, "SAMLRequest=%25", idpKey()), "base64"},
		"no message":                    {samltest.SignQuery(t, "SAMLRequest=", idpKey()), "base64"},
		"nothing":                       {"", "missing"},
		"a signature in it":             {signQuery(t, "SAMLRequest", sign(t, logoutRequestXML, idpKey(), 0), idpKey()), "signature in it"},
		"response as a request":         {signQuery(t, "SAMLRequest", logoutResponseXML, idpKey()), "not a LogoutRequest"},
		"sign-in response":              {signQuery(t, "SAMLResponse", answer{}.build(t), idpKey()), "not a LogoutResponse"},
		"another destination":           {signQuery(t, "SAMLRequest", strings.Replace(logoutRequestXML, testSLO, testACS, 1), idpKey()), "Destination"},
		"no destination":                {signQuery(t, "SAMLRequest", strings.Replace(logoutRequestXML, "Destination", "D", 1), idpKey()), "Destination"},
		"another issuer":                {signQuery(t, "SAMLRequest", strings.Replace(logoutRequestXML, testIDP, "https://x", 1), idpKey()), "issuer"},
		"two names":                     {signQuery(t, "SAMLRequest", strings.Replace(logoutRequestXML, "<saml:NameID>", "<saml:NameID>bob</saml:NameID><saml:NameID>", 1), idpKey()), "NameID"},
		"no name":                       {signQuery(t, "SAMLRequest", strings.Replace(logoutRequestXML, "<saml:NameID>ann</saml:NameID>", "", 1), idpKey()), "NameID"},
		"empty name":                    {signQuery(t, "SAMLRequest", strings.Replace(logoutRequestXML, ">ann<", "><", 1), idpKey()), "NameID"},
		"comment":                       {signQuery(t, "SAMLRequest", strings.Replace(logoutRequestXML, ">ann<", ">a<!-- -->nn<", 1), idpKey()), "comment"},
		"document type":                 {signQuery(t, "SAMLRequest", "<!DOCTYPE x>"+logoutRequestXML, idpKey()), "document type"},
		"many sessions":                 {signQuery(t, "SAMLRequest", strings.Replace(logoutRequestXML, "</saml:NameID>", "</saml:NameID>"+strings.Repeat("<samlp:SessionIndex>s</samlp:SessionIndex>", 101), 1), idpKey()), "sessions"},
		"no status":                     {signQuery(t, "SAMLResponse", strings.Replace(logoutResponseXML, success, "", 1), idpKey()), "status"},
		"response to nothing":           {signQuery(t, "SAMLResponse", strings.Replace(logoutResponseXML, `InResponseTo="_r"`, "", 1), idpKey()), "InResponseTo"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.query == good {
				t.Fatal("the attack changed nothing")
			}
			_, err := testProvider().ReadLogoutQuery(tc.query, testNow)
			e := wantClass(t, err, Invalid)
			if !strings.Contains(e.Detail, tc.detail) {
				t.Errorf("detail %q, want %q", e.Detail, tc.detail)
			}
		})
	}
	_, err := testProvider().ReadLogoutQuery(signQuery(t, "SAMLRequest", strings.Replace(logoutRequestXML, "Version", `NotOnOrAfter="2026-11-22T11:00:00Z" Version`, 1), idpKey()), testNow)
	wantClass(t, err, Stale)
}

func TestLogoutFormAttacks(t *testing.T) {
	good := samltest.Form("SAMLRequest", sign(t, logoutRequestXML, idpKey(), 0))
	if _, err := testProvider().ReadLogoutForm(good, testNow); err != nil {
		t.Fatal(err.(*Error).Detail)
	}
	both := samltest.Form("SAMLRequest", sign(t, logoutRequestXML, idpKey(), 0))
	both.Set("SAMLResponse", "x")
	wrapped := tree(t, sign(t, logoutRequestXML, idpKey(), 0))
	original := withoutSignature(wrapped)
	wrapped.CreateAttr("ID", "_evil")
	wrapped.FindElement("saml:NameID").SetText("bob")
	signatureOf(wrapped).CreateElement("ds:Object").AddChild(original)
	for name, tc := range map[string]struct {
		form   url.Values
		detail string
	}{
		"unsigned request":  {samltest.Form("SAMLRequest", logoutRequestXML), "not signed"},
		"unsigned response": {samltest.Form("SAMLResponse", logoutResponseXML), "not signed"},
		"signed outside":    {signedForm(t), "not signed"},
		"another key":       {samltest.Form("SAMLResponse", sign(t, logoutResponseXML, otherKey(), 0)), "certificate"},
		"changed":           {samltest.Form("SAMLRequest", strings.Replace(sign(t, logoutRequestXML, idpKey(), 0), ">ann<", ">bob<", 1)), "certificate"},
		"wrapped":           {samltest.Form("SAMLRequest", serialize(t, wrapped)), "nested"},
		"both":              {both, "request and a response"},
		"deflated":          {url.Values{"SAMLRequest": {"AAAA"}}, "document"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testProvider().ReadLogoutForm(tc.form, testNow)
			e := wantClass(t, err, Invalid)
			if !strings.Contains(e.Detail, tc.detail) {
				t.Errorf("detail %q, want %q", e.Detail, tc.detail)
			}
		})
	}
}

// signedForm returns a form with the signature of the redirect binding, which does not count.
func signedForm(t *testing.T) url.Values {
	t.Helper()
	form, err := url.ParseQuery(signQuery(t, "SAMLRequest", logoutRequestXML, idpKey()))
	if err != nil {
		t.Fatal(err)
	}
	form.Set("SAMLRequest", base64.StdEncoding.EncodeToString([]byte(logoutRequestXML)))
	return form
}

// An error at the identity provider is one of the sign-out.
func TestLogoutStatus(t *testing.T) {
	document := strings.Replace(logoutResponseXML, "status:Success", "status:Responder", 1)
	p := testProvider()
	l, err := p.ReadLogoutQuery(signQuery(t, "SAMLResponse", document, idpKey()), testNow)
	if err != nil {
		t.Fatal(err.(*Error).Detail)
	}
	_, err = p.FinishLogout(PendingLogout{RequestID: "_r", Provider: testIDP}, l)
	wantClass(t, err, Unavailable)
}
