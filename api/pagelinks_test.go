package api_test

import (
	"bytes"
	"fmt"
	"image/png"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// pageLinks opens the links in mails as mail gateways do. HEAD does nothing, and GET completes
// only a change of address.
func pageLinks(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	anon := c.with("")
	open := func(method, path, token string) shown {
		t.Helper()
		return c.visit(t, method, path+"?token="+token, nil, nil)
	}
	state := func(email string) any {
		t.Helper()
		return c.want(t, 200, "", "GET", "/api/v1/users?email="+email, nil).list()[0].(map[string]any)["email_verified"]
	}
	anon.want(t, 202, "", "POST", authPath+"/sign-up", object{"email": "ann@page-links.test", "password": secret})
	token := link(t, w.mailbox.take(t, "ann@page-links.test", "Confirm your e-mail address"))
	for _, method := range []string{"HEAD", "GET", "GET"} {
		equal(t, method, open(method, "/auth/verify-email", token).status, 200)
		equal(t, "verified by "+method, state("ann@page-links.test"), false)
	}
	if p := open("GET", "/auth/verify-email", token); !strings.Contains(p.html, "ann@page-links.test") || !strings.Contains(p.html, "Yes, this is my address") {
		t.Errorf("the page does not ask:\n%s", p.html)
	}
	c.visit(t, "POST", "/auth/verify-email", http.Header{"Sec-Fetch-Site": {"cross-site"}}, url.Values{"token": {token}})
	equal(t, "verified by another site", state("ann@page-links.test"), false)
	p := c.visit(t, "POST", "/auth/verify-email", nil, url.Values{"token": {token}, "next": {"/device"}})
	equal(t, "verified by its owner", []any{p.status, state("ann@page-links.test"), strings.Contains(p.html, `href="/auth/sign-in?next=%2Fdevice"`)}, []any{200, true, true})

	// A new password.
	anon.want(t, 202, "", "POST", authPath+"/password/forgot", object{"email": "ann@page-links.test"})
	reset := link(t, w.mailbox.take(t, "ann@page-links.test", "Choose a new password"))
	for _, method := range []string{"HEAD", "GET", "GET"} {
		equal(t, method, open(method, "/auth/reset-password", reset).status, 200)
	}
	p = c.visit(t, "POST", "/auth/reset-password", nil, url.Values{"token": {reset}, "password": {"short"}})
	equal(t, "refused", []any{p.status, strings.Contains(p.html, `aria-invalid="true" autofocus aria-describedby="problem advice"`)}, []any{400, true})
	p = c.visit(t, "POST", "/auth/reset-password", nil, url.Values{"token": {reset}, "password": {"another long secret"}, "next": {"/device"}})
	equal(t, "reset", []any{p.status, p.header.Get("Location")}, []any{303, "/device"})
	// An invalid link leads to a page that offers a new one, without a form.
	for _, p := range []shown{open("GET", "/auth/reset-password", reset), open("GET", "/auth/reset-password", "x"), open("GET", "/auth/reset-password", token), c.visit(t, "POST", "/auth/reset-password", nil, url.Values{"token": {reset}, "password": {secret}})} {
		if p.status != 400 || strings.Contains(p.html, `name="password"`) || !strings.Contains(p.html, `name="email"`) || !strings.Contains(p.html, "has expired, or was used before") {
			t.Errorf("a dead link: %d\n%s", p.status, p.html)
		}
	}
	for path, other := range map[string]string{"/auth/verify-email": reset, "/auth/revert-email": token} {
		equal(t, "dead: "+path, open("GET", path, other).status, 400)
	}

	// A change of address, and back.
	me := c.with(signIn(t, c, "ann@page-links.test", "another long secret", "complete").data()["session_token"].(string))
	enrol(t, w, me)
	me.want(t, 200, "", "POST", mePath+"/email/change", object{"new_email": "new@page-links.test"})
	confirm, revert := link(t, w.mailbox.take(t, "new@page-links.test", "Confirm your new e-mail address")), link(t, w.mailbox.take(t, "ann@page-links.test", "is about to change"))
	email := func() any {
		t.Helper()
		return c.want(t, 200, "", "GET", "/api/v1/users?q=page-links.test", nil).list()[0].(map[string]any)["email"]
	}
	equal(t, "HEAD", []any{open("HEAD", "/auth/verify-email", confirm).status, email()}, []any{200, "ann@page-links.test"})
	for range 2 {
		equal(t, "GET", []any{open("GET", "/auth/verify-email", confirm).status, email()}, []any{200, "new@page-links.test"})
	}
	for _, method := range []string{"HEAD", "GET", "GET"} {
		equal(t, method, []any{open(method, "/auth/revert-email", revert).status, email()}, []any{200, "new@page-links.test"})
	}
	p = c.visit(t, "POST", "/auth/revert-email", nil, url.Values{"token": {revert}})
	equal(t, "POST", []any{p.status, email()}, []any{200, "ann@page-links.test"})

	// HEAD issues no codes, stores no authorization request, and ends no session.
	member(t, c, "bob@page-links.test")
	party := newParty(t, c, nil)
	party.session = signIn(t, c, "bob@page-links.test", secret, "complete").data()["session_token"].(string)
	hint := party.exchange(t, party.code(t, nil), nil).body["id_token"].(string)
	for _, target := range []string{"/oauth2/authorize?" + party.request(nil).Encode(), "/oauth2/logout?id_token_hint=" + hint, "/oauth2/authorize/resume?flow=flw_x"} {
		for _, token := range []string{party.session, ""} {
			p := c.visit(t, "HEAD", target, asBrowser(token), nil)
			equal(t, "HEAD "+target[:20], []any{p.status, p.header.Get("Location"), p.header["Set-Cookie"]}, []any{200, "", []string(nil)})
		}
	}
	equal(t, "still signed in", c.with(party.session).want(t, 200, "", "GET", authPath+"/session", nil).data()["authenticated"], true)
}

// pageErrors: what a browser sees where nothing is, or something is wrong.
func pageErrors(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	browser := http.Header{"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}}
	page := func(target string) shown {
		t.Helper()
		return c.visit(t, "GET", target, browser, nil)
	}
	p := page("/nothing/here")
	equal(t, "unknown", []any{p.status, p.header.Get("Content-Type"), strings.Contains(p.html, "Page not found"), strings.HasPrefix(p.header.Get("Content-Security-Policy"), "default-src 'self'")}, []any{404, "text/html; charset=utf-8", true, true})
	for _, target := range []string{"/api/v1/nothing", "/.well-known/nothing"} {
		equal(t, target, page(target).header.Get("Content-Type"), "application/json")
	}
	equal(t, "for a program", c.visit(t, "GET", "/nothing", http.Header{"Accept": {"application/json"}}, nil).header.Get("Content-Type"), "application/json")
	elsewhere := *c
	elsewhere.host = "unknown.test"
	equal(t, "unknown host", elsewhere.visit(t, "GET", "/nothing", browser, nil).status, 404)
	equal(t, "front", []any{page("/").status, page("/").header.Get("Location")}, []any{303, "/account"})
	icon := page("/favicon.ico")
	equal(t, "icon", []any{icon.status, icon.header.Get("Content-Type"), icon.header.Get("Cache-Control"), icon.header.Get("ETag") != ""}, []any{200, "image/x-icon", "public, max-age=86400", true})
	if _, err := png.DecodeConfig(bytes.NewReader([]byte(icon.html)[6+2*16:])); err != nil {
		t.Errorf("icon: %v", err)
	}

	// The field that is wrong is said to be, and has the cursor.
	member(t, c, "ann@example.com")
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	for target, tc := range map[string]struct {
		form  url.Values
		field string
	}{
		"/auth/sign-in":     {url.Values{"email": {"ann@example.com"}, "password": {"wrong"}}, "password"},
		"/auth/sign-up":     {url.Values{"email": {"ann"}, "password": {secret}}, "email"},
		"/account/password": {url.Values{"current": {"wrong"}, "next_password": {"another long secret"}}, "current"},
		"/account":          {url.Values{"locale": {"??"}}, "locale"},
	} {
		p := c.visit(t, "POST", target, asBrowser(session), tc.form)
		before, _, _ := strings.Cut(p.html, `aria-invalid="true" autofocus aria-describedby="problem`)
		if at := strings.LastIndex(before, "<input"); p.status < 400 || at < 0 || !strings.Contains(before[at:], ` name="`+tc.field+`"`) || strings.Count(p.html, "autofocus") != 1 {
			t.Errorf("%s: %d, the field %s is not marked:\n%s", target, p.status, tc.field, p.html)
		}
	}
	p = c.visit(t, "POST", "/account/password", asBrowser(session), url.Values{"current": {secret}, "next_password": {"short"}})
	equal(t, "new password", strings.Contains(p.html, `name="next_password" type="password" autocomplete="new-password" required aria-invalid="true" autofocus aria-describedby="problem others"`), true)

	// Nothing is removed by one press.
	others := len(c.with(session).want(t, 200, "", "GET", mePath+"/sessions", nil).list())
	signIn(t, c, "ann@example.com", secret, "complete")
	asked := c.visit(t, "GET", "/account/end-session", asBrowser(session), nil)
	equal(t, "asked", []any{asked.status, strings.Contains(asked.html, `action="/account/end-session"`)}, []any{200, true})
	equal(t, "sessions", len(c.with(session).want(t, 200, "", "GET", mePath+"/sessions", nil).list()), others+1)
	if list := c.visit(t, "GET", "/account/sessions", asBrowser(session), nil).html; strings.Contains(list, `<form method="post" action="/account`) {
		t.Errorf("a button on the list acts at once:\n%s", list)
	}
	equal(t, "done", c.visit(t, "POST", "/account/end-session", asBrowser(session), url.Values{}).header.Get("Location"), "/account/sessions?done=sessions")
	equal(t, "sessions", len(c.with(session).want(t, 200, "", "GET", mePath+"/sessions", nil).list()), 1)

	// A user without a second factor is led to enrolment where one is required, and back.
	p = c.visit(t, "POST", "/account/email", asBrowser(session), url.Values{"new_email": {"new@example.com"}})
	back := "/account/email?new_email=new%40example.com"
	equal(t, "enrol", p.header.Get("Location"), "/account/security?done=enrol&next="+url.QueryEscape(back))
	p = c.visit(t, "GET", p.header.Get("Location"), asBrowser(session), nil)
	for _, path := range []string{"/account/totp", "/account/passkey", "/account/sms"} {
		if want := `href="` + path + `?next=` + url.QueryEscape(back) + `"`; !strings.Contains(p.html, want) {
			t.Errorf("no %s on\n%s", want, p.html)
		}
	}
	equal(t, "told", strings.Contains(p.html, "add a second factor"), true)
	if p := c.visit(t, "GET", back, asBrowser(session), nil); !strings.Contains(p.html, `value="new@example.com"`) {
		t.Errorf("what was entered is lost:\n%s", p.html)
	}
	if _, err := w.db.Exec(t.Context(), `UPDATE sessions SET auth_time = auth_time - 3600000000, created_at = created_at - 3600000000`); err != nil {
		t.Fatal(err)
	}
	p = c.visit(t, "GET", "/account/totp?next="+url.QueryEscape(back), asBrowser(session), nil)
	equal(t, "signed in too long ago", p.header.Get("Location"), "/auth/sign-in?done=again&next="+url.QueryEscape("/account/totp?next="+url.QueryEscape(back)))

	// Where accounts are made by administrators, no page offers to make one.
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"sign_up": "closed"})
	equal(t, "sign-in", strings.Contains(page("/auth/sign-in").html, "/auth/sign-up"), false)
	closed := page("/auth/sign-up")
	equal(t, "sign-up", []any{closed.status, strings.Contains(closed.html, "Only administrators"), strings.Contains(closed.html, `name="password"`)}, []any{403, true, false})
	equal(t, "posted", c.visit(t, "POST", "/auth/sign-up", nil, url.Values{"email": {"x@example.com"}, "password": {secret}}).status, 403)
}

// pageTabs: sign-ins in two tabs of one browser do not meet.
func pageTabs(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	jar := map[string]string{}
	visit := func(method, target string, form url.Values) shown {
		t.Helper()
		var cookies []string
		for name, value := range jar {
			cookies = append(cookies, name+"="+value)
		}
		p := c.visit(t, method, target, http.Header{"Cookie": {strings.Join(cookies, "; ")}}, form)
		for _, text := range p.header["Set-Cookie"] {
			cookie, err := http.ParseSetCookie(text)
			if err != nil {
				t.Fatal(err)
			}
			if jar[cookie.Name] = cookie.Value; cookie.MaxAge < 0 {
				delete(jar, cookie.Name)
			}
		}
		return p
	}
	keys, tabs := map[string]string{}, map[string]string{}
	for _, name := range []string{"ann", "bob"} {
		member(t, c, name+"@example.com")
		keys[name], _ = enrol(t, w, signedIn(t, c, name+"@example.com"))
	}
	for _, name := range []string{"ann", "bob"} {
		p := visit("POST", "/auth/sign-in", url.Values{"email": {name + "@example.com"}, "password": {secret}, "next": {"/account/sessions?of=" + name}})
		tabs[name] = strings.TrimPrefix(p.header.Get("Location"), "/auth/mfa?step=")
		equal(t, "page", visit("GET", p.header.Get("Location"), nil).status, 200)
	}
	w.later(step)
	for _, name := range []string{"ann", "bob"} {
		p := visit("POST", "/auth/mfa", url.Values{"step": {tabs[name]}, "kind": {"totp"}, "code": {code(t, keys[name], w.now())}})
		equal(t, name, []any{p.status, p.header.Get("Location")}, []any{303, "/account/sessions?of=" + name})
	}
	for name := range jar {
		if strings.HasPrefix(name, "__Host-flow") {
			t.Errorf("%s is left", name)
		}
	}
	equal(t, "no step", visit("GET", "/auth/mfa?step=x&next=/device", nil).header.Get("Location"), "/auth/sign-in?next=%2Fdevice")
}

// pagePictures: an application's picture opens the policy of the consent page for its one origin,
// or is not shown.
func pagePictures(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	p := newParty(t, c, object{"first_party": false, "name": "Holiday Planner", "logo_uri": "https://cdn.example.com/logo.png"})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	_, to := p.ask(t, nil)
	for picture, origin := range map[string]string{
		"https://cdn.example.com/logo.png": "https://cdn.example.com", "https://CDN.example.com:8443/x?y": "https://cdn.example.com:8443", "": "",
		"https://*.example.com/logo.png": "", "https://a;script-src.example.com/x": "", "https://a,b.example.com/x": "", "https://'none'/x": "", "https://localhost/x": "", "https://[::1]/x": "",
		"http://cdn.example.com/x": "", "data:image/png;base64,x": "", "https://u@cdn.example.com/x": "", "https://xn--bcher-kva.example/x": "https://xn--bcher-kva.example", "https://*/x": "",
	} {
		if _, err := w.db.Exec(t.Context(), `UPDATE applications SET options = $2 WHERE client_id = $1`, p.id, fmt.Sprintf(`{"logo_uri":%q,"first_party":false}`, picture)); err != nil {
			t.Fatal(err)
		}
		page := c.visit(t, "GET", to.String(), asBrowser(p.session), nil)
		want := "default-src 'self'; img-src 'self' data:"
		if origin != "" {
			want += " " + origin
		}
		equal(t, picture, []any{page.status, page.header.Get("Content-Security-Policy"), strings.Contains(page.html, "<img")}, []any{200, want + "; frame-ancestors 'none'; base-uri 'none'; object-src 'none'", origin != ""})
	}
	if page := c.visit(t, "GET", to.String(), asBrowser(p.session), nil); !strings.Contains(page.html, "<h1>Allow Holiday Planner to access your account?</h1>") {
		t.Errorf("consent:\n%s", page.html)
	}
}
