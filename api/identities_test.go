package api_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/internal/eventlog"
)

// identityOf returns the external identity of a user at a connection.
func (w *world) identityOf(t testing.TB, c *client, userID, connection, subject string) external.Identity {
	t.Helper()
	tenant, err := w.tenants.TenantByHost(t.Context(), c.host)
	if err != nil {
		t.Fatal(err)
	}
	return external.Identity{
		TenantID: tenant.ID, UserID: userID, ConnectionID: "con_" + connection, Slug: connection, Kind: "social." + connection,
		Subject: subject, Email: subject + "@" + connection + ".example",
	}
}

// linkTo links an identity, as a federated sign-in does.
func (w *world) linkTo(t testing.TB, c *client, userID, connection, subject string) error {
	t.Helper()
	ctx := eventlog.WithOrigin(t.Context(), func() eventlog.Origin { return eventlog.Origin{Actor: eventlog.Actor{Type: "user", ID: userID}} })
	return w.authn.Link(ctx, w.identityOf(t, c, userID, connection, subject))
}

// linked links an identity and fails the test if that fails.
func (w *world) linked(t testing.TB, c *client, userID, connection, subject string) {
	t.Helper()
	if err := w.linkTo(t, c, userID, connection, subject); err != nil {
		t.Fatal(err)
	}
}

// withoutPassword removes the password of a user whose session continues.
func (w *world) withoutPassword(t testing.TB, userID string) {
	t.Helper()
	if _, err := w.db.Exec(t.Context(), `UPDATE users SET password_hash = '' WHERE id = $1`, userID); err != nil {
		t.Fatal(err)
	}
}

const identitiesPath = mePath + "/identities"

// connections returns the connections of the identities in a list.
func connections(list []any) string {
	var all []string
	for _, item := range list {
		all = append(all, item.(map[string]any)["slug"].(string))
	}
	return strings.Join(all, " ")
}

func externalIdentities(t *testing.T, w *world, c *client) {
	ann, bob := member(t, c, "ann@example.com"), member(t, c, "bob@example.com")
	me := signedIn(t, c, "ann@example.com")
	equal(t, "none", me.want(t, 200, "", "GET", identitiesPath, nil).list(), []any{})
	w.linked(t, c, ann, "google", "1")
	w.mailbox.take(t, "ann@example.com", "An account was linked")
	w.linked(t, c, ann, "github", "2")
	w.linked(t, c, ann, "github", "2") // no change
	w.linked(t, c, bob, "apple", "3")
	if err := w.linkTo(t, c, bob, "google", "1"); !errors.Is(err, external.ErrTaken) {
		t.Errorf("another user's: %v", err)
	}
	w.linked(t, c, bob, "google", "4")
	if err := w.linkTo(t, c, bob, "google", "5"); !errors.Is(err, external.ErrOther) {
		t.Errorf("a second: %v", err)
	}
	if err := w.linkTo(t, c, "usr_nobody", "google", "9"); !errors.Is(err, identity.ErrUserNotFound) {
		t.Errorf("link nobody: %v", err)
	}

	// The same for the user and for an administrator.
	list := me.want(t, 200, "", "GET", identitiesPath, nil).list()
	equal(t, "connections", connections(list), "google github")
	first := list[0].(map[string]any)
	if first["linked_at"] == nil {
		t.Error("no linked_at")
	}
	delete(first, "linked_at")
	equal(t, "entry", first, object{
		"connection_id": "con_google", "slug": "google", "kind": "social.google", "subject": "1", "email": "1@google.example", "last_used_at": nil,
	})
	of := "/api/v1/users/" + ann
	equal(t, "of the user", connections(c.want(t, 200, "", "GET", of+"/external-identities", nil).list()), "google github")
	equal(t, "in the user", connections(c.want(t, 200, "", "GET", of, nil).data()["external_identities"].([]any)), "google github")
	c.want(t, 404, "user_not_found", "GET", "/api/v1/users/x/external-identities", nil)

	// Another tenant may have the same connection and subject by chance, and sees nothing.
	other := w.tenant(t, "external-identities-other")
	eve := member(t, other, "eve@example.com")
	w.linked(t, other, eve, "google", "1")
	other.want(t, 404, "user_not_found", "GET", of+"/external-identities", nil)

	// Applications have no identities, and users see only their own.
	c.want(t, 403, "permission_denied", "GET", identitiesPath, nil)
	c.want(t, 403, "permission_denied", "DELETE", identitiesPath+"/con_google", nil)
	w.later(11 * time.Minute)
	refused := me.want(t, 401, "insufficient_user_authentication", "DELETE", identitiesPath+"/con_google", nil)
	w.later(-11 * time.Minute)
	equal(t, "sign in again", refused.details()["sign_in_required"], true)
	enrol(t, w, me)
	w.later(16 * time.Minute)
	refused = me.want(t, 401, "insufficient_user_authentication", "DELETE", identitiesPath+"/con_google", nil)
	w.later(-16 * time.Minute)
	equal(t, "a factor that was proved long ago", refused.details()["enrolment_required"], false)
	for _, nobodys := range []string{"x", "con_apple", "%00", "%FF"} {
		me.want(t, 404, "identity_not_found", "DELETE", identitiesPath+"/"+nobodys, nil)
	}
	me.want(t, 204, "", "DELETE", identitiesPath+"/con_google", nil)
	w.mailbox.take(t, "ann@example.com", "An account was unlinked")
	me.want(t, 404, "identity_not_found", "DELETE", identitiesPath+"/con_google", nil)
	equal(t, "left", connections(me.want(t, 200, "", "GET", identitiesPath, nil).list()), "github")
	equal(t, "others", connections(c.want(t, 200, "", "GET", "/api/v1/users/"+bob, nil).data()["external_identities"].([]any)), "apple google")
	equal(t, "elsewhere", connections(other.want(t, 200, "", "GET", "/api/v1/users/"+eve+"/external-identities", nil).list()), "google")

	// The events name the identity.
	var told []string
	for _, e := range w.events(t, c, 0) {
		if strings.HasPrefix(string(e.Type), "user.identity_") {
			data := parse(t, string(e.Data)).(map[string]any)
			i, u := data["identity"].(map[string]any), data["user"].(map[string]any)
			told = append(told, fmt.Sprint(strings.TrimPrefix(string(e.Type), "user.identity_"), " ", u["email"], " ", i["connection_id"], " ", i["slug"], " ", i["kind"], " ", i["subject"]))
		}
	}
	equal(t, "events", told, []string{
		"linked ann@example.com con_google google social.google 1", "linked ann@example.com con_github github social.github 2",
		"linked bob@example.com con_apple apple social.apple 3", "linked bob@example.com con_google google social.google 4",
		"unlinked ann@example.com con_google google social.google 1",
	})

	// Deleting a user deletes the identities.
	c.want(t, 204, "", "DELETE", of, nil)
	w.linked(t, c, bob, "github", "2")
}

// lastSignInMethod refuses to unlink the user's last way to sign in.
func lastSignInMethod(t *testing.T, w *world, c *client) {
	ann := member(t, c, "ann@example.com")
	me := signedIn(t, c, "ann@example.com")
	enrol(t, w, me) // a second factor is no way to sign in
	w.withoutPassword(t, ann)
	w.linked(t, c, ann, "google", "1")
	unlink := func(status int, code string) {
		t.Helper()
		me.want(t, status, code, "DELETE", identitiesPath+"/con_google", nil)
	}
	unlink(409, "last_sign_in_method")

	// A credential without user verification is a second factor only.
	key := newDevice(c.host)
	key.authenticator.Options.UserNotVerified = true
	begun := me.want(t, 200, "", "POST", mePath+"/mfa/factors/webauthn/begin", object{"passkey": false}).data()
	me.want(t, 201, "", "POST", mePath+"/mfa/factors/webauthn/complete", object{"ceremony_id": begun["ceremony_id"], "credential": key.create(t, begun)})
	unlink(409, "last_sign_in_method")
	equal(t, "kept", connections(me.want(t, 200, "", "GET", identitiesPath, nil).list()), "google")
	newDevice(c.host).register(t, me)
	unlink(204, "")

	// Of two that are unlinked at the same time, one stays.
	bob := member(t, c, "bob@example.com")
	me = signedIn(t, c, "bob@example.com")
	enrol(t, w, me)
	w.withoutPassword(t, bob)
	for range 10 {
		w.linked(t, c, bob, "google", "2")
		w.linked(t, c, bob, "github", "3")
		answers := make(chan answer, 2)
		var wg sync.WaitGroup
		for _, connection := range []string{"google", "github"} {
			wg.Go(func() { answers <- me.do(t, "DELETE", identitiesPath+"/con_"+connection, nil) })
		}
		wg.Wait()
		one, two := <-answers, <-answers
		equal(t, "removed and refused", []any{one.status + two.status, one.code() + two.code()}, []any{204 + 409, "last_sign_in_method"})
		equal(t, "left", len(me.want(t, 200, "", "GET", identitiesPath, nil).list()), 1)
	}

	// A user who is deleted during a link does not reserve the subject.
	for n := range 40 {
		email, subject := fmt.Sprintf("user%d@example.com", n), fmt.Sprint("late", n)
		id := c.want(t, 201, "", "POST", "/api/v1/users", object{"email": email}).data()["id"].(string)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := w.linkTo(t, c, id, "google", subject); err != nil && !errors.Is(err, identity.ErrUserNotFound) {
				t.Error(err)
			}
		})
		wg.Go(func() { c.want(t, 204, "", "DELETE", "/api/v1/users/"+id, nil) })
		wg.Wait()
		i := w.identityOf(t, c, id, "google", subject)
		if left, err := w.authn.Identities(t.Context(), i.TenantID, id); err != nil || len(left) > 0 {
			t.Errorf("of a user who is deleted: %v, %v", left, err)
		}
	}
}

// identityPage reads the identities on the security page.
func identityPage(t *testing.T, w *world, c *client) {
	const xss = `"><script>alert(1)</script>`
	ann := member(t, c, "ann@example.com")
	token := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	page := func() string {
		t.Helper()
		return c.visit(t, "GET", "/account/security", asBrowser(token), nil).html
	}
	if strings.Contains(page(), "Linked accounts") {
		t.Error("there are none")
	}
	w.linked(t, c, ann, "google", "1")
	w.linked(t, c, ann, xss, xss)
	if html := page(); !strings.Contains(html, `<strong>Google</strong> <span class="agent">1@google.example</span>`) || strings.Contains(html, "<script>alert") {
		t.Errorf("page:\n%s", html)
	}
	remove := func(connection string) shown {
		t.Helper()
		return c.visit(t, "POST", "/account/remove-identity", asBrowser(token), url.Values{"connection_id": {connection}})
	}
	w.later(11 * time.Minute)
	equal(t, "after a while", remove("con_google").header.Get("Location"), "/auth/sign-in?done=again&next="+url.QueryEscape("/account/remove-identity?connection_id=con_google"))
	w.later(-11 * time.Minute)
	enrol(t, w, c.with(token))
	for _, connection := range []string{"con_google", "con_google", "x", "../profile"} { // gone is gone
		p := remove(connection)
		equal(t, connection, []any{p.status, p.header.Get("Location")}, []any{303, "/account/security?done=removed"})
	}
	w.withoutPassword(t, ann)
	p := remove("con_" + xss)
	if p.status != 409 || !strings.Contains(p.html, "You cannot remove your last way to sign in.") || !strings.Contains(p.html, "Linked accounts") {
		t.Errorf("the last: %d\n%s", p.status, p.html)
	}
}
