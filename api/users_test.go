package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

const usersPath = "/api/v1/users"

// userLife follows one account from its creation to its end.
func userLife(t *testing.T, w *world, c *client) {
	seen := len(w.events(t, c, 0))
	happened := func(a answer, want ...object) {
		t.Helper()
		found := w.events(t, c, seen)
		seen += len(found)
		var got []object
		for _, e := range found {
			if e.Origin.RequestID != a.header.Get("X-Request-Id") {
				t.Errorf("%s is of another request", e.Type)
			}
			data := parse(t, string(e.Data)).(map[string]any)
			delete(data, "user")
			got = append(got, object{"type": string(e.Type), "data": data})
		}
		equal(t, "events", got, want)
	}
	event := func(typ string, data object) object { return object{"type": typ, "data": data} }

	a := c.want(t, 201, "", "POST", usersPath, object{"email": "Ann@Example.com"})
	ann := a.data()
	id := ann["id"].(string)
	target := usersPath + "/" + id
	equal(t, "location", a.header.Get("Location"), target)
	for name, want := range map[string]any{
		"email": "Ann@Example.com", "email_verified": false, "state": "pending", "name": nil, "given_name": nil, "family_name": nil,
		"picture": nil, "locale": nil, "attributes": nil, "password_set": false, "password_must_be_reset": false, "last_signed_in_at": nil,
	} {
		equal(t, name, ann[name], want)
	}
	happened(a, event("user.created", object{"source": "admin"}))
	equal(t, "read", c.want(t, 200, "", "GET", target, nil).data(), ann)
	c.want(t, 409, "user_exists", "POST", usersPath, object{"email": "ann@example.COM"})

	a = c.want(t, 200, "", "PATCH", target, object{
		"name": "Ann", "given_name": "A", "family_name": "Example", "picture": "https://example.com/a.png", "locale": "de-AT",
		"attributes": object{"floor": 3}, "password": "correct horse", "password_must_be_reset": true, "email_verified": true,
	})
	happened(a, event("user.activated", object{"changes": object{"state": []any{"pending", "active"}}}),
		event("user.password_changed", object{}),
		event("user.updated", object{"changes": object{
			"name": []any{nil, "Ann"}, "given_name": []any{nil, "A"}, "family_name": []any{nil, "Example"}, "picture": []any{nil, "https://example.com/a.png"},
			"locale": []any{nil, "de-AT"}, "attributes": []any{nil, object{"floor": 3.0}}, "password_must_be_reset": []any{false, true},
			"email_verified": []any{false, true},
		}}))
	equal(t, "password", a.data()["password_set"], true)
	if strings.Contains(a.text, "argon2") || strings.Contains(a.text, "horse") {
		t.Errorf("the answer tells the password: %s", a.text)
	}
	for _, e := range w.events(t, c, 0) {
		if strings.Contains(string(e.Data), "argon2") || strings.Contains(string(e.Data), "horse") {
			t.Errorf("%s tells the password: %s", e.Type, e.Data)
		}
	}
	// Absent members stay, null removes, and equal values are no change.
	a = c.want(t, 200, "", "PATCH", target, object{"given_name": nil, "name": "Ann"})
	equal(t, "given name", a.data()["given_name"], nil)
	equal(t, "family name", a.data()["family_name"], "Example")
	equal(t, "attributes", a.data()["attributes"], object{"floor": 3.0})
	happened(a, event("user.updated", object{"changes": object{"given_name": []any{"A", nil}}}))
	before := a.data()
	a = c.want(t, 200, "", "PATCH", target, object{"attributes": object{"floor": 3}, "unknown": 1})
	equal(t, "unchanged", a.data(), before)
	happened(a)
	a = c.want(t, 200, "", "PATCH", target, object{"attributes": nil, "password": nil})
	equal(t, "attributes", a.data()["attributes"], nil)
	equal(t, "password", a.data()["password_set"], false)
	happened(a, event("user.password_changed", object{}), event("user.updated", object{"changes": object{"attributes": []any{object{"floor": 3.0}, nil}}}))

	// Deleting a user deletes the relations, and the address is free.
	c.want(t, 201, "", "POST", "/api/v1/resource-types", object{"name": "document", "relations": []any{object{"name": "viewer", "rewrites": []any{}}}})
	c.want(t, 201, "", "POST", "/api/v1/resources/document/d/relations", relation(user(id), "viewer"))
	seen += 2
	check := object{"subject": user(id), "action": "view", "resource": resource("document", "d")}
	equal(t, "before", c.want(t, 200, "", "POST", "/api/v1/resources/check", check).data()["allowed"], true)
	a = c.want(t, 204, "", "DELETE", target, nil)
	happened(a, event("user.deleted", object{}))
	equal(t, "afterwards", c.want(t, 200, "", "POST", "/api/v1/resources/check", check).data()["allowed"], false)
	c.want(t, 404, "user_not_found", "GET", target, nil)
	c.want(t, 404, "user_not_found", "PATCH", target, object{"name": "x"})
	c.want(t, 404, "user_not_found", "PATCH", target, object{"password": "correct horse"})
	c.want(t, 404, "user_not_found", "DELETE", target, nil)
	c.want(t, 404, "user_not_found", "POST", target+"/disable", nil)
	c.want(t, 404, "user_not_found", "POST", target+"/enable", nil)
	c.want(t, 201, "", "POST", usersPath, object{"email": "ann@example.com"})

	for _, nobody := range []string{"%00", "%ff", "*", strings.Repeat("x", 600)} {
		c.want(t, 404, "user_not_found", "GET", usersPath+"/"+nobody, nil)
		c.want(t, 404, "user_not_found", "POST", usersPath+"/"+nobody+"/disable", nil)
		c.want(t, 404, "user_not_found", "DELETE", usersPath+"/"+nobody, nil)
		c.want(t, 404, "group_not_found", "DELETE", groupsPath+"/"+nobody, nil)
		c.want(t, 404, "job_not_found", "GET", importPath+"/"+nobody, nil)
	}
	c.want(t, 404, "scope_not_found", "DELETE", scopesPath+"/%00", nil)

	// Users of another tenant are not found, and a scope is required.
	other := w.tenant(t, "users-other")
	foreign := other.want(t, 201, "", "POST", usersPath, object{"email": "ann@example.com"}).data()["id"].(string)
	c.want(t, 404, "user_not_found", "GET", usersPath+"/"+foreign, nil)
	c.want(t, 404, "user_not_found", "DELETE", usersPath+"/"+foreign, nil)
	reader := c.with(w.token(t, c, w.application(t, c, "users:read")))
	reader.want(t, 200, "", "GET", usersPath, nil)
	reader.want(t, 403, "insufficient_scope", "POST", usersPath, object{"email": "x@example.com"})
}

// userForms sends invalid users.
func userForms(t *testing.T, _ *world, c *client) {
	long := strings.Repeat("x", 501)
	id := c.want(t, 201, "", "POST", usersPath, object{"email": "ann@example.com", "name": "Ann Montgomery"}).data()["id"].(string)
	target := usersPath + "/" + id
	for form, field := range map[string]string{
		`{}`: "email", `{"email":"a@b.c","name":1}`: "name", `{"email":"a@b.c","name":"` + long + `"}`: "name", `{"email":"a@b.c","name":"\u0000"}`: "name",
		`{"email":"a@b.c","picture":"http://x/a.png"}`: "picture", `{"email":"a@b.c","locale":"!!"}`: "locale", `{"email":"a@b.c","attributes":[]}`: "attributes",
		`{"email":"a@b.c","attributes":{"a":"` + strings.Repeat("x", 16<<10) + `"}}`: "attributes", `{"email":"a@b.c","password":1}`: "password",
	} {
		equal(t, form[:min(len(form), 60)], fields(c.want(t, 400, "validation_failed", "POST", usersPath, form)), []string{field})
	}
	equal(t, "patch", fields(c.want(t, 400, "validation_failed", "PATCH", target, `{"name":1,"locale":2}`)), []string{"name", "locale"})
	for _, email := range []string{"ann", "Ann <ann@example.com>", "a@b\r\nBcc: c@d", "a@" + strings.Repeat("x", 260) + ".com"} {
		c.want(t, 400, "email_invalid", "POST", usersPath, object{"email": email})
	}
	c.want(t, 400, "invalid_json", "POST", usersPath, `{"email":"a@b.c","email":"d@e.f"}`)
	c.want(t, 400, "invalid_json", "PATCH", target, `{`)
	equal(t, "immutable", c.want(t, 400, "immutable_field", "PATCH", target, object{"email": "b@example.com", "id": id}).details()["fields"], []any{"id", "email"})
	for password, rules := range map[string][]any{
		"short": {object{"rule": "min_length"}}, strings.Repeat("ab", 65): {object{"rule": "max_length"}}, "Password1": {object{"rule": "common"}},
		"montgomery1": {object{"rule": "contains_identifier"}},
	} {
		for _, try := range []func() answer{
			func() answer {
				return c.want(t, 400, "password_policy_violation", "PATCH", target, object{"password": password})
			},
			func() answer {
				return c.want(t, 400, "password_policy_violation", "POST", usersPath, object{"email": "b@example.com", "name": "Montgomery", "password": password})
			},
		} {
			a := try()
			equal(t, password, a.details()["violations"], rules)
			equal(t, "policy", a.details()["policy"], object{"min_length": 8.0, "max_length": 128.0})
			if len(password) > 5 && strings.Contains(a.text, password) {
				t.Errorf("the answer tells the password: %s", a.text)
			}
		}
	}
	c.want(t, 200, "", "PATCH", target, object{"password": "a montgomery among many other words"})
	for query, field := range map[string]string{
		"state=gone": "state", "created_after=yesterday": "created_after", "q=" + strings.Repeat("x", 255): "q", "q=%00": "q", "email=%00": "email", "limit=0": "limit", "limit=x": "limit", "limit=1&limit=2": "limit",
	} {
		equal(t, query, fields(c.want(t, 400, "validation_failed", "GET", usersPath+"?"+query, nil)), []string{field})
	}
}

// userSearch lists users by every filter, page by page.
func userSearch(t *testing.T, _ *world, c *client) {
	const n = 30
	var ids []string // oldest first
	var middle time.Time
	for i := range n {
		form := object{"email": fmt.Sprintf("u%d@%s.example", i, []string{"red", "green"}[i%2]), "name": fmt.Sprintf("User No_%d%%", i), "email_verified": i%3 == 0}
		if i%5 == 0 {
			form["attributes"] = object{"team": "Blau ÄÖÜ", "level": i, "tags": []any{"x_y", true, nil}}
		}
		ids = append(ids, c.want(t, 201, "", "POST", usersPath, form).data()["id"].(string))
		if i == n/2 {
			middle = time.Now()
			time.Sleep(2 * time.Millisecond)
		}
	}
	list := func(query string, limit int) (found []string) {
		t.Helper()
		cursor := ""
		for {
			a := c.want(t, 200, "", "GET", fmt.Sprintf("%s?limit=%d&%s%s", usersPath, limit, query, cursor), nil)
			if len(a.list()) > limit {
				t.Fatalf("%d users on a page of %d", len(a.list()), limit)
			}
			for _, item := range a.list() {
				found = append(found, item.(map[string]any)["id"].(string))
			}
			next, ok := a.meta("next_cursor").(string)
			if !ok {
				return found
			}
			cursor = "&cursor=" + url.QueryEscape(next)
		}
	}
	where := func(pick func(i int) bool) (want []string) {
		for i := n - 1; i >= 0; i-- {
			if pick(i) {
				want = append(want, ids[i])
			}
		}
		return want
	}
	for query, pick := range map[string]func(i int) bool{
		"":                         func(int) bool { return true },
		"state=active":             func(i int) bool { return i%3 == 0 },
		"state=pending":            func(i int) bool { return i%3 != 0 },
		"state=disabled":           func(int) bool { return false },
		"email=U7%40GREEN.example": func(i int) bool { return i == 7 },
		"email=u7":                 func(int) bool { return false },
		"created_after=" + url.QueryEscape(middle.Format(time.RFC3339Nano)): func(i int) bool { return i > n/2 },
		"q=GREEN":                        func(i int) bool { return i%2 == 1 },
		"q=green+blau":                   func(i int) bool { return i%2 == 1 && i%5 == 0 },
		"q=%C3%A4%C3%B6":                 func(i int) bool { return i%5 == 0 },
		"q=a%CC%88o%CC%88&state=pending": func(i int) bool { return i%5 == 0 && i%3 != 0 },
		"q=no_7%25":                      func(i int) bool { return i == 7 },
		"q=x_y":                          func(i int) bool { return i%5 == 0 },
		"q=_":                            func(int) bool { return true },
		"q=%25_":                         func(int) bool { return false },
		"q=%5C":                          func(int) bool { return false },
		"q=+":                            func(int) bool { return true },
	} {
		want := where(pick)
		for _, limit := range []int{1, 4, 10, 30, 250} {
			equal(t, fmt.Sprintf("%q by %d", query, limit), list(query, limit), want)
		}
	}
	// A changed user is found by the new values.
	c.want(t, 200, "", "PATCH", usersPath+"/"+ids[3], object{"name": "Zebra"})
	equal(t, "by the new name", list("q=zebra", 10), []string{ids[3]})
	equal(t, "by the old name", list("q=no_3%25", 10), []string(nil))
	c.want(t, 204, "", "DELETE", usersPath+"/"+ids[3], nil)
	equal(t, "deleted", list("q=zebra", 10), []string(nil))

	cursor := c.want(t, 200, "", "GET", usersPath+"?limit=1&state=active", nil).meta("next_cursor").(string)
	c.want(t, 400, "cursor_invalid", "GET", usersPath+"?limit=1&cursor="+url.QueryEscape(cursor), nil)
	c.want(t, 400, "cursor_invalid", "GET", usersPath+"?cursor=x", nil)
}

// userStates tries every transition from every state.
func userStates(t *testing.T, w *world, c *client) {
	steps := map[string]func(target string) answer{
		"disable": func(target string) answer { return c.want(t, 200, "", "POST", target+"/disable", nil) },
		"enable":  func(target string) answer { return c.want(t, 200, "", "POST", target+"/enable", nil) },
		"verify":  func(target string) answer { return c.want(t, 200, "", "PATCH", target, object{"email_verified": true}) },
		"doubt": func(target string) answer {
			return c.want(t, 200, "", "PATCH", target, object{"email_verified": false})
		},
	}
	n := 0
	for _, row := range []struct{ from, by, to, event string }{
		{"pending", "disable", "disabled", "user.disabled"},
		{"pending", "enable", "pending", ""},
		{"pending", "verify", "active", "user.activated"},
		{"active", "disable", "disabled", "user.disabled"},
		{"active", "enable", "active", ""},
		{"active", "doubt", "active", "user.updated"},
		{"disabled", "enable", "active", "user.enabled"},
		{"disabled", "disable", "disabled", ""},
		{"disabled", "verify", "disabled", "user.updated"},
	} {
		n++
		u := c.want(t, 201, "", "POST", usersPath, object{"email": fmt.Sprintf("s%d@example.com", n), "email_verified": row.from == "active"}).data()
		target := usersPath + "/" + u["id"].(string)
		if row.from == "disabled" {
			steps["disable"](target)
		}
		before := len(w.events(t, c, 0))
		a := steps[row.by](target)
		equal(t, row.from+" "+row.by, a.data()["state"], row.to)
		event := ""
		if found := w.events(t, c, before); len(found) > 0 {
			event = string(found[0].Type)
		}
		equal(t, "event of "+row.from+" "+row.by, event, row.event)
	}
}
