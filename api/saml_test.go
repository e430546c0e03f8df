package api_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/samlkeys"
)

// The formats of names.
const (
	persistentName = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
	transientName  = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
	emailName      = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"

	mfaContext   = "https://refeds.org/profile/mfa"
	plainContext = "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport"
)

// spKey is the key of all service providers of the tests.
var spKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// samlParty is a SAML application with the browser of a user in front of it. Its service provider is
// the one of connections.
type samlParty struct {
	*relyingParty
	w       *world
	app     object
	sp      *serviceprovider.Provider
	pending serviceprovider.Pending
}

// newSAMLParty registers an application and configures its service provider with the metadata of the
// tenant. Signed is whether the application has a certificate, and signs.
func newSAMLParty(t testing.TB, w *world, c *client, name string, signed bool, form object) *samlParty {
	t.Helper()
	base := "https://" + name + ".example.com"
	setup := object{"name": name, "type": "saml", "entity_id": base + "/saml", "acs_url": base + "/acs", "slo_url": base + "/slo"}
	p := &samlParty{w: w, sp: &serviceprovider.Provider{EntityID: base + "/saml", ACS: base + "/acs", SLO: base + "/slo"}}
	if signed {
		setup["certificate"] = certificateOf(t, spKey())
		block, _ := pem.Decode([]byte(setup["certificate"].(string)))
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		p.sp.Keys = []serviceprovider.Key{{Private: spKey(), Certificate: certificate}}
	}
	maps.Copy(setup, form)
	p.app = c.want(t, 201, "", "POST", appsPath, setup).data()
	p.relyingParty = &relyingParty{client: c.with(""), id: p.app["client_id"].(string)}
	p.readMetadata(t)
	return p
}

func (p *samlParty) readMetadata(t testing.TB) {
	t.Helper()
	a := p.send(t, "GET", "/saml/idp/metadata", nil, nil)
	metadata, err := serviceprovider.ParseMetadata([]byte(a.text), p.w.now())
	if a.status != 200 || err != nil || metadata.EntityID != p.base()+"/saml/idp/metadata" {
		t.Fatalf("metadata: %d %v %s", a.status, err, a.text)
	}
	p.sp.IdentityProvider = *metadata
}

// begin sends the request of a sign-in, with a binding.
func (p *samlParty) begin(t testing.TB, binding string, r serviceprovider.Request) (answer, *url.URL) {
	t.Helper()
	sp := *p.sp
	sp.IdentityProvider.SingleSignOn = slices.DeleteFunc(slices.Clone(sp.IdentityProvider.SingleSignOn), func(s serviceprovider.Service) bool { return s.Binding != binding })
	message, pending, err := sp.Begin(r, p.w.now())
	if err != nil {
		t.Fatal(err)
	}
	p.pending = pending
	return p.deliver(t, message)
}

// ask is begin with the redirect binding.
func (p *samlParty) ask(t testing.TB, r serviceprovider.Request) (answer, *url.URL) {
	t.Helper()
	return p.begin(t, serviceprovider.Redirect, r)
}

// deliver carries a message to the tenant. A form comes from another site, so without cookies.
func (p *samlParty) deliver(t testing.TB, m serviceprovider.Message) (answer, *url.URL) {
	t.Helper()
	target, ours := strings.CutPrefix(m.URL, p.base())
	if !ours {
		t.Fatalf("the message is for %s", m.URL)
	}
	if m.Form == nil {
		return p.browse(t, target)
	}
	a := p.send(t, "POST", target, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(m.Form.Encode()))
	p.keep(t, a)
	to, err := url.Parse(a.header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return a, to
}

// responseForm returns the form of a page that posts a response to an application.
func responseForm(t testing.TB, a answer) (action string, form url.Values) {
	t.Helper()
	return posted(t, shown{a.status, a.header, a.text})
}

// accept completes the sign-in at the application.
func (p *samlParty) accept(t testing.TB, a answer) serviceprovider.Identity {
	t.Helper()
	action, form := responseForm(t, a)
	equal(t, "the assertion consumer service", action, p.sp.ACS)
	identity, err := p.sp.Finish(&p.pending, form, p.w.now())
	if err != nil {
		t.Fatalf("refused: %v: %s\n%s", err, detailOf(err), documentOf(t, form))
	}
	return identity
}

// documentOf returns the response in a form.
func documentOf(t testing.TB, form url.Values) string {
	t.Helper()
	document, err := base64.StdEncoding.DecodeString(form.Get("SAMLResponse"))
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

func detailOf(err error) string {
	refused, _ := errors.AsType[*serviceprovider.Error](err)
	return refused.Detail
}

// status returns the second status of a response without an assertion.
func (p *samlParty) status(t testing.TB, a answer) string {
	t.Helper()
	action, form := responseForm(t, a)
	equal(t, "the assertion consumer service", action, p.sp.ACS)
	_, err := p.sp.Finish(&p.pending, form, p.w.now())
	if err == nil {
		t.Fatal("there is an assertion")
	}
	document := documentOf(t, form)
	found := regexp.MustCompile(`status:([A-Za-z]+)"/></`).FindStringSubmatch(document)
	if found == nil || strings.Contains(document, "Assertion ") {
		t.Fatalf("%v: %s\n%s", err, detailOf(err), document)
	}
	return found[1]
}

// identity signs the user in at the application.
func (p *samlParty) identity(t testing.TB) serviceprovider.Identity {
	t.Helper()
	a, _ := p.ask(t, serviceprovider.Request{})
	return p.accept(t, a)
}

// samlSignOn signs users in with both bindings.
func samlSignOn(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	id := member(t, c, "ann@example.com")
	p := newSAMLParty(t, w, c, "signed", true, object{"want_authn_requests_signed": true, "sign_response": true})
	equal(t, "in use", c.want(t, 200, "", "GET", appsPath+"/"+p.app["id"].(string), nil).data()["can_delete"], true)

	// Without a session the user signs in first, in this browser.
	a, to := p.ask(t, serviceprovider.Request{})
	equal(t, "first", []any{a.status, to.Path, len(p.browser)}, []any{302, "/auth/sign-in", 1})
	resume := to.Query().Get("next")
	flow := c.with("").want(t, 200, "", "GET", authPath+"/flows/"+p.flow, nil).data()
	equal(t, "flow", []any{flow["client"], flow["scopes"], flow["group_scopes"]}, []any{object{"name": "signed", "logo_uri": nil}, []any{"openid"}, []any{}})
	other := *p.relyingParty
	other.browser = nil
	stolen, _ := other.browse(t, resume)
	equal(t, "another browser", stolen.status, 400)
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	a, _ = p.browse(t, resume)
	first := p.accept(t, a)
	equal(t, "name", []any{first.Subject.Format, first.Subject.NameQualifier, first.Subject.SPNameQualifier, first.AuthnContext, len(first.Attributes)},
		[]any{persistentName, p.base() + "/saml/idp/metadata", p.sp.EntityID, plainContext, 0})
	if strings.Contains(first.Subject.Value, id) || len(first.Subject.Value) != 43 || first.SessionIndex == "" {
		t.Errorf("subject %q, session %q", first.Subject.Value, first.SessionIndex)
	}

	// A form of another site has no cookies; the request to which it is redirected has them.
	a, to = p.begin(t, serviceprovider.Post, serviceprovider.Request{})
	equal(t, "by a form", []any{a.status, to.Path}, []any{303, "/oauth2/authorize/resume"})
	a, _ = p.browse(t, to.String())
	second := p.accept(t, a)
	// A form of this site has them at once.
	message, pending, err := func() (serviceprovider.Message, serviceprovider.Pending, error) {
		sp := *p.sp
		sp.IdentityProvider.SingleSignOn = slices.DeleteFunc(slices.Clone(sp.IdentityProvider.SingleSignOn), func(s serviceprovider.Service) bool { return s.Binding != serviceprovider.Post })
		return sp.Begin(serviceprovider.Request{}, w.now())
	}()
	if err != nil {
		t.Fatal(err)
	}
	p.pending = pending
	p.accept(t, p.send(t, "POST", "/saml/idp/sso", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Cookie": {"__Host-sid=" + p.session}}, []byte(message.Form.Encode())))
	equal(t, "again", []any{second.Subject, second.SessionIndex}, []any{first.Subject, first.SessionIndex})
	equal(t, "in use", c.want(t, 200, "", "GET", appsPath+"/"+p.app["id"].(string), nil).data()["can_delete"], false)
	c.want(t, 409, "application_has_active_sessions", "DELETE", appsPath+"/"+p.app["id"].(string), nil)
	equal(t, "used", c.want(t, 200, "", "GET", appsPath+"/"+p.app["id"].(string), nil).data()["audit_summary"].(map[string]any)["last_used_at"] != nil, true)
	mine := c.with(p.session).want(t, 200, "", "GET", authorizationsPath, nil).list()
	equal(t, "authorizations", []any{len(mine), mine[0].(map[string]any)["name"]}, []any{1, "signed"})

	// A new session has another index.
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	third := p.identity(t)
	equal(t, "another session", []any{third.Subject, third.SessionIndex != first.SessionIndex}, []any{first.Subject, true})

	// Another application gets another name; one that encrypts, too.
	secretly := newSAMLParty(t, w, c, "secretly", true, object{"encrypt_assertion": true})
	secretly.session = p.session
	a, _ = secretly.ask(t, serviceprovider.Request{})
	_, form := responseForm(t, a)
	if text := documentOf(t, form); strings.Contains(text, "NameID") || !strings.Contains(text, "EncryptedAssertion") {
		t.Errorf("not encrypted: %s", text)
	}
	equal(t, "another application", secretly.accept(t, a).Subject.Value != first.Subject.Value, true)

	// ForceAuthn requires another sign-in, IsPassive refuses if one is needed.
	_, to = p.ask(t, serviceprovider.Request{ForceAuthn: true})
	equal(t, "forced", to.Path, "/auth/sign-in")
	resume = to.Query().Get("next")
	_, to = p.browse(t, resume)
	equal(t, "with the same session", to.Path, "/auth/sign-in")
	a, _ = p.ask(t, serviceprovider.Request{Passive: true})
	p.accept(t, a)
	a, _ = p.ask(t, serviceprovider.Request{Passive: true, ForceAuthn: true})
	equal(t, "passive and forced", p.status(t, a), "NoPassive")
	_, to = p.ask(t, serviceprovider.Request{ForceAuthn: true})
	resume = to.Query().Get("next")
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	a, _ = p.browse(t, resume)
	p.accept(t, a)
	p.session = ""
	a, _ = p.ask(t, serviceprovider.Request{Passive: true})
	equal(t, "passive without a session", p.status(t, a), "NoPassive")

	// A user who was disabled gets nothing, nor does a disabled application.
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	_, to = p.ask(t, serviceprovider.Request{ForceAuthn: true})
	resume = to.Query().Get("next")
	c.want(t, 200, "", "POST", appsPath+"/"+p.app["id"].(string)+"/disable", nil)
	a, _ = p.ask(t, serviceprovider.Request{})
	equal(t, "disabled", []any{a.status, strings.Contains(a.text, "disabled")}, []any{400, true})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	a, _ = p.browse(t, resume)
	equal(t, "disabled meanwhile", []any{a.status, strings.Contains(a.text, "SAMLResponse")}, []any{400, false})
	c.want(t, 200, "", "POST", appsPath+"/"+p.app["id"].(string)+"/enable", nil)
	p.identity(t)
	c.want(t, 200, "", "POST", "/api/v1/users/"+id+"/disable", nil)
	_, to = p.ask(t, serviceprovider.Request{})
	equal(t, "disabled user", to.Path, "/auth/sign-in")
}

// samlUsers states what applications are configured to get about users.
func samlUsers(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	id := c.want(t, 201, "", "POST", "/api/v1/users", object{
		"email": "ann@example.com", "password": secret, "email_verified": true, "name": "Ann Lee", "given_name": "Ann", "family_name": "Lee", "locale": "de-CH",
		"attributes": object{"unit": "R&D", "level": 7, "remote": true, "sites": []any{"Bern", "Biel"}, "nested": object{"x": 1}, "none": nil},
	}).data()["id"].(string)
	for _, slug := range []string{"writers", "editors"} {
		group := c.want(t, 201, "", "POST", groupsPath, object{"name": slug, "slug": slug}).data()["id"].(string)
		c.want(t, 201, "", "POST", groupsPath+"/"+group+"/members", object{"user_id": id})
	}
	statement := func(name, value string) object { return object{"name": name, "name_format": "basic", "value": value} }
	all := []any{
		object{"name": "urn:oid:0.9.2342.19200300.100.1.3", "name_format": "uri", "value": "email"},
		object{"name": "verified", "name_format": "unspecified", "value": "email_verified"},
		statement("id", "id"), statement("name", "name"), statement("first", "given_name"), statement("last", "family_name"), statement("locale", "locale"),
		statement("picture", "picture"), statement("groups", "groups"), statement("unit", "attributes.unit"), statement("level", "attributes.level"),
		statement("remote", "attributes.remote"), statement("sites", "attributes.sites"), statement("nested", "attributes.nested"), statement("none", "attributes.none"), statement("other", "attributes.other"),
	}
	p := newSAMLParty(t, w, c, "everything", false, object{"attribute_statements": all, "name_id_format": "emailAddress"})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	a, _ := p.ask(t, serviceprovider.Request{})
	got := p.accept(t, a)
	equal(t, "name", []any{got.Subject.Format, got.Subject.Value, got.Subject.SPNameQualifier}, []any{emailName, "ann@example.com", ""})
	want := map[string]any{
		"urn:oid:0.9.2342.19200300.100.1.3": []string{"ann@example.com"}, "verified": []string{"true"}, "id": []string{id}, "name": []string{"Ann Lee"}, "first": []string{"Ann"},
		"last": []string{"Lee"}, "locale": []string{"de-CH"}, "groups": []string{"editors", "writers"}, "unit": []string{"R&D"}, "level": []string{"7"},
		"remote": []string{"true"}, "sites": []string{"Bern", "Biel"},
	}
	equal(t, "attributes", got.Attributes, want)
	_, form := responseForm(t, a)
	for _, format := range []string{"uri", "basic", "unspecified"} {
		if !strings.Contains(documentOf(t, form), `NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:`+format+`"`) {
			t.Errorf("no attribute has the format %s", format)
		}
	}

	// A transient name belongs to the session.
	transient := newSAMLParty(t, w, c, "transient", false, object{"name_id_format": "transient"})
	transient.session = p.session
	one := transient.identity(t)
	equal(t, "transient", []any{one.Subject.Format, one.Subject.Value}, []any{transientName, transient.identity(t).Subject.Value})
	transient.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	equal(t, "in another session", transient.identity(t).Subject.Value != one.Subject.Value, true)

	// The format is that of the application, whatever the request asks for.
	transient.sp.NameIDFormat = emailName
	a, _ = transient.ask(t, serviceprovider.Request{})
	equal(t, "another format", transient.status(t, a), "InvalidNameIDPolicy")
	transient.sp.NameIDFormat = transientName
	transient.identity(t)

	// An address that is not verified is not stated.
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"require_verified_email": false})
	c.want(t, 201, "", "POST", "/api/v1/users", object{"email": "eve@example.com", "password": secret, "name": "Eve"})
	p.session = signIn(t, c, "eve@example.com", secret, "complete").data()["session_token"].(string)
	a, _ = p.ask(t, serviceprovider.Request{})
	equal(t, "an address as name", []any{a.status, strings.Contains(a.text, "verified e-mail address")}, []any{400, true})
	byName := newSAMLParty(t, w, c, "by-name", false, object{"attribute_statements": all})
	byName.session = p.session
	attributes := byName.identity(t).Attributes
	equal(t, "an address as attribute", []any{attributes["urn:oid:0.9.2342.19200300.100.1.3"], attributes["verified"], attributes["name"]}, []any{nil, []string{"false"}, []string{"Eve"}})
}

// samlRefuses shows a page for messages of which it is not known that the application sent them.
func samlRefuses(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	p := newSAMLParty(t, w, c, "registered", true, object{"want_authn_requests_signed": true, "acs_urls": []any{"https://registered.example.com/acs2"}})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	p.identity(t)
	page := func(what string, sp serviceprovider.Provider) {
		t.Helper()
		for _, binding := range []string{serviceprovider.Redirect, serviceprovider.Post} {
			q := *p
			q.sp = &sp
			a, _ := q.begin(t, binding, serviceprovider.Request{})
			if a.status != 400 || a.header.Get("Location") != "" || strings.Contains(a.text, "SAMLResponse") || strings.Contains(a.text, "evil") {
				t.Errorf("%s: %d to %q\n%s", what, a.status, a.header.Get("Location"), a.text)
			}
		}
	}
	second := *p.sp
	second.ACS = "https://registered.example.com/acs2"
	q := *p
	q.sp = &second
	q.identity(t)

	foreign := *p.sp
	foreign.ACS = "https://evil.example.com/acs"
	page("an ACS that is not registered", foreign)
	unknown := *p.sp
	unknown.EntityID = "https://evil.example.com/saml"
	page("an unknown application", unknown)
	unsigned := *p.sp
	unsigned.Keys = nil
	page("an unsigned request", unsigned)
	forged := *p.sp
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	forged.Keys = []serviceprovider.Key{{Private: key, Certificate: p.sp.Keys[0].Certificate}}
	page("a signature of another key", forged)
	elsewhere := *p.sp
	elsewhere.IdentityProvider.SingleSignOn = slices.Clone(elsewhere.IdentityProvider.SingleSignOn)
	for i := range elsewhere.IdentityProvider.SingleSignOn {
		elsewhere.IdentityProvider.SingleSignOn[i].Location += "?x"
	}
	page("a request for another address", elsewhere)
	w.later(-time.Hour)
	message, _, err := p.sp.Begin(serviceprovider.Request{}, w.now())
	if err != nil {
		t.Fatal(err)
	}
	w.ahead.Store(0)
	a, _ := p.deliver(t, message)
	equal(t, "an old request", a.status, 400)

	// An application of another type, and of another tenant, is not a service provider.
	other := w.tenant(t, "saml-refuses-other")
	message, _, err = p.sp.Begin(serviceprovider.Request{}, w.now())
	if err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(message.URL, "?")
	for _, target := range []string{"?" + query, "?SAMLRequest=x", "?SAMLRequest=%3D&SAMLRequest=%3D", "", "?SAMLResponse=" + url.QueryEscape("PHgvPg==")} {
		equal(t, target, other.with("").send(t, "GET", "/saml/idp/sso"+target, nil, nil).status, 400)
	}
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	for _, body := range []string{"", "SAMLRequest=%zz", "SAMLRequest=" + strings.Repeat("QUJD", 140_000)} {
		equal(t, "a form", c.with("").send(t, "POST", "/saml/idp/sso", form, []byte(body)).status, 400)
		equal(t, "a form", c.with("").send(t, "POST", "/saml/idp/slo", form, []byte(body)).status, 400)
	}
	equal(t, "JSON", c.with("").send(t, "POST", "/saml/idp/sso", http.Header{"Content-Type": {"application/json"}}, []byte("{}")).status, 415)
	equal(t, "JSON", c.with("").send(t, "POST", "/saml/idp/slo", http.Header{"Content-Type": {"application/json"}}, []byte("{}")).status, 415)
}

// samlConsent asks for consent to attributes, and for a second factor where a request requires one.
func samlConsent(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	p := newSAMLParty(t, w, c, "guest", false, object{"first_party": false, "name_id_format": "persistent", "attribute_statements": []any{
		object{"name": "mail", "name_format": "basic", "value": "email"},
		object{"name": "name", "name_format": "basic", "value": "name"},
		object{"name": "groups", "name_format": "basic", "value": "groups"},
		object{"name": "unit", "name_format": "basic", "value": "attributes.unit"},
	}})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	user := c.with(p.session)
	waits := func() {
		t.Helper()
		_, to := p.ask(t, serviceprovider.Request{})
		equal(t, "asked", to.Path, "/auth/consent")
	}
	decide := func(form object) answer {
		t.Helper()
		form["flow_id"] = p.flow
		a, _ := p.browse(t, user.want(t, 200, "", "POST", authPath+"/consent", form).data()["redirect_to"].(string))
		return a
	}
	a, _ := p.ask(t, serviceprovider.Request{Passive: true})
	equal(t, "passive", p.status(t, a), "NoPassive")
	waits()
	equal(t, "shown", user.want(t, 200, "", "GET", authPath+"/flows/"+p.flow, nil).data()["scopes"], []any{"openid", "email", "profile", "saml:groups", "saml:attributes"})
	page := p.visit(t, "GET", "/auth/consent?flow="+p.flow, http.Header{"Cookie": {"__Host-sid=" + p.session}}, nil)
	for _, words := range []string{"See your groups", "See other details about you", "See your e-mail address"} {
		if !strings.Contains(page.html, words) {
			t.Errorf("the page of the consent does not say %q", words)
		}
	}
	equal(t, "denied", p.status(t, decide(object{"decision": "deny"})), "RequestDenied")
	waits()
	equal(t, "a part", p.accept(t, decide(object{"decision": "allow", "scopes": []any{"openid", "email"}})).Attributes, map[string]any{"mail": []string{"ann@example.com"}})
	waits()
	equal(t, "all", len(p.accept(t, decide(object{"decision": "allow"})).Attributes), 2) // the user has no groups and no unit
	p.identity(t)
	equal(t, "events", slices.Contains(w.types(t, c, "consent."), "consent.granted"), true)

	// What the application gets in addition needs consent again, and so does everything after the user
	// has removed the application.
	c.want(t, 200, "", "PATCH", appsPath+"/"+p.app["id"].(string), object{"name_id_format": "emailAddress", "attribute_statements": []any{object{"name": "name", "name_format": "basic", "value": "name"}}})
	equal(t, "less", p.identity(t).Subject.Format, emailName)
	user.want(t, 204, "", "DELETE", authorizationsPath+"/"+p.app["id"].(string), nil)
	waits()
	equal(t, "without the name", p.status(t, decide(object{"decision": "allow", "scopes": []any{"openid"}})), "RequestDenied")
}

// samlContexts requires a second factor if the application does.
func samlContexts(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	member(t, c, "bob@example.com")
	p := newSAMLParty(t, w, c, "strict", false, nil)
	strong := serviceprovider.Request{AuthnContexts: []string{mfaContext}}
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	a, _ := p.ask(t, serviceprovider.Request{AuthnContexts: []string{plainContext}})
	equal(t, "plain", p.accept(t, a).AuthnContext, plainContext)
	a, _ = p.ask(t, serviceprovider.Request{AuthnContexts: []string{mfaContext, plainContext}})
	equal(t, "preferred", p.accept(t, a).AuthnContext, plainContext)
	a, _ = p.ask(t, serviceprovider.Request{AuthnContexts: []string{"urn:oasis:names:tc:SAML:2.0:ac:classes:Smartcard"}})
	equal(t, "unknown", p.status(t, a), "NoAuthnContext")
	a, _ = p.ask(t, serviceprovider.Request{AuthnContexts: []string{mfaContext}, Passive: true})
	equal(t, "passive", p.status(t, a), "NoAuthnContext")

	// A user without a factor adds one, and a user with a factor proves it.
	_, to := p.ask(t, strong)
	equal(t, "enrol", []any{to.Path, to.Query().Get("done")}, []any{"/account/security", "enrol"})
	resume := to.Query().Get("next")
	key, _ := enrol(t, w, c.with(p.session))
	a, _ = p.browse(t, resume)
	equal(t, "enrolled", p.accept(t, a).AuthnContext, mfaContext)
	equal(t, "without a requirement", p.identity(t).AuthnContext, mfaContext)
	a, _ = p.ask(t, serviceprovider.Request{AuthnContexts: []string{plainContext}})
	equal(t, "plain", p.accept(t, a).AuthnContext, plainContext)
	w.later(time.Minute)
	waiting := signIn(t, c, "ann@example.com", secret, "mfa_required").data()["mfa_token"]
	p.session = c.with("").want(t, 200, "", "POST", authPath+"/mfa/verify", object{"mfa_token": waiting, "kind": "totp", "code": code(t, key, w.now())}).data()["session_token"].(string)
	a, _ = p.ask(t, strong)
	equal(t, "proved", p.accept(t, a).AuthnContext, mfaContext)
	w.later(20 * time.Minute)
	_, to = p.ask(t, strong)
	equal(t, "too long ago", to.Path, "/account/step-up")

	// Without second factors there is no way.
	w.ahead.Store(0)
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"mfa_policy": object{"mode": "off"}})
	p.session = signIn(t, c, "bob@example.com", secret, "complete").data()["session_token"].(string)
	a, _ = p.ask(t, strong)
	equal(t, "no way", p.status(t, a), "NoAuthnContext")
}

// samlLaunch signs users in to applications that allow a start at the tenant.
func samlLaunch(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	p := newSAMLParty(t, w, c, "launched", false, object{"allow_idp_initiated": true})
	closed := newSAMLParty(t, w, c, "closed", false, nil)
	at := "/saml/idp/sso/" + p.app["id"].(string)
	accept := func(a answer, relayState string) {
		t.Helper()
		action, form := responseForm(t, a)
		equal(t, "posted", []any{action, form.Get("RelayState")}, []any{p.sp.ACS, relayState})
		sp := *p.sp
		_, err := sp.Finish(nil, form, w.now())
		equal(t, "not allowed there", err != nil, true)
		sp.AllowIDPInitiated = true
		identity, err := sp.Finish(nil, form, w.now())
		if err != nil || !identity.Unsolicited {
			t.Fatalf("%v: %s", err, detailOf(err))
		}
	}
	_, to := p.browse(t, at+"?RelayState=inbox")
	equal(t, "signed out", to.Path, "/auth/sign-in")
	resume := to.Query().Get("next")
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	a, _ := p.browse(t, resume)
	accept(a, "inbox")

	// A link of another site needs a confirmation.
	_, to = p.browse(t, at)
	equal(t, "a link", to.Path, "/auth/select-account")
	_, again := p.browse(t, "/oauth2/authorize/resume?flow="+p.flow)
	equal(t, "not confirmed", again.Path, "/auth/select-account")
	a, _ = p.browse(t, c.with(p.session).want(t, 200, "", "POST", authPath+"/select-account", object{"flow_id": p.flow}).data()["redirect_to"].(string))
	accept(a, "")
	own := p.send(t, "GET", at, http.Header{"Cookie": {"__Host-sid=" + p.session}, "Sec-Fetch-Site": {"same-origin"}}, nil)
	accept(own, "")

	oauth := c.want(t, 201, "", "POST", appsPath, object{"name": "x", "type": "server"}).data()["id"].(string)
	for what, target := range map[string]string{
		"not allowed": "/saml/idp/sso/" + closed.app["id"].(string), "unknown": "/saml/idp/sso/app_x", "another type": "/saml/idp/sso/" + oauth, "a long RelayState": at + "?RelayState=" + strings.Repeat("x", 1025),
	} {
		a, _ := p.browse(t, target)
		equal(t, what, []any{a.status, a.header.Get("Location")}, []any{400, ""})
	}
	// What the application does not allow any more ends at the next step.
	p.browse(t, at)
	redirect := c.with(p.session).want(t, 200, "", "POST", authPath+"/select-account", object{"flow_id": p.flow}).data()["redirect_to"].(string)
	c.want(t, 200, "", "PATCH", appsPath+"/"+p.app["id"].(string), object{"allow_idp_initiated": false})
	a, _ = p.browse(t, redirect)
	equal(t, "not allowed meanwhile", []any{a.status, strings.Contains(a.text, "SAMLResponse")}, []any{400, false})
	c.want(t, 200, "", "PATCH", appsPath+"/"+p.app["id"].(string), object{"allow_idp_initiated": true})
	c.want(t, 200, "", "POST", appsPath+"/"+p.app["id"].(string)+"/disable", nil)
	for _, target := range []string{at, redirect} {
		a, _ := p.browse(t, target)
		equal(t, "disabled", []any{a.status, strings.Contains(a.text, "SAMLResponse")}, []any{400, false})
	}
}

// samlLogout ends the sessions that an application names.
func samlLogout(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	p := newSAMLParty(t, w, c, "leaving", true, nil)
	sign := func() (session string, identity serviceprovider.Identity) {
		t.Helper()
		p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
		return p.session, p.identity(t)
	}
	live := func(session string) bool {
		t.Helper()
		return c.with(session).do(t, "GET", authorizationsPath, nil).status == 200
	}
	leave := func(binding string, sp serviceprovider.Provider, subject serviceprovider.NameID, sessionIndex string) (answer, serviceprovider.PendingLogout) {
		t.Helper()
		sp.IdentityProvider.SingleLogout = slices.DeleteFunc(slices.Clone(sp.IdentityProvider.SingleLogout), func(s serviceprovider.Service) bool { return s.Binding != binding })
		message, pending, err := sp.BeginLogout(subject, sessionIndex, w.now())
		if err != nil {
			t.Fatal(err)
		}
		a, _ := p.deliver(t, message)
		return a, pending
	}
	// finish completes the sign-out at the application.
	finish := func(a answer, pending serviceprovider.PendingLogout) (complete bool) {
		t.Helper()
		to := a.header.Get("Location")
		at, query, _ := strings.Cut(to, "?")
		equal(t, "answered", []any{a.status == 302 || a.status == 303, at}, []any{true, p.sp.SLO})
		logout, err := p.sp.ReadLogoutQuery(query, w.now())
		if err == nil {
			complete, err = p.sp.FinishLogout(pending, logout)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, detailOf(err))
		}
		return complete
	}

	for _, binding := range []string{serviceprovider.Redirect, serviceprovider.Post} {
		other, _ := sign()
		session, identity := sign()
		a, pending := leave(binding, *p.sp, identity.Subject, identity.SessionIndex)
		equal(t, "complete", finish(a, pending), true)
		equal(t, "sessions", []bool{live(session), live(other)}, []bool{false, true})
		equal(t, "the cookie", strings.Contains(strings.Join(a.header["Set-Cookie"], " "), "__Host-sid=;"), binding == serviceprovider.Redirect)
		a, pending = leave(binding, *p.sp, identity.Subject, identity.SessionIndex)
		equal(t, "again", finish(a, pending), true)
		a, pending = leave(binding, *p.sp, serviceprovider.NameID{Value: identity.Subject.Value}, "") // all sessions
		equal(t, "all", finish(a, pending), true)
		equal(t, "sessions", live(other), false)
	}
	equal(t, "events", slices.Contains(w.types(t, c, "session.", "user.signed_out"), "session.revoked"), true)

	// Only the application can name its users and sessions.
	session, identity := sign()
	foreign := newSAMLParty(t, w, c, "foreign", true, nil)
	nobody := identity.Subject
	nobody.SPNameQualifier = foreign.sp.EntityID
	for what, subject := range map[string]serviceprovider.NameID{"another name": {Value: "x"}, "another qualifier": nobody, "another format": {Value: identity.Subject.Value, Format: emailName}} {
		a, pending := leave(serviceprovider.Redirect, *p.sp, subject, identity.SessionIndex)
		equal(t, what, []bool{finish(a, pending), live(session)}, []bool{true, true})
	}
	theirs, _, err := foreign.sp.BeginLogout(identity.Subject, identity.SessionIndex, w.now())
	if err != nil {
		t.Fatal(err)
	}
	foreign.deliver(t, theirs)
	equal(t, "another application", live(session), true)
	forged := *p.sp
	forged.Keys = slices.Clone(forged.Keys)
	if forged.Keys[0].Private, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	a, _ := leave(serviceprovider.Redirect, forged, identity.Subject, identity.SessionIndex)
	equal(t, "forged", []any{a.status, live(session)}, []any{400, true})
	a, _ = leave(serviceprovider.Post, forged, identity.Subject, identity.SessionIndex)
	equal(t, "forged", []any{a.status, live(session)}, []any{400, true})
	c.want(t, 200, "", "PATCH", appsPath+"/"+p.app["id"].(string), object{"slo_url": nil})
	a, _ = leave(serviceprovider.Redirect, *p.sp, identity.Subject, identity.SessionIndex)
	equal(t, "without an slo_url", []any{a.status, live(session)}, []any{400, true})
	c.want(t, 200, "", "PATCH", appsPath+"/"+p.app["id"].(string), object{"slo_url": p.sp.SLO})

	// Other applications of the session are not notified, and the answer says so.
	foreign.session = p.session
	foreign.identity(t)
	a, pending := leave(serviceprovider.Redirect, *p.sp, identity.Subject, identity.SessionIndex)
	equal(t, "partial", []bool{finish(a, pending), live(session)}, []bool{false, false})
}

// samlPublishes publishes the next certificate before it signs.
func samlPublishes(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	p := newSAMLParty(t, w, c, "patient", false, nil)
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	first := p.sp.IdentityProvider
	equal(t, "certificates", len(first.Certificates), 1)
	tag := c.with("").send(t, "GET", "/saml/idp/metadata", nil, nil).header.Get("ETag")
	equal(t, "unchanged", c.with("").send(t, "GET", "/saml/idp/metadata", http.Header{"If-None-Match": {tag}}, nil).status, 304)
	c.want(t, 200, "", "POST", samlCertificatesPath+"/rotate", object{"use": "identity_provider"})
	p.readMetadata(t)
	equal(t, "with the next one", []any{len(p.sp.IdentityProvider.Certificates), slices.Equal(p.sp.IdentityProvider.Certificates[0], first.Certificates[0])}, []any{2, true})
	p.sp.IdentityProvider.Certificates = first.Certificates
	p.identity(t) // still signed by the first

	p.readMetadata(t)
	w.later(7*24*time.Hour + time.Minute)
	if err := w.config.SAMLKeys.(*samlkeys.Store).RotateDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "the next one is the active one", certificateStates(t, c.want(t, 200, "", "GET", samlCertificatesPath, nil)), []string{"identity_provider active true", "identity_provider retired true"})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	p.identity(t)
	p.sp.IdentityProvider.Certificates = first.Certificates
	a, _ := p.ask(t, serviceprovider.Request{})
	_, form := responseForm(t, a)
	_, err := p.sp.Finish(&p.pending, form, w.now())
	equal(t, "the first one signs no more", err != nil, true)
	w.ahead.Store(0)
}
