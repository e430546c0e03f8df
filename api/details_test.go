package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// detail returns a detail as the service writes it.
func detail(typ string, actions, identifiers []any) object {
	return object{"type": typ, "actions": actions, "identifiers": identifiers}
}

// asking returns the parameter authorization_details.
func asking(t testing.TB, details ...any) url.Values {
	t.Helper()
	text, err := json.Marshal(details)
	if err != nil {
		t.Fatal(err)
	}
	return url.Values{"authorization_details": {string(text)}}
}

// authorizationDetails follows details from the request to introspection (RFC 9396).
func authorizationDetails(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	define(t, c)
	ann := member(t, c, "ann@example.com")
	relate(t, c, "document", "plans/q1", "viewer", user(ann))
	relate(t, c, "document", "notes", "owner", user(ann))
	relate(t, c, "document", "secret", "owner", user("someone"))
	p := newParty(t, c, object{"token_exchange": exchanging(), "allowed_scopes": []any{"openid", "profile", "email", "resources:read"}})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	look := detail("document", []any{"view"}, []any{"notes", "plans/q1"})
	change := detail("document", []any{"edit", "view"}, []any{"notes"})
	introspected := func(token any) any {
		t.Helper()
		return p.present(t, introspectPath, basic(p.id, p.secret), url.Values{"token": {token.(string)}}).body["authorization_details"]
	}

	// The service sorts and joins what an application asks for.
	asked := asking(t, detail("document", []any{"view", "edit"}, []any{"notes"}), detail("document", []any{"view", "view"}, []any{"plans/q1"}))
	granted := []any{change, detail("document", []any{"view"}, []any{"plans/q1"})}
	got := p.exchange(t, p.code(t, asked), nil)
	access, refresh := got.body["access_token"].(string), got.body["refresh_token"].(string)
	for name, found := range map[string]any{
		"response": got.body["authorization_details"], "access token": claimsOf(t, access)["authorization_details"], "introspection": introspected(access), "of the refresh token": introspected(refresh),
	} {
		equal(t, name, found, any(granted))
	}
	plain := p.exchange(t, p.code(t, nil), nil).body
	equal(t, "without details", []any{plain["authorization_details"], claimsOf(t, plain["access_token"].(string))["authorization_details"], introspected(plain["access_token"])}, []any{nil, nil, nil})

	// A token request narrows what was granted, and cannot widen it.
	exceeds := asking(t, detail("document", []any{"view"}, []any{"secret"}))
	code := p.code(t, asking(t, look))
	refused := func(what string, a answer) {
		t.Helper()
		equal(t, what, []any{a.status, a.body["error"]}, []any{400, "invalid_authorization_details"})
	}
	refused("a code", p.exchange(t, code, exceeds))
	equal(t, "a code, narrowed", p.exchange(t, code, asking(t, detail("document", []any{"view"}, []any{"notes"}))).body["authorization_details"], any([]any{detail("document", []any{"view"}, []any{"notes"})}))
	refused("refresh", p.refresh(t, refresh, exceeds))
	refused("another action", p.refresh(t, refresh, asking(t, detail("document", []any{"edit"}, []any{"plans/q1"}))))
	narrowed := p.refresh(t, refresh, asking(t, look)).body
	equal(t, "refresh, narrowed", narrowed["authorization_details"], any([]any{look}))
	refresh = narrowed["refresh_token"].(string)
	token, claims := p.swapped(t, access, asking(t, look))
	equal(t, "exchange, narrowed", []any{claims["authorization_details"], introspected(token)}, []any{[]any{look}, []any{look}})
	_, claims = p.swapped(t, token, nil)
	equal(t, "exchanged again", claims["authorization_details"], any([]any{look}))
	refused("exchange", p.swap(t, token, asking(t, change)))
	refused("exchange of a token without details", p.swap(t, plain["access_token"].(string), asking(t, look)))

	// What the user loses is in no new token, and at once in no answer about an old one.
	c.want(t, 204, "", "DELETE", path("document", "notes")+"/relations", relation(user(ann), "owner"))
	relate(t, c, "document", "notes", "viewer", user(ann))
	equal(t, "lost", introspected(access), any([]any{look}))
	equal(t, "lost by the refresh token", introspected(refresh), any([]any{look}))
	equal(t, "renewed", p.refresh(t, refresh, nil).body["authorization_details"], any([]any{look}))
	c.want(t, 204, "", "DELETE", path("document", "notes"), nil)
	c.want(t, 204, "", "DELETE", path("document", "plans/q1"), nil)
	equal(t, "all lost", introspected(access), any([]any{}))
	relate(t, c, "document", "plans/q1", "viewer", user(ann))
	relate(t, c, "document", "notes", "viewer", user(ann))

	// The user must be able to do everything that is requested.
	for name, details := range map[string]object{
		"denied": detail("document", []any{"view"}, []any{"plans/q1", "secret"}), "absent": detail("document", []any{"view"}, []any{"none"}), "another action": detail("document", []any{"edit"}, []any{"plans/q1"}),
	} {
		_, to := p.ask(t, asking(t, details))
		equal(t, name, []any{to.Query().Get("error"), to.Query().Get("state"), to.Query().Get("iss")}, []any{"access_denied", "a b&c=", c.base()})
	}

	// What no type defines, or is not well formed, is refused in the same way everywhere.
	many := make([]any, 101)
	for i := range many {
		many[i] = fmt.Sprint("d", i)
	}
	for name, text := range map[string]string{
		"no JSON": `view`, "an object": `{"type":"document"}`, "an empty list": `[]`, "null": `null`, "a list of null": `[null]`, "no actions": `[{"type":"document","identifiers":["a"]}]`,
		"no identifiers": `[{"type":"document","actions":["view"],"identifiers":[]}]`, "no type": `[{"actions":["view"],"identifiers":["a"]}]`,
		"an unknown member": `[{"type":"document","actions":["view"],"identifiers":["a"],"locations":["https://api.example.com"]}]`,
		"a repeated member": `[{"type":"document","type":"document","actions":["view"],"identifiers":["a"]}]`, "a number": `[{"type":"document","actions":[1],"identifiers":["a"]}]`,
		"an unknown type": `[{"type":"none","actions":["view"],"identifiers":["plans/q1"]}]`, "a system type": `[{"type":"scope","actions":["holder"],"identifiers":["users:write"]}]`,
		"an unknown action": `[{"type":"document","actions":["fly"],"identifiers":["plans/q1"]}]`, "direction marks": `[{"type":"document","actions":["view"],"identifiers":["a\u202eb"]}]`,
		"too many": asking(t, detail("document", []any{"view"}, many)).Get("authorization_details"), "too long": `[{"type":"document","actions":["view"],"identifiers":["` + strings.Repeat("x", 513) + `"]}]`,
		"too large": `[{"type":"document","actions":["view"],"identifiers":["` + strings.Repeat(`x","`, 1100) + `"]}]`,
	} {
		details := url.Values{"authorization_details": {text}}
		_, to := p.ask(t, details)
		equal(t, name, to.Query().Get("error"), "invalid_authorization_details")
		pushed := p.request(details)
		pushed.Set("client_secret", p.secret)
		refused(name+", pushed", p.present(t, "/oauth2/par", nil, pushed))
		refused(name+", for itself", p.form(t, nil, joined(credentials(p.id, p.secret), details)))
	}
	twice := p.request(nil)
	twice["authorization_details"] = []string{`[]`, `[]`}
	_, to := p.browse(t, "/oauth2/authorize?"+twice.Encode())
	equal(t, "twice", to.Query().Get("error"), "invalid_request")
	pushed := p.request(asking(t, look))
	pushed.Set("client_secret", p.secret)
	requestURI := p.present(t, "/oauth2/par", nil, pushed).body["request_uri"].(string)
	_, to = p.browse(t, "/oauth2/authorize?"+url.Values{"client_id": {p.id}, "request_uri": {requestURI}}.Encode())
	equal(t, "pushed", p.exchange(t, to.Query().Get("code"), nil).body["authorization_details"], any([]any{look}))
	refused("a device", p.present(t, "/oauth2/device_authorization", basic(p.id, p.secret), asking(t, look)))

	// An application asks for what it may do itself.
	own := joined(credentials(p.id, p.secret), asking(t, look))
	refused("its own", p.form(t, nil, own))
	relate(t, c, "document", "plans/q1", "owner", object{"type": "application", "id": p.id})
	relate(t, c, "document", "notes", "owner", object{"type": "application", "id": p.id})
	equal(t, "its own, later", p.form(t, nil, own).body["authorization_details"], any([]any{look}))

	// The consent page names the resources, each time.
	guest := newParty(t, c, object{"first_party": false, "name": "Guest", "allowed_scopes": []any{"openid"}})
	guest.session = p.session
	for range 2 {
		a, to := guest.ask(t, joined(url.Values{"scope": {"openid"}}, asking(t, look)))
		equal(t, "asked", []any{a.status, to.Path}, []any{302, "/auth/consent"})
		flow := c.with(p.session).want(t, 200, "", "GET", authPath+"/flows/"+guest.flow, nil).data()
		equal(t, "flow", []any{flow["status"], flow["authorization_details"]}, []any{"consent_required", []any{look}})
		page := c.visit(t, "GET", "/auth/consent?flow="+guest.flow, asBrowser(p.session), nil)
		if !strings.Contains(page.html, "<li>view document notes and plans/q1</li>") {
			t.Errorf("consent page: %s", page.html)
		}
		_, to = guest.browse(t, c.with(p.session).want(t, 200, "", "POST", authPath+"/consent", object{"flow_id": guest.flow, "decision": "allow"}).data()["redirect_to"].(string))
		equal(t, "allowed", guest.exchange(t, to.Query().Get("code"), nil).body["authorization_details"], any([]any{look}))
	}
	// Nobody is asked for what the user may not do.
	_, to = guest.ask(t, joined(url.Values{"scope": {"openid"}}, exceeds))
	equal(t, "not asked", to.Query().Get("error"), "access_denied")
	// In the background an application of others learns nothing about the user before that.
	for name, details := range map[string]url.Values{"may": asking(t, look), "may not": exceeds} {
		_, to = guest.ask(t, joined(url.Values{"scope": {"openid"}, "prompt": {"none"}}, details))
		equal(t, "in the background: "+name, to.Query().Get("error"), "consent_required")
	}

	equal(t, "types", c.with("").want(t, 200, "", "GET", "/.well-known/oauth-authorization-server", nil).body["authorization_details_types_supported"], any([]any{"document", "folder"}))
}

// joined returns parameters with others.
func joined(v, more url.Values) url.Values {
	all := url.Values(http.Header(v).Clone())
	for name, values := range more {
		all[name] = values
	}
	return all
}
