package api_test

import (
	"maps"
	"testing"
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
			maps.Copy(want, object{"can_rotate_secret": false, "can_disable": false, "can_delete": false})
		}
		found := w.events(t, c, 0)
		last := found[len(found)-1]
		equal(t, test.event, string(last.Type), test.event)
		equal(t, test.event, parse(t, string(last.Data)).(map[string]any)[test.member], any(want))
	}
}
