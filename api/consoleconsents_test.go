package api_test

import (
	"net/url"
	"strings"
	"testing"
)

// consoleConsents: the console shows which users have signed in to an application and what they agreed
// to, and revokes it, from the page of the application and from that of the user.
func consoleConsents(t *testing.T, w *world, c *client) {
	ann := member(t, c, "ann@example.com")
	group := c.want(t, 201, "", "POST", "/api/v1/groups", object{"slug": "admins", "name": "Admins", "scopes": []string{"users:read", "users:write", "applications:read"}}).data()["id"].(string)
	c.want(t, 201, "", "POST", "/api/v1/groups/"+group+"/members", object{"user_id": ann})
	p := newParty(t, c, object{"name": "Shop", "allowed_scopes": []any{"openid"}})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	id := c.want(t, 200, "", "GET", appsPath+"?q=Shop", nil).list()[0].(object)["id"].(string)
	page, user := "/console/applications/"+id, "/console/users/"+ann
	revoke := user + "/applications/" + id + "/revoke"
	visit := func(method, target string, form url.Values) shown {
		return c.visit(t, method, target, asBrowser(p.session), form)
	}
	for _, from := range []struct{ page, link, back string }{{page, revoke + "?from=application", page}, {user, revoke, user}} {
		token := p.exchange(t, p.code(t, url.Values{"scope": {"openid"}}), nil).body["access_token"].(string)
		shown := visit("GET", from.page, nil)
		if !strings.Contains(shown.html, `href="`+from.link+`"`) || from.page == page && !strings.Contains(shown.html, `<td><a href="`+user+`">ann@example.com</a></td>`) {
			t.Fatalf("%s: %d\n%s", from.page, shown.status, shown.html)
		}
		asked := visit("GET", from.link, nil)
		equal(t, "asked", []any{asked.status, strings.Contains(asked.html, "Revoke the access of Shop to ann@example.com?")}, []any{200, true})
		c.with(token).want(t, 200, "", "GET", "/oauth2/userinfo", nil)
		fields := url.Values{}
		for name, value := range hiddenFields(asked.html) {
			fields.Set(name, value)
		}
		for range 2 { // twice as once
			done := visit("POST", revoke, fields)
			equal(t, "revoked", []any{done.status, done.header.Get("Location")}, []any{303, from.back + "?done=access-revoked"})
		}
		c.with(token).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil)
		if again := visit("GET", from.page+"?done=access-revoked", nil); strings.Contains(again.html, revoke) || !strings.Contains(again.html, "Access revoked.") {
			t.Errorf("%s afterwards: %d\n%s", from.page, again.status, again.html)
		}
	}
	// Without the right, it is not offered, and refused.
	c.want(t, 200, "", "PATCH", "/api/v1/groups/"+group, object{"scopes": []string{"users:read", "applications:read"}})
	p.code(t, url.Values{"scope": {"openid"}})
	if shown := visit("GET", page, nil); !strings.Contains(shown.html, `<td><a href="`+user+`">ann@example.com</a></td>`) || strings.Contains(shown.html, revoke) {
		t.Errorf("a reader: %d\n%s", shown.status, shown.html)
	}
	equal(t, "refused", []any{visit("GET", revoke, nil).status, visit("POST", revoke, url.Values{"from": {""}}).status}, []any{403, 403})
	c.want(t, 200, "", "PATCH", "/api/v1/groups/"+group, object{"scopes": []string{"applications:read"}})
	if shown := visit("GET", page, nil); shown.status != 200 || strings.Contains(shown.html, `<h2 id="users">`) {
		t.Errorf("without the right to read users: %d\n%s", shown.status, shown.html)
	}
}
