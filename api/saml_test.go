package api_test

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crewjam/saml"

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

var (
	formAction = regexp.MustCompile(`<form method="post" action="([^"]*)">`)
	formField  = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
)

// posted returns the form of a page that posts itself.
func posted(t testing.TB, a answer) (action string, form url.Values) {
	t.Helper()
	found := formAction.FindStringSubmatch(a.text)
	if a.status != 200 || found == nil || !strings.Contains(a.header.Get("Content-Security-Policy"), "script-src 'sha256-") || strings.Contains(a.header.Get("Content-Security-Policy"), "form-action") {
		t.Fatalf("no form: %d to %q\n%s", a.status, a.header.Get("Location"), a.text)
	}
	form = url.Values{}
	for _, field := range formField.FindAllStringSubmatch(a.text, -1) {
		form.Set(html.UnescapeString(field[1]), html.UnescapeString(field[2]))
	}
	return html.UnescapeString(found[1]), form
}

// accept completes the sign-in at the application.
func (p *samlParty) accept(t testing.TB, a answer) serviceprovider.Identity {
	t.Helper()
	action, form := posted(t, a)
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
	action, form := posted(t, a)
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
	_, form := posted(t, a)
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

// Names of unused imports until the other scenarios are there.
var (
	_ = cmp.Or[string]
	_ = saml.StatusSuccess
	_ = samlkeys.IdentityProvider
	_ time.Duration
	_ = transientName + emailName + mfaContext
)
