package api_test

import (
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
)

// consoleResources: resources are listed, registered, edited and deleted in the console.
func consoleResources(t *testing.T, w *world, c *client) {
	a := newAdministrator(t, c, "resources:read", "resources:write")
	visit, has, twice, ann := a.visit, a.has, a.twice, a.id
	define(t, c)
	send := func(target string, form url.Values) shown {
		t.Helper()
		form.Set("once", rand.Text())
		return visit("POST", target, form)
	}
	const page, api = "/console/relations/resources", "/api/v1/resources/document/plans%2Fq1"
	has(visit("GET", "/console/relations", nil), 200, `href="`+page+`"`)
	has(visit("GET", page, nil), 200, page+"/new")
	has(visit("GET", page+"?type=none", nil), 404, `value="none" required aria-invalid="true"`)
	has(visit("GET", page+"/new", nil), 200, "Register a resource")
	form := url.Values{"type": {"none"}, "external_id": {"plans/q1"}, "attributes": {`{"title": "<b>"`}}
	has(send(page+"/new", form), 400, "Attributes must be JSON.")
	form.Set("attributes", "[1]")
	has(send(page+"/new", form), 400, "Please check: attributes")
	form.Set("attributes", `{"title": "<b>"}`)
	has(send(page+"/new", form), 404, `value="none" required aria-invalid="true"`)
	form.Set("type", "webhook_subscription")
	has(send(page+"/new", form), 403, `value="webhook_subscription" required aria-invalid="true"`)
	form.Set("type", "document")
	twice(page+"/new", form, page+"?done=registered&type=document")
	form.Set("attributes", `{"title": "Other"}`)
	has(send(page+"/new", form), 409, "This resource exists with other attributes.")
	equal(t, "attributes", c.want(t, 200, "", "GET", api, nil).data()["attributes"], any(object{"title": "<b>"}))
	has(visit("GET", page+"?type=document", nil), 200, "document:plans/q1", "&lt;b&gt;", page+"/edit?resource=document%3Aplans%2Fq1", page+"/delete?resource=document%3Aplans%2Fq1")

	const edit = page + "/edit?resource=document%3Aplans%2Fq1"
	shown := visit("GET", edit, nil)
	has(shown, 200, "Edit document:plans/q1")
	old := url.Values{"version": {hiddenFields(shown.html)["version"]}, "attributes": {`{"title": "Mine"}`}}
	c.want(t, 200, "", "PATCH", api, object{"attributes": object{"title": "Of another"}})
	has(send(edit, old), 409, "This was changed meanwhile.")
	old.Set("version", hiddenFields(visit("GET", edit, nil).html)["version"])
	old.Set("attributes", "")
	twice(edit, old, page+"?done=saved&type=document")
	if left, _ := c.want(t, 200, "", "GET", api, nil).data()["attributes"].(object); len(left) > 0 {
		t.Errorf("attributes that were emptied are %v", left)
	}

	relate(t, c, "document", "plans/q1", "viewer", user(ann))
	has(visit("GET", page+"/delete?resource=document%3Aplans%2Fq1", nil), 200, "Delete document:plans/q1?", "All relations that name the resource are deleted")
	has(visit("GET", page+"/delete?resource=document%3Anone", nil), 404)
	has(visit("GET", page+"/delete?resource=document", nil), 400)
	has(send(page+"/delete", url.Values{"resource": {"group:" + a.group}}), 403, "This requires the scope groups:write, which you do not have.")
	twice(page+"/delete", url.Values{"resource": {"document:plans/q1"}}, page+"?done=unregistered&type=document")
	c.want(t, 404, "resource_not_found", "GET", api, nil)

	// Without the right, it is not offered, and refused.
	relate(t, c, "document", "q3", "viewer", user(ann))
	a.restrict("resources:read")
	shown = visit("GET", page+"?type=document", nil)
	has(shown, 200, "document:q3")
	if strings.Contains(shown.html, page+"/") {
		t.Errorf("a reader is offered changes:\n%s", shown.html)
	}
	for _, path := range []string{page + "/new", page + "/edit?resource=document:q3", page + "/delete?resource=document:q3"} {
		has(visit("GET", path, nil), 403)
		has(send(path, url.Values{"type": {"document"}, "external_id": {"q4"}, "resource": {"document:q3"}}), 403)
	}
	c.want(t, 200, "", "GET", "/api/v1/resources/document/q3", nil)
}
