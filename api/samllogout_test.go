package api_test

import (
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/samlprotocol/samltest"
)

var certificateText = regexp.MustCompile(`X509Certificate>([^<]+)<`)

// partnerLogout signs users out with a SAML identity provider: at its request, and at the request of a
// user here, in both bindings.
func partnerLogout(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	for _, binding := range []string{samlprotocol.Redirect, samlprotocol.Post} {
		name := binding[strings.LastIndex(binding, "-")+1:]
		t.Run(name, func(t *testing.T) {
			singleLogout(t, w, w.tenant(t, "saml-logout-"+strings.ToLower(name)), binding)
		})
	}
	p := newSAML(w)
	partner(t, c, p, object{"trust_email": true})
	me := c.with(samlEnters(t, c, p, samltest.Response{}))
	equal(t, "no single logout", me.want(t, 200, "", "POST", authPath+"/federation/logout", nil).data(), object{"redirect_to": nil, "form": nil, "frontchannel_logout_uris": []any{}})
}

// samlEnters signs in at a SAML identity provider, and returns the token of the session.
func samlEnters(t testing.TB, c *client, p *samltest.IdentityProvider, r samltest.Response) string {
	t.Helper()
	if r.Attributes == nil {
		r.Attributes = map[string][]string{"mail": {"ann@example.org"}}
	}
	b, request := c.startSAML(t, p, "")
	return c.with("").want(t, 200, "", "POST", authPath+"/federation/complete", b.complete("partner", p.Respond(t, request, r))).data()["session_token"].(string)
}

func singleLogout(t *testing.T, w *world, c *client, binding string) {
	p := newSAML(w, binding)
	p.SLO = "https://idp.example.com/slo"
	path := partner(t, c, p, object{"trust_email": true})
	slo := c.base() + "/saml/sp/partner/slo"
	metadata := c.visit(t, "GET", "/saml/sp/partner/metadata", nil, nil).html
	equal(t, "metadata", strings.Contains(metadata, `Location="`+slo+`"`), true)
	der, err := base64.StdEncoding.DecodeString(strings.TrimSpace(certificateText.FindStringSubmatch(metadata)[1]))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	idp := samlprotocol.SingleLogout{
		EntityID: p.EntityID, URL: p.SLO, Keys: []samlprotocol.Key{p.Key}, Peer: c.base() + "/saml/sp/partner/metadata",
		Services: []samlprotocol.Service{{Binding: binding, Location: slo}}, Certificates: []*x509.Certificate{certificate},
	}
	// read is a message that a page sends to the identity provider.
	read := func(page shown) samlprotocol.Logout {
		t.Helper()
		var m samlprotocol.Received
		if binding == samlprotocol.Post {
			to, form := posted(t, page)
			equal(t, "to", to, p.SLO)
			m, err = samlprotocol.ReadForm(form)
		} else {
			to, query, _ := strings.Cut(page.header.Get("Location"), "?")
			equal(t, "to", []any{page.status, to}, []any{303, p.SLO})
			m, err = samlprotocol.ReadQuery(query)
		}
		if err != nil {
			t.Fatal(err)
		}
		l, err := idp.Read(m, w.now())
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	// send sends a message of the identity provider through a browser.
	send := func(slug string, m samlprotocol.Message, cookies []string) shown {
		t.Helper()
		at := "/saml/sp/" + slug + "/slo"
		var a answer
		if m.Form != nil {
			fromThere := http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://idp.example.com"}, "Content-Type": {"application/x-www-form-urlencoded"}}
			a = c.with("").send(t, "POST", at, fromThere, []byte(m.Form.Encode()))
		} else {
			_, query, _ := strings.Cut(m.URL, "?")
			a = c.with("").send(t, "GET", at+"?"+query, http.Header{"Cookie": cookies}, nil)
		}
		return shown{a.status, a.header, a.text}
	}
	ann := samlprotocol.NameID{Value: "ann", Format: "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"}
	enters := func(session string) string {
		t.Helper()
		return samlEnters(t, c, p, samltest.Response{Session: session})
	}

	// The user signs out here.
	session := enters("s1")
	page := c.visit(t, "POST", "/auth/sign-out", asBrowser(session), url.Values{"next": {"/account/sessions?x=1"}})
	cookies := begunBy(t, page.header, "").cookies
	l := read(page)
	equal(t, "request", []any{l.Request.Subject, l.Request.SessionIndexes, c.live(t, session)}, []any{ann, []string{"s1"}, false})
	answer, err := idp.Answer(*l.Request, l.RelayState, false, w.now())
	if err != nil {
		t.Fatal(err)
	}
	page = send("partner", answer, cookies)
	at := page.header.Get("Location")
	equal(t, "answer", []any{page.status, at}, []any{303, "/federation/partner/logged-out?state=" + l.RelayState})
	equal(t, "another browser", c.visit(t, "GET", at, nil, nil).header.Get("Location"), "/auth/sign-in?done=out")
	equal(t, "the destination", c.visit(t, "GET", at, http.Header{"Cookie": cookies}, nil).header.Get("Location"), "/account/sessions?x=1")
	app := newParty(t, c, nil)
	app.session = enters("s1")
	hint := app.exchange(t, app.code(t, nil), nil).body["id_token"].(string)
	a := c.with("").send(t, "GET", logoutPath+"?id_token_hint="+hint, asBrowser(app.session), nil)
	page = shown{a.status, a.header, a.text}
	if page.status == 302 {
		page.status = 303
	}
	equal(t, "an application", []any{read(page).Request.Subject, c.live(t, app.session)}, []any{ann, false})

	// The identity provider signs the user out.
	begin := func(subject samlprotocol.NameID, index string) samlprotocol.Message {
		t.Helper()
		m, _, err := idp.Begin(subject, index, w.now())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	one, two := enters("s1"), enters("s2")
	live := func(first, second bool) {
		t.Helper()
		equal(t, "live", []any{c.live(t, one), c.live(t, two)}, []any{first, second})
	}
	good := begin(ann, "s1")
	bad := samlprotocol.Message{URL: strings.Replace(good.URL, "RelayState=", "RelayState=x", 1)}
	if good.Form != nil {
		text, _ := base64.StdEncoding.DecodeString(good.Form.Get("SAMLRequest"))
		bad = samlprotocol.Message{Form: url.Values{"SAMLRequest": {base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(text), ">ann<", ">bob<", 1)))}}}
	}
	for what, refused := range map[string]shown{
		"tampered": send("partner", bad, nil), "nothing": send("partner", samlprotocol.Message{}, nil), "no form": send("partner", samlprotocol.Message{Form: url.Values{}}, nil),
	} {
		equal(t, what, []any{refused.status, strings.Contains(refused.html, "not valid") || strings.Contains(refused.html, "wrong")}, []any{400, true})
	}
	equal(t, "unknown", send("none", good, nil).status, 404)
	equal(t, "large", c.visit(t, "POST", "/saml/sp/partner/slo", nil, url.Values{"SAMLRequest": {long(600 << 10)}}).status, 413)
	equal(t, "JSON", c.with("").send(t, "POST", "/saml/sp/partner/slo", http.Header{"Content-Type": {"application/json"}}, []byte("{}")).status, 415)
	live(true, true)
	page = send("partner", good, nil)
	equal(t, "answered", read(page).Response != nil, true)
	live(false, true)
	equal(t, "once", send("partner", good, nil).status, 400)
	for _, other := range []samlprotocol.NameID{{Value: "ann"}, {Value: "x", Format: "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"}} { // none is a user here
		equal(t, "answered", read(send("partner", begin(other, ""), nil)).Response != nil, true)
	}
	live(false, true)
	byRedirect := idp
	byRedirect.Services = []samlprotocol.Service{{Binding: samlprotocol.Redirect, Location: slo}}
	request, _, err := byRedirect.Begin(samlprotocol.NameID{Value: "nobody"}, "", w.now())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the other binding", read(send("partner", request, nil)).Response != nil, true)
	c.want(t, 200, "", "POST", path+"/disable", nil)
	equal(t, "while it is disabled", read(send("partner", begin(ann, ""), nil)).Response != nil, true)
	live(false, false)
}
