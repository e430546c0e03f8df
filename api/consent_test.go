package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

const authorizationsPath = mePath + "/authorizations"

// consent asks the user once, and takes effect at once when the user revokes it.
func consent(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	id := member(t, c, "ann@example.com")
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "invoices", "description": "Read your invoices", "entitlement": "self"})
	p := newParty(t, c, object{"first_party": false, "name": "Guest", "logo_uri": "https://cdn.example.com/logo.png", "allowed_scopes": []any{"openid", "profile", "email", "offline_access", "invoices", "me:write"}})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	user := c.with(p.session)
	// waits sends a request that requires consent.
	waits := func(changes url.Values) (flow string) {
		t.Helper()
		a, to := p.ask(t, changes)
		if a.status != 302 || to.Path != "/auth/consent" || !strings.HasPrefix(to.Query().Get("flow"), "flw_") {
			t.Fatalf("%d to %s", a.status, to)
		}
		return p.flow
	}
	decide := func(flow, decision string, scopes ...any) url.Values {
		t.Helper()
		form := object{"flow_id": flow, "decision": decision}
		if scopes != nil {
			form["scopes"] = scopes
		}
		_, to := p.browse(t, user.want(t, 200, "", "POST", authPath+"/consent", form).data()["redirect_to"].(string))
		return to.Query()
	}

	equal(t, "none", func() string { _, to := p.ask(t, url.Values{"prompt": {"none"}}); return to.Query().Get("error") }(), "consent_required")
	flow := waits(url.Values{"scope": {"openid invoices"}})
	shown := user.want(t, 200, "", "GET", authPath+"/flows/"+flow, nil).data()
	equal(t, "shown", []any{shown["client"], shown["scopes"], shown["scope_descriptions"], shown["status"]},
		[]any{object{"name": "Guest", "logo_uri": "https://cdn.example.com/logo.png"}, []any{"openid", "invoices"}, object{"invoices": "Read your invoices"}, "consent_required"})
	_, to := p.browse(t, "/oauth2/authorize/resume?flow="+flow)
	equal(t, "unanswered", to.Path, "/auth/consent")
	q := decide(flow, "deny")
	equal(t, "denied", []any{q.Get("error"), q.Get("state"), q.Get("code")}, []any{"access_denied", "a b&c=", ""})
	user.want(t, 200, "", "GET", authorizationsPath, nil)

	// The user allows a part, which is then granted without consent.
	code := decide(waits(url.Values{"scope": {"openid invoices"}}), "allow", "openid").Get("code")
	equal(t, "some", p.exchange(t, code, nil).body["scope"], "openid")
	equal(t, "again", p.exchange(t, p.code(t, url.Values{"scope": {"openid"}}), nil).body["scope"], "openid")
	flow = waits(url.Values{"scope": {"openid invoices"}})
	equal(t, "all", p.exchange(t, decide(flow, "allow").Get("code"), nil).body["scope"], "openid invoices")
	p.code(t, url.Values{"scope": {"invoices openid"}, "prompt": {"none"}})
	equal(t, "ready", user.want(t, 200, "", "GET", authPath+"/flows/"+flow, nil).data()["status"], "ready")
	// prompt=consent and offline_access always require consent.
	waits(url.Values{"scope": {"openid"}, "prompt": {"consent"}})
	offline := p.exchange(t, decide(waits(url.Values{"scope": {"openid offline_access"}}), "allow").Get("code"), nil)
	waits(url.Values{"scope": {"openid offline_access"}})
	// First-party applications require no consent unless they request it.
	own := newParty(t, c, nil)
	own.session = p.session
	own.code(t, nil)
	_, to = own.ask(t, url.Values{"prompt": {"consent"}})
	equal(t, "first party", to.Path, "/auth/consent")

	// Only the user of the session can answer, and only about the requested scopes.
	flow = waits(url.Values{"scope": {"openid profile"}})
	for _, bad := range []object{{}, {"flow_id": flow}, {"flow_id": flow, "decision": "maybe"}, {"flow_id": flow, "decision": "allow", "scopes": []any{}}, {"flow_id": flow, "decision": "allow", "scopes": []any{"email"}}} {
		user.want(t, 400, "validation_failed", "POST", authPath+"/consent", bad)
	}
	user.want(t, 400, "invalid_json", "POST", authPath+"/consent", `{`)
	user.want(t, 404, "flow_not_found", "POST", authPath+"/consent", object{"flow_id": "flw_x", "decision": "allow"})
	c.want(t, 403, "permission_denied", "POST", authPath+"/consent", object{"flow_id": flow, "decision": "allow"})
	c.with("").want(t, 401, "unauthenticated", "POST", authPath+"/consent", object{"flow_id": flow, "decision": "allow"})
	application := c.with(p.exchange(t, decide(waits(url.Values{"scope": {"me:write"}}), "allow").Get("code"), nil).body["access_token"].(string))
	application.want(t, 403, "permission_denied", "POST", authPath+"/consent", object{"flow_id": flow, "decision": "allow"})
	application.want(t, 403, "permission_denied", "POST", authPath+"/select-account", object{"flow_id": flow})
	// Answers of another user or from another site are refused.
	member(t, c, "eve@example.com")
	eve := c.with(signIn(t, c, "eve@example.com", secret, "complete").data()["session_token"].(string))
	flow = waits(url.Values{"scope": {"openid profile"}})
	eve.want(t, 200, "", "POST", authPath+"/consent", object{"flow_id": flow, "decision": "allow"})
	_, to = p.browse(t, "/oauth2/authorize/resume?flow="+flow)
	equal(t, "another's answer", to.Path, "/auth/consent")
	for _, path := range []string{"/auth/consent", "/auth/select-account", "/account/end-authorization"} {
		fromElsewhere := http.Header{"Cookie": {"__Host-sid=" + p.session}, "Origin": {"https://evil.test"}, "Sec-Fetch-Site": {"cross-site"}}
		equal(t, "from another site", c.visit(t, "POST", path, fromElsewhere, url.Values{"decision": {"allow"}, "flow": {flow}}).status, 403)
	}
	page := c.visit(t, "GET", "/auth/consent?flow="+flow, asBrowser(p.session), nil)
	equal(t, "page", []any{page.status, page.header.Get("X-Frame-Options"), strings.Contains(page.header.Get("Content-Security-Policy"), "; img-src 'self' data: https://cdn.example.com; ")}, []any{200, "DENY", true})
	// The page sends only the id of the request; other parameters are ignored.
	equal(t, "fields", hiddenFields(page.html), map[string]string{"flow": flow})
	sent := c.visit(t, "POST", "/auth/consent", asBrowser(p.session), url.Values{"flow": {flow}, "decision": {"allow"}, "scopes": {"email offline_access"}, "scope": {"email"}, "client_id": {"x"}})
	_, to = p.browse(t, sent.header.Get("Location"))
	equal(t, "tampered", p.exchange(t, to.Query().Get("code"), nil).body["scope"], "openid profile")
	flow = waits(url.Values{"scope": {"openid profile email"}})
	equal(t, "nobody", c.visit(t, "GET", "/auth/consent?flow="+flow, nil, nil).header.Get("Location"), "/auth/sign-in?next=%2Fauth%2Fconsent%3Fflow%3D"+flow)
	equal(t, "no flow", c.visit(t, "GET", "/auth/consent?flow=x", asBrowser(p.session), nil).status, 404)

	// Authorizations are listed, and end at once when they are revoked.
	list := user.want(t, 200, "", "GET", authorizationsPath, nil).list()
	equal(t, "names", []any{len(list), list[0].(object)["name"], list[0].(object)["first_party"], list[1].(object)["name"]}, []any{2, "Guest", false, "App"})
	guest := list[0].(object)
	allowed := guest["scopes"].([]any)
	slices.SortFunc(allowed, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	equal(t, "scopes", allowed, []any{"invoices", "me:write", "offline_access", "openid", "profile"})
	equal(t, "user", c.want(t, 200, "", "GET", "/api/v1/users/"+id+"/applications", nil).list()[0].(object)["application_id"], guest["application_id"])
	equal(t, "detail", len(c.want(t, 200, "", "GET", "/api/v1/users/"+id, nil).data()["applications_used"].([]any)), 2)
	c.want(t, 404, "user_not_found", "GET", "/api/v1/users/nobody/applications", nil)
	users := "/api/v1/applications/" + guest["application_id"].(string) + "/users"
	everyone := c.want(t, 200, "", "GET", users, nil).list()
	var paged []any
	for cursor, more := "", true; more; {
		a := c.want(t, 200, "", "GET", users+"?limit=1&cursor="+url.QueryEscape(cursor), nil)
		paged = append(paged, a.list()...)
		cursor, more = a.meta("next_cursor").(string)
	}
	equal(t, "in pages", paged, everyone)
	var other string // with access to the application
	for _, item := range everyone {
		u := item.(object)
		if u["user_id"] != id {
			other = u["user_id"].(string)
			continue
		}
		slices.SortFunc(u["scopes"].([]any), func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		equal(t, "of the application", []any{u["email"], u["scopes"], u["claims"], u["created_at"], u["last_authorized_at"]}, []any{"ann@example.com", allowed, []any{}, guest["created_at"], guest["last_authorized_at"]})
	}
	equal(t, "users", []any{len(everyone), other != ""}, []any{2, true})
	next := url.QueryEscape(c.want(t, 200, "", "GET", users+"?limit=1", nil).meta("next_cursor").(string))
	c.want(t, 400, "cursor_invalid", "GET", "/api/v1/applications/"+list[1].(object)["application_id"].(string)+"/users?cursor="+next, nil)
	c.want(t, 404, "application_not_found", "GET", "/api/v1/applications/nothing/users", nil)
	c.with(offline.body["access_token"].(string)).want(t, 200, "", "GET", "/oauth2/userinfo", nil)
	path := authorizationsPath + "/" + guest["application_id"].(string)
	user.want(t, 204, "", "DELETE", path, nil)
	user.want(t, 404, "application_not_found", "DELETE", path, nil)
	user.want(t, 404, "application_not_found", "DELETE", authorizationsPath+"/nothing", nil)
	c.want(t, 403, "permission_denied", "DELETE", path, nil)
	c.with(offline.body["access_token"].(string)).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil)
	equal(t, "refresh", p.refresh(t, offline.body["refresh_token"].(string), nil).code(), "invalid_grant")
	again := p.exchange(t, decide(waits(url.Values{"scope": {"openid"}}), "allow").Get("code"), nil).body["access_token"].(string)
	c.with(again).want(t, 200, "", "GET", "/oauth2/userinfo", nil)
	// An administrator revokes for a user, and not for others.
	of := "/api/v1/users/" + id + "/applications/" + guest["application_id"].(string)
	user.want(t, 403, "insufficient_scope", "DELETE", of, nil)
	c.want(t, 404, "user_not_found", "DELETE", "/api/v1/users/nobody/applications/"+guest["application_id"].(string), nil)
	c.want(t, 404, "application_not_found", "DELETE", "/api/v1/users/"+id+"/applications/nothing", nil)
	c.want(t, 204, "", "DELETE", of, nil)
	c.want(t, 404, "application_not_found", "DELETE", of, nil)
	c.with(again).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil)
	left := c.want(t, 200, "", "GET", users, nil).list()
	equal(t, "left", []any{len(left), left[0].(object)["user_id"]}, []any{1, other})
	waits(url.Values{"scope": {"openid"}})
	equal(t, "events", w.types(t, c, "consent."), []string{"consent.granted", "consent.granted", "consent.granted", "consent.granted", "consent.granted", "consent.granted", "consent.revoked", "consent.granted", "consent.revoked"})
	if _, err := w.db.Exec(t.Context(), `UPDATE authorization_requests SET expires_at = $1`, time.Now().UnixMicro()); err != nil {
		t.Fatal(err)
	}
	user.want(t, 410, "flow_expired", "POST", authPath+"/consent", object{"flow_id": flow, "decision": "allow"})
	user.want(t, 410, "flow_expired", "POST", authPath+"/select-account", object{"flow_id": flow})
	// Deleting a user deletes the authorizations.
	c.want(t, 204, "", "DELETE", "/api/v1/users/"+id, nil)
	var kept int
	if err := w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM authorizations WHERE user_id = $1`, id).Scan(&kept); err != nil || kept != 0 {
		t.Errorf("%d authorizations left, %v", kept, err)
	}
}

// accountSelection continues as the current user or as another one.
func accountSelection(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	member(t, c, "bob@example.com")
	p := newParty(t, c, nil)
	ann := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	p.session = ann
	hint := p.exchange(t, p.code(t, nil), nil).body["id_token"].(string)

	_, to := p.ask(t, url.Values{"prompt": {"select_account"}})
	equal(t, "choose", []any{to.Path, to.Query().Get("flow")}, []any{"/auth/select-account", p.flow})
	user := c.with(ann)
	user.want(t, 400, "validation_failed", "POST", authPath+"/select-account", object{})
	user.want(t, 400, "invalid_json", "POST", authPath+"/select-account", `{`)
	user.want(t, 404, "flow_not_found", "POST", authPath+"/select-account", object{"flow_id": "x"})
	_, to = p.browse(t, user.want(t, 200, "", "POST", authPath+"/select-account", object{"flow_id": p.flow}).data()["redirect_to"].(string))
	equal(t, "chosen", to.Query().Get("code") != "", true)
	_, to = p.ask(t, url.Values{"prompt": {"select_account"}})
	resume := "/oauth2/authorize/resume?flow=" + to.Query().Get("flow")
	p.session = signIn(t, c, "bob@example.com", secret, "complete").data()["session_token"].(string)
	_, to = p.browse(t, resume)
	equal(t, "somebody else", to.Query().Get("code") != "", true)

	// id_token_hint names the expected user.
	_, to = p.ask(t, url.Values{"id_token_hint": {hint}, "prompt": {"none"}})
	equal(t, "another is signed in", to.Query().Get("error"), "login_required")
	_, to = p.ask(t, url.Values{"id_token_hint": {hint}})
	equal(t, "another is signed in", to.Path, "/auth/sign-in")
	resume = to.Query().Get("next")
	p.session = signIn(t, c, "bob@example.com", secret, "complete").data()["session_token"].(string)
	_, to = p.browse(t, resume)
	equal(t, "the other again", to.Query().Get("error"), "login_required")
	_, to = p.ask(t, url.Values{"id_token_hint": {hint}})
	resume = to.Query().Get("next")
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	_, to = p.browse(t, resume)
	equal(t, "who is meant", to.Query().Get("code") != "", true)
	p.code(t, url.Values{"id_token_hint": {hint}, "prompt": {"none"}})
	other := newParty(t, c, nil)
	other.session = p.session
	for what, bad := range map[string]string{"malformed": "x", "unsigned": hint[:len(hint)-6] + "AAAAAA", "access token": p.exchange(t, p.code(t, nil), nil).body["access_token"].(string)} {
		_, to = p.ask(t, url.Values{"id_token_hint": {bad}})
		equal(t, what, to.Query().Get("error"), "invalid_request")
	}
	_, to = other.ask(t, url.Values{"id_token_hint": {hint}})
	equal(t, "of another application", to.Query().Get("error"), "invalid_request")
}

// applicationChoices applies the options of applications to their requests.
func applicationChoices(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	id := member(t, c, "ann@example.com")
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	g := group(t, c, "readers", "users:read", "groups:read")
	c.want(t, 201, "", "POST", groupsPath+"/"+g+"/members", object{"user_id": id})
	party := func(form object) *relyingParty {
		t.Helper()
		p := newParty(t, c, form)
		p.session = session
		return p
	}

	narrow := party(object{"group_scopes": "allowed_only", "allowed_scopes": []any{"openid", "users:read"}})
	equal(t, "groups bring what it may have", narrow.exchange(t, narrow.code(t, url.Values{"scope": {"openid"}}), nil).body["scope"], "openid users:read")
	wide := party(nil)
	equal(t, "groups bring all", wide.exchange(t, wide.code(t, url.Values{"scope": {"openid"}}), nil).body["scope"], "openid groups:read users:read")

	pushes := party(object{"require_pushed_authorization_requests": true})
	_, to := pushes.ask(t, nil)
	equal(t, "not pushed", to.Query().Get("error"), "invalid_request")
	a := pushes.present(t, "/oauth2/par", basic(pushes.id, pushes.secret), pushes.request(nil))
	_, to = pushes.browse(t, "/oauth2/authorize?"+url.Values{"client_id": {pushes.id}, "request_uri": {a.body["request_uri"].(string)}}.Encode())
	equal(t, "pushed", to.Query().Get("code") != "", true)

	// An application may do without PKCE, and without a nonce. A verifier is then refused.
	bare := party(object{"require_pkce": false})
	without := url.Values{"code_challenge": nil, "code_challenge_method": nil}
	code := bare.code(t, without)
	equal(t, "verifier for no challenge", bare.exchange(t, code, nil).code(), "invalid_grant")
	equal(t, "none", bare.exchange(t, code, url.Values{"code_verifier": nil}).status, 200)
	without.Set("nonce", "")
	equal(t, "no nonce", bare.exchange(t, bare.code(t, without), url.Values{"code_verifier": nil}).status, 200)
	_, to = bare.ask(t, url.Values{"code_challenge": nil})
	equal(t, "half", to.Query().Get("error"), "invalid_request")
	equal(t, "challenge and no verifier", bare.exchange(t, bare.code(t, nil), url.Values{"code_verifier": nil}).code(), "invalid_grant")

	// introspect_all permits the introspection of all tokens.
	token := wide.exchange(t, wide.code(t, nil), nil).body["access_token"].(string)
	auditor, nosy := party(object{"introspect_all": true}), party(nil)
	equal(t, "all", auditor.present(t, "/oauth2/introspect", basic(auditor.id, auditor.secret), url.Values{"token": {token}}).body["active"], true)
	equal(t, "not all", nosy.present(t, "/oauth2/introspect", basic(nosy.id, nosy.secret), url.Values{"token": {token}}).body["active"], false)

	// An application with active sessions cannot be deleted.
	found, err := w.oauth.Clients.ByClientID(t.Context(), mustTenant(t, w, c), wide.id)
	if err != nil {
		t.Fatal(err)
	}
	offline := wide.exchange(t, wide.code(t, url.Values{"scope": {"openid offline_access"}}), nil).body["refresh_token"].(string)
	equal(t, "can_delete", c.want(t, 200, "", "GET", appsPath+"/"+found.ID, nil).data()["can_delete"], false)
	refused := c.want(t, 409, "application_has_active_sessions", "DELETE", appsPath+"/"+found.ID, nil).details()
	equal(t, "sessions", refused["active_sessions"], 2.0) // and a refresh token that outlives it
	if at, err := time.Parse(time.RFC3339, refused["latest_expires_at"].(string)); err != nil || time.Until(at) < 24*time.Hour {
		t.Errorf("latest_expires_at: %v, %v", refused["latest_expires_at"], err)
	}
	many := c.want(t, 200, "", "POST", appsPath+"/bulk/delete", object{"ids": []any{found.ID}}).list()[0].(object)
	equal(t, "many", many["error"].(object)["code"], "application_has_active_sessions")
	c.with(session).want(t, 204, "", "POST", authPath+"/logout", nil)
	equal(t, "one", c.want(t, 409, "application_has_active_sessions", "DELETE", appsPath+"/"+found.ID, nil).details()["active_sessions"], 1.0)
	equal(t, "revoke", wide.present(t, "/oauth2/revoke", basic(wide.id, wide.secret), url.Values{"token": {offline}}).status, 200)
	equal(t, "can_delete", c.want(t, 200, "", "GET", appsPath+"/"+found.ID, nil).data()["can_delete"], true)
	c.want(t, 204, "", "DELETE", appsPath+"/"+found.ID, nil)
}
