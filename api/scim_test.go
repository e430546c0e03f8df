package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	oauthclient "stonetown/oauth/client"
)

// provisioner is a provisioning client.
type provisioner struct{ *client }

// send sends a request of SCIM, which the OpenAPI document does not have.
func (p provisioner) send(t testing.TB, method, target string, header http.Header, body any) answer {
	t.Helper()
	var text []byte
	switch b := body.(type) {
	case nil:
	case string:
		text = []byte(b)
	default:
		var err error
		if text, err = json.Marshal(b); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasPrefix(target, "/") {
		target = "/scim/v2/" + target
	}
	req, err := http.NewRequestWithContext(context.Background(), method, p.server.URL+target, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = p.host
	req.Header.Set("Content-Type", "application/scim+json; charset=utf-8")
	for name, values := range header {
		req.Header[name] = values
	}
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	read, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: res.StatusCode, header: res.Header, text: string(read)}
	if len(read) > 0 {
		if err := json.Unmarshal(read, &a.body); err != nil {
			t.Fatalf("%s %s: %v in %s", method, target, err, read)
		}
	}
	return a
}

// want requires a status and, of an error, its scimType.
func (p provisioner) want(t testing.TB, status int, kind, method, target string, body any) answer {
	t.Helper()
	a := p.send(t, method, target, nil, body)
	p.judge(t, a, status, kind, method+" "+target)
	return a
}

func (p provisioner) judge(t testing.TB, a answer, status int, kind, what string) {
	t.Helper()
	got, _ := a.body["scimType"].(string)
	if a.status != status || got != kind {
		t.Fatalf("%s: %d %q, want %d %q\n%s", what, a.status, got, status, kind, a.text)
	}
	if a.text != "" && a.header.Get("Content-Type") != "application/scim+json" {
		t.Errorf("%s: Content-Type %q", what, a.header.Get("Content-Type"))
	}
	if status >= 400 {
		equal(t, what+" status", a.body["status"], fmt.Sprint(status))
		equal(t, what+" schemas", a.body["schemas"], []any{"urn:ietf:params:scim:api:messages:2.0:Error"})
	}
}

// provisioning returns a client with the scope scim:write and no other.
func (w *world) provisioning(t testing.TB, c *client) provisioner {
	t.Helper()
	app := w.newApplication(t, c, oauthclient.Application{Name: "directory", Type: oauthclient.Machine, AllowedScopes: []string{"scim:write"}})
	return provisioner{c.with(w.token(t, c, app))}
}

func scimFilter(text string) string { return "Users?filter=" + url.QueryEscape(text) }

func (a answer) resources() []any { list, _ := a.body["Resources"].([]any); return list }

func (a answer) ids() (ids []any) {
	for _, r := range a.resources() {
		ids = append(ids, r.(map[string]any)["id"])
	}
	return ids
}

// scimShape is a request that a directory sends.
type scimShape struct {
	Name, Method, Path string
	Status             int
	Body               json.RawMessage
	// Want are members of the resource afterwards.
	Want map[string]any
}

// scimShapes sends the requests of a directory as it sends them. {user}, {other} and {group} stand
// for ids.
func scimShapes(t *testing.T, p provisioner, file string) {
	text, err := os.ReadFile("testdata/scim/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var shapes []scimShape
	if err := json.Unmarshal(text, &shapes); err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, s := range shapes {
		replace := strings.NewReplacer(ids...)
		var body any
		if s.Body != nil {
			body = replace.Replace(string(s.Body))
		}
		a := p.send(t, s.Method, replace.Replace(s.Path), nil, body)
		if a.status != s.Status {
			t.Fatalf("%s %s: %d, want %d: %s", file, s.Name, a.status, s.Status, a.text)
		}
		if id, ok := a.body["id"].(string); ok && s.Method == "POST" {
			name := "{user}"
			if strings.HasPrefix(id, "grp_") {
				name = "{group}"
			} else if len(ids) > 0 {
				name = "{other}"
			}
			ids = append(ids, name, id)
			replace = strings.NewReplacer(ids...)
		}
		if s.Want == nil {
			continue
		}
		got := a.body
		if a.status == http.StatusNoContent {
			got = p.want(t, 200, "", "GET", replace.Replace(s.Path), nil).body
		}
		for name, want := range s.Want {
			encoded, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, file+" "+s.Name+" "+name, got[name], parse(t, replace.Replace(string(encoded))))
		}
	}
}

// scimDirectories sends the requests of Entra ID and Okta.
func scimDirectories(t *testing.T, w *world, c *client) {
	scimShapes(t, w.provisioning(t, c), "entra.json")
	scimShapes(t, w.provisioning(t, c), "okta.json")
}

// scimUsers follows users from their creation to their end.
func scimUsers(t *testing.T, w *world, c *client) {
	p := w.provisioning(t, c)
	seen := len(w.events(t, c, 0))
	a := p.want(t, 201, "", "POST", "Users", object{
		"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:User"}, "userName": "Ann@Example.com", "externalId": "x-1", "active": true,
		"name": object{"givenName": "Ann", "familyName": "Lee"}, "title": "Chef", "password": "ignored", "unknown": 5, "groups": []any{object{"value": "grp_x"}},
	})
	id, version := a.body["id"].(string), a.header.Get("ETag")
	equal(t, "location", a.header.Get("Location"), c.base()+"/scim/v2/Users/"+id)
	equal(t, "display name", a.body["displayName"], "Ann Lee")
	equal(t, "version", a.body["meta"].(map[string]any)["version"], version)
	for _, name := range []string{"password", "unknown", "groups"} {
		if a.body[name] != nil {
			t.Errorf("%s is returned", name)
		}
	}
	events := w.events(t, c, seen)
	if len(events) != 1 || events[0].Type != "user.created" || !strings.Contains(string(events[0].Data), `"source":"scim"`) {
		t.Errorf("events %v", events)
	}
	own := c.want(t, 200, "", "GET", usersPath+"/"+id, nil).data()
	equal(t, "state", own["state"], "active")
	equal(t, "attributes", own["attributes"], object{"scim": object{"title": "Chef"}})
	p.want(t, 409, "uniqueness", "POST", "Users", object{"userName": "ann@example.com"})
	p.want(t, 400, "invalidValue", "POST", "Users", object{"userName": "ann"})
	p.want(t, 400, "invalidValue", "POST", "Users", object{})
	p.want(t, 400, "invalidSyntax", "POST", "Users", `{`)
	p.want(t, 400, "invalidSyntax", "POST", "Users", `{"userName":"a@example.com","username":"b@example.com"}`)
	p.judge(t, p.send(t, "POST", "Users", http.Header{"Content-Type": {"text/plain"}}, `{}`), 415, "", "media type")
	p.judge(t, p.send(t, "GET", "Users", http.Header{"Accept": {"text/html"}}, nil), 406, "", "accept")
	equal(t, "plain JSON", p.send(t, "GET", "Users/"+id, http.Header{"Accept": {"application/json"}}, nil).header.Get("Content-Type"), "application/json")

	// Versions.
	equal(t, "not modified", p.send(t, "GET", "Users/"+id, http.Header{"If-None-Match": {version}}, nil).status, 304)
	p.judge(t, p.send(t, "PATCH", "Users/"+id, http.Header{"If-Match": {`W/"other"`}}, object{"Operations": []any{object{"op": "replace", "path": "title", "value": "Cook"}}}), 412, "", "If-Match")
	a = p.send(t, "PATCH", "Users/"+id, http.Header{"If-Match": {version}}, object{"Operations": []any{object{"op": "replace", "path": "title", "value": "Cook"}}})
	equal(t, "title", a.body["title"], "Cook")
	if a.header.Get("ETag") == version {
		t.Error("the version stays the same")
	}
	p.judge(t, p.send(t, "DELETE", "Users/"+id, http.Header{"If-Match": {version}}, nil), 412, "", "If-Match of DELETE")

	// Each client has its own external ids.
	other := w.provisioning(t, c)
	equal(t, "found by its client", p.want(t, 200, "", "GET", scimFilter(`externalId eq "x-1"`), nil).ids(), []any{id})
	equal(t, "found by another", other.want(t, 200, "", "GET", scimFilter(`externalId eq "x-1"`), nil).body["totalResults"], 0.0)
	equal(t, "external id of another", other.want(t, 200, "", "GET", "Users/"+id, nil).body["externalId"], nil)

	// PUT removes what it does not have.
	a = p.want(t, 200, "", "PUT", "Users/"+id, object{"userName": "anna@example.com", "name": object{"givenName": "Anna"}})
	equal(t, "userName", a.body["userName"], "anna@example.com")
	equal(t, "title after PUT", a.body["title"], nil)
	equal(t, "external id after PUT", a.body["externalId"], nil)
	equal(t, "active after PUT", a.body["active"], true)
	c.want(t, 200, "", "GET", usersPath+"?email=anna@example.com", nil)

	// Deactivation ends sessions at once.
	c.want(t, 200, "", "PATCH", usersPath+"/"+id, object{"password": secret})
	session := signedIn(t, c, "anna@example.com")
	session.want(t, 200, "", "GET", mePath+"/sessions", nil)
	p.want(t, 200, "", "PATCH", "Users/"+id, object{"Operations": []any{object{"op": "Replace", "path": "active", "value": "False"}}})
	session.want(t, 401, "invalid_token", "GET", mePath+"/sessions", nil)
	equal(t, "state", c.want(t, 200, "", "GET", usersPath+"/"+id, nil).data()["state"], "disabled")
	p.want(t, 200, "", "PATCH", "Users/"+id, object{"Operations": []any{object{"op": "replace", "value": object{"active": true}}}})
	equal(t, "state", c.want(t, 200, "", "GET", usersPath+"/"+id, nil).data()["state"], "active")
	p.want(t, 404, "", "GET", "Me", nil)

	p.want(t, 204, "", "DELETE", "Users/"+id, nil)
	p.want(t, 404, "", "GET", "Users/"+id, nil)
	p.want(t, 404, "", "DELETE", "Users/"+id, nil)
	p.want(t, 404, "", "PATCH", "Users/"+id, object{"Operations": []any{object{"op": "remove", "path": "title"}}})
	p.want(t, 404, "", "GET", "Nothing", nil)
	p.want(t, 405, "", "DELETE", "Users", nil)
	provisioner{c.with("")}.want(t, 401, "", "GET", "Users", nil)
	provisioner{c.with(w.token(t, c, w.application(t, c, "users:write")))}.want(t, 403, "", "GET", "Users", nil)
}

// scimGroups follows groups and their members.
func scimGroups(t *testing.T, w *world, c *client) {
	p := w.provisioning(t, c)
	var ids []string
	for i := range 3 {
		ids = append(ids, p.want(t, 201, "", "POST", "Users", object{"userName": fmt.Sprintf("member%d@example.com", i)}).body["id"].(string))
	}
	member := func(id string) object {
		return object{"value": id, "$ref": c.base() + "/scim/v2/Users/" + id, "type": "User"}
	}
	a := p.want(t, 201, "", "POST", "Groups", object{"displayName": "Chefs & Cooks", "externalId": "g-1", "members": []any{object{"value": ids[0]}}})
	id := a.body["id"].(string)
	equal(t, "members", a.body["members"], []any{member(ids[0])})
	own := c.want(t, 200, "", "GET", groupsPath+"/"+id, nil).data()
	equal(t, "slug", own["slug"], "chefs-cooks")
	equal(t, "count", own["member_count"], 1.0)
	again := p.want(t, 201, "", "POST", "Groups", object{"displayName": "Chefs & Cooks"}).body["id"].(string)
	p.want(t, 204, "", "DELETE", "Groups/"+again, nil)
	// Membership is a relation of the engine.
	if !allowed(t, c, user(ids[0]), "member", "group", id) || allowed(t, c, user(ids[1]), "member", "group", id) {
		t.Error("membership is no relation")
	}
	patch := func(status int, kind string, operations ...any) {
		t.Helper()
		p.want(t, status, kind, "PATCH", "Groups/"+id, object{"Operations": operations})
	}
	patch(204, "", object{"op": "Add", "path": "members", "value": []any{object{"value": ids[1]}, object{"value": ids[2]}, object{"value": ids[1]}}})
	equal(t, "has three", c.want(t, 200, "", "GET", groupsPath+"/"+id, nil).data()["member_count"], 3.0)
	patch(204, "", object{"op": "Remove", "path": "members", "value": []any{object{"value": ids[1]}}})
	patch(204, "", object{"op": "remove", "path": fmt.Sprintf("members[value eq %q]", ids[0])}, object{"op": "replace", "path": "displayName", "value": "Cooks"})
	a = p.want(t, 200, "", "GET", "Groups/"+id, nil)
	equal(t, "name", a.body["displayName"], "Cooks")
	equal(t, "one is left", a.body["members"], []any{member(ids[2])})
	patch(400, "invalidValue", object{"op": "add", "path": "members", "value": []any{object{"value": "usr_unknown"}}})
	patch(400, "invalidValue", object{"op": "add", "path": "members", "value": []any{object{"value": id, "type": "Group"}}})
	patch(400, "mutability", object{"op": "remove", "path": "displayName"})
	patch(204, "", object{"op": "replace", "path": "members", "value": []any{object{"value": ids[0]}, object{"value": ids[1]}}})
	equal(t, "groups of a member", p.want(t, 200, "", "GET", "Users/"+ids[0]+"?attributes=groups", nil).body["groups"].([]any)[0].(map[string]any)["display"], "Cooks")
	query := "Groups?excludedAttributes=members&filter=" + url.QueryEscape(fmt.Sprintf(`id eq %q and members eq %q`, id, ids[0]))
	a = p.want(t, 200, "", "GET", query, nil)
	equal(t, "found by a member", a.ids(), []any{id})
	if a.resources()[0].(map[string]any)["members"] != nil {
		t.Error("excluded members are returned")
	}
	equal(t, "found by name", p.want(t, 200, "", "GET", "Groups?filter="+url.QueryEscape(`displayName eq "cooks"`), nil).ids(), []any{id})

	// Of changes of one version at once, one is made.
	var all sync.WaitGroup
	for range 10 {
		version := p.want(t, 200, "", "GET", "Groups/"+id, nil).header.Get("ETag")
		statuses := make([]int, 6)
		for i := range statuses {
			all.Go(func() {
				rename := object{"op": "replace", "path": "displayName", "value": fmt.Sprint("Cooks ", i, version)}
				statuses[i] = p.send(t, "PATCH", "Groups/"+id, http.Header{"If-Match": {version}}, object{"Operations": []any{rename}}).status
			})
		}
		all.Wait()
		slices.Sort(statuses)
		equal(t, "changes of one version", statuses, []int{204, 412, 412, 412, 412, 412})
	}

	// Changes of members at the same time as a new name do not write the old one.
	for round := range 10 {
		name := fmt.Sprint("Kitchen ", round)
		for i, operation := range []object{
			{"op": "replace", "path": "displayName", "value": name},
			{"op": "add", "path": "members", "value": []any{object{"value": ids[0]}}},
			{"op": "remove", "path": "members", "value": []any{object{"value": ids[1]}}},
			{"op": "add", "path": "members", "value": []any{object{"value": ids[1]}}},
			{"op": "remove", "path": "members", "value": []any{object{"value": ids[0]}}},
		} {
			all.Go(func() {
				if a := p.send(t, "PATCH", "Groups/"+id, nil, object{"Operations": []any{operation}}); a.status != 204 {
					t.Errorf("operation %d: status %d", i, a.status)
				}
			})
		}
		all.Wait()
		equal(t, "name", p.want(t, 200, "", "GET", "Groups/"+id, nil).body["displayName"], name)
	}
	a = p.want(t, 200, "", "PUT", "Groups/"+id, object{"displayName": "Cooks", "members": []any{}})
	equal(t, "no members after PUT", a.body["members"], nil)
	p.want(t, 204, "", "DELETE", "Groups/"+id, nil)
	p.want(t, 404, "", "GET", "Groups/"+id, nil)
}

// scimRights tries to get more rights with the scope of provisioning.
func scimRights(t *testing.T, w *world, c *client) {
	p := w.provisioning(t, c)
	ids := makeUsers(t, c, "scimrights", 2)
	power := group(t, c, "power", "users:write")
	c.want(t, 201, "", "POST", groupsPath+"/"+power+"/members", object{"user_id": ids[0]})
	// The client cannot add anyone to the group, nor take anyone out, nor rename or delete it.
	p.want(t, 403, "", "PATCH", "Groups/"+power, object{"Operations": []any{object{"op": "add", "path": "members", "value": []any{object{"value": ids[1]}}}}})
	p.want(t, 403, "", "PATCH", "Groups/"+power, object{"Operations": []any{object{"op": "remove", "path": "members"}}})
	p.want(t, 403, "", "PUT", "Groups/"+power, object{"displayName": "Powerless"})
	p.want(t, 403, "", "DELETE", "Groups/"+power, nil)
	// Nor can it take over its members.
	for _, operation := range []object{
		{"op": "replace", "path": "active", "value": false},
		{"op": "replace", "path": "userName", "value": "attacker@example.com"},
		{"op": "replace", "path": "title", "value": "x"},
	} {
		p.want(t, 403, "", "PATCH", "Users/"+ids[0], object{"Operations": []any{operation}})
	}
	p.want(t, 403, "", "PUT", "Users/"+ids[0], object{"userName": "attacker@example.com"})
	p.want(t, 403, "", "DELETE", "Users/"+ids[0], nil)
	bulk := p.want(t, 200, "", "POST", "Bulk", object{"Operations": []any{object{"method": "DELETE", "path": "/Users/" + ids[0]}}})
	equal(t, "in a bulk", bulk.body["Operations"].([]any)[0].(map[string]any)["status"], "403")
	equal(t, "nothing has changed", c.want(t, 200, "", "GET", groupsPath+"/"+power, nil).data()["member_count"], 1.0)
	// A client that holds the scope can.
	both := w.application(t, c, "scim:write", "users:write")
	provisioner{c.with(w.token(t, c, both))}.want(t, 200, "", "PATCH", "Users/"+ids[0], object{"Operations": []any{object{"op": "replace", "path": "active", "value": false}}})
	// The resources of another tenant are unknown.
	foreign := w.tenant(t, "scim-foreign")
	q := w.provisioning(t, foreign)
	q.want(t, 404, "", "GET", "Users/"+ids[1], nil)
	q.want(t, 404, "", "PATCH", "Groups/"+power, object{"Operations": []any{object{"op": "remove", "path": "members"}}})
}

// scimLists tests filters, orders and pages.
func scimLists(t *testing.T, w *world, c *client) {
	p := w.provisioning(t, c)
	var all []any
	for i, title := range []string{"Zoo", "ant", "Bee", "cat", "Dog"} {
		a := p.want(t, 201, "", "POST", "Users", object{
			"userName": fmt.Sprintf("u%d@example.com", i), "title": title, "active": i != 2, "displayName": "Person É" + fmt.Sprint(i),
			"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": object{"department": "D" + fmt.Sprint(i%2)},
		})
		all = append(all, a.body["id"])
	}
	for filter, want := range map[string][]any{
		``:                                   all,
		`userName eq "U1@EXAMPLE.com"`:       {all[1]},
		`userName ne "u1@example.com"`:       {all[0], all[2], all[3], all[4]},
		`userName sw "u" and active eq true`: {all[0], all[1], all[3], all[4]},
		`active eq "False"`:                  {all[2]},
		`title eq "bee"`:                     {all[2]},
		`title co "o"`:                       {all[0], all[4]},
		`not (title co "o")`:                 {all[1], all[2], all[3]},
		`displayName eq "person é3"`:         {all[3]},
		`emails[type eq "work"].value eq "u3@example.com"`:                                                {all[3]},
		`urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department eq "d1" or title eq "Zoo"`: {all[0], all[1], all[3]},
		`meta.created lt "2001-01-01T00:00:00Z"`:                                                          nil,
		`id eq "` + all[4].(string) + `"`:                                                                 {all[4]},
		`userName lt "u2@example.com"`:                                                                    {all[0], all[1]},
		`userName eq "a%_"`:                                                                               nil,
	} {
		target := "Users"
		if filter != "" {
			target = scimFilter(filter)
		}
		a := p.want(t, 200, "", "GET", target, nil)
		equal(t, filter, a.ids(), want)
		equal(t, filter+" total", a.body["totalResults"], float64(len(want)))
		if filter != "" {
			b := p.want(t, 200, "", "POST", "Users/.search", object{"schemas": []any{"urn:ietf:params:scim:api:messages:2.0:SearchRequest"}, "filter": filter, "attributes": []any{"id"}})
			equal(t, filter+" by POST", b.ids(), want)
		}
	}
	for order, want := range map[string][]any{
		"sortBy=title":                             {all[1], all[2], all[3], all[4], all[0]},
		"sortBy=title&sortOrder=descending":        {all[0], all[4], all[3], all[2], all[1]},
		"sortBy=userName&sortOrder=descending":     {all[4], all[3], all[2], all[1], all[0]},
		"sortBy=meta.created&sortOrder=descending": {all[4], all[3], all[2], all[1], all[0]},
		"startIndex=2&count=2":                     {all[1], all[2]},
		"startIndex=0&count=1":                     {all[0]},
		"count=0":                                  nil,
		"startIndex=9":                             nil,
		"sortBy=title&startIndex=4":                {all[4], all[0]},
	} {
		a := p.want(t, 200, "", "GET", "Users?"+order, nil)
		equal(t, order, a.ids(), want)
		equal(t, order+" total", a.body["totalResults"], 5.0)
	}
	// Cursors lead through every order (RFC 9865).
	for _, order := range []string{"", "&sortBy=title", "&sortBy=userName&sortOrder=descending", "&sortBy=title&sortOrder=descending", "&filter=" + url.QueryEscape("title pr")} {
		whole := p.want(t, 200, "", "GET", "Users?count=100"+order, nil).ids()
		var paged []any
		cursor := ""
		for range 5 {
			a := p.want(t, 200, "", "GET", "Users?count=2"+order+"&cursor="+url.QueryEscape(cursor), nil)
			paged = append(paged, a.ids()...)
			if cursor, _ = a.body["nextCursor"].(string); cursor == "" {
				break
			}
		}
		equal(t, "pages of "+order, paged, whole)
	}
	p.want(t, 400, "invalidCursor", "GET", "Users?cursor=x", nil)
	p.want(t, 400, "invalidCount", "GET", "Users?cursor=&count=0", nil)
	p.want(t, 400, "invalidFilter", "GET", scimFilter(`title eq`), nil)
	p.want(t, 400, "invalidFilter", "GET", scimFilter(`color eq "x"`), nil)
	p.want(t, 400, "invalidPath", "GET", "Users?sortBy=color", nil)
	p.want(t, 400, "invalidValue", "GET", "Users?count=x", nil)
	for _, path := range []string{"ServiceProviderConfig", "Schemas", "ResourceTypes", "ResourceTypes/User", "Schemas/urn:ietf:params:scim:schemas:core:2.0:Group"} {
		provisioner{c.with("")}.want(t, 200, "", "GET", path, nil)
		p.want(t, 403, "", "GET", path+"?filter=x", nil)
	}
	p.want(t, 404, "", "GET", "Schemas/x", nil)
}

// scimBulk executes operations that refer to each other.
func scimBulk(t *testing.T, w *world, c *client) {
	p := w.provisioning(t, c)
	operations := []any{
		object{"method": "POST", "path": "/Groups", "bulkId": "g", "data": object{"displayName": "Bulk", "members": []any{object{"value": "bulkId:a"}, object{"value": "bulkId:b"}}}},
		object{"method": "POST", "path": "/Users", "bulkId": "a", "data": object{"userName": "a@example.com", "externalId": "1"}},
		object{"method": "POST", "path": "/Users", "bulkId": "b", "data": object{"userName": "b@example.com"}},
		object{"method": "POST", "path": "/Users", "bulkId": "c", "data": object{"userName": "a@example.com"}},
		object{"method": "PATCH", "path": "/Users/bulkId:b", "data": object{"Operations": []any{object{"op": "add", "path": "title", "value": "Chef"}}}},
		object{"method": "POST", "path": "/Nothing", "bulkId": "d", "data": object{}},
	}
	a := p.want(t, 200, "", "POST", "Bulk", object{"Operations": operations})
	var statuses []any
	for _, r := range a.body["Operations"].([]any) {
		statuses = append(statuses, r.(map[string]any)["status"])
	}
	equal(t, "statuses", statuses, []any{"201", "201", "201", "409", "200", "400"})
	found := p.want(t, 200, "", "GET", "Groups", nil).resources()
	if len(found) == 0 || len(found[len(found)-1].(map[string]any)["members"].([]any)) != 2 {
		t.Errorf("groups %v", found)
	}
	a = p.want(t, 200, "", "POST", "Bulk", object{"failOnErrors": 1, "Operations": []any{
		object{"method": "POST", "path": "/Users", "bulkId": "c", "data": object{"userName": "a@example.com"}},
		object{"method": "POST", "path": "/Users", "bulkId": "d", "data": object{"userName": "d@example.com"}},
	}})
	equal(t, "operations before the failure", len(a.body["Operations"].([]any)), 1)
	cycle := p.want(t, 200, "", "POST", "Bulk", object{"Operations": []any{
		object{"method": "POST", "path": "/Users", "bulkId": "x", "data": object{"userName": "x@example.com", "title": "bulkId:y"}},
		object{"method": "POST", "path": "/Users", "bulkId": "y", "data": object{"userName": "y@example.com", "title": "bulkId:x"}},
	}})
	equal(t, "a cycle", cycle.body["Operations"].([]any)[0].(map[string]any)["status"], "409")
	p.want(t, 400, "invalidSyntax", "POST", "Bulk", object{"Operations": []any{object{"method": "POST", "path": "/Users", "data": object{}}}})
	many := make([]any, 1001)
	for i := range many {
		many[i] = object{"method": "DELETE", "path": "/Users/x"}
	}
	p.want(t, 413, "", "POST", "Bulk", object{"Operations": many})
}

var (
	scimUserCount  = flag.Int("scim-users", 50_000, "users of BenchmarkSCIM")
	scimGroupCount = flag.Int("scim-groups", 1_000, "groups of BenchmarkSCIM, each with 50 members")
)

// BenchmarkSCIM synchronises a directory with a tenant over HTTP: all users in bulk requests, then
// all groups with 50 members each, then a look-up of each hundredth user by its name.
func BenchmarkSCIM(b *testing.B) {
	for name, open := range databases {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				w := newWorld(b, open(b), nil)
				p := w.provisioning(b, w.tenant(b, "scim"))
				ids := make([]string, 0, *scimUserCount)
				start := time.Now()
				for len(ids) < *scimUserCount {
					var operations []any
					for i := len(ids); i < min(len(ids)+1000, *scimUserCount); i++ {
						operations = append(operations, object{"method": "POST", "path": "/Users", "bulkId": fmt.Sprint(i), "data": object{
							"userName": fmt.Sprintf("user%d@example.com", i), "externalId": fmt.Sprint(i), "name": object{"givenName": "User", "familyName": fmt.Sprint(i)}, "title": "Tester",
						}})
					}
					for _, r := range p.want(b, 200, "", "POST", "Bulk", object{"Operations": operations}).body["Operations"].([]any) {
						location := r.(map[string]any)["location"].(string)
						ids = append(ids, location[strings.LastIndexByte(location, '/')+1:])
					}
					if len(ids)%10_000 == 0 {
						b.Logf("%d users in %v", len(ids), time.Since(start).Round(time.Millisecond))
					}
				}
				b.ReportMetric(float64(len(ids))/time.Since(start).Seconds(), "users/s")
				start = time.Now()
				for g := range *scimGroupCount {
					var members []any
					for i := range 50 {
						members = append(members, object{"value": ids[(g*50+i)%len(ids)]})
					}
					p.want(b, 201, "", "POST", "Groups?excludedAttributes=members", object{"displayName": fmt.Sprintf("Group %d", g), "members": members})
				}
				b.ReportMetric(float64(*scimGroupCount)/time.Since(start).Seconds(), "groups/s")
				start = time.Now()
				n := 0
				for i := 0; i < len(ids); i += 100 {
					p.want(b, 200, "", "GET", scimFilter(fmt.Sprintf(`userName eq "user%d@example.com"`, i)), nil)
					n++
				}
				b.ReportMetric(float64(n)/time.Since(start).Seconds(), "lookups/s")
			}
		})
	}
}
