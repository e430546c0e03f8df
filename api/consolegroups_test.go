package api_test

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"stonetown/identity"
)

// consoleGroups: administrators create, change and delete groups and scopes in the console, where what
// they may not do is neither offered nor done.
func consoleGroups(t *testing.T, w *world, c *client) {
	a := newAdministrator(t, c, "groups:read", "groups:write", "applications:read", "applications:write", "resources:read")
	visit, has, lacks, fill, twice, ann := a.visit, a.has, a.lacks, a.fill, a.twice, a.id
	// corrected changes a form as it was shown again, which has another value once.
	corrected := func(form url.Values, name string, values ...string) {
		form[name], form["once"] = values, []string{rand.Text()}
	}
	// Scopes, some of whose names have a slash.
	const scopes, name = "/console/security/scopes", "notes/read"
	has(visit("GET", "/console/security", nil), 200, `href="`+scopes+`"`)
	form := fill(scopes+"/new", url.Values{"name": {"notes read"}, "description": {"Read <notes>"}, "entitlement": {"group"}})
	has(visit("POST", scopes+"/new", form), 400, `name="name" value="notes read" required aria-invalid="true"`, "printable ASCII")
	corrected(form, "name", "users:read")
	has(visit("POST", scopes+"/new", form), 400, `value="users:read" required aria-invalid="true"`, "Scope is built in.")
	corrected(form, "name", name)
	twice(scopes+"/new", form, scopes+"?done=scope-created")
	edit, remove := scopes+"/notes%2Fread/edit", scopes+"/notes%2Fread/delete"
	has(visit("GET", scopes, nil), 200, "<code>notes/read</code>", "Read &lt;notes&gt;", "Members of groups", `href="`+edit+`"`, `href="`+remove+`"`, "<code>users:read</code>")
	lacks(visit("GET", scopes, nil), "users:read/edit", "users:read/delete", "users%3Aread/delete")
	has(visit("POST", scopes+"/new", fill(scopes+"/new", url.Values{"name": {name}, "entitlement": {"self"}})), 409, "Scope is already registered.")
	form = fill(edit, url.Values{"description": {""}, "entitlement": {"group"}})
	c.want(t, 200, "", "PATCH", "/api/v1/scopes/notes%2Fread", object{"description": "By another"})
	has(visit("POST", edit, form), 409, "This was changed meanwhile.")
	twice(edit, fill(edit, url.Values{"description": {""}, "entitlement": {"group"}}), scopes+"?done=saved")
	has(visit("GET", scopes+"/users:read/edit", nil), 403, "Scope is built in, and cannot be changed.")
	has(visit("POST", scopes+"/users:read/delete", url.Values{}), 400, "Scope is built in.")
	has(visit("GET", scopes+"/none/edit", nil), 404)

	// Groups are offered the scopes that the person can give.
	const groups = "/console/groups"
	has(visit("GET", groups, nil), 200, `href="/console/groups/new"`)
	page := visit("GET", groups+"/new", nil)
	has(page, 200, `name="scopes" value="notes/read"`, `name="scopes" value="resources:read"`)
	lacks(page, `name="scopes" value="users:write"`, `name="scopes" value="me:read"`)
	form = fill(groups+"/new", url.Values{"name": {"Notes"}, "slug": {"Notes"}, "description": {"Authors\r\nof notes"}, "scopes": {name, "resources:read"}})
	has(visit("POST", groups+"/new", form), 400, `name="slug" value="Notes" required aria-invalid="true"`, `value="notes/read" checked`)
	corrected(form, "slug", "admins")
	has(visit("POST", groups+"/new", form), 409, "Another group has this slug.")
	corrected(form, "slug", "notes")
	corrected(form, "scopes", "users:write")
	has(visit("POST", groups+"/new", form), 403, "This requires the scope users:write, which you do not have.")
	corrected(form, "scopes", "nothing:read")
	has(visit("POST", groups+"/new", form), 400, "is not registered")
	corrected(form, "scopes", name, "resources:read")
	at := strings.TrimSuffix(twice(groups+"/new", form, "?done=group-created"), "?done=group-created")
	api := "/api/v1" + strings.TrimPrefix(at, "/console")
	g := c.want(t, 200, "", "GET", api, nil).data()
	equal(t, "created", []any{g["name"], g["slug"], g["description"], g["scopes"]}, []any{"Notes", "notes", "Authors\nof notes", []any{name, "resources:read"}})
	equal(t, "once", len(c.want(t, 200, "", "GET", "/api/v1/groups?q=notes", nil).list()), 1)
	has(visit("POST", remove, fill(remove, nil)), 409, "Scope is in use by a group or an application.")

	has(visit("GET", at, nil), 200, `href="`+at+`/edit"`, `href="`+at+`/delete"`)
	form = fill(at+"/edit", url.Values{"name": {"Writers"}, "description": {""}, "scopes": {name}})
	c.want(t, 200, "", "PATCH", api, object{"description": "By another"})
	has(visit("POST", at+"/edit", form), 409, "This was changed meanwhile.")
	form = fill(at+"/edit", url.Values{"name": {""}, "description": {""}, "scopes": {name}})
	has(visit("POST", at+"/edit", form), 400, "Name is required.")
	form.Set("name", "Writers")
	twice(at+"/edit", form, at+"?done=saved")
	g = c.want(t, 200, "", "GET", api, nil).data()
	equal(t, "changed", []any{g["name"], g["description"], g["scopes"]}, []any{"Writers", "", []any{name}})

	// The page names what is lost.
	c.want(t, 201, "", "POST", api+"/members", object{"user_id": ann})
	define(t, c)
	relate(t, c, "document", "q3", "viewer", object{"type": "group", "id": g["id"], "relation": "member"})
	has(visit("GET", at+"/delete", nil), 200, "Delete Writers?", "Its member loses the scopes notes/read", "All relations that name the group are deleted")
	twice(at+"/delete", fill(at+"/delete", nil), groups+"?done=group-deleted")
	c.want(t, 404, "group_not_found", "GET", api, nil)
	equal(t, "its relations", len(c.want(t, 200, "", "GET", "/api/v1/relations?resource_type=document&external_id=q3", nil).list()), 0)
	twice(remove, fill(remove, nil), scopes+"?done=scope-deleted")
	has(visit("GET", scopes, nil), 200)
	lacks(visit("GET", scopes, nil), name)

	// The administrators keep their group and its scopes.
	tenant, err := w.tenants.TenantByHost(t.Context(), c.host)
	if err == nil {
		err = w.config.Users.(*identity.Directory).Administrators(t.Context(), tenant.ID, []string{"users:read", "users:write"})
	}
	if err != nil {
		t.Fatal(err)
	}
	first := groups + "/" + c.want(t, 200, "", "GET", "/api/v1/groups?q=administrators", nil).list()[0].(object)["id"].(string)
	has(visit("GET", first, nil), 200, `href="`+first+`/edit"`)
	lacks(visit("GET", first, nil), first+"/delete")
	equal(t, "deleting them", visit("GET", first+"/delete", nil).header.Get("Location"), first)
	has(visit("POST", first+"/delete", url.Values{}), 403, "The administrators group cannot be deleted")
	lacks(visit("GET", first+"/edit", nil), `name="scopes"`)
	form = fill(first+"/edit", url.Values{"name": {"Administrators"}, "description": {"All rights"}})
	twice(first+"/edit", form, first+"?done=saved")
	form = fill(first+"/edit", url.Values{"name": {"Administrators"}, "description": {"All rights"}, "scopes": {"groups:read"}})
	has(visit("POST", first+"/edit", form), 409, "This was changed meanwhile.") // the form that was shown had no scopes
	form.Set("version", keptFields(visit("POST", first+"/edit", form).html, first+"/edit").Get("version"))
	has(visit("POST", first+"/edit", form), 403, "its scopes cannot be changed")

	// Without the rights, nothing is offered, and all is refused.
	a.restrict("groups:read", "applications:read")
	own := groups + "/" + a.group
	lacks(visit("GET", groups, nil), groups+"/new")
	lacks(visit("GET", own, nil), own+"/edit", own+"/delete")
	lacks(visit("GET", scopes, nil), scopes+"/new")
	for _, path := range []string{groups + "/new", own + "/edit", own + "/delete", scopes + "/new", scopes + "/x/edit", scopes + "/x/delete"} {
		has(visit("GET", path, nil), http.StatusForbidden)
		has(visit("POST", path, url.Values{"name": {"x"}, "slug": {"x"}}), http.StatusForbidden)
	}
	// Without the right to read scopes, the own ones are offered.
	a.restrict("groups:read", "groups:write")
	has(visit("GET", groups+"/new", nil), 200, `name="scopes" value="groups:write"`)
	lacks(visit("GET", groups+"/new", nil), `value="applications:read"`)
	equal(t, "scopes", visit("GET", scopes, nil).status, http.StatusForbidden)
}
