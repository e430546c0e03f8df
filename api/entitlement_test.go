package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// entitlements issues tokens by every grant; a token has at most the scopes that its user has
// at that time.
func entitlements(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	eve := member(t, c, "eve@example.com")
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "billing:pay", "description": "Pay", "entitlement": "self"})
	const asked = "openid offline_access me:read groups:write billing:pay"
	p := newParty(t, c, object{
		"type": "spa", "name": "Page", "allowed_scopes": anys(strings.Fields(asked)), "token_exchange": object{"enabled": true, "require_client_authentication": false},
	})
	applicationID := c.want(t, 200, "", "GET", appsPath+"?q="+p.id, nil).body["data"].([]any)[0].(map[string]any)["id"].(string)
	api := newParty(t, c, object{"name": "API", "introspect_all": true})
	look := func(token string) object {
		t.Helper()
		return api.present(t, introspectPath, basic(api.id, api.secret), url.Values{"token": {token}}).body
	}
	p.session = signIn(t, c, "eve@example.com", secret, "complete").data()["session_token"].(string)
	tokens := p.exchange(t, p.code(t, url.Values{"scope": {asked}}), nil).body
	// paths are the grants, by name.
	paths := func() map[string]string {
		t.Helper()
		refresh := tokens["refresh_token"].(string)
		of := func(typ string) url.Values { return url.Values{"subject_token_type": {tokenTypes + typ}} }
		found := map[string]string{}
		_, claims := p.swapped(t, tokens["id_token"].(string), of("id_token"))
		found["exchange of an ID token"] = claimsScope(claims)
		_, claims = p.swapped(t, refresh, of("refresh_token"))
		found["exchange of a refresh token"] = claimsScope(claims)
		_, claims = p.swapped(t, tokens["access_token"].(string), of("access_token"))
		found["exchange of an access token"] = claimsScope(claims)
		renewed := p.refresh(t, refresh, nil)
		if renewed.status != 200 {
			t.Fatalf("refresh: %s", renewed.text)
		}
		tokens["refresh_token"] = renewed.body["refresh_token"]
		found["refresh"] = renewed.body["scope"].(string)
		return found
	}
	lacking := func(when, scope string) {
		t.Helper()
		for way, scopes := range paths() {
			if slices.Contains(strings.Fields(scopes), scope) {
				t.Errorf("%s, %s: %s", when, way, scopes)
			}
		}
	}
	lacking("never entitled", "groups:write")

	// A group gives the scope to its members. A token keeps it when the user leaves the group.
	g := group(t, c, "writers", "groups:write")
	c.want(t, 201, "", "POST", groupsPath+"/"+g+"/members", object{"user_id": eve})
	for way, scopes := range paths() {
		if way != "exchange of an access token" && !slices.Contains(strings.Fields(scopes), "groups:write") {
			t.Errorf("a member, %s: %s", way, scopes)
		}
	}
	tokens = p.exchange(t, p.code(t, url.Values{"scope": {asked}}), nil).body
	c.want(t, 204, "", "DELETE", groupsPath+"/"+g+"/members/"+eve, nil)
	equal(t, "refresh token of a former member", look(tokens["refresh_token"].(string))["active"], false) // another client's
	lacking("no longer a member", "groups:write")

	// A scope that was removed from the application, or from the registry.
	equal(t, "granted", slices.Contains(strings.Fields(look(tokens["access_token"].(string))["scope"].(string)), "billing:pay"), true)
	c.want(t, 200, "", "PATCH", appsPath+"/"+applicationID, object{"allowed_scopes": []any{"openid", "offline_access", "me:read"}})
	equal(t, "access token of a narrowed application", look(tokens["access_token"].(string))["scope"], "openid offline_access me:read")
	lacking("not allowed", "billing:pay")
	c.want(t, 204, "", "DELETE", "/api/v1/scopes/billing:pay", nil)
	lacking("not registered", "billing:pay")

	// Introspection of a refresh token states the scopes of the next access token.
	server := newParty(t, c, object{"allowed_scopes": []any{"openid", "offline_access", "me:read", "users:read"}})
	server.session = p.session
	reader := group(t, c, "readers", "users:read", "groups:read")
	c.want(t, 201, "", "POST", groupsPath+"/"+reader+"/members", object{"user_id": eve})
	kept := server.exchange(t, server.code(t, url.Values{"scope": {"openid offline_access users:read"}}), nil).body
	said := func(token any) any {
		t.Helper()
		return server.present(t, introspectPath, basic(server.id, server.secret), url.Values{"token": {token.(string)}}).body["scope"]
	}
	equal(t, "member", said(kept["refresh_token"]), "openid offline_access users:read groups:read")
	c.want(t, 204, "", "DELETE", groupsPath+"/"+reader+"/members/"+eve, nil)
	equal(t, "former member", said(kept["refresh_token"]), "openid offline_access")
	equal(t, "issued before", said(kept["access_token"]), "openid offline_access users:read groups:read")
}

// groupScopesOfOthers keeps the scopes of groups from third-party applications.
func groupScopesOfOthers(t *testing.T, w *world, c *client) {
	setup := object{"name": "Stranger", "type": "spa", "redirect_uris": []any{callback}, "first_party": false}
	made := c.want(t, 201, "", "POST", appsPath, setup).data()
	equal(t, "default", made["group_scopes"], "allowed_only")
	setup["group_scopes"] = "all"
	equal(t, "as it was said", c.want(t, 201, "", "POST", appsPath, setup).data()["group_scopes"], "all")
	own := c.want(t, 201, "", "POST", appsPath, object{"name": "Own", "type": "spa", "redirect_uris": []any{callback}}).data()
	equal(t, "own", own["group_scopes"], "all")
	changed := c.want(t, 200, "", "PATCH", appsPath+"/"+own["id"].(string), object{"first_party": false}).data()
	equal(t, "given away", changed["group_scopes"], "allowed_only")
	equal(t, "null", c.want(t, 200, "", "PATCH", appsPath+"/"+own["id"].(string), object{"group_scopes": nil}).data()["group_scopes"], "allowed_only")

	// A refresh can omit the scopes of groups for one token.
	ann := member(t, c, "ann@example.com")
	g := group(t, c, "readers", "users:read", "groups:read")
	c.want(t, 201, "", "POST", groupsPath+"/"+g+"/members", object{"user_id": ann})
	p := newParty(t, c, nil)
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	tokens := p.exchange(t, p.code(t, url.Values{"scope": {"openid email"}}), nil).body
	renew := func(scope string) answer {
		t.Helper()
		a := p.refresh(t, tokens["refresh_token"].(string), url.Values{"scope": {scope}})
		if a.status == 200 {
			tokens = a.body
		}
		return a
	}
	equal(t, "without groups", renew("openid").body["scope"], "openid")
	equal(t, "one of a group", renew("openid users:read").body["scope"], "openid users:read")
	equal(t, "more than there is", renew("openid users:write").code(), "invalid_scope")
	equal(t, "whole again", renew("").body["scope"], "openid email groups:read users:read")
}

// exchangedChains revokes a token and all that were exchanged from it, directly or not.
func exchangedChains(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	may := object{"enabled": true, "allowed_audiences": []any{}, "act_as": object{"enabled": true, "allowed_subject_types": []any{"user", "application"}}}
	machine := func(name string) *relyingParty {
		t.Helper()
		return newParty(t, c, object{"name": name, "type": "m2m", "redirect_uris": []any{}, "allowed_scopes": []any{"resources:read"}, "token_exchange": may})
	}
	a, b := machine("A"), machine("B")
	own := func(p *relyingParty) string {
		t.Helper()
		return p.form(t, basic(p.id, p.secret), url.Values{"grant_type": {"client_credentials"}}).body["access_token"].(string)
	}
	good := func(token string) bool {
		t.Helper()
		status := c.with(token).do(t, "GET", "/api/v1/resource-types", nil).status
		active := a.present(t, introspectPath, basic(a.id, a.secret), url.Values{"token": {token}}).body["active"]
		if status != 200 && status != 401 || status == 200 && claimsOf(t, token)["client_id"] == a.id && active != true {
			t.Fatalf("%d, active: %v", status, active)
		}
		return status == 200
	}
	chain := func(root string, links int) []string {
		t.Helper()
		tokens := []string{root}
		for n := range links {
			by := []*relyingParty{a, b}[n%2]
			token, _ := by.swapped(t, tokens[n], nil)
			tokens = append(tokens, token)
		}
		return tokens
	}
	revoke := func(p *relyingParty, token string) {
		t.Helper()
		equal(t, "revoked", p.present(t, revokePath, basic(p.id, p.secret), url.Values{"token": {token}}).status, 200)
	}
	state := func(tokens ...string) (all []bool) {
		t.Helper()
		for _, token := range tokens {
			all = append(all, good(token))
		}
		return all
	}

	tokens := chain(own(a), 4)
	equal(t, "before", state(tokens...), []bool{true, true, true, true, true})
	revoke(b, tokens[2])
	equal(t, "from the middle", state(tokens...), []bool{true, true, false, false, false})
	revoke(a, tokens[0])
	equal(t, "from the root", state(tokens...), []bool{false, false, false, false, false})
	equal(t, "of a dead one", b.swap(t, tokens[4], nil).code(), "invalid_request")
	tokens = chain(own(a), 16)
	equal(t, "too long", a.swap(t, tokens[16], nil).code(), "invalid_grant")

	// Deleting an application ends the tokens that others exchanged from its tokens.
	gone := machine("Gone")
	tokens = chain(own(gone), 3)
	equal(t, "before", state(tokens...), []bool{true, true, true, true})
	id := c.want(t, 200, "", "GET", appsPath+"?q="+gone.id, nil).body["data"].([]any)[0].(map[string]any)["id"].(string)
	c.want(t, 204, "", "DELETE", appsPath+"/"+id, nil)
	equal(t, "deleted", state(tokens...), []bool{false, false, false, false})

	// Act-as tokens end with their actor and with their subject.
	ann, bob := member(t, c, "ann@example.com"), member(t, c, "bob@example.com")
	permit(t, c, "user", ann, "act_as", user(bob))
	desk := newParty(t, c, object{"name": "Desk", "type": "spa", "allowed_scopes": []any{"openid", "offline_access", "me:read"}, "token_exchange": object{
		"enabled": true, "require_client_authentication": false, "act_as": may["act_as"],
	}})
	signedIn := func(email, scope string) (access string, session string) {
		t.Helper()
		at := signIn(t, c, email, secret, "complete").data()
		desk.session = at["session_token"].(string)
		return desk.exchange(t, desk.code(t, url.Values{"scope": {scope}}), nil).body["access_token"].(string), at["session"].(map[string]any)["id"].(string)
	}
	profile := func(tokens ...string) (all []bool) {
		t.Helper()
		for _, token := range tokens {
			all = append(all, c.with(token).do(t, "GET", mePath+"/profile", nil).status == 200)
		}
		return all
	}
	acting := func(scope string) (subject, actor, session, acts, passedOn string) {
		t.Helper()
		subject, _ = signedIn("ann@example.com", scope)
		actor, session = signedIn("bob@example.com", scope)
		acts, _ = desk.swapped(t, subject, url.Values{"actor_token": {actor}, "actor_token_type": {tokenTypes + "access_token"}})
		passedOn, _ = desk.swapped(t, acts, nil)
		equal(t, "acting", profile(subject, actor, acts, passedOn), []bool{true, true, true, true})
		return subject, actor, session, acts, passedOn
	}
	subject, actor, _, acts, passedOn := acting("openid me:read")
	desk.present(t, revokePath, nil, url.Values{"token": {actor}, "client_id": {desk.id}})
	equal(t, "actor's token revoked", profile(subject, actor, acts, passedOn), []bool{true, false, false, false})
	var session string
	subject, actor, session, acts, passedOn = acting("openid me:read")
	c.want(t, 204, "", "DELETE", "/api/v1/users/"+bob+"/sessions/"+session, nil)
	equal(t, "actor's session ended", profile(subject, actor, acts, passedOn), []bool{true, false, false, false})
	subject, actor, _, acts, passedOn = acting("openid offline_access me:read")
	c.want(t, 200, "", "POST", "/api/v1/users/"+bob+"/disable", nil)
	equal(t, "actor disabled", profile(subject, actor, acts, passedOn), []bool{true, false, false, false})
}

// exchangeLimits bounds a token by the expiry of the relations that permitted it, and limits
// an application to its own tokens.
func exchangeLimits(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	ann, bob := member(t, c, "ann@example.com"), member(t, c, "bob@example.com")
	front := newParty(t, c, object{"name": "Front", "token_exchange": object{
		"enabled": true, "allowed_audiences": []any{ordersAPI, stockAPI}, "act_as": object{"enabled": true, "allowed_subject_types": []any{"user"}},
	}})
	tokenOf := func(email string) string {
		t.Helper()
		front.session = signIn(t, c, email, secret, "complete").data()["session_token"].(string)
		return front.exchange(t, front.code(t, nil), nil).body["access_token"].(string)
	}
	until := func(typ, id, name string, subject object, d time.Duration) int64 {
		t.Helper()
		at := time.Now().Add(d).UTC().Truncate(time.Second)
		r := relation(subject, name)
		r["expires_at"] = at.Format(time.RFC3339)
		a := c.do(t, "POST", "/api/v1/resources/"+typ+"/"+url.PathEscape(id)+"/relations", r)
		if a.status/100 != 2 {
			t.Fatalf("%s: %s", name, a.text)
		}
		return at.Unix()
	}
	expires := func(claims object) int64 { return int64(claims["exp"].(float64)) }
	asAnn, asBob := tokenOf("ann@example.com"), tokenOf("bob@example.com")
	first := until("audience", ordersAPI, "caller", user(ann), 10*time.Minute)
	_, claims := front.swapped(t, asAnn, url.Values{"audience": {ordersAPI}})
	equal(t, "caller", expires(claims), first)
	g := group(t, c, "callers")
	c.want(t, 201, "", "POST", groupsPath+"/"+g+"/members", object{"user_id": ann})
	second := until("audience", stockAPI, "caller", object{"type": "group", "id": g}, 5*time.Minute)
	_, claims = front.swapped(t, asAnn, url.Values{"audience": {ordersAPI}, "resource": {stockAPI}})
	equal(t, "the first of two", expires(claims), second)
	third := until("user", ann, "act_as", user(bob), 3*time.Minute)
	_, claims = front.swapped(t, asAnn, url.Values{"actor_token": {asBob}, "actor_token_type": {tokenTypes + "access_token"}})
	equal(t, "act_as", expires(claims), third)

	// subject_tokens: own
	const mine = "https://mine.example.com"
	own := newParty(t, c, object{"name": "Own", "audience": mine, "token_exchange": object{"enabled": true, "subject_tokens": "own"}})
	equal(t, "another's", own.swap(t, asAnn, nil).code(), "invalid_grant")
	records := w.exchanges(t, c)
	equal(t, "record", records[len(records)-1]["reason"], "subject_token_not_own")
	own.session = front.session
	own.swapped(t, own.exchange(t, own.code(t, nil), nil).body["access_token"].(string), nil)
	for _, names := range []string{mine} { // in aud
		named := newParty(t, c, object{"name": "Named", "audience": names})
		named.session = front.session
		own.swapped(t, named.exchange(t, named.code(t, nil), nil).body["access_token"].(string), nil)
	}
	a := c.want(t, 400, "validation_failed", "POST", appsPath, object{"name": "x", "type": "m2m", "token_exchange": object{"subject_tokens": "some"}})
	equal(t, "field", a.details()["field_errors"].([]any)[0].(map[string]any)["field"], "token_exchange/subject_tokens")

	// A failed client authentication is recorded with the client_id of the request.
	before := len(w.exchanges(t, c))
	(&relyingParty{client: c.with(""), id: own.id, secret: "cs_wrong"}).swap(t, asAnn, nil)
	records = w.exchanges(t, c)
	equal(t, "on record", len(records)-before, 1)
	last := records[len(records)-1]
	equal(t, "record", []any{last["reason"], last["client_authenticated"], last["application"].(map[string]any)["client_id"]}, []any{"client", false, own.id})
}

// limitsComeFirst sends a limited request again: it has consumed nothing.
func limitsComeFirst(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	for _, name := range []string{"ann", "bob", "cid", "dan"} {
		member(t, c, name+"@example.com")
	}
	p := newParty(t, c, nil)
	as := func(email string) {
		t.Helper()
		p.session = signIn(t, c, email, secret, "complete").data()["session_token"].(string)
	}
	limit := func(rate any) {
		t.Helper()
		c.want(t, 200, "", "PATCH", settingsPath, object{"rate_limits": object{"token.caller": rate, "client.caller": rate}})
	}
	// twice sends a request until it is limited, and then until it is not.
	twice := func(what string, first, again func() answer, want int) {
		t.Helper()
		limit("1/d")
		if a := repeatedly(t, first, func(a answer) bool { return a.status == want }); a.status != want {
			t.Fatalf("%s: %d %s", what, a.status, a.text)
		}
		limited := repeatedly(t, again, func(a answer) bool { return a.status == http.StatusTooManyRequests })
		equal(t, what, []any{limited.code(), limited.header.Get("Retry-After") != ""}, []any{"rate_limited", true})
		limit("unlimited")
		a := repeatedly(t, again, func(a answer) bool { return a.status != http.StatusTooManyRequests })
		if a.status != want {
			t.Errorf("%s, sent again: %d %s", what, a.status, a.text)
		}
		limit(nil)
	}
	as("ann@example.com")
	codes := []string{p.code(t, nil), p.code(t, nil)}
	exchange := func(code string) func() answer {
		return func() answer { return p.exchange(t, code, nil) }
	}
	twice("code", exchange(codes[0]), exchange(codes[1]), 200)

	as("bob@example.com")
	tokens := []any{p.exchange(t, p.code(t, nil), nil).body["refresh_token"], p.exchange(t, p.code(t, nil), nil).body["refresh_token"]}
	refresh := func(token any) func() answer {
		return func() answer { return p.refresh(t, token.(string), nil) }
	}
	twice("refresh token", refresh(tokens[0]), refresh(tokens[1]), 200)

	// The limit is per user, not per application.
	limit("1/d")
	as("cid@example.com")
	cids := p.code(t, nil)
	as("dan@example.com")
	dans := p.code(t, nil)
	for _, code := range []string{cids, dans} {
		if a := repeatedly(t, exchange(code), func(a answer) bool { return a.status == 200 }); a.status != 200 {
			t.Errorf("one of each user: %d %s", a.status, a.text)
		}
	}
	limit(nil)

	pushed := func() answer {
		return p.present(t, "/oauth2/par", basic(p.id, p.secret), p.request(nil))
	}
	twice("pushed request", pushed, pushed, 201)
	access := p.exchange(t, p.code(t, nil), nil).body["access_token"].(string)
	look := func() answer {
		return p.present(t, introspectPath, basic(p.id, p.secret), url.Values{"token": {access}})
	}
	twice("introspection", look, look, 200)
	doomed := p.exchange(t, p.code(t, nil), nil).body["access_token"].(string)
	revoke := func(token string) func() answer {
		return func() answer {
			return p.present(t, revokePath, basic(p.id, p.secret), url.Values{"token": {token}})
		}
	}
	limit("1/d")
	repeatedly(t, revoke("x"), func(a answer) bool { return a.status == http.StatusTooManyRequests })
	equal(t, "limited", revoke(doomed)().status, http.StatusTooManyRequests)
	equal(t, "not revoked", c.with(doomed).do(t, "GET", "/oauth2/userinfo", nil).status, 200)
}

// repeatedly sends a request until its response is as expected, at most for as long as
// settings are cached, and returns the last response.
func repeatedly(t testing.TB, ask func() answer, done func(answer) bool) (a answer) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if a = ask(); done(a) {
			return a
		}
	}
	return a
}

func anys(texts []string) (list []any) {
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}

// audienceAgain repeats the audience at the token endpoint; another one is refused.
func audienceAgain(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	own, base := "https://own.example.com", c.base()
	member(t, c, "ann@example.com")
	p := newParty(t, c, object{"audience": own})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	aud := func(a answer) any {
		t.Helper()
		if a.status != 200 {
			return a.code()
		}
		return claimsOf(t, a.body["access_token"].(string))["aud"]
	}
	scope := url.Values{"scope": {"me:read"}}
	for _, name := range []string{"audience", "resource"} {
		asked := url.Values{name: {base}}
		equal(t, "code", aud(p.exchange(t, p.code(t, scope), asked)), base)
		equal(t, "code of none of its audiences", aud(p.exchange(t, p.code(t, scope), url.Values{name: {"https://other.example.com"}})), "invalid_target")
		fixed := url.Values{"scope": {"me:read"}, "audience": {own}}
		equal(t, "code of another audience", aud(p.exchange(t, p.code(t, fixed), asked)), "invalid_target")
		equal(t, "code of the same audience", aud(p.exchange(t, p.code(t, fixed), url.Values{name: {own}})), []any{own, base})
		refresh := p.exchange(t, p.code(t, scope), nil).body["refresh_token"].(string)
		equal(t, "refresh of another audience", aud(p.refresh(t, refresh, url.Values{name: {"https://other.example.com"}})), "invalid_target")
		equal(t, "refresh", aud(p.refresh(t, refresh, asked)), base)
	}
}
