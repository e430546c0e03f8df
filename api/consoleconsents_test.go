package api_test

import (
	"net/url"
	"testing"
)

// consoleConsents: the console shows which users have signed in to an application and what they agreed
// to, and revokes it, from the page of the application and from that of the user.
func consoleConsents(t *testing.T, w *world, c *client) {
	a := newAdministrator(t, c, "users:read", "users:write", "applications:read")
	ann := a.id
	p := newParty(t, c, object{"name": "Shop", "allowed_scopes": []any{"openid"}})
	p.session = a.token
	id := c.want(t, 200, "", "GET", appsPath+"?q=Shop", nil).list()[0].(object)["id"].(string)
	page, user := "/console/applications/"+id, "/console/users/"+ann
	revoke := user + "/applications/" + id + "/revoke"
	visit, has := a.visit, a.has
	for _, from := range []struct{ page, link, back string }{{page, revoke + "?from=application", page}, {user, revoke, user}} {
		token := p.exchange(t, p.code(t, url.Values{"scope": {"openid"}}), nil).body["access_token"].(string)
		has(visit("GET", from.page, nil), 200, `href="`+from.link+`"`)
		if from.page == page {
			has(visit("GET", page, nil), 200, `<td><a href="`+user+`">ann@example.com</a></td>`)
		}
		has(visit("GET", from.link, nil), 200, "Revoke the access of Shop to ann@example.com?")
		c.with(token).want(t, 200, "", "GET", "/oauth2/userinfo", nil)
		a.twice(revoke, a.fill(from.link, nil), from.back+"?done=access-revoked")
		c.with(token).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil)
		has(visit("GET", from.page+"?done=access-revoked", nil), 200, "Access revoked.")
		a.lacks(visit("GET", from.page, nil), revoke)
	}
	// Without the right, it is not offered, and refused.
	a.restrict("users:read", "applications:read")
	p.code(t, url.Values{"scope": {"openid"}})
	has(visit("GET", page, nil), 200, `<td><a href="`+user+`">ann@example.com</a></td>`)
	a.lacks(visit("GET", page, nil), revoke)
	has(visit("GET", revoke, nil), 403)
	has(visit("POST", revoke, url.Values{"from": {""}}), 403)
	a.restrict("applications:read")
	a.lacks(visit("GET", page, nil), `<h2 id="users">`)
}
