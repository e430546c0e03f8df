package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// userEvents compares the data of events about users and groups with the response of GET at
// that time, for changes by administrators, imports and users.
func userEvents(t *testing.T, w *world, c *client) {
	// Members that GET answers for a user or a group and that are no part of its public
	// representation: they are other resources, or depend on the caller.
	related := []string{"groups", "mfa_factors", "applications_used", "external_identities", "members", "can_delete", "audit_summary"}
	var ann, bob, crew string // ids
	var token string          // of the mail that verifies bob's address
	newest := func() string {
		return c.want(t, 200, "", "GET", usersPath+"?limit=1", nil).list()[0].(map[string]any)["id"].(string)
	}
	read := func(path string) map[string]any {
		a := c.do(t, "GET", path, nil)
		if a.status != 200 {
			return nil
		}
		d := a.data()
		for _, name := range related {
			delete(d, name)
		}
		return d
	}
	for _, step := range []struct {
		name string
		do   func()
		of   func() string // path of the resource that the events are about
		want map[string][]string
	}{
		{
			"an administrator creates a user",
			func() { ann = member(t, c, "ann@example.com") },
			func() string { return usersPath + "/" + ann },
			map[string][]string{"user.created": nil},
		},
		{
			"a person signs up",
			func() {
				c.with("").want(t, 202, "", "POST", authPath+"/sign-up", object{"email": "bob@user-events.example", "password": secret, "name": "Bob"})
				token = link(t, w.mailbox.take(t, "bob@user-events.example", "Confirm your e-mail address"))
				bob = newest()
			},
			func() string { return usersPath + "/" + bob },
			map[string][]string{"user.created": nil, "user.signed_up": {"email", "id"}},
		},
		{
			"a person verifies the address",
			func() { c.with("").want(t, 200, "", "POST", authPath+"/email/verify", object{"token": token}) },
			func() string { return usersPath + "/" + bob },
			map[string][]string{"user.activated": nil, "user.email_verified": {"email", "id"}},
		},
		{
			"a person changes the password",
			func() {
				signedIn(t, c, "bob@user-events.example").want(t, 204, "", "POST", mePath+"/password", object{"current": secret, "next": secret + " 2"})
			},
			func() string { return usersPath + "/" + bob },
			map[string][]string{"user.password_changed": nil, "user.signed_in": {"email", "id"}, "session.created": {"id"}},
		},
		{
			"an administrator changes much",
			func() {
				c.want(t, 200, "", "PATCH", usersPath+"/"+ann, object{"name": "Ann", "attributes": object{"floor": 3}, "password": secret + " 3"})
			},
			func() string { return usersPath + "/" + ann },
			map[string][]string{"user.updated": nil, "user.password_changed": nil},
		},
		{
			"a user is disabled",
			func() { c.want(t, 200, "", "POST", usersPath+"/"+bob+"/disable", nil) },
			func() string { return usersPath + "/" + bob },
			map[string][]string{"user.disabled": nil, "session.revoked": {"id"}},
		},
		{
			"a user is enabled",
			func() { c.want(t, 200, "", "POST", usersPath+"/"+bob+"/enable", nil) },
			func() string { return usersPath + "/" + bob },
			map[string][]string{"user.enabled": nil},
		},
		{
			"a group is created",
			func() { crew = group(t, c, "crew", "users:read") },
			func() string { return groupsPath + "/" + crew },
			map[string][]string{"group.created": nil},
		},
		{
			"a group is changed",
			func() {
				c.want(t, 200, "", "PATCH", groupsPath+"/"+crew, object{"name": "The crew", "scopes": []any{}})
			},
			func() string { return groupsPath + "/" + crew },
			map[string][]string{"group.updated": nil},
		},
		{
			"a user joins",
			func() { c.want(t, 201, "", "POST", groupsPath+"/"+crew+"/members", object{"user_id": ann}) },
			func() string { return groupsPath + "/" + crew },
			map[string][]string{"group.member_added": {"id", "slug"}},
		},
		{
			"a user leaves",
			func() { c.want(t, 204, "", "DELETE", groupsPath+"/"+crew+"/members/"+ann, nil) },
			func() string { return groupsPath + "/" + crew },
			map[string][]string{"group.member_removed": {"id", "slug"}},
		},
		{
			"an import creates a user",
			func() {
				ended(t, c, c.upload(t, rows(t, object{"email": "eve@example.com", "name": "Eve"}), nil).data()["id"])
			},
			func() string { return usersPath + "/" + newest() },
			map[string][]string{"user.created": nil, "user.import_completed": {}},
		},
		{
			"a group is deleted",
			func() { c.want(t, 204, "", "DELETE", groupsPath+"/"+crew, nil) },
			func() string { return groupsPath + "/" + crew },
			map[string][]string{"group.deleted": nil},
		},
		{
			"a user is deleted",
			func() { c.want(t, 204, "", "DELETE", usersPath+"/"+ann, nil) },
			func() string { return usersPath + "/" + ann },
			map[string][]string{"user.deleted": {"id"}},
		},
	} {
		before := read(step.of())
		seen := len(w.events(t, c, 0))
		step.do()
		answered := read(step.of())
		if answered == nil {
			answered = before // it is deleted
		}
		found := map[string]bool{}
		for _, e := range w.events(t, c, seen) {
			parts, told := step.want[string(e.Type)]
			if !told {
				t.Errorf("%s: unexpected event %s", step.name, e.Type)
				continue
			}
			found[string(e.Type)] = true
			kind, _, _ := strings.Cut(step.of()[len("/api/v1/"):], "s/") // user or group
			data := parse(t, string(e.Data)).(map[string]any)
			document, _ := data[kind].(map[string]any)
			want := answered
			if parts != nil {
				want = maps.Clone(answered)
				maps.DeleteFunc(want, func(name string, _ any) bool { return !slices.Contains(parts, name) })
			}
			equal(t, fmt.Sprint(step.name, ": ", e.Type), fmt.Sprint(document), fmt.Sprint(want))
		}
		equal(t, step.name, len(found), len(step.want))
	}
	sources := map[any]int{}
	for _, e := range w.events(t, c, 0) {
		if e.Type == "user.created" {
			sources[parse(t, string(e.Data)).(map[string]any)["source"]]++
		}
	}
	equal(t, "sources", sources, map[any]int{"admin": 1, "sign_up": 1, "bulk_import": 1})
}
