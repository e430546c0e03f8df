package api_test

import (
	"net/http"
	"net/url"
	"testing"
)

const (
	introspectPath = "/oauth2/introspect"
	revokePath     = "/oauth2/revoke"
)

func introspection(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	id := member(t, c, "ann@example.com")
	p := newParty(t, c, nil)
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	api := newParty(t, c, object{"name": "API", "audience": "https://api.example.com"})
	caller := newParty(t, c, object{"name": "Caller", "type": "m2m", "redirect_uris": []any{}, "audience": "https://api.example.com", "allowed_scopes": []any{"resources:read"}})
	page := newParty(t, c, object{"name": "Page", "type": "spa"})
	look := func(by *relyingParty, token string) object {
		t.Helper()
		a := by.present(t, introspectPath, basic(by.id, by.secret), url.Values{"token": {token}, "token_type_hint": {"whatever"}})
		if a.status != 200 || a.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("introspect: %d %s", a.status, a.text)
		}
		return a.body
	}
	nothing := object{"active": false}

	tokens := p.exchange(t, p.code(t, url.Values{"scope": {"openid offline_access"}}), nil).body
	access, refresh := tokens["access_token"].(string), tokens["refresh_token"].(string)
	said, claims := look(p, access), claimsOf(t, access)
	whole := object{
		"active": true, "token_type": "Bearer", "client_id": p.id, "sub": id, "username": "ann@example.com", "scope": "openid offline_access", "aud": []any{c.base()},
		"iss": c.base(), "jti": claims["jti"], "tid": claims["tid"], "acr": "aal1", "iat": claims["iat"], "nbf": claims["nbf"], "exp": claims["exp"], "auth_time": claims["auth_time"],
	}
	equal(t, "of its own", said, whole)
	said = look(p, refresh)
	equal(t, "refresh token", []any{said["active"], said["client_id"], said["sub"], said["scope"], said["token_type"]}, []any{true, p.id, id, "openid offline_access", nil})

	// Other applications get active=false, as for invalid tokens.
	for what, a := range map[string]object{
		"access token of others": look(api, access), "refresh token of others": look(api, refresh), "no token": look(p, "x"), "NUL": look(p, "rt_x"),
		"ID token": look(p, tokens["id_token"].(string)), "session": look(p, p.session),
	} {
		equal(t, what, a, nothing)
	}
	token := caller.form(t, basic(caller.id, caller.secret), url.Values{"grant_type": {"client_credentials"}}).body["access_token"].(string)
	said = look(api, token)
	equal(t, "for me", []any{said["active"], said["sub"], said["username"], said["auth_time"], said["aud"]}, []any{true, caller.id, nil, nil, []any{"https://api.example.com", c.base()}})
	foreign := newParty(t, w.tenant(t, "introspection-other"), object{"audience": "https://api.example.com"})
	equal(t, "another tenant", look(foreign, token), nothing)

	// Clients without a secret, or with a wrong one, are refused.
	for what, a := range map[string]answer{
		"public":       page.present(t, introspectPath, nil, url.Values{"token": {access}, "client_id": {page.id}}),
		"wrong secret": p.present(t, introspectPath, basic(p.id, api.secret), url.Values{"token": {access}}),
		"nobody":       p.present(t, introspectPath, nil, url.Values{"token": {access}}),
		"to revoke":    p.present(t, revokePath, basic(p.id, "x"), url.Values{"token": {access}}),
	} {
		equal(t, what, []any{a.status, a.code(), a.header.Get("WWW-Authenticate") != ""}, []any{401, "invalid_client", true})
	}
	for _, path := range []string{introspectPath, revokePath} {
		equal(t, "no token", p.present(t, path, basic(p.id, p.secret), nil).code(), "invalid_request")
		equal(t, "twice", p.present(t, path, basic(p.id, p.secret), url.Values{"token": {"x", "y"}}).code(), "invalid_request")
		equal(t, "in the query", p.present(t, path+"?token=x", basic(p.id, p.secret), nil).code(), "invalid_request")
	}

	// The end of a token takes effect at once.
	online := p.exchange(t, p.code(t, nil), nil).body
	equal(t, "signed in", look(p, online["access_token"].(string))["active"], true)
	c.with(p.session).want(t, 204, "", "POST", authPath+"/logout", nil)
	equal(t, "signed out", []any{look(p, online["access_token"].(string)), look(p, online["refresh_token"].(string))}, []any{nothing, nothing})
	equal(t, "offline", []any{look(p, access)["active"], look(p, refresh)["active"]}, []any{true, true})
	renewed := p.refresh(t, refresh, nil).body
	equal(t, "rotated", look(p, refresh), nothing)
	equal(t, "its successor", look(p, renewed["refresh_token"].(string))["active"], true)
	c.want(t, 200, "", "POST", "/api/v1/users/"+id+"/disable", nil)
	equal(t, "disabled", []any{look(p, access), look(p, renewed["refresh_token"].(string))}, []any{nothing, nothing})
}

func revocation(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	member(t, c, "ann@example.com")
	p := newParty(t, c, nil)
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	page := newParty(t, c, object{"name": "Page", "type": "spa"})
	page.session = p.session
	revoke := func(by *relyingParty, token string) {
		t.Helper()
		form := url.Values{"token": {token}, "client_id": {by.id}}
		if by.secret != "" {
			form.Set("client_secret", by.secret)
		}
		a := by.present(t, revokePath, nil, form)
		equal(t, "revoke", []any{a.status, a.text}, []any{200, ""})
	}
	userinfo := func(token string) int {
		t.Helper()
		return c.with(token).send(t, "GET", "/oauth2/userinfo", http.Header{"Authorization": {"Bearer " + token}}, nil).status
	}

	for _, by := range []*relyingParty{p, page} {
		other := map[*relyingParty]*relyingParty{p: page, page: p}[by]
		first := by.exchange(t, by.code(t, url.Values{"scope": {"openid"}}), nil).body
		access, refresh := first["access_token"].(string), first["refresh_token"].(string)
		// Tokens of other applications and invalid tokens are ignored.
		for _, token := range []string{access, refresh} {
			revoke(other, token)
		}
		revoke(by, "x")
		revoke(by, "rt_x")
		equal(t, "still good", userinfo(access), 200)
		// An access token ends alone.
		revoke(by, access)
		revoke(by, access)
		equal(t, "revoked", userinfo(access), 401)
		second := by.refresh(t, refresh, nil)
		equal(t, "refresh", second.status, 200)
		equal(t, "the next", userinfo(second.body["access_token"].(string)), 200)
		// A refresh token ends with the whole family.
		revoke(by, second.body["refresh_token"].(string))
		equal(t, "family", userinfo(second.body["access_token"].(string)), 401)
		equal(t, "refresh", by.refresh(t, second.body["refresh_token"].(string), nil).code(), "invalid_grant")
	}
	equal(t, "events", w.types(t, c, "token.", "security."), []string{"token.revoked", "token.family_revoked", "token.revoked", "token.family_revoked"})

	// A disabled application gets no tokens. Its access tokens are valid until they expire; they
	// end when it is deleted.
	d := c.want(t, 201, "", "POST", appsPath, object{"name": "Machine", "type": "m2m", "allowed_scopes": []any{"resources:read"}}).data()
	app := appsPath + "/" + d["id"].(string)
	machine := &relyingParty{client: c.with(""), id: d["client_id"].(string), secret: d["client_secret"].(string)}
	issue := func() *client {
		t.Helper()
		return c.with(machine.form(t, basic(machine.id, machine.secret), url.Values{"grant_type": {"client_credentials"}}).body["access_token"].(string))
	}
	list := func(token *client, status int) {
		t.Helper()
		code := map[int]string{200: "", 401: "invalid_token"}[status]
		token.want(t, status, code, "GET", "/api/v1/resource-types", nil)
	}
	one, two := issue(), issue()
	list(one, 200)
	revoke(machine, one.token)
	list(one, 401)
	list(two, 200)
	c.want(t, 200, "", "POST", app+"/disable", nil)
	list(two, 200)
	equal(t, "no new one", machine.form(t, basic(machine.id, machine.secret), url.Values{"grant_type": {"client_credentials"}}).code(), "unauthorized_client")
	for _, path := range []string{introspectPath, revokePath} {
		a := machine.present(t, path, basic(machine.id, machine.secret), url.Values{"token": {two.token}})
		equal(t, path, []any{a.status, a.code()}, []any{400, "unauthorized_client"})
	}
	c.want(t, 200, "", "POST", app+"/enable", nil)
	list(two, 200)
	list(one, 401)
	list(issue(), 200)
	c.want(t, 204, "", "DELETE", app, nil)
	list(two, 401)
}
