package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"stonetown/oauth/scope"
)

const scopesPath = "/api/v1/scopes"

func scopeRegistry(t *testing.T, w *world, c *client) {
	names := func() (found []string) {
		t.Helper()
		for _, item := range c.want(t, 200, "", "GET", scopesPath, nil).list() {
			found = append(found, item.(map[string]any)["name"].(string))
		}
		return found
	}
	builtin := slices.Sorted(slices.Values(scope.Builtin))
	equal(t, "at first", names(), builtin)

	form := object{"name": "reports:read", "description": "Read reports", "entitlement": "group"}
	a := c.want(t, 201, "", "POST", scopesPath, form)
	target := scopesPath + "/" + url.PathEscape("reports:read")
	equal(t, "location", a.header.Get("Location"), target)
	equal(t, "built in", a.data()["built_in"], false)
	equal(t, "then", names(), slices.Sorted(slices.Values(append([]string{"reports:read"}, builtin...))))
	c.want(t, 409, "scope_exists", "POST", scopesPath, form)
	c.want(t, 400, "scope_reserved", "POST", scopesPath, object{"name": "users:read", "entitlement": "self"})
	for form, field := range map[string]string{
		`{"entitlement":"self"}`: "name", `{"name":"a b","entitlement":"self"}`: "name", `{"name":"a\"","entitlement":"self"}`: "name",
		`{"name":"` + strings.Repeat("x", 129) + `","entitlement":"self"}`: "name", `{"name":"a"}`: "entitlement", `{"name":"a","entitlement":"all"}`: "entitlement",
		`{"name":"a","entitlement":"self","description":"` + strings.Repeat("x", 501) + `"}`: "description",
	} {
		equal(t, form[:min(len(form), 60)], fields(c.want(t, 400, "validation_failed", "POST", scopesPath, form)), []string{field})
	}
	c.want(t, 400, "invalid_json", "POST", scopesPath, `{`)

	a = c.want(t, 200, "", "PATCH", target, object{"description": "", "entitlement": "self"})
	equal(t, "description", a.data()["description"], "")
	equal(t, "entitlement", a.data()["entitlement"], "self")
	c.want(t, 200, "", "PATCH", target, object{})
	c.want(t, 400, "immutable_field", "PATCH", target, object{"name": "x"})
	c.want(t, 400, "invalid_json", "PATCH", target, `{`)
	c.want(t, 400, "validation_failed", "PATCH", target, object{"description": strings.Repeat("x", 501), "entitlement": "all"})
	c.want(t, 400, "scope_reserved", "PATCH", scopesPath+"/users:read", object{"description": "x"})
	c.want(t, 404, "scope_not_found", "PATCH", scopesPath+"/nothing", object{"description": "x"})
	c.want(t, 404, "scope_not_found", "DELETE", scopesPath+"/nothing", nil)
	c.want(t, 400, "scope_reserved", "DELETE", scopesPath+"/users:read", nil)

	// A scope of a group cannot be deleted; scopes belong to a tenant.
	g := group(t, c, "reporters", "reports:read")
	c.want(t, 409, "scope_in_use", "DELETE", target, nil)
	equal(t, "scopes of the group", c.want(t, 200, "", "GET", groupsPath+"/"+g, nil).data()["scopes"], []any{"reports:read"})
	other := w.tenant(t, "scopes-other")
	other.want(t, 400, "scope_unknown", "POST", groupsPath, object{"slug": "x", "name": "x", "scopes": []any{"reports:read"}})
	c.want(t, 200, "", "PATCH", groupsPath+"/"+g, object{"scopes": []any{}})
	c.want(t, 204, "", "DELETE", target, nil)
	equal(t, "in the end", names(), builtin)
	c.want(t, 400, "scope_unknown", "PATCH", groupsPath+"/"+g, object{"scopes": []any{"reports:read"}})

	var types []string
	for _, e := range w.events(t, c, 0) {
		if strings.HasPrefix(string(e.Type), "scope.") {
			types = append(types, string(e.Type)+" "+string(e.Data[:min(len(e.Data), 30)]))
		}
	}
	equal(t, "events", len(types), 3)
	reader := c.with(w.token(t, c, w.application(t, c, "applications:read")))
	reader.want(t, 200, "", "GET", scopesPath, nil)
	reader.want(t, 403, "insufficient_scope", "DELETE", target, nil)
}

// scopeRace deletes a scope while a group is given it. One of the two fails.
func scopeRace(t *testing.T, _ *world, c *client) {
	for i := range 10 {
		name := fmt.Sprintf("race:%d", i)
		c.want(t, 201, "", "POST", scopesPath, object{"name": name, "entitlement": "group"})
		var wg sync.WaitGroup
		var deleted, created answer
		wg.Go(func() { deleted = c.do(t, "DELETE", scopesPath+"/"+name, nil) })
		wg.Go(func() {
			created = c.do(t, "POST", groupsPath, object{"slug": fmt.Sprint("race-", i), "name": "x", "scopes": []any{name}})
		})
		wg.Wait()
		switch {
		case deleted.status == 204 && created.code() == "scope_unknown":
		case deleted.code() == "scope_in_use" && created.status == 201:
		default:
			t.Errorf("deleting: %d %s; creating: %d %s", deleted.status, deleted.text, created.status, created.text)
		}
	}
}
