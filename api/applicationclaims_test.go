package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// configured is a claim of an application.
func configured(name string, source object, where ...any) object {
	return object{"name": name, "where": where, "source": source}
}

// configuredClaims reads claims that are attributes, groups and answers of the engine.
func configuredClaims(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	ann := member(t, c, "ann@example.com")
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+ann, object{"attributes": object{"team": object{"lead": true, "name": "Research"}, "preferred_username": "eve"}})
	staff := group(t, c, "staff")
	c.want(t, 201, "", "POST", groupsPath+"/"+staff+"/members", object{"user_id": ann})
	c.want(t, 201, "", "POST", "/api/v1/resource-types", object{
		"name":      "app",
		"relations": []any{object{"name": "admin"}, object{"name": "editor", "rewrites": []any{object{"kind": "this"}, object{"kind": "computed", "relation": "admin"}}}, object{"name": "auditor"}},
		"actions":   object{"sign": "auditor"},
	})
	everywhere := []any{"id_token", "access_token", "userinfo"}
	claims := []any{
		configured("preferred_username", object{"attribute": "email"}, everywhere...),
		configured("groups", object{"groups": "slug"}, everywhere...),
		configured("group_ids", object{"groups": "id"}, "access_token"),
		configured("https://example.com/team", object{"attribute": "attributes.team"}, "id_token"),
		configured("lead", object{"attribute": "attributes.team.lead"}, "userinfo"),
		configured("boss", object{"attribute": "attributes.team.boss.name"}, everywhere...),
		with(configured("roles", object{"relations": object{"type": "app", "id": "{client_id}"}}, everywhere...), object{"scope": "profile"}),
		configured("may", object{"relations": object{"type": "app", "id": "shop", "names": []any{"sign", "edit"}}}, "access_token"),
		configured("tenants", object{"resources": object{"type": "app", "action": "admin"}}, "id_token"),
		configured("lost", object{"resources": object{"type": "none", "action": "admin"}}, "id_token"),
	}
	p := newParty(t, c, object{"claims": claims, "token_exchange": exchanging()})
	d := c.want(t, 200, "", "GET", appsPath+"?q="+p.id, nil).body["data"].([]any)[0].(map[string]any)
	app := appsPath + "/" + d["id"].(string)
	equal(t, "stored", c.want(t, 200, "", "GET", app, nil).data()["claims"], any(claims))
	relate(t, c, "app", p.id, "admin", object{"type": "group", "id": staff})
	relate(t, c, "app", "shop", "auditor", user(ann))
	relate(t, c, "app", "shop", "admin", user("someone"))

	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	read := func(tokens object) (found [3]object) {
		t.Helper()
		names := []string{"preferred_username", "groups", "group_ids", "https://example.com/team", "lead", "boss", "roles", "may", "tenants", "lost"}
		access := tokens["access_token"].(string)
		all := []object{{}, claimsOf(t, access), c.with(access).want(t, 200, "", "GET", "/oauth2/userinfo", nil).body}
		if id, ok := tokens["id_token"].(string); ok {
			all[0] = claimsOf(t, id)
		}
		for i, from := range all {
			found[i] = object{}
			for _, name := range names {
				if value, ok := from[name]; ok {
					found[i][name] = value
				}
			}
		}
		return found
	}
	roles := []any{"admin", "editor"}
	common := object{"preferred_username": "ann@example.com", "groups": []any{"staff"}}
	want := [3]object{
		with(common, object{"https://example.com/team": object{"lead": true, "name": "Research"}, "roles": roles, "tenants": []any{p.id}}),
		with(common, object{"group_ids": []any{staff}, "roles": roles, "may": []any{"sign"}}),
		with(common, object{"lead": true, "roles": roles}),
	}
	tokens := p.exchange(t, p.code(t, url.Values{"scope": {"openid profile"}}), nil).body
	equal(t, "a code", read(tokens), want)
	_, swapped := p.swapped(t, tokens["access_token"].(string), url.Values{"scope": {"openid"}})
	equal(t, "an exchange without the scope", []any{swapped["roles"], swapped["may"], swapped["sub"]}, []any{nil, []any{"sign"}, ann})

	// The preview has the same claims, and says why there are no others.
	preview := app + "/claims/preview"
	shown := c.want(t, 200, "", "POST", preview, object{"user_id": ann}).data()
	equal(t, "preview", [3]object{shown["id_token"].(map[string]any), shown["access_token"].(map[string]any), shown["userinfo"].(map[string]any)}, want)
	equal(t, "omitted", shown["omitted"], any([]any{object{"name": "boss", "reason": "value_missing"}, object{"name": "lost", "reason": "relation_undefined"}}))
	shown = c.want(t, 200, "", "POST", preview, object{"user_id": ann, "scopes": []any{}, "claims": claims[6:7]}).data()
	equal(t, "of others", []any{shown["id_token"], shown["omitted"]}, []any{object{}, []any{object{"name": "roles", "reason": "scope_missing"}}})
	shown = c.want(t, 200, "", "POST", preview, object{}).data()
	equal(t, "of the application itself", []any{shown["id_token"], shown["access_token"], len(shown["omitted"].([]any))}, []any{object{}, object{"roles": []any{}, "may": []any{}}, 4})
	equal(t, "invalid claims", fields(c.want(t, 400, "validation_failed", "POST", preview, object{"user_id": ann, "claims": []any{configured("sub", object{"attribute": "id"}, "id_token")}})), []string{"claims/0/name"})
	c.want(t, 400, "invalid_json", "POST", preview, `{`)
	c.want(t, 404, "user_not_found", "POST", preview, object{"user_id": "usr_none"})
	c.want(t, 404, "application_not_found", "POST", appsPath+"/app_none/claims/preview", object{"user_id": ann})
	few := c.with(w.token(t, c, w.application(t, c, "applications:read", "users:read")))
	equal(t, "without a scope", few.want(t, 403, "insufficient_scope", "POST", preview, object{"user_id": ann}).details()["required_scope"], "resources:read")
	page := c.want(t, 201, "", "POST", appsPath, object{"name": "Page", "type": "spa", "redirect_uris": []any{callback}}).data()
	c.want(t, 400, "validation_failed", "POST", appsPath+"/"+page["id"].(string)+"/claims/preview", object{})

	// A relation that has ended is in no new token.
	c.want(t, 204, "", "DELETE", groupsPath+"/"+staff+"/members/"+ann, nil)
	renewed := p.refresh(t, tokens["refresh_token"].(string), nil)
	for i, place := range want {
		place["groups"] = []any{}
		if i < 3 {
			place["roles"] = []any{}
		}
	}
	want[0]["tenants"], want[1]["group_ids"] = []any{}, []any{}
	equal(t, "later", read(renewed.body), want)

	// The token of an application has the claims that are about it.
	relate(t, c, "app", "shop", "editor", object{"type": "application", "id": p.id})
	own := claimsOf(t, p.form(t, nil, credentials(p.id, p.secret)).body["access_token"].(string))
	equal(t, "its own token", []any{own["may"], own["groups"], own["preferred_username"]}, []any{[]any{"edit"}, nil, nil})

	// Lists that are too long are left out.
	for i := range 201 {
		relate(t, c, "app", fmt.Sprint("a", i), "admin", user(ann))
	}
	shown = c.want(t, 200, "", "POST", preview, object{"user_id": ann, "claims": claims[8:9]}).data()
	equal(t, "too many", []any{shown["id_token"], shown["omitted"]}, []any{object{}, []any{object{"name": "tenants", "reason": "too_many_values"}}})
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+ann, object{"attributes": object{"a": strings.Repeat("x", 3000), "b": strings.Repeat("x", 3000)}})
	large := []any{configured("a", object{"attribute": "attributes.a"}, "id_token"), configured("b", object{"attribute": "attributes.b"}, "id_token", "userinfo")}
	shown = c.want(t, 200, "", "POST", preview, object{"user_id": ann, "claims": large}).data()
	equal(t, "too large", []any{len(shown["id_token"].(map[string]any)), len(shown["userinfo"].(map[string]any)), shown["omitted"]},
		[]any{1, 1, []any{object{"name": "b", "reason": "too_large"}}})

	// The type of a claim keeps its name.
	used := c.want(t, 409, "resource_type_in_use", "POST", planPath, object{"renames": []any{object{"from": "app", "to": "product"}}}).details()
	equal(t, "used by", []any{used["type"], used["used_by"]}, []any{"app", object{"type": "application", "id": p.id}})

	// Discovery lists them.
	supported := fmt.Sprint(c.with("").want(t, 200, "", "GET", "/.well-known/openid-configuration", nil).body["claims_supported"])
	for _, name := range []string{"groups", "roles", "https://example.com/team"} {
		if !strings.Contains(supported, name) {
			t.Errorf("claims_supported has no %s: %s", name, supported)
		}
	}
	c.want(t, 200, "", "PATCH", app, object{"claims": nil})
	if supported := fmt.Sprint(c.with("").want(t, 200, "", "GET", "/.well-known/openid-configuration", nil).body["claims_supported"]); strings.Contains(supported, "roles") {
		t.Errorf("claims_supported has claims of before: %s", supported)
	}
}

// configuredClaimForms refuses claims that no application can have.
func configuredClaimForms(t *testing.T, _ *world, c *client) {
	at := func(o object) object { return with(configured("x", object{"attribute": "email"}, "id_token"), o) }
	many := make([]any, 21)
	for i := range many {
		many[i] = at(object{"name": fmt.Sprint("c", i)})
	}
	for name, tc := range map[string]struct {
		claims any
		field  string
	}{
		"not a list":            {"groups", "claims"},
		"too many":              {many, "claims"},
		"no name":               {[]any{at(object{"name": ""})}, "claims/0/name"},
		"a space":               {[]any{at(object{"name": "a b"})}, "claims/0/name"},
		"long":                  {[]any{at(object{"name": strings.Repeat("x", 129)})}, "claims/0/name"},
		"no place":              {[]any{at(object{"where": []any{}})}, "claims/0/where"},
		"an unknown place":      {[]any{at(object{"where": []any{"header"}})}, "claims/0/where"},
		"a scope of others":     {[]any{at(object{"scope": "users:read"})}, "claims/0/scope"},
		"twice":                 {[]any{at(nil), at(object{"where": []any{"userinfo", "id_token"}})}, "claims/1/name"},
		"no source":             {[]any{at(object{"source": object{}})}, "claims/0/source"},
		"two sources":           {[]any{at(object{"source": object{"attribute": "email", "groups": "slug"}})}, "claims/0/source"},
		"an unknown attribute":  {[]any{at(object{"source": object{"attribute": "password"}})}, "claims/0/source/attribute"},
		"an empty path":         {[]any{at(object{"source": object{"attribute": "attributes.a..b"}})}, "claims/0/source/attribute"},
		"an unknown name":       {[]any{at(object{"source": object{"groups": "slugs"}})}, "claims/0/source/groups"},
		"no action":             {[]any{at(object{"source": object{"resources": object{"type": "app"}}})}, "claims/0/source/resources"},
		"no object":             {[]any{at(object{"source": object{"relations": object{"type": "app"}}})}, "claims/0/source/relations"},
		"a name of no relation": {[]any{at(object{"source": object{"relations": object{"type": "app", "id": "x", "names": []any{""}}}})}, "claims/0/source/relations/names"},
	} {
		equal(t, name, fields(c.want(t, 400, "validation_failed", "POST", appsPath, object{"name": "App", "type": "server", "claims": tc.claims})), []string{tc.field})
	}
	for _, name := range []string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "nonce", "azp", "cnf", "act", "may_act", "scope", "client_id", "sid", "acr", "amr", "auth_time", "at_hash", "email_verified", "authorization_details", "anc", "ptok", "gid", "tid"} {
		equal(t, name, fields(c.want(t, 400, "validation_failed", "POST", appsPath, object{"name": "App", "type": "server", "claims": []any{at(object{"name": name})}})), []string{"claims/0/name"})
	}
	// Users of a third-party application agree to scopes, so each claim has one.
	third := object{"name": "App", "type": "server", "first_party": false, "claims": []any{at(nil)}}
	equal(t, "third party", fields(c.want(t, 400, "validation_failed", "POST", appsPath, third)), []string{"claims/0/scope"})
	third["claims"] = []any{at(object{"scope": "email"})}
	c.want(t, 201, "", "POST", appsPath, third)
	equal(t, "saml", fields(c.want(t, 400, "validation_failed", "POST", appsPath, object{
		"name": "App", "type": "saml", "entity_id": "https://sp.example.com", "acs_url": "https://sp.example.com/acs", "claims": []any{at(nil)},
	})), []string{"claims"})
}
