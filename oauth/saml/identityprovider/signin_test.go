package identityprovider_test

import (
	"crypto/elliptic"
	"crypto/x509"
	"encoding/json"
	"encoding/xml"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crewjam/saml"
	"github.com/google/go-cmp/cmp"

	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/samlprotocol"
	"stonetown/internal/samlprotocol/samltest"
	"stonetown/oauth/saml/identityprovider"
)

// A sign-in with the service provider of this product, with both bindings and each selection of
// signatures.
func TestSignIn(t *testing.T) {
	for name, change := range map[string]func(sp *identityprovider.ServiceProvider){
		"assertion signed": func(*identityprovider.ServiceProvider) {},
		"response signed":  func(sp *identityprovider.ServiceProvider) { sp.SignAssertion, sp.SignResponse = false, true },
		"both signed":      func(sp *identityprovider.ServiceProvider) { sp.SignResponse = true },
		"neither selected": func(sp *identityprovider.ServiceProvider) { sp.SignAssertion = false },
		"encrypted":        func(sp *identityprovider.ServiceProvider) { sp.Encrypt = true },
		"encrypted in a signed response": func(sp *identityprovider.ServiceProvider) {
			sp.SignAssertion, sp.SignResponse, sp.Encrypt = false, true, true
		},
		"requests must be signed":             func(sp *identityprovider.ServiceProvider) { sp.WantRequestsSigned = true },
		"requests are signed, no certificate": func(sp *identityprovider.ServiceProvider) { sp.Certificates = nil },
	} {
		for _, binding := range []string{samlprotocol.Redirect, samlprotocol.Post} {
			t.Run(name+" "+binding, func(t *testing.T) {
				p, sp := testProvider(), registered()
				change(&sp)
				relying := relying(t, p)
				relying.NameIDFormat = sp.NameIDFormat
				relying.IdentityProvider.SingleSignOn = slices.DeleteFunc(relying.IdentityProvider.SingleSignOn, func(s serviceprovider.Service) bool { return s.Binding != binding })
				message, pending, err := relying.Begin(serviceprovider.Request{ForceAuthn: true, AuthnContexts: []string{password, "urn:other"}}, samltest.Now.Add(-time.Minute))
				if err != nil {
					t.Fatal(err)
				}
				received := receive(t, message)
				if issuer, err := received.Issuer(); issuer != testSP || err != nil {
					t.Fatal(issuer, err)
				}
				request, err := p.ReadRequest(sp, received, samltest.Now)
				if err != nil {
					t.Fatal(err)
				}
				want := identityprovider.Request{
					ID: pending.RequestID, ServiceProvider: testSP, ACS: testACS, RelayState: pending.RelayState,
					Signed: sp.Certificates != nil, ForceAuthn: true, AuthnContexts: []string{password},
				}
				if diff := cmp.Diff(want, request); diff != "" {
					t.Fatal(diff)
				}
				stored, err := json.Marshal(request)
				if err == nil {
					request = identityprovider.Request{}
					err = json.Unmarshal(stored, &request)
				}
				if diff := cmp.Diff(want, request); diff != "" || err != nil {
					t.Fatal(diff, err)
				}
				answer, err := p.Respond(sp, request, testAssertion(), samltest.Now)
				if err != nil {
					t.Fatal(err)
				}
				if answer.URL != testACS || answer.Form.Get("RelayState") != pending.RelayState {
					t.Error(answer)
				}
				if document := documentOf(t, answer); strings.Contains(document, "EncryptedData") != sp.Encrypt || strings.Contains(document, "ann@example.com") == sp.Encrypt {
					t.Error(document)
				}
				identity, err := relying.Finish(&pending, answer.Form, samltest.Now)
				if err != nil {
					t.Fatal(err.(*samlprotocol.Error).Detail)
				}
				wantIdentity := serviceprovider.Identity{
					Subject:    samlprotocol.NameID{Value: "ann", Format: identityprovider.Persistent, NameQualifier: testIDP, SPNameQualifier: testSP},
					Attributes: testAttributes(), SessionIndex: "s1", SessionEnds: samltest.Now.Add(time.Hour), AuthnContext: password,
					AuthnInstant: samltest.Now.Add(-time.Minute), AssertionID: identity.AssertionID,
					NotOnOrAfter: samltest.Now.Add(identityprovider.AssertionLifetime + samlprotocol.Skew),
				}
				if diff := cmp.Diff(wantIdentity, identity); diff != "" || identity.AssertionID == "" {
					t.Error(diff)
				}
				late := samltest.Now.Add(identityprovider.AssertionLifetime + samlprotocol.Skew)
				if _, err := relying.Finish(&pending, answer.Form, late); err == nil {
					t.Error("the assertion is accepted for ever")
				}
			})
		}
	}
}

// A sign-in that begins at the identity provider.
func TestUnsolicited(t *testing.T) {
	p, sp := testProvider(), registered()
	relying := relying(t, p)
	relying.AllowIDPInitiated = true
	a := testAssertion()
	a.SessionEnds, a.Attributes, a.AuthnContext = time.Time{}, nil, ""
	answer, err := p.Respond(sp, identityprovider.Unsolicited(sp, "https://app.example.com/start"), a, samltest.Now)
	if err != nil {
		t.Fatal(err)
	}
	if document := documentOf(t, answer); strings.Contains(document, "InResponseTo") || strings.Contains(document, "AttributeStatement") || answer.Form.Get("RelayState") != "https://app.example.com/start" {
		t.Error(answer, document)
	}
	identity, err := relying.Finish(nil, answer.Form, samltest.Now)
	if err != nil {
		t.Fatal(err.(*samlprotocol.Error).Detail)
	}
	if !identity.Unsolicited || identity.Subject.Value != "ann" || !identity.SessionEnds.IsZero() || identity.AuthnContext != "urn:oasis:names:tc:SAML:2.0:ac:classes:unspecified" {
		t.Errorf("%+v", identity)
	}
	sp.ACS = nil
	_, err = p.Respond(sp, identityprovider.Unsolicited(sp, ""), a, samltest.Now)
	wantClass(t, err, samlprotocol.Misconfigured, "URLs")
}

// A refusal reaches the service provider with its reason.
func TestRefuse(t *testing.T) {
	for status, class := range map[identityprovider.Status]samlprotocol.Class{
		identityprovider.RequestDenied: samlprotocol.Denied, identityprovider.AuthnFailed: samlprotocol.Denied,
		identityprovider.UnknownPrincipal: samlprotocol.Denied, identityprovider.NoAuthnContext: samlprotocol.Denied,
		identityprovider.NoPassive: samlprotocol.InteractionRequired, identityprovider.InvalidNameIDPolicy: samlprotocol.Misconfigured,
		identityprovider.RequestUnsupported: samlprotocol.Misconfigured, identityprovider.UnsupportedBinding: samlprotocol.Misconfigured,
	} {
		t.Run(string(status), func(t *testing.T) {
			p, sp := testProvider(), registered()
			relying := relying(t, p)
			message, pending, err := relying.Begin(serviceprovider.Request{Passive: true}, samltest.Now)
			if err != nil {
				t.Fatal(err)
			}
			request, err := p.ReadRequest(sp, receive(t, message), samltest.Now)
			if err != nil || !request.Passive {
				t.Fatal(request, err)
			}
			answer, err := p.Refuse(sp, request, status, samltest.Now)
			if err != nil {
				t.Fatal(err)
			}
			document := documentOf(t, answer)
			level := "status:Responder"
			if class == samlprotocol.Misconfigured {
				level = "status:Requester"
			}
			if !strings.Contains(document, "SignatureValue") || !strings.Contains(document, level) {
				t.Error(document)
			}
			_, err = relying.Finish(&pending, answer.Form, samltest.Now)
			wantClass(t, err, class, string(status))
		})
	}
}

// What a request asks for beside a sign-in is granted, or refused with a status.
func TestRequest(t *testing.T) {
	policy := func(attributes string) string { return `<samlp:NameIDPolicy ` + attributes + `/>` }
	contexts := func(comparison string, classes ...string) string {
		x := `<samlp:RequestedAuthnContext ` + comparison + `>`
		for _, class := range classes {
			x += `<saml:AuthnContextClassRef> ` + class + ` </saml:AuthnContextClassRef>`
		}
		return x + `</samlp:RequestedAuthnContext>`
	}
	const exact, minimum, better, maximum = `Comparison="exact"`, `Comparison="minimum"`, `Comparison="better"`, `Comparison="maximum"`
	plain := identityprovider.Request{ID: "_r", ServiceProvider: testSP, ACS: testACS}
	of := func(change func(*identityprovider.Request)) identityprovider.Request {
		r := plain
		change(&r)
		return r
	}
	classes := func(list ...string) identityprovider.Request {
		return of(func(r *identityprovider.Request) { r.AuthnContexts = list })
	}
	for name, tc := range map[string]struct {
		attributes, members string
		want                identityprovider.Request
		status              identityprovider.Status
	}{
		"nothing":                   {want: plain},
		"default ACS":               {attributes: `AssertionConsumerServiceURL="` + testACS + `"`, want: plain},
		"another ACS":               {attributes: `AssertionConsumerServiceURL="` + testACS2 + `"`, want: of(func(r *identityprovider.Request) { r.ACS = testACS2 })},
		"ACS by index":              {attributes: `AssertionConsumerServiceIndex="1"`, want: of(func(r *identityprovider.Request) { r.ACS = testACS2 })},
		"POST":                      {attributes: `ProtocolBinding="` + samlprotocol.Post + `"`, want: plain},
		"artifact":                  {attributes: `ProtocolBinding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Artifact"`, want: plain, status: identityprovider.UnsupportedBinding},
		"passive, forced":           {attributes: `IsPassive="1" ForceAuthn="true"`, want: of(func(r *identityprovider.Request) { r.Passive, r.ForceAuthn = true, true })},
		"not passive":               {attributes: `IsPassive="false" ForceAuthn="0"`, want: plain},
		"its format":                {members: policy(`Format="` + identityprovider.Persistent + `" AllowCreate="true"`), want: plain},
		"unspecified format":        {members: policy(`Format="` + identityprovider.Unspecified + `"`), want: plain},
		"no format":                 {members: policy(``), want: plain},
		"another format":            {members: policy(`Format="` + identityprovider.EmailAddress + `"`), want: plain, status: identityprovider.InvalidNameIDPolicy},
		"encrypted name":            {members: policy(`Format="urn:oasis:names:tc:SAML:2.0:nameid-format:encrypted"`), want: plain, status: identityprovider.InvalidNameIDPolicy},
		"own qualifier":             {members: policy(`SPNameQualifier="` + testSP + `"`), want: plain},
		"name at another":           {members: policy(`SPNameQualifier="https://other.example.com"`), want: plain, status: identityprovider.InvalidNameIDPolicy},
		"subject":                   {members: `<saml:Subject><saml:NameID>ann</saml:NameID></saml:Subject>`, want: of(func(r *identityprovider.Request) { r.Subject = &samlprotocol.NameID{Value: "ann"} })},
		"encrypted subject":         {members: `<saml:Subject><saml:EncryptedID/></saml:Subject>`, want: plain, status: identityprovider.RequestUnsupported},
		"subject with confirmation": {members: `<saml:Subject><saml:NameID>ann</saml:NameID><saml:SubjectConfirmation/></saml:Subject>`, want: plain, status: identityprovider.RequestUnsupported},
		"exact":                     {members: contexts(exact, multi, password, "urn:x", password), want: classes(multi, password)},
		"exact by default":          {members: contexts("", password), want: classes(password)},
		"minimum":                   {members: contexts(minimum, secondOnce), want: classes(secondOnce, multi)},
		"minimum of two":            {members: contexts(minimum, multi, password), want: classes(password, secondOnce, multi)},
		"better":                    {members: contexts(better, password), want: classes(secondOnce, multi)},
		"better than two":           {members: contexts(better, password, secondOnce), want: classes(multi)},
		"maximum":                   {members: contexts(maximum, secondOnce, password), want: classes(secondOnce, password)},
		"unspecified class":         {members: contexts(exact, "urn:x", "urn:oasis:names:tc:SAML:2.0:ac:classes:unspecified"), want: plain},
		"better than the best":      {members: contexts(better, multi), want: plain, status: identityprovider.NoAuthnContext},
		"unknown class":             {members: contexts(exact, "urn:x"), want: plain, status: identityprovider.NoAuthnContext},
		"minimum of unknown":        {members: contexts(minimum, "urn:x"), want: plain, status: identityprovider.NoAuthnContext},
		"better than unknown":       {members: contexts(better, "urn:x"), want: plain, status: identityprovider.NoAuthnContext},
		"maximum of unknown":        {members: contexts(maximum, "urn:x"), want: plain, status: identityprovider.NoAuthnContext},
		"declaration": {
			members: `<samlp:RequestedAuthnContext><saml:AuthnContextDeclRef>` + password + `</saml:AuthnContextDeclRef></samlp:RequestedAuthnContext>`,
			want:    plain, status: identityprovider.NoAuthnContext,
		},
		"extensions, scoping": {members: `<samlp:Extensions><x xmlns="urn:x"/></samlp:Extensions><samlp:Scoping ProxyCount="0"/>`, want: plain},
	} {
		t.Run(name, func(t *testing.T) {
			document := requestXML(tc.attributes, tc.members)
			for _, read := range []func() (identityprovider.Request, error){
				func() (identityprovider.Request, error) {
					return readQuery(testProvider(), registered(), samltest.Query(t, "SAMLRequest", document))
				},
				func() (identityprovider.Request, error) {
					return readForm(testProvider(), registered(), samltest.Form("SAMLRequest", document))
				},
			} {
				got, err := read()
				if tc.status != "" {
					wantUnsupported(t, err, tc.status)
					if got.ID != "_r" || got.ACS != testACS {
						t.Errorf("%+v cannot be refused", got)
					}
					if _, err := testProvider().Refuse(registered(), got, tc.status, samltest.Now); err != nil {
						t.Error(err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// An assertion that does not satisfy the request, or for another service provider, is not made.
func TestRespondRefuses(t *testing.T) {
	good := identityprovider.Request{ID: "_r", ServiceProvider: testSP, ACS: testACS, AuthnContexts: []string{password}, Subject: &samlprotocol.NameID{Value: "ann", Format: identityprovider.Unspecified}}
	p, sp := testProvider(), registered()
	if _, err := p.Respond(sp, good, testAssertion(), samltest.Now); err != nil {
		t.Fatal(err)
	}
	respond := func(change func(*identityprovider.Provider, *identityprovider.ServiceProvider, *identityprovider.Request)) error {
		p, sp, r := testProvider(), registered(), good
		change(p, &sp, &r)
		m, err := p.Respond(sp, r, testAssertion(), samltest.Now)
		if err == nil || m.Form != nil {
			t.Errorf("%v, %v", m, err)
		}
		return err
	}
	type (
		idp = identityprovider.Provider
		svc = identityprovider.ServiceProvider
		req = identityprovider.Request
	)
	wantUnsupported(t, respond(func(_ *idp, _ *svc, r *req) { r.Subject = &samlprotocol.NameID{Value: "bob"} }), identityprovider.UnknownPrincipal)
	wantUnsupported(t, respond(func(_ *idp, _ *svc, r *req) {
		r.Subject = &samlprotocol.NameID{Value: "ann", Format: identityprovider.EmailAddress}
	}), identityprovider.UnknownPrincipal)
	wantUnsupported(t, respond(func(_ *idp, _ *svc, r *req) { r.AuthnContexts = []string{multi} }), identityprovider.NoAuthnContext)
	nameless := testAssertion()
	nameless.NameID.Value = ""
	_, err := p.Respond(sp, good, nameless, samltest.Now)
	wantClass(t, err, samlprotocol.Misconfigured, "name")
	for name, err := range map[string]error{
		"another service provider": respond(func(_ *idp, _ *svc, r *req) { r.ServiceProvider = "https://other.example.com" }),
		"removed URL":              respond(func(_ *idp, sp *svc, _ *req) { sp.ACS = []string{testACS2} }),
		"script":                   respond(func(_ *idp, sp *svc, r *req) { sp.ACS = []string{"javascript:alert(1)"}; r.ACS = sp.ACS[0] }),
		"no certificate":           respond(func(_ *idp, sp *svc, _ *req) { sp.Encrypt, sp.Certificates = true, nil }),
		"ECDSA": respond(func(_ *idp, sp *svc, _ *req) {
			sp.Encrypt, sp.Certificates = true, []*x509.Certificate{samltest.ECDSA(elliptic.P256()).Certificate}
		}),
		"small key": respond(func(_ *idp, sp *svc, _ *req) {
			sp.Encrypt, sp.Certificates = true, []*x509.Certificate{samltest.RSA(1024).Certificate}
		}),
		"no keys":   respond(func(p *idp, _ *svc, _ *req) { p.Keys = nil }),
		"no entity": respond(func(p *idp, _ *svc, _ *req) { p.EntityID = "" }),
	} {
		t.Run(name, func(t *testing.T) { wantClass(t, err, samlprotocol.Misconfigured, "") })
	}
}

// The metadata has all keys, and other parsers read it.
func TestMetadata(t *testing.T) {
	p := testProvider()
	p.Keys = append(p.Keys, otherKey())
	document, err := p.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := serviceprovider.ParseMetadata(document, samltest.Now)
	if err != nil {
		t.Fatal(err)
	}
	both := func(location string) []serviceprovider.Service {
		return []serviceprovider.Service{{Binding: samlprotocol.Redirect, Location: location}, {Binding: samlprotocol.Post, Location: location}}
	}
	want := &serviceprovider.IdentityProvider{
		EntityID: testIDP, SingleSignOn: both(testSSO), SingleLogout: both(testSLO),
		Certificates:  [][]byte{idpKey().Certificate.Raw, otherKey().Certificate.Raw},
		NameIDFormats: []string{identityprovider.Persistent, identityprovider.EmailAddress, identityprovider.Transient},
	}
	if diff := cmp.Diff(want, metadata); diff != "" {
		t.Error(diff)
	}
	var e saml.EntityDescriptor
	if err := xml.Unmarshal(document, &e); err != nil || len(e.IDPSSODescriptors) != 1 || *e.IDPSSODescriptors[0].WantAuthnRequestsSigned {
		t.Errorf("%v %s", err, document)
	}
	p.SLO = ""
	if document, err = p.Metadata(); err != nil || strings.Contains(string(document), "Logout") {
		t.Errorf("%v %s", err, document)
	}
	p.Keys = nil
	_, err = p.Metadata()
	wantClass(t, err, samlprotocol.Misconfigured, "key")
}

// Both sides request and answer the end of a session.
func TestSingleLogout(t *testing.T) {
	p, sp := testProvider(), registered()
	relying := relying(t, p)
	subject := testAssertion().NameID
	for _, partial := range []bool{false, true} {
		message, pending, err := relying.BeginLogout(subject, "s1", samltest.Now)
		if err != nil {
			t.Fatal(err)
		}
		received := receive(t, message)
		if issuer, err := received.Issuer(); issuer != testSP || err != nil {
			t.Fatal(issuer, err)
		}
		l, err := p.SingleLogout(sp).Read(received, samltest.Now)
		if err != nil || l.Request == nil || l.Request.Subject != subject || !slices.Equal(l.Request.SessionIndexes, []string{"s1"}) {
			t.Fatal(l, err)
		}
		answer, err := p.SingleLogout(sp).Answer(*l.Request, l.RelayState, partial, samltest.Now)
		if err != nil || !strings.HasPrefix(answer.URL, testSPSLO+"?SAMLResponse=") {
			t.Fatal(answer, err)
		}
		_, query, _ := strings.Cut(answer.URL, "?")
		response, err := relying.ReadLogoutQuery(query, samltest.Now)
		if err != nil {
			t.Fatal(err)
		}
		if complete, err := relying.FinishLogout(pending, response); complete == partial || err != nil {
			t.Error(complete, err)
		}

		message, here, err := p.SingleLogout(sp).Begin(subject, "s1", samltest.Now)
		if err != nil || !strings.HasPrefix(message.URL, testSPSLO+"?SAMLRequest=") {
			t.Fatal(message, err)
		}
		_, query, _ = strings.Cut(message.URL, "?")
		request, err := relying.ReadLogoutQuery(query, samltest.Now)
		if err != nil || request.Request.Subject != subject {
			t.Fatal(request, err)
		}
		answer, err = relying.AnswerLogout(*request.Request, request.RelayState, partial, samltest.Now)
		if err != nil {
			t.Fatal(err)
		}
		if l, err = p.SingleLogout(sp).Read(receive(t, answer), samltest.Now); err != nil {
			t.Fatal(err)
		}
		if complete, err := p.SingleLogout(sp).Finish(here, l); complete == partial || err != nil {
			t.Error(complete, err)
		}
	}
	sp.SLO = ""
	if p.SingleLogout(sp).Available() {
		t.Error("there is single logout without a URL")
	}
	_, _, err := p.SingleLogout(sp).Begin(subject, "", samltest.Now)
	wantClass(t, err, samlprotocol.Misconfigured, "single logout")
	message, _, err := relying.BeginLogout(subject, "", samltest.Now)
	if err != nil {
		t.Fatal(err)
	}
	sp = registered()
	sp.Certificates = nil
	_, err = p.SingleLogout(sp).Read(receive(t, message), samltest.Now)
	wantClass(t, err, samlprotocol.Invalid, "not signed")
	sp = registered()
	sp.EntityID = "https://other.example.com"
	_, err = p.SingleLogout(sp).Read(receive(t, message), samltest.Now)
	wantClass(t, err, samlprotocol.Invalid, "issuer")
}
