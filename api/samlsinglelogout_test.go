package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crewjam/saml"

	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/samlprotocol"
	"stonetown/internal/samlprotocol/samltest"
)

// samlGuest is a SAML application at which a user has signed in.
type samlGuest struct {
	*samlParty
	identity serviceprovider.Identity
}

// enter signs the user of a session in at SAML applications, one after another.
func enter(t testing.TB, session string, parties ...*samlParty) (list []samlGuest) {
	t.Helper()
	for _, p := range parties {
		p.session = session
		list = append(list, samlGuest{p, p.identity(t)})
	}
	return list
}

// leave requests the end of the session, or of all sessions, by the redirect binding.
func (g samlGuest) leave(t testing.TB, sessionIndex string) (to string, pending serviceprovider.PendingLogout) {
	t.Helper()
	message, pending, err := g.sp.BeginLogout(g.identity.Subject, sessionIndex, g.w.now())
	if err != nil {
		t.Fatal(err)
	}
	a, _ := g.deliver(t, message)
	equal(t, "status", a.status, 302)
	return a.header.Get("Location"), pending
}

// asked reads the request that arrives at the application.
func (g samlGuest) asked(t testing.TB, to string) serviceprovider.Logout {
	t.Helper()
	at, query, _ := strings.Cut(to, "?")
	equal(t, "asked at", at, g.sp.SLO)
	l, err := g.sp.ReadLogoutQuery(query, g.w.now())
	if err != nil || l.Request == nil {
		t.Fatalf("%v: %s", err, detailOf(err))
	}
	equal(t, "for", []any{l.Request.Subject, l.Request.SessionIndexes}, []any{g.identity.Subject, []string{g.identity.SessionIndex}})
	return l
}

// reply returns the answer of the application.
func (g samlGuest) reply(t testing.TB, binding string, l serviceprovider.Logout, partial bool) serviceprovider.Message {
	t.Helper()
	sp := *g.sp
	sp.IdentityProvider.SingleLogout = slices.DeleteFunc(slices.Clone(sp.IdentityProvider.SingleLogout), func(s serviceprovider.Service) bool { return s.Binding != binding })
	message, err := sp.AnswerLogout(*l.Request, l.RelayState, partial, g.w.now())
	if err != nil {
		t.Fatal(err)
	}
	return message
}

// passes lets the application answer the request that arrives, and returns the place to which the
// browser goes on.
func (g samlGuest) passes(t testing.TB, to string) (next string) {
	t.Helper()
	a, _ := g.deliver(t, g.reply(t, serviceprovider.Redirect, g.asked(t, to), false))
	equal(t, "status", a.status, 302)
	return a.header.Get("Location")
}

// left completes the sign-out that the application requested.
func (g samlGuest) left(t testing.TB, to string, pending serviceprovider.PendingLogout) (complete bool) {
	t.Helper()
	at, query, _ := strings.Cut(to, "?")
	equal(t, "answered at", at, g.sp.SLO)
	l, err := g.sp.ReadLogoutQuery(query, g.w.now())
	if err == nil {
		complete, err = g.sp.FinishLogout(pending, l)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, detailOf(err))
	}
	return complete
}

// samlSingleLogout leads a sign-out that an application requests to the others of the session.
func samlSingleLogout(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	fresh := func() string {
		t.Helper()
		return signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	}
	one, two, three := newSAMLParty(t, w, c, "one", true, nil), newSAMLParty(t, w, c, "two", true, nil), newSAMLParty(t, w, c, "three", true, object{"name_id_format": "transient"})
	path := func(p *samlParty) string { return appsPath + "/" + p.app["id"].(string) }
	get, post := serviceprovider.Redirect, serviceprovider.Post

	// To each other application, with both bindings.
	session := fresh()
	all := enter(t, session, one, two, three)
	a, b, d := all[0], all[1], all[2]
	to, pending := a.leave(t, a.identity.SessionIndex)
	equal(t, "ended first", c.live(t, session), false)
	first := b.reply(t, get, b.asked(t, to), false)
	target := strings.TrimPrefix(first.URL, c.base())
	equal(t, "a preview of the link", c.visit(t, "HEAD", target, nil, nil).status, 200)
	page, _ := b.deliver(t, first)
	third := d.asked(t, page.header.Get("Location"))
	page, _ = d.deliver(t, d.reply(t, post, third, false))
	equal(t, "by POST", page.status, 303)
	equal(t, "complete", a.left(t, page.header.Get("Location"), pending), true)
	again, _ := b.deliver(t, first)
	equal(t, "once", []any{again.status, again.header.Get("Location"), strings.Contains(again.text, "completed before")}, []any{400, "", true})
	to, pending = a.leave(t, a.identity.SessionIndex)
	equal(t, "those that confirmed are not asked again", a.left(t, to, pending), true)

	// Nothing else leads on.
	all = enter(t, fresh(), one, two, three)
	a, b, d = all[0], all[1], all[2]
	to, pending = a.leave(t, a.identity.SessionIndex)
	request := b.asked(t, to)
	other := request
	other.Request = &serviceprovider.LogoutRequest{ID: "_other"}
	foreign := request
	foreign.RelayState = third.RelayState
	unknown := request
	unknown.RelayState = "https://evil.test/"
	good := b.reply(t, get, request, false)
	unsigned := serviceprovider.Message{URL: good.URL[:strings.Index(good.URL, "&SigAlg=")]}
	unsignedForm := b.reply(t, post, request, false)
	unsignedForm.Form = url.Values{"SAMLResponse": {strings.ReplaceAll(unsignedForm.Form.Get("SAMLResponse"), "A", "B")}, "RelayState": {request.RelayState}}
	for what, m := range map[string]serviceprovider.Message{
		"of another application": d.reply(t, get, request, false), "to another request": b.reply(t, get, other, false), "of another sign-out": b.reply(t, get, foreign, false),
		"of no sign-out": b.reply(t, post, unknown, false), "without RelayState": b.reply(t, get, serviceprovider.Logout{Request: request.Request}, false), "not signed": unsigned, "changed": unsignedForm,
	} {
		page, _ := b.deliver(t, m)
		equal(t, what, []any{page.status, page.header.Get("Location"), strings.Contains(page.text, "evil.test")}, []any{400, "", false})
	}
	answers := make(chan answer, 2) // only one of two at the same time
	for range cap(answers) {
		go func() { answers <- two.send(t, "GET", strings.TrimPrefix(good.URL, c.base()), nil, nil) }()
	}
	page, again = <-answers, <-answers
	if page.status != 302 {
		page, again = again, page
	}
	equal(t, "at the same time", []any{page.status, again.status}, []any{302, 400})
	equal(t, "the right one", a.left(t, d.passes(t, page.header.Get("Location")), pending), true)

	// An application that does not sign the user out.
	failing := func(l serviceprovider.Logout) serviceprovider.Message {
		t.Helper()
		response := saml.LogoutResponse{
			ID: samlprotocol.NewID(), InResponseTo: l.Request.ID, Version: samlprotocol.Version, IssueInstant: samlprotocol.Instant(w.now()), Destination: c.base() + "/saml/idp/slo",
			Issuer: &saml.Issuer{Value: two.sp.EntityID}, Status: saml.Status{StatusCode: saml.StatusCode{Value: saml.StatusResponder, StatusCode: &saml.StatusCode{Value: saml.StatusRequestDenied}}},
		}
		m, err := samlprotocol.Outgoing{Binding: get, To: response.Destination, IsResponse: true, Document: response.Element(), RelayState: l.RelayState, Key: samlprotocol.Signer(two.sp.Keys)}.Message()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for what, reply := range map[string]func(samlGuest, serviceprovider.Logout) serviceprovider.Message{
		"an error":   func(_ samlGuest, l serviceprovider.Logout) serviceprovider.Message { return failing(l) },
		"in part":    func(g samlGuest, l serviceprovider.Logout) serviceprovider.Message { return g.reply(t, get, l, true) },
		"without it": nil,
	} {
		all = enter(t, fresh(), one, two, three)
		a, b, d = all[0], all[1], all[2]
		if reply == nil {
			c.want(t, 200, "", "PATCH", path(two), object{"slo_url": nil})
			to, pending = a.leave(t, a.identity.SessionIndex)
			equal(t, what, a.left(t, d.passes(t, to), pending), false)
			c.want(t, 200, "", "PATCH", path(two), object{"slo_url": two.sp.SLO, "certificate": nil})
			to, pending = a.leave(t, a.identity.SessionIndex)
			equal(t, "without a certificate", a.left(t, to, pending), false)
			c.want(t, 200, "", "PATCH", path(two), object{"certificate": two.app["certificate"]})
		} else {
			to, pending = a.leave(t, a.identity.SessionIndex)
			page, _ = b.deliver(t, reply(b, b.asked(t, to)))
			equal(t, what, a.left(t, d.passes(t, page.header.Get("Location")), pending), false)
		}
		to, pending = a.leave(t, a.identity.SessionIndex)
		equal(t, "asked again", a.left(t, b.passes(t, to), pending), true)
	}

	// One that is deleted meanwhile, or that signs the user out itself.
	all = enter(t, fresh(), one, two, three)
	a, b, d = all[0], all[1], all[2]
	gone := enter(t, three.session, newSAMLParty(t, w, c, "gone", true, nil))[0]
	to, pending = a.leave(t, a.identity.SessionIndex)
	c.want(t, 204, "", "DELETE", path(gone.samlParty), nil)
	to = b.passes(t, to)
	equal(t, "deleted", a.left(t, d.passes(t, to), pending), true)

	// A request for all sessions does not reach back to those that ended.
	old := enter(t, fresh(), one, two)
	c.with(one.session).want(t, 204, "", "POST", authPath+"/logout", nil)
	recent := enter(t, fresh(), one, three)
	to, pending = recent[0].leave(t, "")
	equal(t, "all sessions", recent[0].left(t, recent[1].passes(t, to), pending), true)
	to, pending = old[0].leave(t, old[0].identity.SessionIndex)
	equal(t, "a session that ended", old[0].left(t, old[1].passes(t, to), pending), true)

	// An answer that comes too late.
	all = enter(t, fresh(), one, two)
	to, _ = all[0].leave(t, all[0].identity.SessionIndex)
	request = all[1].asked(t, to)
	w.later(6 * time.Minute)
	page, _ = all[1].deliver(t, all[1].reply(t, get, request, false))
	equal(t, "late", []any{page.status, page.header.Get("Location"), strings.Contains(page.text, "has expired")}, []any{400, "", true})
	w.ahead.Store(0)

	// At most twenty.
	session = fresh()
	guests := enter(t, session, one)
	for i := range 21 {
		guests = append(guests, enter(t, session, newSAMLParty(t, w, c, fmt.Sprint("many-", i), true, nil))...)
	}
	to, pending = guests[0].leave(t, guests[0].identity.SessionIndex)
	for _, g := range guests[1:21] {
		to = g.passes(t, to)
	}
	equal(t, "too many", guests[0].left(t, to, pending), false)
	to, pending = guests[0].leave(t, guests[0].identity.SessionIndex)
	equal(t, "the rest", guests[0].left(t, guests[21].passes(t, to), pending), true)
}

// samlSignOut leads a sign-out that begins here to the SAML applications of the session, then to the
// provider, and then to its destination.
func samlSignOut(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	one, two := newSAMLParty(t, w, c, "one", true, nil), newSAMLParty(t, w, c, "two", true, nil)
	bye := "https://app.example.com/bye?x=1"
	app := newParty(t, c, object{"post_logout_redirect_uris": []any{bye}})
	fresh := func() []samlGuest {
		t.Helper()
		app.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
		return enter(t, app.session, one, two)
	}

	// On the page.
	all := fresh()
	page := c.visit(t, "POST", "/auth/sign-out", asBrowser(app.session), url.Values{"next": {"/account/sessions?x=1"}})
	to := page.header.Get("Location")
	equal(t, "ended first", c.live(t, app.session), false)
	to = all[0].passes(t, to)
	l := all[1].asked(t, to)
	a, _ := all[1].deliver(t, all[1].reply(t, serviceprovider.Redirect, l, true)) // in part
	equal(t, "the page", []any{a.status, a.header.Get("Location")}, []any{302, "/account/sessions?x=1"})
	all = fresh()
	page = c.visit(t, "POST", "/auth/sign-out", asBrowser(app.session), url.Values{"next": {"https://evil.test/"}})
	equal(t, "no destination of others", all[1].passes(t, all[0].passes(t, page.header.Get("Location"))), "/account")

	// At the request of an application.
	all = fresh()
	hint := app.exchange(t, app.code(t, nil), nil).body["id_token"].(string)
	a, _ = app.browse(t, logoutPath+"?"+url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {bye}, "state": {"a&b"}}.Encode())
	to = all[0].passes(t, a.header.Get("Location"))
	equal(t, "the application", []any{all[1].passes(t, to), c.live(t, app.session)}, []any{bye + "&state=a%26b", false})

	// By a client. Without single logout at any application the destination is all that is left.
	all = fresh()
	me := c.with(app.session)
	begin := func() any {
		t.Helper()
		return me.want(t, 200, "", "POST", authPath+"/federation/logout", object{"redirect_to": "/x"}).data()["redirect_to"]
	}
	to = begin().(string)
	me.want(t, 204, "", "POST", authPath+"/logout", nil)
	equal(t, "the client", all[1].passes(t, all[0].passes(t, to)), "/x")
	all = fresh()
	me = c.with(app.session)
	for _, p := range []*samlParty{one, two} {
		c.want(t, 200, "", "PATCH", appsPath+"/"+p.app["id"].(string), object{"slo_url": nil})
	}
	equal(t, "no single logout", begin(), "/x")
	for _, p := range []*samlParty{one, two} {
		c.want(t, 200, "", "PATCH", appsPath+"/"+p.app["id"].(string), object{"slo_url": p.sp.SLO})
	}
	equal(t, "single logout", all[0].passes(t, begin().(string)) != "", true)
	me = signedIn(t, c, "ann@example.com")
	equal(t, "no applications", begin(), nil)

	// In a session that began at a provider.
	p := newOpenID(t, w)
	p.more["end_session_endpoint"] = p.URL + "/logout"
	staff(t, c, p, nil)
	app.session = p.enters(t, c, object{"sub": "1", "email": "bob@example.org", "email_verified": true})
	all = enter(t, app.session, one)
	page = c.visit(t, "POST", "/auth/sign-out", asBrowser(app.session), url.Values{"next": {"/account/sessions"}})
	cookies := begunBy(t, page.header, "").cookies
	to = all[0].passes(t, page.header.Get("Location"))
	at, err := url.Parse(to)
	if err != nil || !strings.HasPrefix(to, p.URL+"/logout?") {
		t.Fatalf("to %q", to)
	}
	back := c.visit(t, "GET", "/federation/staff/logged-out?state="+at.Query().Get("state"), http.Header{"Cookie": cookies}, nil)
	equal(t, "after the provider", back.header.Get("Location"), "/account/sessions")
	app.session = p.enters(t, c, object{"sub": "1", "email": "bob@example.org", "email_verified": true})
	all = enter(t, app.session, one)
	hint = app.exchange(t, app.code(t, nil), nil).body["id_token"].(string)
	a, _ = app.browse(t, logoutPath+"?"+url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {bye}}.Encode())
	to = all[0].passes(t, a.header.Get("Location"))
	at, err = url.Parse(to)
	if err != nil || !strings.HasPrefix(to, p.URL+"/logout?") {
		t.Fatalf("to %q", to)
	}
	back = c.visit(t, "GET", "/federation/staff/logged-out?state="+at.Query().Get("state"), http.Header{"Cookie": begunBy(t, a.header, "").cookies}, nil)
	equal(t, "the application, after the provider", back.header.Get("Location"), bye)

	// In a session that began at a SAML identity provider, which gets a form.
	idp := newSAML(w, samlprotocol.Post)
	idp.SLO = "https://idp.example.com/slo"
	partner(t, c, idp, object{"trust_email": true})
	for _, binding := range []string{serviceprovider.Redirect, serviceprovider.Post} {
		app.session = samlEnters(t, c, idp, samltest.Response{Session: "s1"})
		all = enter(t, app.session, one)
		page = c.visit(t, "POST", "/auth/sign-out", asBrowser(app.session), url.Values{})
		a, _ = all[0].deliver(t, all[0].reply(t, binding, all[0].asked(t, page.header.Get("Location")), false))
		to, form := posted(t, shown{a.status, a.header, a.text})
		equal(t, "a form", []any{to, form.Has("SAMLRequest"), form.Has("RelayState")}, []any{idp.SLO, true, true})
	}
}
