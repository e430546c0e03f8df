package api_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"stonetown/internal/eventlog"
)

// eventDocuments compares the data of events with the response of GET at that time, except
// for members that depend on the caller.
func eventDocuments(t *testing.T, w *world, c *client) {
	const typesPath = "/api/v1/resource-types"
	app := appsPath + "/" + c.want(t, 201, "", "POST", appsPath, object{"name": "A", "type": "saml", "entity_id": "urn:a", "acs_url": "https://a.example.com/acs"}).data()["id"].(string)
	viewer := object{"name": "viewer", "subjects": []any{"user"}}
	for _, test := range []struct {
		method, path       string
		body               any
		get, member, event string
	}{
		{"", "", nil, app, "application", "application.created"},
		{"PATCH", app, object{"name": "B", "tags": []any{"x"}, "slo_url": "https://a.example.com/slo"}, app, "application", "application.updated"},
		{"POST", app + "/disable", nil, app, "application", "application.disabled"},
		{"POST", app + "/enable", nil, app, "application", "application.enabled"},
		{"POST", scopesPath, object{"name": "files:read", "entitlement": "self"}, scopesPath, "scope", "scope.created"},
		{"PATCH", scopesPath + "/files:read", object{"description": "Read files"}, scopesPath, "scope", "scope.updated"},
		{"POST", typesPath, object{"name": "file", "relations": []any{viewer}}, typesPath + "/file", "resource_type", "resource_type.created"},
		{"POST", typesPath, object{"name": "file", "description": "A file", "actions": object{"open": "viewer"}, "relations": []any{viewer}}, typesPath + "/file", "resource_type", "resource_type.updated"},
	} {
		if test.method != "" {
			if a := c.do(t, test.method, test.path, test.body); a.status >= 300 {
				t.Fatalf("%s: %d %s", test.event, a.status, a.text)
			}
		}
		answered := c.want(t, 200, "", "GET", test.get, nil)
		var want object
		if test.member == "scope" { // which has no GET of its own
			for _, item := range answered.list() {
				if scope := item.(map[string]any); scope["name"] == "files:read" {
					want = scope
				}
			}
		} else {
			want = maps.Clone(answered.data())
		}
		if test.member == "application" {
			maps.DeleteFunc(want, func(name string, _ any) bool { return strings.HasPrefix(name, "idp_") }) // not in events
			maps.Copy(want, object{"can_rotate_secret": false, "can_disable": false, "can_delete": false})
		}
		found := w.events(t, c, 0)
		last := found[len(found)-1]
		equal(t, test.event, string(last.Type), test.event)
		equal(t, test.event, parse(t, string(last.Data)).(map[string]any)[test.member], any(want))
	}
}

// largestEvents makes the largest changes that are accepted. The data of their events is
// complete.
func largestEvents(t *testing.T, w *world, c *client) {
	numbered := func(n int, item func(i int) any) (all []any) {
		for i := range n {
			all = append(all, item(i))
		}
		return all
	}
	define(t, c)
	actions := object{}
	for i := range 200 {
		actions[fmt.Sprintf("a%0127d", i)] = "viewer"
	}
	viewer := object{"name": "viewer", "subjects": []any{"user"}}
	relations := append(numbered(199, func(i int) any {
		return object{"name": fmt.Sprintf("r%062d", i), "subjects": []any{"user", "document", "folder"}}
	}), viewer)
	c.want(t, 201, "", "POST", "/api/v1/resource-types", object{
		"name": "large", "description": long(1024), "actions": actions, "relations": relations,
		"conditions": numbered(50, func(i int) any {
			return object{"name": fmt.Sprintf("c%062d", i), "expression": `text == "` + long(4000) + `"`, "parameters": object{"text": "string"}}
		}),
	})
	c.want(t, 201, "", "POST", "/api/v1/resources", with(resource("document", "large"), object{"attributes": object{"a": long(16<<10 - 8)}}))
	c.want(t, 200, "", "POST", "/api/v1/resources/relations/bulk", object{"operations": numbered(500, func(i int) any {
		return object{
			"op": "create", "resource": resource("large", fmt.Sprintf("%0512d", i)), "relation": "viewer", "subject": user(fmt.Sprintf("%0512d", i)),
			"condition": object{"name": fmt.Sprintf("c%062d", i%50), "context": object{"text": long(700)}},
		}
	})})
	uri := func(format string, n int) func(i int) any {
		return func(i int) any { s := fmt.Sprintf(format, i); return s + long(n-len(s)) }
	}
	form := object{
		"name": long(200), "type": "server", "description": long(500),
		"redirect_uris": numbered(50, uri("https://app.example.com/%d/", 2048)), "post_logout_redirect_uris": numbered(50, uri("https://app.example.com/%d/", 2048)),
	}
	app := appsPath + "/" + c.want(t, 201, "", "POST", appsPath, form).data()["id"].(string)
	c.want(t, 200, "", "PATCH", app, object{"redirect_uris": numbered(50, uri("https://www.example.com/%d/", 2048)), "post_logout_redirect_uris": numbered(50, uri("https://www.example.com/%d/", 2048))})

	for name, least := range map[eventlog.Type]int{
		eventlog.ResourceTypeCreated: 200_000, eventlog.ResourceCreated: 16 << 10, eventlog.RelationBulkApplied: 900_000,
		eventlog.ApplicationCreated: 200_000, eventlog.ApplicationUpdated: 600_000,
	} {
		most := 0
		for _, e := range w.events(t, c, 0) {
			if e.Type == name {
				most = max(most, len(e.Data))
			}
		}
		if most < least {
			t.Errorf("%s: the largest data has %d bytes, want %d", name, most, least)
		}
	}
}
