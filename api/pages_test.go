package api_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// shown is a page as a browser gets it.
type shown struct {
	status int
	header http.Header
	html   string
}

// visit asks for a page, or sends a form.
func (c *client) visit(t testing.TB, method, target string, header http.Header, form url.Values) shown {
	t.Helper()
	if form == nil {
		return c.browse(t, method, target, "", header, nil)
	}
	return c.browse(t, method, target, "application/x-www-form-urlencoded", header, strings.NewReader(form.Encode()))
}

// browse is visit with a body of a media type.
func (c *client) browse(t testing.TB, method, target, mediaType string, header http.Header, body io.Reader) shown {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, c.server.URL+target, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = c.host
	if mediaType != "" {
		req.Header.Set("Content-Type", mediaType)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return shown{res.StatusCode, res.Header, string(text)}
}

// asBrowser is the header of a request with the cookie of a session.
func asBrowser(token string) http.Header {
	return http.Header{"Cookie": {"__Host-sid=" + token}, "Sec-Fetch-Site": {"same-origin"}}
}

// hostedPages: what a browser is told, and what it cannot be made to do. That they work is
// shown in a browser (cmd/stonetown).
func hostedPages(t *testing.T, w *world, c *client) {
	const xss = `"><script>alert(1)</script>`
	member(t, c, "ann@example.com")
	token := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	me := c.with(token)
	me.want(t, 200, "", "PATCH", mePath+"/profile", object{"name": xss, "family_name": xss})
	d := me.want(t, 200, "", "POST", mePath+"/mfa/factors/totp/begin", object{"label": xss}).data()
	me.want(t, 201, "", "POST", mePath+"/mfa/factors/totp/complete", object{"ceremony_id": d["ceremony_id"], "code": code(t, d["secret"].(string), w.now())})
	agent := http.Header{"User-Agent": {xss}, "Content-Type": {"application/json"}}
	member(t, c, "bob@example.com")
	bob := c.with("").send(t, "POST", authPath+"/sign-in", agent, []byte(`{"email":"bob@example.com","password":"`+secret+`"}`)).data()["session_token"].(string)

	for target, status := range map[string]int{
		"/auth/sign-in": 200, "/auth/sign-in?next=" + url.QueryEscape(xss) + "&email=" + url.QueryEscape(xss): 200, "/auth/sign-up": 200, "/auth/reset-password": 200,
		"/auth/reset-password?token=" + url.QueryEscape(xss): 400, "/auth/verify-email?email=" + url.QueryEscape(xss): 200, "/auth/verify-email?token=x": 400,
		"/auth/revert-email?token=" + url.QueryEscape(xss): 400, "/": 303, "/account/end-session": 200, "/account/remove-factor?factor_id=" + url.QueryEscape(xss): 303, "/auth/error": 200, "/auth/mfa": 303, "/account": 200, "/account/security": 200,
		"/account/sessions": 200, "/account/password": 200, "/account/email": 200, "/account/totp": 200, "/account/sms": 200, "/account/passkey": 200,
		"/account/step-up?next=" + url.QueryEscape("/account/x"+xss): 200, "/.well-known/change-password": 302,
	} {
		for _, token := range []string{token, bob} {
			p := c.visit(t, "GET", target, asBrowser(token), nil)
			if token == bob && p.status == 303 { // a user without a factor may be too late to add one
				continue
			}
			equal(t, target, p.status, status)
			if !strings.HasPrefix(p.header.Get("Content-Security-Policy"), "default-src 'self';") || p.header.Get("X-Frame-Options") != "DENY" ||
				p.header.Get("Referrer-Policy") != "no-referrer" || p.header.Get("Cache-Control") != "no-store" || p.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", target, p.header)
			}
			if strings.Contains(p.html, "<script>alert") || strings.Contains(p.html, "style=") || strings.Contains(p.html, "onclick") {
				t.Errorf("%s holds what it was given as it is, or something inline:\n%s", target, p.html)
			}
		}
	}
	// What programs look for.
	for path, want := range map[string]string{
		"passkey-endpoints": `{"enroll":"` + c.base() + `/account/passkey","manage":"` + c.base() + `/account/security"}`,
		"webauthn":          `{"origins":["` + c.base() + `"]}`,
		"security.txt":      "Contact: mailto:security@example.com\nExpires: ",
	} {
		p := c.visit(t, "GET", "/.well-known/"+path, nil, nil)
		equal(t, path, []any{p.status, strings.HasPrefix(p.html, want)}, []any{200, true})
	}
	// Nobody is led to another site.
	for _, next := range []string{"https://evil.test", "//evil.test", "/\\evil.test", "\\\\evil.test", "javascript:alert(1)", "evil", "/\t/evil.test", "http:evil.test", "/%09/x\r\nSet-Cookie: a=b", ""} {
		p := c.visit(t, "POST", "/auth/sign-in", nil, url.Values{"email": {"bob@example.com"}, "password": {secret}, "next": {next}})
		if at := p.header.Get("Location"); p.status != 303 || at != "/account" {
			t.Errorf("next=%q: %d %q", next, p.status, at)
		}
	}
	p := c.visit(t, "POST", "/auth/sign-in", nil, url.Values{"email": {"bob@example.com"}, "password": {secret}, "next": {"/account/sessions?x=1"}})
	equal(t, "next", p.header.Get("Location"), "/account/sessions?x=1")

	// Forms come from the tenant's own pages only.
	for _, target := range []string{"/auth/sign-in", "/auth/sign-out", "/account", "/account/end-session", "/account/backup-codes"} {
		for _, header := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Origin": {"https://evil.test"}}} {
			header["Cookie"] = []string{"__Host-sid=" + bob}
			p := c.visit(t, "POST", target, header, url.Values{"email": {"bob@example.com"}, "password": {secret}})
			equal(t, target, []any{p.status, cookieOf(p)}, []any{403, ""})
		}
	}
	equal(t, "not a form", c.visit(t, "POST", "/account", http.Header{"Content-Type": {"text/plain"}, "Cookie": {"__Host-sid=" + bob}}, nil).status, 415)
	equal(t, "too large", c.visit(t, "POST", "/auth/sign-in", nil, url.Values{"email": {long(70_000)}}).status, 413)
	equal(t, "method", c.visit(t, "DELETE", "/account", nil, nil).status, 405)

	// A sign-in replaces a cookie that was planted.
	planted := c.visit(t, "POST", "/auth/sign-in", http.Header{"Cookie": {"__Host-sid=" + token}}, url.Values{"email": {"bob@example.com"}, "password": {secret}})
	if got := cookieOf(planted); got == "" || got == token {
		t.Errorf("the session is %q", got)
	}
	// Without a session there is no account; the page asked for comes after signing in.
	for _, target := range []string{"/account", "/account/security", "/account/sessions", "/account/password", "/account/email", "/account/totp", "/account/step-up"} {
		p := c.visit(t, "GET", target, nil, nil)
		equal(t, target, []any{p.status, p.header.Get("Location")}, []any{303, "/auth/sign-in?next=" + url.QueryEscape(target)})
	}
	equal(t, "style", c.visit(t, "GET", "/auth/assets/style.css", nil, nil).header.Get("Content-Type"), "text/css; charset=utf-8")
	equal(t, "mailbox", c.visit(t, "GET", "/dev/mailbox", nil, nil).status, 404)

	// In a tenant that demands it, a second factor is added before anything else.
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"mfa_policy": object{"mode": "required"}})
	p = c.visit(t, "POST", "/auth/sign-in", nil, url.Values{"email": {"bob@example.com"}, "password": {secret}})
	equal(t, "enrol", p.header.Get("Location"), "/account/security?done=enrol")
	enrolling := cookieOf(p)
	equal(t, "security", c.visit(t, "GET", "/account/security?done=enrol", asBrowser(enrolling), nil).status, 200)
	equal(t, "totp", c.visit(t, "GET", "/account/totp", asBrowser(enrolling), nil).status, 200)
	equal(t, "account", c.visit(t, "GET", "/account", asBrowser(enrolling), nil).header.Get("Location"), "/account/security?done=enrol")
}

// cookieOf is the token of a session that a page sets.
func cookieOf(p shown) string {
	c := cookie(answer{header: p.header})
	return strings.TrimPrefix(c, "none")
}
