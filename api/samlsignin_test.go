package api_test

import (
	"crypto/rand"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/identity/federation"
	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/samlprotocol/samltest"
)

const (
	samlRedirect   = serviceprovider.Redirect
	samlPost       = serviceprovider.Post
	samlTransient  = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
	samlPersistent = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
)

var samlKey = sync.OnceValue(newSAMLKey)

// newSAMLKey returns a key whose certificate is valid now.
func newSAMLKey() serviceprovider.Key {
	return samltest.NewKey(samltest.RSA(2048).Private, time.Now())
}

// newSAML returns an identity provider whose users do what the test says.
func newSAML(w *world, bindings ...string) *samltest.IdentityProvider {
	return &samltest.IdentityProvider{EntityID: "https://idp.example.com/metadata", SSO: "https://idp.example.com/sso", Bindings: bindings, Key: samlKey(), Clock: w.now}
}

// partner connects a tenant to a SAML identity provider.
func partner(t testing.TB, c *client, p *samltest.IdentityProvider, more object) (path string) {
	t.Helper()
	path, _ = connect(t, c, with(object{"kind": "saml", "slug": "partner", "name": "Partner", "idp_metadata_xml": p.Metadata()}, more))
	return path
}

var (
	formAction = regexp.MustCompile(`<form method="post" action="([^"]*)">`)
	formField  = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
)

// posted returns the form that a page posts, and its address.
func posted(t testing.TB, page shown) (to string, form url.Values) {
	t.Helper()
	action := formAction.FindStringSubmatch(page.html)
	if page.status != 200 || action == nil || !strings.HasPrefix(page.header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'sha256-") || strings.Contains(page.header.Get("Content-Security-Policy"), "form-action") || !strings.Contains(page.html, "<button>Continue</button>") {
		t.Fatalf("no page that posts a form: %d %v %s", page.status, page.header, page.html)
	}
	form = url.Values{}
	for _, field := range formField.FindAllStringSubmatch(page.html, -1) {
		form.Add(field[1], html.UnescapeString(field[2]))
	}
	return html.UnescapeString(action[1]), form
}

// startSAML starts a sign-in, and returns the request as the identity provider reads it.
func (c *client) startSAML(t testing.TB, p *samltest.IdentityProvider, query string) (begun, samltest.Request) {
	t.Helper()
	page := c.visit(t, "GET", authPath+"/federation/partner/start"+query, nil, nil)
	to, form := page.header.Get("Location"), url.Values(nil)
	if page.status != 303 {
		to, form = posted(t, page)
	}
	return begunBy(t, page.header, to), p.Read(t, to, form)
}

// returned posts the response of an identity provider from its site, and follows to the page that
// reads it.
func (c *client) returned(t testing.TB, slug string, cookies []string, response url.Values) shown {
	t.Helper()
	crossSite := http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://idp.example.com"}}
	page := c.visit(t, "POST", "/saml/sp/"+slug+"/acs", crossSite, response)
	if len(page.header.Values("Set-Cookie")) > 0 {
		t.Errorf("cookies by a form of another site: %v", page.header)
	}
	to, form := posted(t, page)
	equal(t, "address", to, "/saml/sp/"+slug+"/response")
	return c.visit(t, "POST", to, http.Header{"Cookie": {strings.Join(cookies, "; ")}, "Sec-Fetch-Site": {"same-origin"}, "Origin": {c.base()}}, form)
}

// samlSignIn signs in at a SAML identity provider, by each binding, in a browser and without one.
func samlSignIn(t *testing.T, w *world, c *client) {
	p := newSAML(w)
	group := c.want(t, 201, "", "POST", "/api/v1/groups", object{"name": "Engineers", "slug": "engineers"}).data()["id"]
	at := partner(t, c, p, object{"domains": []any{"example.org"}, "trust_email": true, "second_factor": "accept", "group_mapping": []any{object{"value": "engineering", "group_id": group}}})
	anyone := c.with("")
	equal(t, "choices", anyone.want(t, 200, "", "GET", authPath+"/policy", nil).data()["connections"], any([]any{map[string]any{"slug": "partner", "kind": "saml", "name": "Partner"}}))
	equal(t, "home realm", anyone.want(t, 200, "", "POST", authPath+"/identify", object{"email": "x@example.org"}).data()["connection"], "partner")
	if page := c.visit(t, "GET", "/auth/sign-in", nil, nil); !strings.Contains(page.html, "/federation/partner/start") {
		t.Errorf("the page has no button:\n%s", page.html)
	}
	email := "saml-" + strings.ToLower(rand.Text()[:8]) + "@example.org"
	attributes := map[string][]string{"mail": {email}, "displayName": {"Ann"}, "memberOf": {"engineering"}}
	b, r := c.startSAML(t, p, "?next=/account/sessions?x=1")
	equal(t, "request", []any{r.ACS, r.Issuer}, []any{c.base() + "/saml/sp/partner/acs", c.base() + "/saml/sp/partner/metadata"})
	response := p.Respond(t, r, samltest.Response{Attributes: attributes, Context: "https://refeds.org/profile/mfa"})
	if page := c.returned(t, "partner", nil, response); c.failure(t, page) == "" || cookieOf(page) != "" {
		t.Errorf("another browser: %d %s", page.status, page.html)
	}
	page := c.returned(t, "partner", b.cookies, response)
	if page.status != 303 || page.header.Get("Location") != "/account/sessions?x=1" || cookieOf(page) == "" {
		t.Fatalf("response: %d %v %s", page.status, page.header, page.html)
	}
	user := c.with(cookieOf(page))
	me := user.want(t, 200, "", "GET", mePath+"/profile", nil).data()
	equal(t, "user", []any{me["email"], me["email_verified"], me["name"]}, []any{email, true, "Ann"})
	equal(t, "amr", user.want(t, 200, "", "GET", authPath+"/session", nil).data()["amr"], any([]any{"fed", "mfa"}))
	identity := user.want(t, 200, "", "GET", mePath+"/identities", nil).list()[0].(map[string]any)
	equal(t, "identity", []any{identity["kind"], identity["subject"], identity["email"]}, []any{"saml", "persistent ann", email})
	members := "/api/v1/groups/" + group.(string) + "/members"
	equal(t, "members", len(c.want(t, 200, "", "GET", members, nil).list()), 1)
	if page := c.returned(t, "partner", b.cookies, response); cookieOf(page) != "" || !strings.Contains(c.failure(t, page), "expired") {
		t.Errorf("the response again: %d %s", page.status, page.html)
	}

	// With the POST binding, without a browser, and without the group.
	p.Bindings = []string{samlPost}
	c.want(t, 200, "", "PATCH", at, object{"idp_metadata_xml": p.Metadata()})
	equal(t, "by the document", anyone.do(t, "GET", authPath+"/federation/partner/start", nil).status, 200)
	b, r = c.startSAML(t, p, "?flow=flw_x")
	attributes["memberOf"] = nil
	form := b.complete("partner", p.Respond(t, r, samltest.Response{Attributes: attributes}))
	d := anyone.want(t, 200, "", "POST", authPath+"/federation/complete", form).data()
	equal(t, "again", []any{d["status"], d["user"].(map[string]any)["id"], d["redirect_to"]}, []any{"complete", me["id"], "/oauth2/authorize/resume?flow=flw_x"})
	equal(t, "members", len(c.want(t, 200, "", "GET", members, nil).list()), 0)
	anyone.want(t, 400, "ceremony_invalid", "POST", authPath+"/federation/complete", form)

	// The forms of other sites.
	repeated := url.Values{"SAMLResponse": {"a", "b"}}
	equal(t, "a repeated field", c.visit(t, "POST", "/saml/sp/partner/acs", nil, repeated).status, 400)
	equal(t, "a large form", c.visit(t, "POST", "/saml/sp/partner/acs", nil, url.Values{"SAMLResponse": {long(600 << 10)}}).status, 413)
	crossSite := http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}, "Cookie": b.cookies}
	equal(t, "a form of another site", c.visit(t, "POST", "/saml/sp/partner/response", crossSite, response).status, 403)
	for _, page := range []string{"acs", "response"} {
		equal(t, "GET "+page, c.visit(t, "GET", "/saml/sp/partner/"+page, nil, nil).status, 405)
	}
	large := p.Respond(t, r, samltest.Response{Attributes: map[string][]string{"x": {long(190 << 10)}}})
	equal(t, "a large response", c.failure(t, c.returned(t, "partner", b.cookies, large)) != "", true) // which is too late, not too large
}

// samlLinking links a NameID with an account, by a proof of the account and from its session.
func samlLinking(t *testing.T, w *world, c *client) {
	p := newSAML(w)
	at := partner(t, c, p, nil)
	email := "saml-" + strings.ToLower(rand.Text()[:8]) + "@example.org"
	userID := member(t, c, email)
	attributes := map[string][]string{"mail": {email}}
	b, r := c.startSAML(t, p, "?next=/account/sessions?x=1")
	page := c.returned(t, "partner", b.cookies, p.Respond(t, r, samltest.Response{Attributes: attributes}))
	step, ok := strings.CutPrefix(page.header.Get("Location"), "/auth/link-account?step=")
	if page.status != 303 || !ok {
		t.Fatalf("%d %v %s", page.status, page.header, page.html)
	}
	var cookies []string
	for _, line := range page.header.Values("Set-Cookie") {
		pair, _, _ := strings.Cut(line, ";")
		cookies = append(cookies, pair)
	}
	page = c.visit(t, "POST", "/auth/link-account", http.Header{"Cookie": {strings.Join(cookies, "; ")}}, url.Values{"step": {step}, "password": {secret}})
	equal(t, "linked", []any{page.status, page.header.Get("Location"), cookieOf(page) != ""}, []any{303, "/account/sessions?x=1", true})
	w.mailbox.take(t, email, "was linked")
	b, r = c.startSAML(t, p, "")
	d := c.with("").want(t, 200, "", "POST", authPath+"/federation/complete", b.complete("partner", p.Respond(t, r, samltest.Response{}))).data()
	equal(t, "user", d["user"].(map[string]any)["id"], userID)

	// From the account, with each binding.
	for _, binding := range []string{samlRedirect, samlPost} {
		p.Bindings = []string{binding}
		c.want(t, 200, "", "PATCH", at, object{"idp_metadata_xml": p.Metadata()})
		email = "saml-" + strings.ToLower(rand.Text()[:8]) + "@example.org"
		member(t, c, email)
		user := c.with(signIn(t, c, email, secret, "complete").data()["session_token"].(string))
		begin := func() (begun, samltest.Request) {
			t.Helper()
			a := user.want(t, 200, "", "POST", mePath+"/identities/begin", object{"slug": "partner"})
			to, form := a.data()["redirect_to"].(string), url.Values(nil)
			if fields, ok := a.data()["form"].(map[string]any); ok {
				form = url.Values{}
				for name, value := range fields {
					form.Set(name, value.(string))
				}
			}
			equal(t, "form", form != nil, binding == samlPost)
			return begunBy(t, a.header, to), p.Read(t, to, form)
		}
		name := serviceprovider.NameID{Value: rand.Text(), Format: samlPersistent}
		b, r := begin()
		form := b.complete("partner", p.Respond(t, r, samltest.Response{NameID: name}))
		c.with("").want(t, 400, "ceremony_invalid", "POST", authPath+"/federation/complete", form)
		user.want(t, 204, "", "POST", mePath+"/identities/complete", form)
		user.want(t, 400, "ceremony_invalid", "POST", mePath+"/identities/complete", form)
		equal(t, "subject", user.want(t, 200, "", "GET", mePath+"/identities", nil).list()[0].(map[string]any)["subject"], "persistent "+name.Value)

		// On pages.
		email = "saml-" + strings.ToLower(rand.Text()[:8]) + "@example.org"
		member(t, c, email)
		browser := asBrowser(signIn(t, c, email, secret, "complete").data()["session_token"].(string))
		page := c.visit(t, "POST", "/account/link-identity", browser, url.Values{"slug": {"partner"}})
		to, fields := page.header.Get("Location"), url.Values(nil)
		if binding == samlPost {
			to, fields = posted(t, page)
		}
		b = begunBy(t, page.header, to)
		name.Value += "2"
		response := p.Respond(t, p.Read(t, to, fields), samltest.Response{NameID: name})
		cookies := append(b.cookies, browser.Get("Cookie"))
		page = c.returned(t, "partner", cookies, response)
		equal(t, "linked", []any{page.status, page.header.Get("Location")}, []any{303, "/account/security?done=linked"})
	}

	// A response to no request links nothing.
	c.want(t, 200, "", "PATCH", at, object{"allow_idp_initiated": true})
	user := c.with(signIn(t, c, email, secret, "complete").data()["session_token"].(string))
	form := begun{}.complete("partner", p.Respond(t, samltest.Request{ACS: r.ACS, Issuer: r.Issuer}, samltest.Response{}))
	user.want(t, 400, "validation_failed", "POST", mePath+"/identities/complete", form)
}

// samlRefusals are responses that sign nobody in.
func samlRefusals(t *testing.T, w *world, c *client) {
	p := newSAML(w)
	at := partner(t, c, p, object{"trust_email": true})
	anyone := c.with("")
	email := "saml-" + strings.ToLower(rand.Text()[:8]) + "@example.org"
	attributes := map[string][]string{"mail": {email}}
	reason := func(want string, change samltest.Response) {
		t.Helper()
		b, r := c.startSAML(t, p, "?next=/account/sessions?x=1")
		change.Attributes = attributes
		a := anyone.want(t, 400, "federation_failed", "POST", authPath+"/federation/complete", b.complete("partner", p.Respond(t, r, change)))
		equal(t, want, []any{a.details()["reason"], a.details()["redirect_to"]}, []any{want, "/account/sessions?x=1"})
		if strings.Contains(a.text, "sent by the provider") {
			t.Errorf("the response has what the provider sent: %s", a.text)
		}
	}
	reason("access_denied", samltest.Response{Status: "urn:oasis:names:tc:SAML:2.0:status:RequestDenied"})
	reason("stale", samltest.Response{InResponseTo: "_of_another"})
	reason("invalid_response", samltest.Response{Audience: "https://other.example"})
	reason("invalid_response", samltest.Response{ACS: c.base() + "/saml/sp/other/acs"})
	reason("misconfigured", samltest.Response{NameID: serviceprovider.NameID{Value: "_1", Format: samlTransient}})
	if !strings.Contains(w.log.String(), "the NameID is transient") {
		t.Error("the log has no details")
	}
	b, r := c.startSAML(t, p, "")
	page := c.returned(t, "partner", b.cookies, p.Respond(t, r, samltest.Response{NameID: serviceprovider.NameID{Value: "_1", Format: samlTransient}}))
	if html := c.failure(t, page); !strings.Contains(html, "not set up correctly") || strings.Contains(html, "transient") {
		t.Errorf("page: %d %s", page.status, page.html)
	}
	b, r = c.startSAML(t, p, "")
	anyone.want(t, 400, "ceremony_invalid", "POST", authPath+"/federation/complete", b.complete("other", p.Respond(t, r, samltest.Response{})))
	_, r = c.startSAML(t, p, "")
	mine, _ := c.startSAML(t, p, "")
	a := anyone.want(t, 400, "federation_failed", "POST", authPath+"/federation/complete", mine.complete("partner", p.Respond(t, r, samltest.Response{})))
	equal(t, "another sign-in", a.details()["reason"], "stale")

	// Sign-ins that the identity provider begins.
	unsolicited := func(change samltest.Response) url.Values {
		change.Attributes = attributes
		form := p.Respond(t, samltest.Request{ACS: r.ACS, Issuer: r.Issuer}, change)
		form.Set("RelayState", "https://evil.example/")
		return form
	}
	if page := c.returned(t, "partner", nil, unsolicited(samltest.Response{})); c.failure(t, page) == "" || cookieOf(page) != "" {
		t.Errorf("not allowed: %d %s", page.status, page.html)
	}
	c.want(t, 200, "", "PATCH", at, object{"allow_idp_initiated": true})
	if page := c.returned(t, "partner", nil, p.Respond(t, r, samltest.Response{Attributes: attributes})); c.failure(t, page) == "" || cookieOf(page) != "" {
		t.Errorf("the response to a request: %d %s", page.status, page.html)
	}
	if page := c.returned(t, "other", nil, unsolicited(samltest.Response{})); c.failure(t, page) == "" || cookieOf(page) != "" {
		t.Errorf("of another connection: %d %s", page.status, page.html)
	}
	response := unsolicited(samltest.Response{})
	page = c.returned(t, "partner", nil, response)
	equal(t, "allowed", []any{page.status, page.header.Get("Location"), cookieOf(page) != ""}, []any{303, "/account", true})

	// The second use of an assertion, at another process.
	other := &client{server: httptestServer(t, w, nil), host: c.host}
	if page := other.returned(t, "partner", nil, response); c.failure(t, page) == "" || cookieOf(page) != "" {
		t.Errorf("replayed: %d %s", page.status, page.html)
	}
	a = other.want(t, 400, "federation_failed", "POST", authPath+"/federation/complete", begun{}.complete("partner", response))
	equal(t, "replayed", a.details()["reason"], "stale")
	anyone.want(t, 400, "validation_failed", "POST", authPath+"/federation/complete", object{"slug": "partner", "parameters": object{}})

	// A connection that is disabled, at each step.
	b, r = c.startSAML(t, p, "")
	c.want(t, 200, "", "POST", at+"/disable", nil)
	form := b.complete("partner", p.Respond(t, r, samltest.Response{Attributes: attributes}))
	anyone.want(t, 403, "connection_disabled", "POST", authPath+"/federation/complete", form)
	anyone.want(t, 403, "connection_disabled", "POST", authPath+"/federation/complete", begun{}.complete("partner", unsolicited(samltest.Response{})))
	equal(t, "start", c.visit(t, "GET", authPath+"/federation/partner/start", nil, nil).status, 403)
}

// samlRollover signs in with a key that the identity provider has published since the last refresh.
func samlRollover(t *testing.T, w *world, c *client) {
	p, site := newSAML(w), newProvider(t)
	site.publish(p.Metadata())
	connect(t, c, object{"kind": "saml", "slug": "partner", "name": "Partner", "idp_metadata_url": site.URL + "/metadata", "trust_email": true})
	attributes := map[string][]string{"mail": {"saml-" + strings.ToLower(rand.Text()[:8]) + "@example.org"}}
	old := p.Key
	p.Key = newSAMLKey()
	try := func(status int, code string) {
		t.Helper()
		b, r := c.startSAML(t, p, "")
		c.with("").want(t, status, code, "POST", authPath+"/federation/complete", b.complete("partner", p.Respond(t, r, samltest.Response{Attributes: attributes})))
	}
	try(400, "federation_failed") // the metadata is young
	w.later(federation.MinRefresh)
	defer w.later(-federation.MinRefresh)
	try(400, "federation_failed") // and does not have the key
	equal(t, "requests", site.requested(), 2)
	site.publish(p.Metadata(old))
	try(400, "federation_failed")
	equal(t, "requests", site.requested(), 2)
	w.later(federation.MinRefresh)
	defer w.later(-federation.MinRefresh)
	try(200, "")
	p.Key = old
	try(200, "")
	equal(t, "requests", site.requested(), 3)
}

// samlMetadataOf reads the metadata of a service provider.
func samlMetadataOf(t *testing.T, w *world, c *client) {
	at := partner(t, c, newSAML(w), nil)
	anyone := c.with("")
	read := func() shown { t.Helper(); return anyone.visit(t, "GET", "/saml/sp/partner/metadata", nil, nil) }
	page := read()
	equal(t, "metadata", []any{page.status, page.header.Get("Content-Type")}, []any{200, "application/samlmetadata+xml"})
	for _, want := range []string{`entityID="` + c.base() + `/saml/sp/partner/metadata"`, `Location="` + c.base() + `/saml/sp/partner/acs"`, `AuthnRequestsSigned="true"`, "X509Certificate"} {
		if !strings.Contains(page.html, want) {
			t.Errorf("no %s in %s", want, page.html)
		}
	}
	c.want(t, 200, "", "POST", at+"/disable", nil)
	equal(t, "disabled", read().html, page.html)
	equal(t, "HEAD", anyone.visit(t, "HEAD", "/saml/sp/partner/metadata", nil, nil).status, 200)
	equal(t, "by the document", anyone.do(t, "GET", "/saml/sp/partner/metadata", nil).status, 200)
	staff(t, c, newOpenID(t, w), nil)
	for _, slug := range []string{"none", "staff", "%00"} {
		anyone.want(t, 404, "connection_not_found", "GET", "/saml/sp/"+slug+"/metadata", nil)
	}
}

// samlTests test a SAML connection.
func samlTests(t *testing.T, w *world, c *client) {
	p := newSAML(w)
	at := partner(t, c, p, nil)
	c.want(t, 200, "", "POST", at+"/disable", nil)
	test := func(change samltest.Response) object {
		t.Helper()
		d := c.want(t, 200, "", "POST", at+"/test", nil).data()
		_, query, _ := strings.Cut(d["test_url"].(string), "?")
		b, r := c.startSAML(t, p, "?"+query)
		if page := c.returned(t, "partner", b.cookies, p.Respond(t, r, change)); page.status != 200 || cookieOf(page) != "" || !strings.Contains(page.html, "The test ") {
			t.Errorf("page: %d %s", page.status, page.html)
		}
		return c.want(t, 200, "", "GET", at+"/test/"+d["test_id"].(string), nil).data()
	}
	codes := func(d object) (list []any) {
		for _, warning := range d["warnings"].([]any) {
			list = append(list, warning.(map[string]any)["code"])
		}
		return list
	}
	const address = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
	d := test(samltest.Response{NameID: serviceprovider.NameID{Value: "ann@example.org", Format: address}, Attributes: map[string][]string{"role": {"a", "b"}}})
	equal(t, "report", []any{d["success"], d["claims_received"]}, []any{true, any(object{"role": []any{"a", "b"}, address: []any{"ann@example.org"}})})
	equal(t, "warnings", codes(d), []any{"reassignable", "unverified"})
	d = test(samltest.Response{NameID: serviceprovider.NameID{Value: "_1", Format: samlTransient}})
	equal(t, "transient", []any{d["success"], d["claims_received"], codes(d)}, []any{false, any(object{samlTransient: []any{"_1"}}), []any{"misconfigured"}})
	d = test(samltest.Response{Audience: "https://other.example"})
	equal(t, "invalid", []any{d["success"], d["claims_received"], codes(d)}, []any{false, nil, []any{"invalid_response"}})
}
