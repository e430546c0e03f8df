package api_test

import (
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/api"
	"stonetown/internal/ratelimit"
)

const (
	devicePath  = "/oauth2/device_authorization"
	deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"
)

// devices tests the device authorization grant (RFC 8628).
func devices(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	id := member(t, c, "ann@example.com")
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	user := c.with(session)
	tv := newParty(t, c, object{"name": "Television", "type": "native", "redirect_uris": []any{}})
	begin := func(p *relyingParty, form url.Values) answer {
		t.Helper()
		v := url.Values{"client_id": {p.id}, "scope": {"openid email"}}
		for name, values := range form {
			v[name] = values
		}
		if p.secret != "" {
			v.Set("client_secret", p.secret)
		}
		return c.present(t, devicePath, nil, v)
	}
	poll := func(p *relyingParty, a answer) answer {
		t.Helper()
		// Lets the polling interval pass.
		if _, err := w.db.Exec(t.Context(), `UPDATE device_codes SET polled_at = 0`); err != nil {
			t.Fatal(err)
		}
		v := url.Values{"grant_type": {deviceGrant}, "client_id": {p.id}, "device_code": {a.body["device_code"].(string)}}
		if p.secret != "" {
			v.Set("client_secret", p.secret)
		}
		return p.form(t, nil, v)
	}
	decide := func(a answer, decision string) answer {
		t.Helper()
		return user.want(t, 200, "", "POST", authPath+"/device", object{"user_code": a.body["user_code"], "decision": decision})
	}

	a := begin(tv, nil)
	code := a.body["user_code"].(string)
	equal(t, "begun", []any{a.status, a.body["expires_in"], a.body["interval"], a.body["verification_uri"], a.body["verification_uri_complete"], len(code)},
		[]any{200, 600.0, 5.0, c.base() + "/device", c.base() + "/device?user_code=" + code, 9})
	equal(t, "pending", poll(tv, a).code(), "authorization_pending")
	soon := func() string {
		return tv.form(t, nil, url.Values{"grant_type": {deviceGrant}, "client_id": {tv.id}, "device_code": {a.body["device_code"].(string)}}).code()
	}
	equal(t, "too soon", []any{soon(), soon()}, []any{"slow_down", "slow_down"})
	if _, err := w.db.Exec(t.Context(), `UPDATE device_codes SET polled_at = $1`, time.Now().Add(-12*time.Second).UnixMicro()); err != nil {
		t.Fatal(err)
	}
	equal(t, "twelve seconds later", soon(), "slow_down") // fifteen, by now

	// The page shows the request, however the code is typed, before the user allows it.
	for _, typed := range []string{code, strings.ToLower(code), strings.ReplaceAll(code, "-", ""), " " + strings.ReplaceAll(code, "-", " ")} {
		wants := user.want(t, 200, "", "POST", authPath+"/device", object{"user_code": typed}).data()
		equal(t, "wants", []any{wants["client"], wants["scopes"], wants["ip"], wants["status"]}, []any{object{"name": "Television", "logo_uri": nil}, []any{"openid", "email"}, "127.0.0.1", "pending"})
	}
	equal(t, "still pending", poll(tv, a).code(), "authorization_pending")
	page := c.visit(t, "POST", "/device", asBrowser(session), url.Values{"user_code": {code}})
	equal(t, "page", []any{page.status, strings.Contains(page.html, "Television"), strings.Contains(page.html, "127.0.0.1"), strings.Contains(page.html, "See your e-mail address")}, []any{200, true, true, true})
	equal(t, "link", strings.Contains(c.visit(t, "GET", "/device?user_code="+code, asBrowser(session), nil).html, "Allow"), false)
	equal(t, "nobody", c.visit(t, "GET", "/device?user_code="+code, nil, nil).header.Get("Location"), "/auth/sign-in?next=%2Fdevice%3Fuser_code%3D"+code)
	foreign := asBrowser(session)
	foreign["Sec-Fetch-Site"] = []string{"cross-site"}
	equal(t, "from another site", c.visit(t, "POST", "/device", foreign, url.Values{"user_code": {code}, "decision": {"allow"}}).status, 403)
	equal(t, "allowed", decide(a, "allow").data()["status"], "allowed")

	// Only the requesting client gets tokens, once.
	thief := newParty(t, c, object{"name": "Thief", "type": "native"})
	equal(t, "thief", poll(thief, a).code(), "invalid_grant")
	var wg sync.WaitGroup
	answers := make(chan answer, 20)
	for range cap(answers) {
		wg.Go(func() {
			answers <- tv.form(t, nil, url.Values{"grant_type": {deviceGrant}, "client_id": {tv.id}, "device_code": {a.body["device_code"].(string)}})
		})
	}
	wg.Wait()
	close(answers)
	var got []answer
	for a := range answers {
		if a.status == 200 {
			got = append(got, a)
		}
	}
	if len(got) != 1 {
		t.Fatalf("%d got tokens", len(got))
	}
	equal(t, "tokens", []any{got[0].body["scope"], claimsOf(t, got[0].body["id_token"].(string))["sub"]}, []any{"openid email", id})
	c.with(got[0].body["access_token"].(string)).want(t, 200, "", "GET", "/oauth2/userinfo", nil)
	equal(t, "refresh", tv.refresh(t, got[0].body["refresh_token"].(string), nil).status, 200)
	equal(t, "listed", user.want(t, 200, "", "GET", authorizationsPath, nil).list()[0].(object)["name"], "Television")
	user.want(t, 400, "code_invalid", "POST", authPath+"/device", object{"user_code": code, "decision": "deny"})

	// Denied requests, expired requests, and users who may not answer.
	a = begin(tv, nil)
	decide(a, "deny")
	equal(t, "denied", poll(tv, a).code(), "access_denied")
	a = begin(tv, nil)
	user.want(t, 400, "validation_failed", "POST", authPath+"/device", object{"user_code": a.body["user_code"], "decision": "perhaps"})
	user.want(t, 400, "validation_failed", "POST", authPath+"/device", object{})
	user.want(t, 400, "invalid_json", "POST", authPath+"/device", `{`)
	for _, bad := range []string{"BCDF-GHJ", "AAAA-AAAA", "BCDF-GHJK-LMNP", "日本"} {
		user.want(t, 400, "code_invalid", "POST", authPath+"/device", object{"user_code": bad})
	}
	c.want(t, 403, "permission_denied", "POST", authPath+"/device", object{"user_code": a.body["user_code"]})
	c.with("").want(t, 401, "unauthenticated", "POST", authPath+"/device", object{"user_code": a.body["user_code"]})
	other := w.tenant(t, "devices-other")
	member(t, other, "ann@example.com")
	elsewhere := other.with(signIn(t, other, "ann@example.com", secret, "complete").data()["session_token"].(string))
	elsewhere.want(t, 400, "code_invalid", "POST", authPath+"/device", object{"user_code": a.body["user_code"]})
	decide(a, "allow")
	c.want(t, 200, "", "POST", "/api/v1/users/"+id+"/disable", nil)
	equal(t, "disabled in between", poll(tv, a).code(), "invalid_grant")
	c.want(t, 200, "", "POST", "/api/v1/users/"+id+"/enable", nil)
	user = c.with(signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string))
	a = begin(tv, nil)
	if _, err := w.db.Exec(t.Context(), `UPDATE device_codes SET expires_at = $1`, time.Now().UnixMicro()); err != nil {
		t.Fatal(err)
	}
	user.want(t, 400, "code_invalid", "POST", authPath+"/device", object{"user_code": a.body["user_code"]})
	equal(t, "late", poll(tv, a).code(), "expired_token")

	// Requests that are refused.
	server := newParty(t, c, nil)
	equal(t, "server", begin(server, nil).status, 200)
	equal(t, "no secret", c.present(t, devicePath, nil, url.Values{"client_id": {server.id}}).code(), "invalid_client")
	for what, tc := range map[string]struct {
		code string
		a    answer
	}{
		"page in a browser": {"unauthorized_client", begin(newParty(t, c, object{"type": "spa"}), nil)}, "machine": {"unauthorized_client", begin(newParty(t, c, object{"type": "m2m"}), nil)},
		"scope": {"invalid_scope", begin(tv, url.Values{"scope": {"users:write"}})}, "audience": {"invalid_target", begin(tv, url.Values{"audience": {"https://other.example.com"}})},
		"nobody": {"invalid_client", begin(&relyingParty{id: "nobody"}, nil)}, "two scopes": {"invalid_request", begin(tv, url.Values{"scope": {"a", "b"}})},
	} {
		equal(t, what, tc.a.code(), tc.code)
	}
	equal(t, "no code", tv.form(t, nil, url.Values{"grant_type": {deviceGrant}, "client_id": {tv.id}}).code(), "invalid_grant")
}

// TestDeviceGuesses limits a user's guesses at user codes over all addresses.
func TestDeviceGuesses(t *testing.T) {
	w := newWorld(t, databases["SQLite"](t), nil)
	limits, err := ratelimit.New(ratelimit.Config{DB: w.db, Limits: ratelimit.Limits{{Family: ratelimit.SignIn, By: ratelimit.IP}: {}}})
	if err != nil {
		t.Fatal(err)
	}
	c := w.tenant(t, "guesses")
	member(t, c, "ann@example.com")
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	ann := (&client{server: httptestServer(t, w, func(config *api.Config) { config.Limits = limits }), host: c.host}).with(session)
	for range 30 {
		ann.want(t, 400, "code_invalid", "POST", authPath+"/device", object{"user_code": "BBBB-BBBB"})
	}
	a := ann.want(t, 429, "rate_limited", "POST", authPath+"/device", object{"user_code": "BBBB-BBBB"})
	equal(t, "details", a.details(), object{"limit": 30.0, "window_s": 60.0, "family": "sign-in"})
}
