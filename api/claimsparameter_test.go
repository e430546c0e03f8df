package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"stonetown/internal/eventlog"
	oauthaccess "stonetown/oauth/access"
)

// userInfoOf reads the claims of the UserInfo endpoint with an access token.
func (c *client) userInfoOf(t testing.TB, token any) object {
	t.Helper()
	return c.with(token.(string)).want(t, 200, "", "GET", "/oauth2/userinfo", nil).body
}

// pick returns some members of an object, in order; nil for those that are absent.
func pick(o object, names ...string) (values []any) {
	for _, name := range names {
		values = append(values, o[name])
	}
	return values
}

// claimsParameter asks for single claims, at the authorization endpoint, in pushed requests and in
// request objects (OIDC Core §5.5).
func claimsParameter(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	ann, bob := member(t, c, "ann@example.com"), member(t, c, "bob@example.com")
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+ann, object{"attributes": object{"nickname": "a", "phone_number": "+41441234567"}})
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "invoices", "entitlement": "self"})
	key := newSigner(t, "a")
	setup := object{"jwks": keySet(key), "allowed_scopes": []any{"openid", "profile", "email", "offline_access", "invoices"}}
	p := newParty(t, c, setup)
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	const claims = `{"userinfo":{"name":{"essential":true},"phone_number":null,"department":null},"id_token":{"nickname":null,"email":{"value":"x"},"auth_time":{"essential":true}}}`
	names := []string{"name", "nickname", "email", "email_verified", "phone_number", "updated_at"}
	// look compares the claims of both places.
	look := func(what string, by *relyingParty, got answer, userInfo, idToken []any) {
		t.Helper()
		equal(t, what+", ID token", pick(claimsOf(t, got.body["id_token"].(string)), names...), idToken)
		equal(t, what+", user information", pick(by.userInfoOf(t, got.body["access_token"]), names...), userInfo)
	}
	asked, asInfo, asToken := url.Values{"scope": {"openid"}, "claims": {claims}}, []any{"Ann", nil, nil, nil, nil, nil}, []any{nil, "a", "ann@example.com", nil, nil, nil}

	// A claim whose scope the application is not allowed (phone_number) is not returned.
	first := p.exchange(t, p.code(t, asked), nil)
	look("first party", p, first, asInfo, asToken)
	equal(t, "scope", first.body["scope"], any("openid"))
	if claimsOf(t, first.body["id_token"].(string))["auth_time"] == nil {
		t.Error("no auth_time")
	}
	renewed := p.refresh(t, first.body["refresh_token"].(string), nil)
	look("renewed", p, renewed, asInfo, asToken)
	both := p.exchange(t, p.code(t, url.Values{"scope": {"openid email"}, "claims": {claims}}), nil)
	look("with a scope", p, both, []any{"Ann", nil, "ann@example.com", true, nil, nil}, []any{nil, "a", "ann@example.com", true, nil, nil})
	narrowed := p.refresh(t, both.body["refresh_token"].(string), url.Values{"scope": {"openid"}})
	look("a scope less", p, narrowed, asInfo, []any{nil, "a", nil, nil, nil, nil})
	if got := p.exchange(t, p.code(t, url.Values{"scope": {"invoices"}, "claims": {claims}}), nil); got.body["id_token"] != nil || c.with(got.body["access_token"].(string)).do(t, "GET", "/oauth2/userinfo", nil).status == 200 {
		t.Errorf("without openid: %s", got.text)
	}

	// Pushed, and in a request object, where claims are an object.
	pushed := p.present(t, "/oauth2/par", nil, joined(p.request(asked), url.Values{"client_secret": {p.secret}}))
	_, to := p.browse(t, "/oauth2/authorize?"+url.Values{"client_id": {p.id}, "request_uri": {pushed.body["request_uri"].(string)}}.Encode())
	look("pushed", p, p.exchange(t, to.Query().Get("code"), nil), asInfo, asToken)
	signed := func(value any) url.Values {
		t.Helper()
		v := url.Values{"client_id": {p.id}, "request": {p.requestObject(t, key, object{"scope": "openid", "claims": value})}, "claims": {`{"userinfo":{"email":null}}`}}
		_, to := p.browse(t, "/oauth2/authorize?"+v.Encode())
		return to.Query()
	}
	inner := signed(object{"userinfo": object{"name": object{"essential": true}}, "id_token": object{"nickname": nil, "email": nil}})
	look("signed", p, p.exchange(t, inner.Get("code"), nil), asInfo, asToken)
	equal(t, "signed, a text", signed(claims).Get("error"), "invalid_request")

	// Malformed, at both endpoints.
	for what, bad := range map[string]string{
		"no JSON": "x", "a list": "[]", "no claim": `{"userinfo":{"name":true}}`, "essential": `{"id_token":{"name":{"essential":"yes"}}}`, "sub": `{"id_token":{"sub":{"value":1}}}`,
		"large": `{"x":"` + long(4096) + `"}`, "two subjects": `{"id_token":{"sub":{"value":"usr_1"}},"userinfo":{"sub":{"value":"usr_2"}}}`,
	} {
		_, to := p.ask(t, url.Values{"claims": {bad}})
		equal(t, what, []any{to.Query().Get("error"), to.Query().Get("state")}, []any{"invalid_request", "a b&c="})
		a := p.present(t, "/oauth2/par", nil, joined(p.request(url.Values{"claims": {bad}}), url.Values{"client_secret": {p.secret}}))
		equal(t, what+", pushed", []any{a.status, a.code()}, []any{400, "invalid_request"})
	}
	_, to = p.ask(t, url.Values{"claims": {"{}", "{}"}})
	equal(t, "twice", to.Query().Get("error"), "invalid_request")

	// A scope that an administrator takes from the application takes its claims, of grants from before, too.
	app := appsPath + "/" + p.applicationID(t, c)
	c.want(t, 200, "", "PATCH", app, object{"allowed_scopes": []any{"openid", "email"}})
	look("scope taken", p, p.refresh(t, renewed.body["refresh_token"].(string), nil), []any{nil, nil, nil, nil, nil, nil}, []any{nil, nil, "ann@example.com", nil, nil, nil})
	equal(t, "at once", pick(p.userInfoOf(t, first.body["access_token"]), "name"), []any{nil})
	c.want(t, 200, "", "PATCH", app, object{"allowed_scopes": setup["allowed_scopes"]})

	// A token of an exchange has no claims that were requested by their names.
	c.want(t, 200, "", "PATCH", app, object{"token_exchange": object{"enabled": true}})
	token := p.exchange(t, p.code(t, asked), nil).body["access_token"].(string)
	exchanged := p.form(t, nil, url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "client_id": {p.id}, "client_secret": {p.secret}, "subject_token": {token}, "subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
	})
	equal(t, "exchanged", []any{exchanged.status, pick(p.userInfoOf(t, exchanged.body["access_token"]), "sub", "name")}, []any{200, []any{any(ann), nil}})

	claimsOfOneUser(t, c, p, ann, bob)
	equal(t, "offered", discoveryOf(t, c)["claims_parameter_supported"], any(true))
}

// claimsOfOneUser has the requests for a user, by the claim sub (OIDC Core §3.1.2.2).
func claimsOfOneUser(t *testing.T, c *client, p *relyingParty, ann, bob string) {
	t.Helper()
	forUser := func(member, value string) url.Values {
		return url.Values{"claims": {fmt.Sprintf(`{%q:{"sub":%s}}`, member, value)}, "prompt": {"none"}}
	}
	for _, member := range []string{"id_token", "userinfo"} {
		p.code(t, forUser(member, `{"value":"`+ann+`"}`))
		p.code(t, forUser(member, `{"values":["`+bob+`","`+ann+`"]}`))
		for _, other := range []string{`{"value":"` + bob + `"}`, `{"values":["` + bob + `","usr_x"]}`, `{"value":""}`} {
			_, to := p.ask(t, forUser(member, other))
			equal(t, member+" "+other, []any{to.Query().Get("error"), to.Query().Has("code")}, []any{"login_required", false})
		}
	}
	hint := p.exchange(t, p.code(t, nil), nil).body["id_token"].(string)
	_, to := p.ask(t, joined(forUser("id_token", `{"value":"`+bob+`"}`), url.Values{"id_token_hint": {hint}}))
	equal(t, "against the hint", to.Query().Get("error"), "login_required")
	// Another user has to sign in, and only that one gets a code.
	interactive := forUser("id_token", `{"value":"`+bob+`"}`)
	interactive.Set("prompt", "")
	_, to = p.ask(t, interactive)
	equal(t, "page", to.Path, "/auth/sign-in")
	resume := to.Query().Get("next")
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	_, to = p.browse(t, resume)
	equal(t, "the other again", to.Query().Get("error"), "login_required")
	_, to = p.ask(t, interactive)
	resume = to.Query().Get("next")
	p.session = signIn(t, c, "bob@example.com", secret, "complete").data()["session_token"].(string)
	_, to = p.browse(t, resume)
	equal(t, "the user", claimsOf(t, p.exchange(t, to.Query().Get("code"), nil).body["id_token"].(string))["sub"], any(bob))
}

// claimsWithConsent names each claim to the user, and asks again when there are more.
func claimsWithConsent(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	member(t, c, "ann@example.com")
	p := newParty(t, c, object{"name": "Guest", "first_party": false, "allowed_scopes": []any{"openid", "profile", "email"}})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	user := c.with(p.session)
	request := func(scope string, names ...string) url.Values {
		var members []string
		for _, name := range names {
			members = append(members, fmt.Sprintf("%q:null", name))
		}
		return url.Values{"scope": {scope}, "claims": {`{"userinfo":{` + strings.Join(members, ",") + `}}`}}
	}
	waits := func(changes url.Values) string {
		t.Helper()
		if _, to := p.ask(t, changes); to.Path != "/auth/consent" {
			t.Fatalf("to %s", to)
		}
		return p.flow
	}
	allow := func(flow string, more object) object {
		t.Helper()
		next := user.want(t, 200, "", "POST", authPath+"/consent", joinedObjects(object{"flow_id": flow, "decision": "allow"}, more)).data()["redirect_to"].(string)
		_, to := p.browse(t, next)
		return p.userInfoOf(t, p.exchange(t, to.Query().Get("code"), nil).body["access_token"])
	}
	unattended := func(changes url.Values) any {
		t.Helper()
		_, to := p.ask(t, joined(changes, url.Values{"prompt": {"none"}}))
		if to.Query().Get("error") != "" {
			return to.Query().Get("error")
		}
		return p.userInfoOf(t, p.exchange(t, to.Query().Get("code"), nil).body["access_token"])["name"]
	}

	equal(t, "nothing allowed", unattended(request("openid", "name")), "consent_required")
	flow := waits(request("openid", "name", "email", "phone_number", "sub"))
	equal(t, "shown", pick(user.want(t, 200, "", "GET", authPath+"/flows/"+flow, nil).data(), "scopes", "claims"), []any{[]any{"openid"}, []any{"name", "email"}})
	page := c.visit(t, "GET", "/auth/consent?flow="+flow, asBrowser(p.session), nil).html
	for text, shown := range map[string]bool{"Know who you are": true, "See your name<": true, "See your e-mail address<": true, "phone": false} {
		equal(t, text, strings.Contains(page, text), shown)
	}
	for _, bad := range []any{[]any{"phone_number"}, []any{"name", "x"}, []any{"sub"}} {
		equal(t, "not asked", fields(user.want(t, 400, "validation_failed", "POST", authPath+"/consent", object{"flow_id": flow, "decision": "allow", "claims": bad})), []string{"claims"})
	}
	// The page has words for each claim.
	every := newParty(t, c, object{"name": "Every", "first_party": false, "allowed_scopes": []any{"openid", "profile", "email", "phone", "address"}})
	every.session = p.session
	every.ask(t, request("openid", oauthaccess.StandardClaims...))
	page = c.visit(t, "GET", "/auth/consent?flow="+every.flow, asBrowser(p.session), nil).html
	equal(t, "claims on the page", strings.Count(page, "<li>"), len(oauthaccess.StandardClaims)) // openid instead of sub
	for _, name := range oauthaccess.StandardClaims {
		if strings.Contains(page, "<li>"+name+"</li>") {
			t.Errorf("the page shows %s", name)
		}
	}
	// The user allows a part.
	equal(t, "a part", pick(allow(flow, object{"claims": []any{"name"}}), "name", "email"), []any{"Ann", nil})
	equal(t, "unattended", unattended(request("openid", "name")), any("Ann"))
	equal(t, "one more", unattended(request("openid", "name", "email")), "consent_required")
	equal(t, "only scopes", pick(allow(waits(request("openid", "name", "email")), object{"scopes": []any{"openid"}}), "name", "email"), []any{nil, nil})
	equal(t, "all", pick(allow(waits(request("openid", "name", "email")), nil), "name", "email"), []any{"Ann", "ann@example.com"})
	equal(t, "unattended", unattended(request("openid", "name", "email")), any("Ann"))
	equal(t, "the scope is more", unattended(request("openid email", "name")), "consent_required")
	// Consent to a scope is consent to its claims.
	allow(waits(request("openid profile")), nil)
	equal(t, "by the scope", unattended(request("openid", "name", "nickname")), any("Ann"))
	equal(t, "by the scope, shown", pick(user.want(t, 200, "", "GET", authPath+"/flows/"+waits(joined(request("openid profile", "name"), url.Values{"prompt": {"consent"}})), nil).data(), "claims"), []any{[]any{}})

	// The list names them, and an end of the access is the end of the consent.
	guest := user.want(t, 200, "", "GET", authorizationsPath, nil).list()[0].(object)
	equal(t, "list", pick(guest, "scopes", "claims"), []any{[]any{"openid", "profile"}, []any{"name", "email"}})
	if page := c.visit(t, "GET", "/account/applications", asBrowser(p.session), nil).html; !strings.Contains(page, "See your e-mail address<") {
		t.Errorf("the page does not show the claims: %s", page)
	}
	user.want(t, 204, "", "DELETE", authorizationsPath+"/"+guest["application_id"].(string), nil)
	equal(t, "revoked", unattended(request("openid", "name")), "consent_required")
	var recorded []any
	for _, typ := range []eventlog.Type{eventlog.ConsentGranted, eventlog.ConsentRevoked} {
		for _, data := range w.told(t, c, typ) {
			recorded = append(recorded, data["data"].(object)["claims"])
		}
	}
	equal(t, "events", recorded, []any{[]any{"name"}, []any{"name", "email"}, []any{}, []any{"name", "email"}})
}

// claimsOfContexts asks for levels of authentication, by the claim acr (OIDC Core §5.5.1.1).
func claimsOfContexts(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	member(t, c, "ann@example.com")
	p := newParty(t, c, nil)
	acr := func(code string) any {
		t.Helper()
		return claimsOf(t, p.exchange(t, code, nil).body["id_token"].(string))["acr"]
	}
	asks := func(claim string, more url.Values) url.Values {
		return joined(url.Values{"claims": {`{"id_token":{"acr":` + claim + `}}`}}, more)
	}
	none, unmet := url.Values{"prompt": {"none"}}, "unmet_authentication_requirements"
	refused := func(what string, changes url.Values) {
		t.Helper()
		_, to := p.ask(t, changes)
		equal(t, what, []any{to.Query().Get("error"), to.Query().Has("code")}, []any{unmet, false})
	}
	const demand = `{"essential":true,"values":["aal2"]}`
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	for _, preference := range []string{`{"values":["aal2"]}`, `{"value":"gold"}`, `{"essential":true}`, `null`, `{"essential":true,"values":["aal2","aal1"]}`, `{"essential":true,"value":"aal1"}`} {
		equal(t, preference, acr(p.code(t, asks(preference, nil))), any("aal1"))
		equal(t, preference+" with max_age", acr(p.code(t, asks(preference, url.Values{"max_age": {"900"}}))), any("aal1"))
	}
	refused("unknown", asks(`{"essential":true,"values":["gold"]}`, nil))
	pushed := p.present(t, "/oauth2/par", nil, joined(p.request(asks(`{"essential":true,"value":"gold"}`, nil)), url.Values{"client_secret": {p.secret}}))
	equal(t, "unknown, pushed", []any{pushed.status, pushed.code()}, []any{400, unmet})
	refused("nobody may be asked", asks(demand, none))
	refused("against acr_values", asks(demand, url.Values{"prompt": {"none"}, "acr_values": {"aal1"}}))
	_, to := p.ask(t, asks(demand, nil))
	equal(t, "enrol", []any{to.Path, to.Query().Get("done")}, []any{"/account/security", "enrol"})
	resume := to.Query().Get("next")
	enrol(t, w, c.with(p.session))
	_, to = p.browse(t, resume)
	equal(t, "enrolled", acr(to.Query().Get("code")), any("aal2"))
	// A factor that was proved long ago meets the demand: it is for a level, and not for step-up.
	if _, err := w.db.Exec(t.Context(), `UPDATE sessions SET second_factor_at = second_factor_at - $1 WHERE second_factor_at > 0`, time.Hour.Microseconds()); err != nil {
		t.Fatal(err)
	}
	equal(t, "an hour ago", acr(p.code(t, asks(demand, none))), any("aal2"))
	// Tokens for an application that accepts aal1 alone state that.
	got := p.exchange(t, p.code(t, asks(`{"essential":true,"value":"aal1"}`, none)), nil)
	equal(t, "lower", []any{claimsOf(t, got.body["id_token"].(string))["acr"], claimsOf(t, got.body["access_token"].(string))["acr"]}, []any{"aal1", "aal1"})
	equal(t, "either", acr(p.code(t, asks(`{"essential":true,"values":["aal1","aal2"]}`, none))), any("aal2"))
	// With second factors off, the demand cannot be met.
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"mfa_policy": object{"mode": "off"}})
	member(t, c, "bob@example.com")
	p.session = signIn(t, c, "bob@example.com", secret, "complete").data()["session_token"].(string)
	refused("no way", asks(demand, nil))
	equal(t, "and no preference", acr(p.code(t, asks(`{"value":"aal2"}`, nil))), any("aal1"))
}
