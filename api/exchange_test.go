package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"stonetown/internal/eventlog"
)

const (
	exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
	tokenTypes    = "urn:ietf:params:oauth:token-type:"
	ordersAPI     = "https://orders.example.com"
	stockAPI      = "https://stock.example.com/v1"
)

// swap exchanges a token.
func (p *relyingParty) swap(t testing.TB, subject string, changes url.Values) answer {
	t.Helper()
	v := url.Values{"grant_type": {exchangeGrant}, "subject_token": {subject}, "subject_token_type": {tokenTypes + "access_token"}}
	maps.Copy(v, changes)
	maps.DeleteFunc(v, func(_ string, values []string) bool { return len(values) == 0 })
	var h http.Header
	if p.secret != "" {
		h = basic(p.id, p.secret)
	}
	return p.form(t, h, v)
}

// swapped exchanges a token, which must succeed, and returns the new one with its claims.
func (p *relyingParty) swapped(t testing.TB, subject string, changes url.Values) (token string, claims object) {
	t.Helper()
	a := p.swap(t, subject, changes)
	if a.status != 200 {
		t.Fatalf("exchange: %d %s", a.status, a.text)
	}
	equal(t, "answer", []any{a.body["token_type"], a.body["issued_token_type"], a.body["refresh_token"], a.body["id_token"], a.header.Get("Cache-Control")},
		[]any{"Bearer", tokenTypes + "access_token", nil, nil, "no-store"})
	token = a.body["access_token"].(string)
	claims = claimsOf(t, token)
	equal(t, "scope", a.body["scope"], strings.TrimSpace(claimsScope(claims)))
	return token, claims
}

func claimsScope(claims object) string {
	scope, _ := claims["scope"].(string)
	return scope
}

// permit writes a relation of a system type.
func permit(t testing.TB, c *client, typ, id, name string, subject object) {
	t.Helper()
	a := c.do(t, "POST", "/api/v1/resources/"+typ+"/"+url.PathEscape(id)+"/relations", relation(subject, name))
	if a.status != 201 && a.status != 200 {
		t.Fatalf("%s of %s: %d %s", name, id, a.status, a.text)
	}
}

// exchanging is a token_exchange of an application.
func exchanging(audiences ...any) object {
	return object{"enabled": true, "allowed_audiences": append([]any{}, audiences...)}
}

// exchanges returns the events of token exchanges.
func (w *world) exchanges(t testing.TB, c *client) (records []object) {
	t.Helper()
	for _, e := range w.events(t, c, 0) {
		if e.Type != eventlog.TokenExchanged && e.Type != eventlog.TokenExchangeDenied {
			continue
		}
		var data object
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		decision := map[eventlog.Type]string{eventlog.TokenExchanged: "allowed", eventlog.TokenExchangeDenied: "denied"}[e.Type]
		if data["decision"] != decision || e.Origin.RequestID == "" || e.Origin.ClientID != data["application"].(map[string]any)["client_id"] {
			t.Errorf("%s of %+v: %s", e.Type, e.Origin, e.Data)
		}
		if strings.Contains(string(e.Data), "eyJ") || strings.Contains(string(e.Data), "rt_") {
			t.Errorf("a token is on record: %s", e.Data)
		}
		records = append(records, data)
	}
	return records
}

func tokenExchange(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	base := c.base()
	ann := member(t, c, "ann@example.com")
	group := group(t, c, "readers", "resources:read", "users:read")
	c.want(t, 201, "", "POST", groupsPath+"/"+group+"/members", object{"user_id": ann})

	front := newParty(t, c, object{"name": "Front", "allowed_scopes": []any{"openid", "offline_access", "me:read", "resources:read"}, "token_exchange": exchanging(ordersAPI)})
	front.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	got := front.exchange(t, front.code(t, url.Values{"scope": {"openid offline_access me:read"}}), nil).body
	access := got["access_token"].(string)
	subject := claimsOf(t, access)
	equal(t, "subject", subject["scope"], "openid offline_access me:read resources:read users:read")

	// With fewer scopes, all else is equal.
	token, claims := front.swapped(t, access, url.Values{"scope": {"me:read"}})
	for _, name := range []string{"sub", "aud", "acr", "amr", "auth_time", "gid", "sid", "tid", "iss"} {
		equal(t, name, claims[name], subject[name])
	}
	equal(t, "fewer", []any{claims["scope"], claims["client_id"], claims["ptok"], claims["act"]}, []any{"me:read", front.id, subject["jti"], nil})
	if claims["jti"] == subject["jti"] || claims["exp"].(float64) > subject["exp"].(float64) {
		t.Errorf("%v for %v", claims, subject)
	}
	narrow := c.with(token)
	narrow.want(t, 200, "", "GET", mePath+"/profile", nil)
	narrow.want(t, 403, "insufficient_scope", "GET", "/api/v1/users", nil) // scopes of groups do not come back
	_, claims = front.swapped(t, access, nil)
	equal(t, "all", claims["scope"], subject["scope"])
	_, claims = front.swapped(t, token, url.Values{"subject_token_type": {tokenTypes + "jwt"}})
	equal(t, "again", claims["scope"], "me:read")

	// Another audience requires the permission of the application and of the subject, and gives
	// the scopes that both have.
	orders := url.Values{"audience": {ordersAPI}}
	equal(t, "subject", front.swap(t, access, orders).code(), "invalid_target")
	permit(t, c, "audience", ordersAPI, "caller", user(ann))
	_, claims = front.swapped(t, access, orders)
	equal(t, "audience", []any{claims["aud"], claims["scope"]}, []any{ordersAPI, "openid offline_access me:read resources:read"})
	_, claims = front.swapped(t, access, url.Values{"resource": {ordersAPI}, "scope": {"resources:read"}})
	equal(t, "resource", []any{claims["aud"], claims["scope"]}, []any{ordersAPI, "resources:read"})
	equal(t, "not the application's", front.swap(t, access, url.Values{"audience": {ordersAPI}, "scope": {"users:read"}}).code(), "invalid_scope")
	permit(t, c, "audience", stockAPI, "caller", user(ann))
	equal(t, "not permitted", front.swap(t, access, url.Values{"audience": {stockAPI}}).code(), "invalid_target")
	equal(t, "one of two", front.swap(t, access, url.Values{"audience": {ordersAPI}, "resource": {stockAPI}}).code(), "invalid_target")
	app := c.want(t, 200, "", "GET", appsPath+"?q="+front.id, nil).body["data"].([]any)[0].(map[string]any)["id"].(string)
	c.want(t, 200, "", "PATCH", appsPath+"/"+app, object{"token_exchange": exchanging(ordersAPI, stockAPI)})
	token, claims = front.swapped(t, access, url.Values{"audience": {ordersAPI}, "resource": {stockAPI}})
	equal(t, "two", claims["aud"], []any{ordersAPI, stockAPI})
	c.with(token).want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)
	everyone := "https://everyone.example.com"
	c.want(t, 200, "", "PATCH", appsPath+"/"+app, object{"token_exchange": exchanging(ordersAPI, everyone)})
	equal(t, "taken back", front.swap(t, access, url.Values{"audience": {stockAPI}}).code(), "invalid_target")
	permit(t, c, "audience", everyone, "caller", user("*"))
	front.swapped(t, access, url.Values{"audience": {everyone}})

	// Other tokens of the same user.
	for typ, of := range map[string]string{"refresh_token": got["refresh_token"].(string), "id_token": got["id_token"].(string)} {
		_, claims = front.swapped(t, of, url.Values{"subject_token_type": {tokenTypes + typ}, "scope": {"me:read"}})
		equal(t, typ, []any{claims["sub"], claims["scope"], claims["gid"], claims["aud"]}, []any{ann, "me:read", subject["gid"], base})
		equal(t, "wider", front.swap(t, of, url.Values{"subject_token_type": {tokenTypes + typ}, "scope": {"resources:read"}}).code(), "invalid_scope")
	}
	equal(t, "not rotated", front.refresh(t, got["refresh_token"].(string), nil).status, 200)

	// The token of an application that acts for itself.
	machine := newParty(t, c, object{"name": "Machine", "type": "m2m", "redirect_uris": []any{}, "allowed_scopes": []any{"resources:read", "resources:write"}, "token_exchange": exchanging(ordersAPI)})
	own := machine.form(t, basic(machine.id, machine.secret), url.Values{"grant_type": {"client_credentials"}}).body["access_token"].(string)
	equal(t, "machine", machine.swap(t, own, orders).code(), "invalid_target")
	permit(t, c, "audience", ordersAPI, "caller", object{"type": "application", "id": machine.id})
	_, claims = machine.swapped(t, own, url.Values{"audience": {ordersAPI}, "scope": {"resources:read"}})
	equal(t, "machine", []any{claims["sub"], claims["client_id"], claims["scope"], claims["aud"]}, []any{machine.id, machine.id, "resources:read", ordersAPI})

	// A token of another application: limited to the scopes of this one, and recorded.
	_, claims = machine.swapped(t, access, nil)
	equal(t, "of another", []any{claims["sub"], claims["client_id"], claims["scope"]}, []any{ann, machine.id, "resources:read"})
	equal(t, "more", machine.swap(t, access, url.Values{"scope": {"users:read"}}).code(), "invalid_scope")
	records := w.exchanges(t, c)
	last := records[len(records)-2]
	equal(t, "record", []any{last["decision"], last["client_authenticated"], last["subject"], last["subject_jti"], last["new_jti"], last["actor"], last["granted"]},
		[]any{"allowed", true, object{"type": "user", "id": ann}, subject["jti"], claims["jti"], nil, object{"audience": []any{base}, "scope": "resources:read"}})
	last = records[len(records)-1]
	equal(t, "record", []any{last["decision"], last["reason"], last["new_jti"], last["granted"], last["requested"]},
		[]any{"denied", "scope", nil, nil, object{"audience": []any{}, "scope": "users:read"}})

	// Revoking the subject token ends the exchanged token.
	child, _ := machine.swapped(t, own, url.Values{"scope": {"resources:read"}})
	c.with(child).want(t, 200, "", "GET", "/api/v1/resource-types", nil)
	machine.present(t, revokePath, basic(machine.id, machine.secret), url.Values{"token": {own}})
	c.with(child).want(t, 401, "invalid_token", "GET", "/api/v1/resource-types", nil)
	equal(t, "revoked", machine.swap(t, own, nil).code(), "invalid_request")
	child, _ = front.swapped(t, access, url.Values{"scope": {"me:read"}})
	// Tokens of a disabled application cannot be exchanged, by any application.
	found, err := w.oauth.Clients.ByClientID(t.Context(), mustTenant(t, w, c), front.id)
	if err != nil {
		t.Fatal(err)
	}
	c.want(t, 200, "", "POST", appsPath+"/"+found.ID+"/disable", nil)
	equal(t, "of a disabled application", machine.swap(t, access, nil).code(), "invalid_request")
	c.want(t, 200, "", "POST", appsPath+"/"+found.ID+"/enable", nil)
	c.want(t, 200, "", "POST", "/api/v1/users/"+ann+"/disable", nil)
	c.with(child).want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)
	equal(t, "disabled", front.swap(t, access, nil).code(), "invalid_request")
}

func exchangeRefuses(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	ann := member(t, c, "ann@example.com")
	front := newParty(t, c, object{"name": "Front", "token_exchange": exchanging(ordersAPI)})
	front.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	permit(t, c, "audience", ordersAPI, "caller", user(ann))
	got := front.exchange(t, front.code(t, nil), nil).body
	access, id, refresh := got["access_token"].(string), got["id_token"].(string), got["refresh_token"].(string)
	closed := newParty(t, c, object{"name": "Closed"})
	open := newParty(t, c, object{"name": "Open", "token_exchange": exchanging(ordersAPI)})
	page := newParty(t, c, object{"name": "Page", "type": "spa", "token_exchange": exchanging()})
	page.session = front.session
	other := w.tenant(t, "exchange-refuses-other")
	foreign := newParty(t, other, object{"name": "Foreign", "token_exchange": exchanging()})
	member(t, other, "ann@example.com")
	foreign.session = signIn(t, other, "ann@example.com", secret, "complete").data()["session_token"].(string)
	strange := foreign.exchange(t, foreign.code(t, nil), nil).body["access_token"].(string)

	equal(t, "not opted in", closed.swap(t, access, nil).code(), "invalid_grant")
	of := func(typ string) url.Values { return url.Values{"subject_token_type": {tokenTypes + typ}} }
	before := len(w.exchanges(t, c))
	denied := map[string]struct {
		by      *relyingParty
		subject string
		code    string
		changes url.Values
	}{
		"no token":                    {open, "", "invalid_request", nil},
		"no type":                     {open, access, "invalid_request", url.Values{"subject_token_type": nil}},
		"unknown type":                {open, access, "invalid_request", of("saml2")},
		"actor without type":          {open, access, "invalid_request", url.Values{"actor_token": {access}}},
		"type without actor":          {open, access, "invalid_request", url.Values{"actor_token_type": {tokenTypes + "access_token"}}},
		"unknown actor type":          {open, access, "invalid_request", url.Values{"actor_token": {refresh}, "actor_token_type": {tokenTypes + "saml2"}}},
		"another kind asked for":      {open, access, "invalid_request", url.Values{"requested_token_type": {tokenTypes + "refresh_token"}}},
		"malformed":                   {open, "x.y.z", "invalid_request", nil},
		"session":                     {open, front.session, "invalid_request", nil},
		"another tenant's":            {open, strange, "invalid_request", nil},
		"ID token as access token":    {front, id, "invalid_request", nil},
		"access token as ID token":    {front, access, "invalid_request", of("id_token")},
		"refresh token as JWT":        {front, refresh, "invalid_request", of("jwt")},
		"ID token of another":         {open, id, "invalid_request", of("id_token")},
		"refresh token of another":    {open, refresh, "invalid_request", of("refresh_token")},
		"malformed actor":             {open, access, "invalid_request", url.Values{"actor_token": {"x"}, "actor_token_type": {tokenTypes + "jwt"}}},
		"malformed scope":             {open, access, "invalid_scope", url.Values{"scope": {`a"b`}}},
		"more scopes":                 {front, access, "invalid_scope", url.Values{"scope": {"me:write"}}},
		"relative audience":           {front, access, "invalid_target", url.Values{"audience": {"orders"}}},
		"audience with fragment":      {front, access, "invalid_target", url.Values{"resource": {ordersAPI + "#x"}}},
		"long audience":               {front, access, "invalid_target", url.Values{"audience": {ordersAPI + "/" + long(600)}}},
		"eleven audiences":            {front, access, "invalid_request", url.Values{"audience": slices.Repeat([]string{ordersAPI}, 11)}},
		"an audience of nobody's":     {front, access, "invalid_target", url.Values{"audience": {stockAPI}}},
		"public, token of another":    {page, access, "invalid_client", nil},
		"public, naming another":      {page, access, "invalid_client", url.Values{"client_id": {front.id}}},
		"wrong secret":                {&relyingParty{client: c.with(""), id: front.id, secret: "x"}, access, "invalid_client", nil},
		"nobody, of the product":      {&relyingParty{client: c.with("")}, signIn(t, c, "ann@example.com", secret, "complete").data()["access_token"].(string), "invalid_client", nil},
		"nobody, of who authenticate": {&relyingParty{client: c.with("")}, access, "invalid_client", nil},
	}
	for what, tc := range denied {
		a := tc.by.swap(t, tc.subject, tc.changes)
		if a.code() != tc.code {
			t.Errorf("%s: %d %s, want %s", what, a.status, a.text, tc.code)
		}
	}
	// All requests are recorded except malformed ones and those without an application.
	equal(t, "on record", len(w.exchanges(t, c))-before, len(denied)-8)

	// The token of a hosted page has no application that could authenticate.
	mine := page.exchange(t, page.code(t, nil), nil).body["access_token"].(string)
	_, claims := page.swapped(t, mine, url.Values{"client_id": {page.id}, "scope": {"openid"}})
	equal(t, "page", claims["client_id"], page.id)
	page.swapped(t, mine, nil)
	records := w.exchanges(t, c)
	equal(t, "record", records[len(records)-1]["client_authenticated"], false)
	c.want(t, 400, "validation_failed", "POST", appsPath, object{"name": "x", "type": "spa", "token_exchange": object{"enabled": true, "require_client_authentication": true}})

	// An application that need not authenticate, by its own token.
	loose := newParty(t, c, object{"name": "Loose", "type": "m2m", "redirect_uris": []any{}, "allowed_scopes": []any{"resources:read"}, "token_exchange": object{"enabled": true, "require_client_authentication": false}})
	own := loose.form(t, basic(loose.id, loose.secret), url.Values{"grant_type": {"client_credentials"}}).body["access_token"].(string)
	loose.secret = ""
	loose.swapped(t, own, nil)

	// The field has the form of the document, and no other operation writes its relations.
	for what, setup := range map[string]any{
		"no object": "x", "unknown subjects": object{"act_as": object{"allowed_subject_types": []any{"group"}}}, "relative": exchanging("orders"),
		"fragment": exchanging("https://a.example.com/#x"), "control": exchanging("https://a.example.com/\u0000"),
	} {
		a := c.do(t, "POST", appsPath, object{"name": "x", "type": "m2m", "token_exchange": setup})
		equal(t, what, a.code(), "validation_failed")
	}
	c.want(t, 400, "validation_failed", "POST", appsPath, object{"name": "x", "type": "m2m", "token_exchange": exchanging(slices.Repeat([]any{ordersAPI}, 51)...)})
	self := object{"type": "application", "id": closed.id}
	for what, path := range map[string]string{
		"exchange": "application/" + closed.id, "act_as_user": "application/" + closed.id, "act_as_application": "application/" + closed.id, "exchanger": "audience/" + url.PathEscape(ordersAPI),
	} {
		a := c.want(t, 403, "permission_denied", "POST", "/api/v1/resources/"+path+"/relations", relation(self, what))
		equal(t, what, a.details()["required_scope"], "applications:write")
	}
	c.want(t, 403, "permission_denied", "DELETE", "/api/v1/resources/audience/"+url.PathEscape(ordersAPI), nil)
	c.want(t, 403, "permission_denied", "DELETE", "/api/v1/resources/application/"+front.id, nil)
	equal(t, "still not opted in", closed.swap(t, access, nil).code(), "invalid_grant")

	// Deleting the application deletes its permissions.
	app := c.want(t, 200, "", "GET", appsPath+"?q="+open.id, nil).body["data"].([]any)[0].(map[string]any)["id"].(string)
	c.want(t, 204, "", "DELETE", appsPath+"/"+app, nil)
	check := func(typ, id, action string) bool {
		t.Helper()
		return c.want(t, 200, "", "POST", "/api/v1/resources/check", object{"subject": object{"type": "application", "id": open.id}, "resource": resource(typ, id), "action": action}).data()["allowed"].(bool)
	}
	equal(t, "deleted", check("audience", ordersAPI, "exchanger"), false)
	equal(t, "deleted", open.swap(t, access, nil).code(), "invalid_client")
}

func actAs(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	ann, bob := member(t, c, "ann@example.com"), member(t, c, "bob@example.com")
	may := func(types ...any) object {
		return object{"enabled": true, "allowed_audiences": []any{ordersAPI}, "act_as": object{"enabled": true, "allowed_subject_types": append([]any{}, types...)}}
	}
	desk := newParty(t, c, object{"name": "Desk", "token_exchange": may("user")})
	tokenOf := func(p *relyingParty, email string) string {
		t.Helper()
		p.session = signIn(t, c, email, secret, "complete").data()["session_token"].(string)
		return p.exchange(t, p.code(t, url.Values{"scope": {"openid me:read me:write"}}), nil).body["access_token"].(string)
	}
	asAnn, asBob := tokenOf(desk, "ann@example.com"), tokenOf(desk, "bob@example.com")
	by := func(actor string) url.Values {
		return url.Values{"actor_token": {actor}, "actor_token_type": {tokenTypes + "access_token"}}
	}

	equal(t, "without leave", desk.swap(t, asAnn, by(asBob)).code(), "invalid_grant")
	permit(t, c, "user", ann, "act_as", user(bob))
	token, claims := desk.swapped(t, asAnn, by(asBob))
	equal(t, "claims", []any{claims["sub"], claims["act"], claims["acr"], claims["client_id"]}, []any{ann, object{"sub": bob, "client_id": desk.id}, "aal1", desk.id})
	equal(t, "the other way", desk.swap(t, asBob, by(asAnn)).code(), "invalid_grant")

	// Tokens of any type can be the actor token.
	bobs := desk.exchange(t, desk.code(t, nil), nil).body
	for _, kind := range []string{"refresh_token", "id_token"} {
		_, claims := desk.swapped(t, asAnn, url.Values{"actor_token": {bobs[kind].(string)}, "actor_token_type": {tokenTypes + kind}})
		equal(t, kind, []any{claims["sub"], claims["act"]}, []any{ann, object{"sub": bob, "client_id": desk.id}})
	}

	// The actor can read Ann's account, but cannot change it or her ways to sign in.
	acting := c.with(token)
	equal(t, "profile", acting.want(t, 200, "", "GET", mePath+"/profile", nil).data()["email"], "ann@example.com")
	acting.want(t, 403, "permission_denied", "PATCH", mePath+"/profile", object{"name": "Bob"})
	acting.want(t, 403, "permission_denied", "POST", mePath+"/password", object{"current": secret, "next": "another long secret"})
	acting.want(t, 403, "permission_denied", "POST", authPath+"/step-up/begin", object{})
	acting.want(t, 403, "permission_denied", "POST", authPath+"/logout", nil)
	records := w.exchanges(t, c)
	last := records[1]
	equal(t, "record", []any{last["decision"], last["actor"], last["subject"], records[2]["reason"]},
		[]any{"allowed", object{"type": "user", "id": bob}, object{"type": "user", "id": ann}, "act_as_denied"})

	// Introspection names the actor.
	said := desk.present(t, introspectPath, basic(desk.id, desk.secret), url.Values{"token": {token}}).body
	equal(t, "introspection", []any{said["sub"], said["act"]}, []any{ann, object{"sub": bob, "client_id": desk.id}})

	// The actor stays in tokens that are exchanged again.
	_, claims = desk.swapped(t, token, url.Values{"scope": {"me:read"}})
	equal(t, "narrowed", claims["act"], object{"sub": bob, "client_id": desk.id})
	machine := newParty(t, c, object{"name": "Machine", "type": "m2m", "redirect_uris": []any{}, "allowed_scopes": []any{"resources:read", "me:read"}, "token_exchange": may("user", "application")})
	own := machine.form(t, basic(machine.id, machine.secret), url.Values{"grant_type": {"client_credentials"}, "scope": {"resources:read"}}).body["access_token"].(string)
	permit(t, c, "user", ann, "act_as", object{"type": "application", "id": machine.id})
	for depth := 2; depth <= 5; depth++ {
		a := machine.swap(t, token, by(own))
		if depth == 5 {
			equal(t, "too many", a.code(), "invalid_grant")
			break
		}
		if a.status != 200 {
			t.Fatalf("%d actors: %s", depth, a.text)
		}
		token = a.body["access_token"].(string)
		chain := 0
		for act := claimsOf(t, token)["act"]; act != nil; act = act.(map[string]any)["act"] {
			chain++
		}
		equal(t, "actors", chain, depth)
	}

	// Permission to act as a user, directly and by a group.
	equal(t, "applications", desk.swap(t, own, by(asBob)).code(), "invalid_grant")
	equal(t, "no leave", machine.swap(t, own, by(asBob)).code(), "invalid_grant")
	g := group(t, c, "operators")
	c.want(t, 201, "", "POST", groupsPath+"/"+g+"/members", object{"user_id": bob})
	permit(t, c, "application", machine.id, "act_as", object{"type": "group", "id": g})
	_, claims = machine.swapped(t, own, by(asBob))
	equal(t, "as an application", []any{claims["sub"], claims["act"].(map[string]any)["sub"], claims["acr"]}, []any{machine.id, bob, nil})

	// The token expires with the earlier of the two tokens.
	short := newParty(t, c, object{"name": "Short", "access_token_ttl_s": 60, "token_exchange": may("user")})
	brief := tokenOf(short, "bob@example.com")
	_, claims = desk.swapped(t, asAnn, by(brief))
	equal(t, "as long as the actor's", claims["exp"], claimsOf(t, brief)["exp"])

	// The token ends when the actor or the subject is disabled.
	c.want(t, 204, "", "DELETE", "/api/v1/users/"+bob, nil)
	equal(t, "actor deleted", desk.swap(t, asAnn, by(asBob)).code(), "invalid_request")
	c.want(t, 204, "", "DELETE", "/api/v1/users/"+ann, nil)
	equal(t, "subject deleted", machine.swap(t, asAnn, by(own)).code(), "invalid_request")
}
