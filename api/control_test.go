package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/api/web"
	"stonetown/controlplane/management"
	oauthclient "stonetown/oauth/client"
)

const orgsPath = "/api/v1/organizations"

// console is a client of the control plane with the session of a new user, whose verified address
// it returns. name must be unique in the scenario of c.
func (w *world) console(t testing.TB, c *client, name string) (user *client, email string) {
	t.Helper()
	anon, email := &client{server: w.server, host: controlHost}, name+"."+c.name()+"@example.com"
	anon.want(t, 202, "", "POST", authPath+"/sign-up", object{"email": email, "password": secret, "name": name})
	token := link(t, w.mailbox.take(t, email, "Confirm your e-mail address"))
	anon.want(t, 200, "", "POST", authPath+"/email/verify", object{"token": token})
	return signedIn(t, anon, email), email
}

// organization creates an organisation and returns its path.
func organization(t testing.TB, owner *client, slug string) string {
	t.Helper()
	return orgsPath + "/" + owner.want(t, 201, "", "POST", orgsPath, object{"slug": slug, "name": "Organisation " + slug}).data()["id"].(string)
}

// join makes a user a member of an organisation.
func (w *world) join(t testing.TB, owner *client, org string, user *client, email, role string) (memberID string) {
	t.Helper()
	owner.want(t, 201, "", "POST", org+"/invitations", object{"email": email, "role": role})
	return user.want(t, 200, "", "POST", "/api/v1/invitations/accept", object{"token": link(t, w.mailbox.take(t, email, "/invitation?token="))}).data()["id"].(string)
}

// faultsOf are the field errors of a refusal by the control plane, as "field code".
func faultsOf(t testing.TB, a answer) (list []string) {
	t.Helper()
	e, _ := a.body["error"].(map[string]any)
	faults, ok := e["field_errors"].([]any)
	if !ok {
		t.Fatalf("no field_errors in %s", a.text)
	}
	for _, f := range faults {
		list = append(list, f.(object)["field"].(string)+" "+f.(object)["code"].(string))
	}
	return list
}

// wantFaults sends a request that is refused with field errors.
func (c *client) wantFaults(t testing.TB, method, target string, body any, faults ...string) {
	t.Helper()
	equal(t, method+" "+target, faultsOf(t, c.want(t, 400, "BAD_REQUEST", method, target, body)), faults)
}

// pagesOf reads a list in pages of two items, and compares them with the whole list.
func pagesOf(t testing.TB, c *client, list string) {
	t.Helper()
	all := c.want(t, 200, "", "GET", list, nil)
	if len(all.list()) < 3 {
		t.Fatalf("%s has only %d items", list, len(all.list()))
	}
	equal(t, "the only page of "+list, []any{all.meta("cursor"), all.meta("has_more")}, []any{nil, false})
	separator := "?"
	if strings.Contains(list, "?") {
		separator = "&"
	}
	var found []any
	for cursor := ""; ; {
		a := c.want(t, 200, "", "GET", list+separator+"limit=2&cursor="+cursor, nil)
		found = append(found, a.list()...)
		next, more := a.meta("cursor").(string)
		equal(t, "has_more", a.meta("has_more"), more)
		if !more {
			break
		}
		cursor = next
		c.wantFaults(t, "GET", list+separator+"cursor=A"+cursor, nil, "cursor cursor_invalid")
	}
	equal(t, "pages of "+list, found, all.list())
	c.wantFaults(t, "GET", list+separator+"limit=0", nil, "limit out_of_range")
	c.wantFaults(t, "GET", list+separator+"limit=x", nil, "limit type_invalid")
}

func organizations(t *testing.T, w *world, c *client) {
	ann, _ := w.console(t, c, "ann")
	bob, _ := w.console(t, c, "bob")
	a := ann.want(t, 201, "", "POST", orgsPath, object{"slug": c.name(), "name": "Acme"})
	org := a.header.Get("Location")
	equal(t, "Location", org, orgsPath+"/"+a.data()["id"].(string))
	equal(t, "created", []any{a.data()["slug"], a.data()["name"], a.data()["state"]}, []any{c.name(), "Acme", "active"})
	read := ann.want(t, 200, "", "GET", org, nil)
	equal(t, "read", read.data(), a.data())
	if at, err := time.Parse(time.RFC3339, read.meta("timestamp").(string)); err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("meta.timestamp is %v", read.meta("timestamp"))
	}
	ann.want(t, 409, "CONFLICT", "POST", orgsPath, object{"slug": c.name(), "name": "Another"})
	ann.wantFaults(t, "POST", orgsPath, object{}, "slug required", "name required")
	ann.wantFaults(t, "POST", orgsPath, object{"slug": "A B", "name": "x"}, "slug invalid")
	ann.wantFaults(t, "POST", orgsPath, object{"slug": "x", "name": "a\nb"}, "name invalid")
	ann.wantFaults(t, "POST", orgsPath, object{"slug": 1, "name": "x"}, "slug type_invalid")

	equal(t, "renamed", ann.want(t, 200, "", "PATCH", org, object{"name": "Acme Corporation"}).data()["name"], "Acme Corporation")
	ann.wantFaults(t, "PATCH", org, object{"name": ""}, "name required")
	ann.wantFaults(t, "PATCH", org, object{"name": nil}, "name type_invalid")
	ann.wantFaults(t, "PATCH", org, object{"name": "x", "slug": "y", "id": nil}, "id immutable_field", "slug immutable_field")

	permissions := ann.want(t, 200, "", "GET", org+"/permissions", nil).data()["permissions"].([]any)
	equal(t, "an owner may", len(permissions), 9)
	for _, target := range []string{"", "/permissions", "/tenants", "/members", "/invitations", "/service-accounts", "/events"} {
		bob.want(t, 404, "NOT_FOUND", "GET", org+target, nil)
	}
	equal(t, "bob's", bob.want(t, 200, "", "GET", orgsPath, nil).list(), []any{})
	for i := range 2 {
		organization(t, ann, fmt.Sprintf("%s-%d", c.name(), i))
	}
	pagesOf(t, ann, orgsPath)
	mine := ann.want(t, 200, "", "GET", orgsPath+"?limit=1", nil)
	bob.wantFaults(t, "GET", orgsPath+"?cursor="+mine.meta("cursor").(string), nil, "cursor cursor_invalid")
}

func managedTenants(t *testing.T, w *world, c *client) {
	ann, _ := w.console(t, c, "ann")
	slug := c.name()
	org := organization(t, ann, slug)
	other := organization(t, ann, slug+"-other")
	list := org + "/tenants"
	a := ann.want(t, 201, "", "POST", list, object{"slug": slug + "-1", "name": "One", "environment": "staging"})
	one := a.header.Get("Location")
	created := maps.Clone(a.data())
	credentials := created["admin_application"].(object)
	delete(created, "admin_application")
	equal(t, "created", []any{created["state"], created["base_url"], created["environment"], created["region"]}, []any{"active", "https://" + slug + "-1.test", "staging", nil})
	equal(t, "read", ann.want(t, 200, "", "GET", one, nil).data(), created)

	// The first application of the tenant has all scopes.
	host := &client{server: w.server, host: slug + "-1.test"}
	host.token = w.token(t, host, application{credentials["client_id"].(string), credentials["client_secret"].(string)})
	host.want(t, 200, "", "GET", settingsPath, nil)
	host.want(t, 201, "", "POST", "/api/v1/users", object{"email": "ann@example.com"})

	for _, tc := range []struct {
		body   any
		faults []string
	}{
		{object{}, []string{"slug required", "name required"}},
		{object{"slug": "www", "name": "x"}, []string{"slug invalid"}},
		{object{"slug": slug, "name": long(501)}, []string{"name invalid"}},
		{object{"slug": slug, "name": "x", "environment": "test"}, []string{"environment unknown_value"}},
		{object{"slug": slug, "name": "x", "region": "moon"}, []string{"region unknown_value"}},
	} {
		ann.wantFaults(t, "POST", list, tc.body, tc.faults...)
	}
	ann.want(t, 409, "CONFLICT", "POST", list, object{"slug": slug + "-1", "name": "Again"})
	equal(t, "renamed", ann.want(t, 200, "", "PATCH", one, object{"name": "Uno"}).data()["name"], "Uno")
	ann.wantFaults(t, "PATCH", one, object{"name": "x", "environment": "production", "state": nil}, "environment immutable_field", "state immutable_field")
	ann.wantFaults(t, "PATCH", one, object{}, "name required")
	for i := range 2 {
		ann.want(t, 201, "", "POST", list, object{"slug": fmt.Sprintf("%s-%d", slug, i+2), "name": "More"})
	}
	pagesOf(t, ann, list)
	pagesOf(t, ann, list+"?state=active")
	first := ann.want(t, 200, "", "GET", list+"?limit=1", nil).meta("cursor").(string)
	ann.wantFaults(t, "GET", list+"?state=active&cursor="+first, nil, "cursor cursor_invalid")
	ann.wantFaults(t, "GET", other+"/tenants?cursor="+first, nil, "cursor cursor_invalid")
	ann.wantFaults(t, "GET", list+"?state=gone", nil, "state unknown_value")

	// A tenant belongs to its organisation.
	id := strings.TrimPrefix(one, list)
	for _, method := range []string{"GET", "PATCH"} {
		ann.want(t, 404, "NOT_FOUND", method, other+"/tenants"+id, object{"name": "x"})
	}
	for _, action := range []string{"/suspend", "/resume", "/decommission"} {
		ann.want(t, 404, "NOT_FOUND", "POST", other+"/tenants"+id+action, object{"confirm": slug + "-1"})
		ann.want(t, 404, "NOT_FOUND", "POST", list+"/tnt_x"+action, nil)
	}

	ann.want(t, 409, "CONFLICT", "POST", one+"/resume", nil)
	ann.wantFaults(t, "POST", one+"/suspend", object{"reason": "a\nb"}, "reason invalid")
	suspended := ann.want(t, 200, "", "POST", one+"/suspend", object{"reason": "Invoice is overdue"}).data()
	equal(t, "suspended", []any{suspended["state"], suspended["suspend_reason"], suspended["suspended_at"] == nil}, []any{"suspended", "Invoice is overdue", false})
	host.want(t, 403, "tenant_suspended", "GET", settingsPath, nil)
	equal(t, "listed", len(ann.want(t, 200, "", "GET", list+"?state=suspended", nil).list()), 1)
	ann.want(t, 409, "CONFLICT", "POST", one+"/suspend", nil)
	equal(t, "resumed", ann.want(t, 200, "", "POST", one+"/resume", nil).data()["suspend_reason"], nil)
	host.want(t, 200, "", "GET", settingsPath, nil)
	equal(t, "without a reason", ann.want(t, 200, "", "POST", one+"/suspend", nil).data()["suspend_reason"], nil)

	for _, confirm := range []any{nil, object{}, object{"confirm": slug}, object{"confirm": nil}} {
		ann.wantFaults(t, "POST", one+"/decommission", confirm, "confirm invalid")
	}
	ended := ann.want(t, 200, "", "POST", one+"/decommission", object{"confirm": slug + "-1"}).data()
	equal(t, "decommissioned", []any{ended["state"], ended["purge_at"] == nil, ended["decommissioned_at"] == nil}, []any{"decommissioned", false, false})
	host.want(t, 410, "tenant_decommissioned", "GET", settingsPath, nil)
	ann.want(t, 409, "CONFLICT", "POST", one+"/decommission", object{"confirm": slug + "-1"})
	ann.want(t, 409, "CONFLICT", "POST", list, object{"slug": slug + "-1", "name": "Never again"})
	equal(t, "read", ann.want(t, 200, "", "GET", one, nil).data(), ended)
}

func memberships(t *testing.T, w *world, c *client) {
	ann, _ := w.console(t, c, "ann")
	bob, bobs := w.console(t, c, "bob")
	org := organization(t, ann, c.name())
	list := org + "/invitations"
	const acceptPath = "/api/v1/invitations/accept"
	for _, tc := range []struct {
		body   any
		faults []string
	}{
		{object{}, []string{"email required", "role required"}},
		{object{"email": "bob", "role": "viewer"}, []string{"email invalid"}},
		{object{"email": bobs, "role": "boss"}, []string{"role unknown_value"}},
	} {
		ann.wantFaults(t, "POST", list, tc.body, tc.faults...)
	}
	a := ann.want(t, 201, "", "POST", list, object{"email": bobs, "role": "operator"})
	invited := a.header.Get("Location")
	equal(t, "invited", []any{a.data()["state"], a.data()["role"], a.data()["accepted_at"]}, []any{"pending", "operator", nil})
	equal(t, "read", ann.want(t, 200, "", "GET", invited, nil).data(), a.data())
	ann.want(t, 409, "CONFLICT", "POST", list, object{"email": bobs, "role": "viewer"})
	first := link(t, w.mailbox.take(t, bobs, "/invitation?token="))
	ann.want(t, 200, "", "POST", invited+"/resend", nil)
	token := link(t, w.mailbox.take(t, bobs, "/invitation?token="))

	// The token of the last message is for the invited, verified address, and for one use.
	ann.want(t, 403, "FORBIDDEN", "POST", acceptPath, object{"token": token})
	bob.want(t, 404, "NOT_FOUND", "POST", acceptPath, object{"token": first})
	bob.wantFaults(t, "POST", acceptPath, object{}, "token required")
	joined := bob.want(t, 200, "", "POST", acceptPath, object{"token": token}).data()
	equal(t, "joined", []any{joined["email"], joined["role"], joined["mfa_enrolled"]}, []any{bobs, "operator", false})
	bob.want(t, 404, "NOT_FOUND", "POST", acceptPath, object{"token": token})
	equal(t, "accepted", ann.want(t, 200, "", "GET", invited, nil).data()["state"], "accepted")
	ann.want(t, 409, "CONFLICT", "POST", invited+"/resend", nil)
	ann.want(t, 409, "CONFLICT", "DELETE", invited, nil)
	ann.want(t, 409, "CONFLICT", "POST", list, object{"email": bobs, "role": "viewer"})
	equal(t, "bob's organisations", len(bob.want(t, 200, "", "GET", orgsPath, nil).list()), 1)

	for i := range 3 {
		email := fmt.Sprintf("guest-%d.%s@example.com", i, c.name())
		last := ann.want(t, 201, "", "POST", list, object{"email": email, "role": "viewer"}).header.Get("Location")
		if i == 2 {
			token := link(t, w.mailbox.take(t, email, "/invitation?token="))
			ann.want(t, 204, "", "DELETE", last, nil)
			equal(t, "revoked", ann.want(t, 200, "", "GET", last, nil).data()["state"], "revoked")
			bob.want(t, 404, "NOT_FOUND", "POST", acceptPath, object{"token": token})
		}
	}
	pagesOf(t, ann, list)
	equal(t, "pending", len(ann.want(t, 200, "", "GET", list+"?state=pending", nil).list()), 2)
	ann.wantFaults(t, "GET", list+"?state=lost", nil, "state unknown_value")
	ann.want(t, 404, "NOT_FOUND", "GET", list+"/inv_x", nil)
	ann.want(t, 404, "NOT_FOUND", "DELETE", list+"/inv_x", nil)
	ann.want(t, 404, "NOT_FOUND", "POST", list+"/inv_x/resend", nil)

	// An invitation expires, and another one can take its place.
	dan, dans := w.console(t, c, "dan")
	late := ann.want(t, 201, "", "POST", list, object{"email": dans, "role": "viewer"}).header.Get("Location")
	token = link(t, w.mailbox.take(t, dans, "/invitation?token="))
	if n, err := w.db.Exec(t.Context(), `UPDATE organization_invitations SET expires_at = 1 WHERE id = $1`, late[strings.LastIndex(late, "/")+1:]); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	equal(t, "expired", ann.want(t, 200, "", "GET", late, nil).data()["state"], "expired")
	dan.want(t, 404, "NOT_FOUND", "POST", acceptPath, object{"token": token})
	ann.want(t, 409, "CONFLICT", "POST", late+"/resend", nil)
	ann.want(t, 201, "", "POST", list, object{"email": dans, "role": "viewer"})
	equal(t, "expired ones", len(ann.want(t, 200, "", "GET", list+"?state=expired", nil).list()), 1)
	// A member by another way cannot accept.
	token = link(t, w.mailbox.take(t, dans, "/invitation?token="))
	added, err := w.config.Organizations.(*management.Service).Add(t.Context(), strings.TrimPrefix(org, orgsPath+"/"), dans, management.Viewer)
	if err != nil {
		t.Fatal(err)
	}
	dan.want(t, 409, "CONFLICT", "POST", acceptPath, object{"token": token})
	ann.want(t, 204, "", "DELETE", org+"/members/"+added.ID, nil)
	dan.want(t, 200, "", "POST", acceptPath, object{"token": token})

	members := org + "/members"
	self := members + "/" + joined["id"].(string)
	read := bob.want(t, 200, "", "GET", self, nil).data()
	equal(t, "read", []any{read["email"], read["user_id"]}, []any{joined["email"], joined["user_id"]})
	cat, cats := w.console(t, c, "cat")
	w.join(t, ann, org, cat, cats, "owner")
	pagesOf(t, bob, members)
	equal(t, "promoted", ann.want(t, 200, "", "PATCH", self, object{"role": "admin"}).data()["role"], "admin")
	ann.wantFaults(t, "PATCH", self, object{}, "role required")
	ann.wantFaults(t, "PATCH", self, object{"role": "boss"}, "role unknown_value")
	ann.wantFaults(t, "PATCH", self, object{"role": "viewer", "email": "x"}, "email immutable_field")
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		ann.want(t, 404, "NOT_FOUND", method, members+"/mem_x", object{"role": "viewer"})
	}

	// An admin does not manage owners, and one owner stays.
	var owners []string
	for _, item := range ann.want(t, 200, "", "GET", members, nil).list() {
		if m := item.(object); m["role"] == "owner" {
			owners = append(owners, members+"/"+m["id"].(string))
		}
	}
	equal(t, "owners", len(owners), 2)
	bob.want(t, 403, "FORBIDDEN", "PATCH", owners[0], object{"role": "viewer"})
	bob.want(t, 403, "FORBIDDEN", "DELETE", owners[0], nil)
	bob.want(t, 403, "FORBIDDEN", "PATCH", self, object{"role": "owner"})
	bob.want(t, 403, "FORBIDDEN", "POST", list, object{"email": "dan@example.com", "role": "owner"})
	cat.want(t, 204, "", "DELETE", owners[0], nil) // the newest is cat
	cat.want(t, 404, "NOT_FOUND", "GET", org, nil)
	ann.want(t, 409, "CONFLICT", "DELETE", owners[1], nil)
	ann.want(t, 409, "CONFLICT", "PATCH", owners[1], object{"role": "viewer"})
	ann.want(t, 204, "", "DELETE", self, nil)
	bob.want(t, 404, "NOT_FOUND", "GET", org, nil)
}

func serviceAccounts(t *testing.T, w *world, c *client) {
	ann, _ := w.console(t, c, "ann")
	org := organization(t, ann, c.name())
	list := org + "/service-accounts"
	a := ann.want(t, 201, "", "POST", list, object{"name": "Terraform", "role": "admin"})
	account := a.header.Get("Location")
	created := maps.Clone(a.data())
	first := created["client_secret"].(string)
	delete(created, "client_secret")
	equal(t, "read", ann.want(t, 200, "", "GET", account, nil).data(), created)
	anon := ann.with("")
	as := func(secret string) *client {
		t.Helper()
		return anon.with(w.token(t, anon, application{created["client_id"].(string), secret}))
	}
	terraform := as(first)
	equal(t, "its organisations", len(terraform.want(t, 200, "", "GET", orgsPath, nil).list()), 1)
	terraform.want(t, 201, "", "POST", org+"/tenants", object{"slug": c.name() + "-1", "name": "One"})
	terraform.want(t, 403, "FORBIDDEN", "PATCH", org, object{"name": "Mine"})
	terraform.want(t, 403, "FORBIDDEN", "POST", orgsPath, object{"slug": c.name() + "-own", "name": "Own"})
	terraform.want(t, 403, "FORBIDDEN", "POST", "/api/v1/invitations/accept", object{"token": "x"})
	terraform.want(t, 403, "FORBIDDEN", "POST", list, object{"name": "More", "role": "owner"})

	// The system tenant permits no application to exchange tokens.
	refused := anon.form(t, basic(created["client_id"].(string), first), url.Values{
		"grant_type": {exchangeGrant}, "subject_token": {terraform.token}, "subject_token_type": {tokenTypes + "access_token"},
	})
	equal(t, "exchange", []any{refused.status, refused.code()}, []any{400, "invalid_grant"})

	ann.wantFaults(t, "POST", list, object{}, "name required", "role required")
	ann.wantFaults(t, "POST", list, object{"name": "a\nb", "role": "viewer"}, "name invalid")
	ann.wantFaults(t, "POST", list, object{"name": "x", "role": "boss"}, "role unknown_value")
	ann.wantFaults(t, "PATCH", account, object{"name": "x", "client_id": "y"}, "client_id immutable_field")
	ann.wantFaults(t, "PATCH", account, object{"role": "boss"}, "role unknown_value")
	ann.wantFaults(t, "PATCH", account, object{"name": ""}, "name required")
	changed := ann.want(t, 200, "", "PATCH", account, object{"role": "viewer"}).data()
	equal(t, "changed", []any{changed["name"], changed["role"]}, []any{"Terraform", "viewer"})
	equal(t, "renamed", ann.want(t, 200, "", "PATCH", account, object{"name": "Pulumi"}).data()["name"], "Pulumi")
	equal(t, "unchanged", ann.want(t, 200, "", "PATCH", account, object{}).data()["name"], "Pulumi")
	terraform.want(t, 403, "FORBIDDEN", "POST", org+"/tenants", object{"slug": c.name() + "-2", "name": "Two"})

	rotated := ann.want(t, 200, "", "POST", account+"/rotate-secret", nil).data()
	if rotated["client_secret"] == first {
		t.Error("the secret is the same")
	}
	as(first) // still valid
	terraform = as(rotated["client_secret"].(string))
	for range 2 {
		ann.want(t, 201, "", "POST", list, object{"name": "More", "role": "viewer"})
	}
	pagesOf(t, ann, list)
	ann.want(t, 204, "", "DELETE", account, nil)
	terraform.want(t, 401, "UNAUTHENTICATED", "GET", org, nil)
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		ann.want(t, 404, "NOT_FOUND", method, account, object{"name": "x"})
	}
	ann.want(t, 404, "NOT_FOUND", "POST", account+"/rotate-secret", nil)
}

func organizationEvents(t *testing.T, w *world, c *client) {
	ann, anns := w.console(t, c, "ann")
	org := organization(t, ann, c.name())
	tenant := ann.want(t, 201, "", "POST", org+"/tenants", object{"slug": c.name() + "-1", "name": "One"}).data()
	suspended := ann.want(t, 200, "", "POST", org+"/tenants/"+tenant["id"].(string)+"/suspend", nil)
	account := ann.want(t, 201, "", "POST", org+"/service-accounts", object{"name": "CI", "role": "admin"}).data()
	ci := ann.with(w.token(t, ann.with(""), application{account["client_id"].(string), account["client_secret"].(string)}))
	ci.want(t, 200, "", "POST", org+"/tenants/"+tenant["id"].(string)+"/resume", nil)

	list := org + "/events"
	pagesOf(t, ann, list)
	pagesOf(t, ann, list+"?tenant_id="+tenant["id"].(string))
	one := func(query string) object {
		t.Helper()
		found := ann.want(t, 200, "", "GET", list+"?"+query, nil).list()
		if len(found) != 1 {
			t.Fatalf("%s: %d events", query, len(found))
		}
		return found[0].(object)
	}
	e := one("type=tenant.suspended")
	equal(t, "data", e["data"], any(suspended.data()))
	equal(t, "the request", []any{e["org_id"], e["tenant_id"], e["request_id"], e["ip"] == nil}, []any{strings.TrimPrefix(org, orgsPath+"/"), tenant["id"], suspended.header.Get("X-Request-Id"), false})
	equal(t, "the actor", []any{e["actor"].(object)["type"], e["actor"].(object)["email"]}, []any{"user", anns})
	e = one("actor=" + account["client_id"].(string))
	equal(t, "an application", []any{e["type"], e["actor"].(object)["type"], e["actor"].(object)["email"]}, []any{"tenant.resumed", "application", nil})
	one("type=organization.created")
	all := ann.want(t, 200, "", "GET", list, nil).list()
	at := url.QueryEscape(e["occurred_at"].(string))
	since, until := ann.want(t, 200, "", "GET", list+"?since="+at, nil).list(), ann.want(t, 200, "", "GET", list+"?until="+at, nil).list()
	equal(t, "since and until", len(since)+len(until), len(all))
	equal(t, "the newest", all[0].(object)["id"], e["id"])
	ann.wantFaults(t, "GET", list+"?since=x&until=y", nil, "since invalid", "until invalid")
	ann.wantFaults(t, "GET", list+"?actor=%00", nil, "actor nul_refused")
	cursor := ann.want(t, 200, "", "GET", list+"?limit=1", nil).meta("cursor").(string)
	ann.wantFaults(t, "GET", list+"?limit=1&type=tenant.resumed&cursor="+cursor, nil, "cursor cursor_invalid")
	for _, item := range all {
		if found := secrets.FindString(fmt.Sprint(item)); found != "" {
			t.Errorf("an event has %s", found)
		}
	}
}

// permissionMatrix calls every operation on an organisation with every role.
func permissionMatrix(t *testing.T, w *world, c *client) {
	permitted := map[string][]string{ // the table in the introduction of the document
		"read":                {"owner", "admin", "operator", "viewer"},
		"create_tenant":       {"owner", "admin"},
		"update_tenant":       {"owner", "admin"},
		"suspend_tenant":      {"owner", "admin", "operator"},
		"decommission_tenant": {"owner"},
		"open_console":        {"owner", "admin", "operator"},
		"manage_members":      {"owner", "admin"},
		"update_organization": {"owner"},
	}
	ann, _ := w.console(t, c, "ann")
	stranger, _ := w.console(t, c, "stranger")
	org := organization(t, ann, c.name())
	callers := map[string]*client{"owner": ann}
	ids := object{"{org_id}": strings.TrimPrefix(org, orgsPath+"/")}
	for _, role := range []string{"admin", "operator", "viewer"} {
		user, email := w.console(t, c, role)
		ids["{member_id}"] = w.join(t, ann, org, user, email, role)
		callers[role] = user
	}
	ids["{tenant_id}"] = ann.want(t, 201, "", "POST", org+"/tenants", object{"slug": c.name() + "-1", "name": "One"}).data()["id"]
	ids["{invitation_id}"] = ann.want(t, 201, "", "POST", org+"/invitations", object{"email": "guest." + c.name() + "@example.com", "role": "viewer"}).data()["id"]
	ids["{service_account_id}"] = ann.want(t, 201, "", "POST", org+"/service-accounts", object{"name": "CI", "role": "viewer"}).data()["id"]
	tried := 0
	for path, item := range controlDocument().doc.Paths.Map() {
		for method, op := range item.Operations() {
			permission, _ := op.Extensions["x-permission"].(string)
			if permission == "" {
				continue
			}
			target := path
			for name, id := range ids {
				target = strings.ReplaceAll(target, name, id.(string))
			}
			// A valid request, so that what refuses it is the role.
			in := object{"name": "", "role": "none", "email": "none", "slug": "-", "reason": "a\nb"}
			if method == "PATCH" || strings.HasSuffix(path, "/service-accounts") || strings.HasSuffix(path, "/tenants") || strings.HasSuffix(path, "/invitations") {
				in = object{"name": "x", "role": "viewer", "email": "next." + c.name() + "@example.com", "slug": c.name() + "-next"}
				if immutable := controlDocument().doc.Paths.Find(path).Operations()[method].RequestBody; method == "PATCH" && immutable != nil {
					members := membersOf(immutable.Value.Content["application/json"].Schema.Value)
					maps.DeleteFunc(in, func(name string, _ any) bool {
						return members[name] == nil || members[name].Ref != "" && strings.HasSuffix(members[name].Ref, "/Immutable")
					})
				}
			}
			for role, caller := range callers {
				if slices.Contains(permitted[permission], role) && method != "GET" {
					continue // it would succeed, and change what the others ask for
				}
				tried++
				want, code := 403, "FORBIDDEN"
				if slices.Contains(permitted[permission], role) {
					want, code = 200, ""
				}
				if role == "viewer" && op.OperationID == "deleteMember" {
					continue // itself
				}
				caller.want(t, want, code, method, target, in)
			}
			stranger.want(t, 404, "NOT_FOUND", method, target, in)
		}
	}
	if tried < 60 {
		t.Errorf("only %d requests were sent", tried)
	}
}

// controlErrors compares refusals by the steps of every request.
func controlErrors(t *testing.T, w *world, c *client) {
	ann, _ := w.console(t, c, "ann")
	org := organization(t, ann, c.name())
	for _, target := range []string{"/api/v1", "/api/v1/nothing", "/api/v2/organizations", orgsPath + "/", org + "/nothing", "/api/v1/users", "/api/v1/resources/check", "/api/v1/settings", "/api", "/organizations"} {
		a := ann.want(t, 404, "NOT_FOUND", "GET", target, nil)
		equal(t, target, faultsOf(t, a), []string(nil))
		equal(t, target, a.meta("request_id"), a.header.Get("X-Request-Id"))
	}
	a := ann.want(t, 405, "BAD_REQUEST", "PUT", org, object{})
	equal(t, "Allow", a.header.Get("Allow"), "GET, HEAD, PATCH")
	ann.want(t, 405, "BAD_REQUEST", "OPTIONS", orgsPath, nil)
	ann.wantFaults(t, "POST", orgsPath, "{", " invalid_json")
	ann.wantFaults(t, "POST", orgsPath, `{"slug":"a","slug":"b"}`, " invalid_json")
	ann.wantFaults(t, "POST", orgsPath, "null", " type_invalid")
	ann.wantFaults(t, "POST", orgsPath, "[]", " type_invalid")
	ann.want(t, 413, "BAD_REQUEST", "POST", orgsPath, `{"name":"`+long(1<<20)+`"}`)
	if a := ann.send(t, "POST", orgsPath, http.Header{"Content-Type": {"text/plain"}}, []byte("{}")); a.status != 415 || a.code() != "BAD_REQUEST" {
		t.Errorf("text: %d %s", a.status, a.text)
	}

	// Tokens of the system tenant for this address are accepted, and no others.
	unauthenticated := func(what string, by *client) {
		t.Helper()
		a := by.want(t, 401, "UNAUTHENTICATED", "GET", org, nil)
		if !strings.HasPrefix(a.header.Get("Www-Authenticate"), `Bearer realm="https://`+controlHost+`"`) {
			t.Errorf("%s: %v", what, a.header)
		}
	}
	unauthenticated("no token", ann.with(""))
	unauthenticated("no valid token", ann.with("x"))
	unauthenticated("of a tenant", ann.with(c.token))
	c.with(ann.token).want(t, 401, "invalid_token", "GET", "/api/v1/users", nil)
	app := w.newApplication(t, ann, oauthclient.Application{Name: "Reports", Type: oauthclient.Machine, Audience: "https://reports.example.com"})
	unauthenticated("another audience", ann.with(w.token(t, ann, app)))
	ann.with(w.token(t, ann, w.newApplication(t, ann, oauthclient.Application{Name: "None", Type: oauthclient.Machine}))).want(t, 404, "NOT_FOUND", "GET", org, nil)
	if a := ann.with("").send(t, "GET", org, http.Header{"Cookie": {"__Host-sid=" + ann.token}}, nil); a.status != 401 {
		t.Errorf("with a cookie: %d %s", a.status, a.text)
	}

	// What the data plane serves here has its own format.
	ann.want(t, 200, "", "GET", mePath+"/profile", nil)
	ann.with("").want(t, 401, "unauthenticated", "GET", mePath+"/profile", nil)
	ann.want(t, 404, "not_found", "GET", "/oauth2/nothing", nil)
	equal(t, "issuer", ann.want(t, 200, "", "GET", "/.well-known/openid-configuration", nil).body["issuer"], "https://"+controlHost)

	for name, limit := range map[string]string{"RateLimit-Policy": `"admin.caller";q=6000;w=3600`, "Cache-Control": "no-store"} {
		equal(t, name, ann.want(t, 200, "", "GET", org, nil).header.Get(name), limit)
	}
	for path, mark := range map[string]string{"openapi.json": `"servers":[{"url":"`, "openapi.yaml": "\nservers:\n  - url: ", "collection.json": `"value": "`} {
		a := ann.with("").want(t, 200, "", "GET", "/api/v1/"+path, nil)
		if !strings.Contains(a.text, mark+"https://"+controlHost) || !strings.Contains(a.text, "organizations") || strings.Contains(a.text, "resource-types") {
			t.Errorf("%s is not that of the control plane", path)
		}
		again := ann.send(t, "GET", "/api/v1/"+path, http.Header{"If-None-Match": {a.header.Get("ETag")}}, nil)
		equal(t, path, again.status, 304)
	}
}

func controlIdempotency(t *testing.T, w *world, c *client) {
	ann, _ := w.console(t, c, "ann")
	first := ann.under(t, "org", "POST", orgsPath, object{"slug": c.name(), "name": "Acme"})
	again := ann.under(t, "org", "POST", orgsPath, object{"slug": c.name(), "name": "Acme"})
	equal(t, "replayed", []any{again.status, again.text, again.header.Get("Location"), again.header.Get("Idempotent-Replayed")}, []any{201, first.text, first.header.Get("Location"), "true"})
	other := ann.under(t, "org", "POST", orgsPath, object{"slug": c.name(), "name": "Other"})
	equal(t, "reused", []any{other.status, other.code()}, []any{422, "CONFLICT"})
	org := first.header.Get("Location")
	tenant := ann.under(t, "tenant", "POST", org+"/tenants", object{"slug": c.name() + "-1", "name": "One"})
	equal(t, "with its secret", ann.under(t, "tenant", "POST", org+"/tenants", object{"slug": c.name() + "-1", "name": "One"}).text, tenant.text)
	equal(t, "tenants", len(ann.want(t, 200, "", "GET", org+"/tenants", nil).list()), 1)
	suspend := tenant.header.Get("Location") + "/suspend"
	equal(t, "suspended", ann.under(t, "suspend", "POST", suspend, object{}).status, 200)
	equal(t, "again", ann.under(t, "suspend", "POST", suspend, object{}).status, 200)
	equal(t, "another request", ann.under(t, "suspend-2", "POST", suspend, object{}).code(), "CONFLICT")
	// The key of one caller is not that of another.
	bob, _ := w.console(t, c, "bob")
	equal(t, "bob", bob.under(t, "suspend", "POST", suspend, object{}).code(), "NOT_FOUND")
	for _, bad := range []string{"", "a b", long(256)} {
		a := ann.under(t, bad, "POST", orgsPath, object{"slug": "x", "name": "x"})
		equal(t, "key "+bad, []any{a.status, faultsOf(t, a)}, []any{400, []string{"Idempotency-Key idempotency_key_invalid"}})
	}
}

// strangeControl calls every operation with unusual members, parameters and paths.
func strangeControl(t *testing.T, w *world, c *client) {
	ann, _ := w.console(t, c, "ann")
	org := organization(t, ann, c.name())
	id := strings.TrimPrefix(org, orgsPath+"/")
	values := []any{nil, "", 0, -1, 1.5, true, []any{}, []any{nil}, object{}, object{"a": object{}}, "\x00", long(5000), "ü", "a\r\nb"}
	fill := func(path, with string) string {
		path = strings.ReplaceAll(path, "{org_id}", id)
		for _, name := range []string{"{tenant_id}", "{member_id}", "{invitation_id}", "{service_account_id}"} {
			path = strings.ReplaceAll(path, name, with)
		}
		return path
	}
	for _, nothing := range []string{"%00", "a%00", "%FF"} {
		for _, list := range []string{"tenants", "members", "invitations", "service-accounts"} {
			ann.want(t, 404, "NOT_FOUND", "GET", org+"/"+list+"/"+nothing, nil)
		}
		ann.want(t, 404, "NOT_FOUND", "GET", orgsPath+"/"+nothing, nil)
	}
	try := func(method, target string, body any) {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if body == nil {
			text = nil
		}
		if status := ann.unjudged(t, method, target, string(text)); status >= 500 {
			t.Errorf("%s %s %s: %d", method, target, text, status)
		}
	}
	for path, item := range controlDocument().doc.Paths.Map() {
		for method, op := range item.Operations() {
			for _, text := range []string{"x", "%00", "%FF", "%2F", "*", "..%2F..", long(600), "%27%20OR%201=1--", "tnt_system"} {
				var body any
				if op.RequestBody != nil {
					body = exampleOf(t, op.RequestBody.Value.Content["application/json"])
				}
				if target := fill(path, text); target != path && target != fill(path, "y") {
					try(method, target, body)
				}
				if strings.Contains(path, "{org_id}") {
					try(method, fill(strings.Replace(path, "{org_id}", text, 1), "x"), body)
				}
			}
			for _, p := range op.Parameters {
				if p.Value.In != "query" {
					continue
				}
				for _, value := range []string{"", "%00", "%FF", "%", "*", "-1", "1.5", "null", "9999999999999999999", long(5000)} {
					if status := ann.unjudged(t, method, fill(path, "x")+"?"+p.Value.Name+"="+value, ""); status >= 500 {
						t.Errorf("%s %s?%s=%s: %d", method, path, p.Value.Name, value, status)
					}
				}
			}
			if op.RequestBody == nil {
				continue
			}
			for name := range membersOf(op.RequestBody.Value.Content["application/json"].Schema.Value) {
				for _, value := range values {
					try(method, fill(path, "x"), with(exampleOf(t, op.RequestBody.Value.Content["application/json"]), object{name: value}))
				}
			}
		}
		if item.Get != nil {
			target := fill(path, "x")
			get, head := ann.send(t, "GET", target, http.Header{}, nil), ann.send(t, "HEAD", target, http.Header{}, nil)
			equal(t, "HEAD "+target, []any{head.status, head.text, head.header.Get("Content-Type")}, []any{get.status, "", get.header.Get("Content-Type")})
		}
	}
}

// servedHosts calls every operation of both documents on both hosts.
func servedHosts(t *testing.T, w *world, c *client) {
	managed := &client{server: w.server, host: controlHost}
	tenant := c.with("")
	exists := func(by *client, method, path string) bool {
		t.Helper()
		target := strings.NewReplacer("{", "x", "}", "x").Replace(path)
		req, err := http.NewRequestWithContext(t.Context(), method, w.server.URL+target, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = by.host
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		// Every operation requires a token, a form or parameters, or is public.
		return res.StatusCode != 405 && (res.StatusCode != 404 || !unrouted(t, res))
	}
	counts := map[string]int{}
	for path, item := range document().doc.Paths.Map() {
		for method, op := range item.Operations() {
			counts["tenants"]++
			// Registration is off, and then its paths do not exist.
			if !exists(tenant, method, path) && op.Tags[0] != "registration" {
				t.Errorf("a tenant's host has no %s %s", method, path)
			}
			want := isShared(path, op) || op.Tags[0] == "description"
			if got := exists(managed, method, path); got != want {
				t.Errorf("%s %s of %s on the control host: %v", method, path, op.Tags[0], got)
			}
			if want {
				counts["shared"]++
			}
		}
	}
	for path, item := range controlDocument().doc.Paths.Map() {
		for method, op := range item.Operations() {
			counts["control"]++
			if !exists(managed, method, path) {
				t.Errorf("the control host has no %s %s", method, path)
			}
			if got := exists(tenant, method, path); got != (op.Tags[0] == "description") {
				t.Errorf("%s %s on a tenant's host: %v", method, path, got)
			}
		}
	}
	if counts["control"] < 32 || counts["shared"] < 60 || counts["tenants"] < 180 {
		t.Errorf("%v", counts)
	}
	for _, host := range []string{strings.ToUpper(controlHost), controlHost + ":8443", controlHost + "."} {
		if !exists(&client{server: w.server, host: host}, "GET", orgsPath) {
			t.Errorf("%s is not the control host", host)
		}
	}
	// The hosted pages are on both.
	for _, by := range []*client{managed, tenant} {
		equal(t, "pages", by.raw(t, "GET", "/auth/sign-in", http.Header{}, "").Get("Content-Type"), "text/html; charset=utf-8")
	}
}

// unrouted reports whether a 404 is that of an unknown path.
func unrouted(t *testing.T, res *http.Response) bool {
	t.Helper()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), web.NotFound().Message)
}
