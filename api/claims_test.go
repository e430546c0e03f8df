package api_test

import (
	"net/url"
	"slices"
	"testing"
)

// standardClaims reads the claims of OpenID Connect that are attributes of a user.
func standardClaims(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	id := member(t, c, "ann@example.com")
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+id, object{"attributes": object{
		"department": "research", "preferred_username": "ann", "zoneinfo": "Europe/Zurich", "gender": 1, "email": "eve@example.com", "sub": "usr_x",
		"phone_number": "+41441234567", "phone_number_verified": true, "address": object{"locality": "Bern", "country": "CH", "floor": "3"},
	}})
	scopes := []any{"openid", "profile", "email", "phone", "address"}
	p := newParty(t, c, object{"allowed_scopes": scopes})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	read := func(scope string) (both [2]object) {
		t.Helper()
		got := p.exchange(t, p.code(t, url.Values{"scope": {scope}}), nil)
		equal(t, "scope", got.body["scope"], any(scope))
		for i, from := range []object{claimsOf(t, got.body["id_token"].(string)), c.with(got.body["access_token"].(string)).want(t, 200, "", "GET", "/oauth2/userinfo", nil).body} {
			both[i] = object{}
			for _, name := range []string{"sub", "email", "department", "preferred_username", "zoneinfo", "gender", "phone_number", "phone_number_verified", "address"} {
				if value, ok := from[name]; ok {
					both[i][name] = value
				}
			}
		}
		return both
	}
	for scope, want := range map[string]object{
		"openid":         {},
		"openid profile": {"preferred_username": "ann", "zoneinfo": "Europe/Zurich"},
		"openid email":   {"email": "ann@example.com"},
		"openid phone":   {"phone_number": "+41441234567", "phone_number_verified": false},
		"openid address": {"address": object{"locality": "Bern", "country": "CH"}},
	} {
		want["sub"] = id
		equal(t, scope, read(scope), [2]object{want, want})
	}

	// A user changes the attributes, but no claim that the product vouches for.
	c.with(p.session).want(t, 200, "", "PATCH", mePath+"/profile", object{"attributes": object{"preferred_username": "eve", "email": "eve@example.com", "phone_number_verified": true}})
	want := object{"sub": id, "email": "ann@example.com", "preferred_username": "eve"}
	equal(t, "changed", read("openid profile email phone address"), [2]object{want, want})

	// Applications get phone and address only if they are allowed them.
	plain := newParty(t, c, object{"name": "Plain"})
	plain.session = p.session
	equal(t, "by default", plain.exchange(t, plain.code(t, url.Values{"scope": {"openid phone address"}}), nil).body["scope"], any("openid"))
	c.want(t, 400, "scope_reserved", "POST", "/api/v1/scopes", object{"name": "phone", "description": "x", "entitlement": "group"})
	metadata := c.with("").want(t, 200, "", "GET", "/.well-known/openid-configuration", nil).body
	for member, names := range map[string][]any{"scopes_supported": scopes, "claims_supported": {"phone_number", "phone_number_verified", "address", "nickname", "preferred_username", "birthdate", "sub", "at_hash"}} {
		for _, name := range names {
			if !slices.Contains(metadata[member].([]any), name) {
				t.Errorf("%s has no %s", member, name)
			}
		}
	}
}
