package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"stonetown/internal/eventlog"
)

const authPath, mePath = "/api/v1/auth", "/api/v1/me"

const secret = "correct horse battery"

// member creates a user who has verified the address and has a password.
func member(t testing.TB, c *client, email string) (userID string) {
	t.Helper()
	return c.want(t, 201, "", "POST", "/api/v1/users", object{"email": email, "password": secret, "email_verified": true, "name": "Ann"}).data()["id"].(string)
}

// signIn signs in with the password and requires a status.
func signIn(t testing.TB, c *client, email, password, status string) answer {
	t.Helper()
	a := c.with("").want(t, 200, "", "POST", authPath+"/sign-in", object{"email": email, "password": password})
	if a.data()["status"] != status {
		t.Fatalf("sign-in: %v, want %s", a.data()["status"], status)
	}
	return a
}

// signedIn is a client with the token of a new session.
func signedIn(t testing.TB, c *client, email string) *client {
	t.Helper()
	return c.with(signIn(t, c, email, secret, "complete").data()["session_token"].(string))
}

func cookie(a answer) string {
	for _, text := range a.header["Set-Cookie"] {
		if c, err := http.ParseSetCookie(text); err == nil && c.Name == "__Host-sid" {
			if !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
				return "unsafe: " + text
			}
			return c.Value
		}
	}
	return "none"
}

func passwordSignIn(t *testing.T, w *world, c *client) {
	id := member(t, c, "ann@example.com")
	a := signIn(t, c, "Ann@Example.com", secret, "complete")
	d := a.data()
	equal(t, "user", d["user"], object{"id": id, "email": "ann@example.com"})
	session := d["session"].(map[string]any)
	equal(t, "session", []any{session["current"], session["aal"], session["amr"], session["device"].(map[string]any)["kind"]}, []any{true, "aal1", []any{"pwd"}, "other"})
	equal(t, "cookie", cookie(a), d["session_token"])
	equal(t, "token", []any{d["token_type"], d["expires_in"], d["scope"]}, []any{"Bearer", 3600.0, "me:read me:write"})

	// Both tokens are accepted as the user's; neither has a role.
	for _, token := range []string{d["session_token"].(string), d["access_token"].(string)} {
		me := c.with(token)
		equal(t, "profile", me.want(t, 200, "", "GET", mePath+"/profile", nil).data()["id"], id)
		me.want(t, 403, "insufficient_scope", "GET", "/api/v1/users", nil)
	}
	if at := c.want(t, 200, "", "GET", "/api/v1/users/"+id, nil).data()["last_signed_in_at"]; at == nil {
		t.Error("last_signed_in_at is null")
	}
	// The scopes of groups are in the access token only.
	g := group(t, c, "readers", "users:read")
	c.want(t, 201, "", "POST", groupsPath+"/"+g+"/members", object{"user_id": id})
	d = signIn(t, c, "ann@example.com", secret, "complete").data()
	equal(t, "scope", d["scope"], "me:read me:write users:read")
	c.with(d["access_token"].(string)).want(t, 200, "", "GET", "/api/v1/users", nil)
	c.with(d["session_token"].(string)).want(t, 403, "insufficient_scope", "GET", "/api/v1/users", nil)

	// A wrong password and an unknown address get equal responses.
	anon := c.with("")
	wrong := anon.want(t, 401, "invalid_credentials", "POST", authPath+"/sign-in", object{"email": "ann@example.com", "password": "wrong"})
	unknown := anon.want(t, 401, "invalid_credentials", "POST", authPath+"/sign-in", object{"email": "nobody@example.com", "password": "wrong"})
	for _, a := range []answer{wrong, unknown} {
		equal(t, "details", a.details(), object{})
		equal(t, "cookie", cookie(a), "none")
	}
	equal(t, "message", wrong.body["message"], unknown.body["message"])
	for form, field := range map[string]string{`{"email":"a@b.c"}`: "password", `{"password":"x"}`: "email", `{"email":"a@b.c","password":"` + long(2049) + `"}`: "password"} {
		equal(t, form[:10], fields(anon.want(t, 400, "validation_failed", "POST", authPath+"/sign-in", form)), []string{field})
	}
	anon.want(t, 400, "invalid_json", "POST", authPath+"/sign-in", `{`)

	equal(t, "identify", anon.want(t, 200, "", "POST", authPath+"/identify", object{"email": "nobody@example.com"}).data(),
		anon.want(t, 200, "", "POST", authPath+"/identify", object{"email": "ann@example.com"}).data())
	anon.want(t, 400, "validation_failed", "POST", authPath+"/identify", object{})
	anon.want(t, 400, "invalid_json", "POST", authPath+"/identify", `{`)

	c.want(t, 200, "", "POST", "/api/v1/users/"+id+"/disable", nil)
	anon.want(t, 403, "user_disabled", "POST", authPath+"/sign-in", object{"email": "ann@example.com", "password": secret})
	anon.want(t, 401, "invalid_credentials", "POST", authPath+"/sign-in", object{"email": "ann@example.com", "password": "wrong"})
	equal(t, "events", w.types(t, c, "user.sign", "session"), []string{
		"user.signed_in", "session.created", "user.signed_in", "session.created", "user.sign_in_failed", "user.sign_in_failed",
		"session.revoked", "session.revoked", "user.sign_in_failed",
	})
}

func sessions(t *testing.T, w *world, c *client) {
	id := member(t, c, "ann@example.com")
	first, second := signedIn(t, c, "ann@example.com"), signedIn(t, c, "ann@example.com")
	jwt := c.with(signIn(t, c, "ann@example.com", secret, "complete").data()["access_token"].(string))
	list := func(c *client) (ids []string, current string) {
		for _, item := range c.want(t, 200, "", "GET", mePath+"/sessions", nil).list() {
			s := item.(map[string]any)
			ids = append(ids, s["id"].(string))
			if s["current"] == true {
				current = s["id"].(string)
			}
		}
		return ids, current
	}
	ids, third := list(jwt)
	equal(t, "sessions", len(ids), 3)
	equal(t, "the newest is current", third, ids[0])
	first.want(t, 400, "cursor_invalid", "GET", mePath+"/sessions?cursor=x", nil)
	first.want(t, 400, "validation_failed", "GET", mePath+"/sessions?limit=0", nil)
	_, own := list(first)
	equal(t, "the oldest is current", own, ids[2])

	first.want(t, 409, "session_is_current", "DELETE", mePath+"/sessions/"+own, nil)
	first.want(t, 404, "session_not_found", "DELETE", mePath+"/sessions/ses_unknown", nil)
	first.want(t, 204, "", "DELETE", mePath+"/sessions/"+third, nil)
	equal(t, "reason", jwt.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil).details()["reason"], "revoked")
	first.want(t, 400, "validation_failed", "DELETE", mePath+"/sessions?except=none", nil)
	first.want(t, 204, "", "DELETE", mePath+"/sessions?except=current", nil)
	second.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)

	// Another user's session is not found.
	member(t, c, "bob@example.com")
	bob := signedIn(t, c, "bob@example.com")
	bob.want(t, 404, "session_not_found", "DELETE", mePath+"/sessions/"+own, nil)

	// An administrator sees and ends them.
	users := "/api/v1/users/" + id
	equal(t, "of the user", len(c.want(t, 200, "", "GET", users+"/sessions", nil).list()), 1)
	c.want(t, 404, "user_not_found", "GET", "/api/v1/users/x/sessions", nil)
	c.want(t, 404, "user_not_found", "DELETE", "/api/v1/users/x/sessions", nil)
	c.want(t, 404, "user_not_found", "DELETE", "/api/v1/users/x/sessions/x", nil)
	c.want(t, 404, "session_not_found", "DELETE", users+"/sessions/x", nil)
	c.want(t, 204, "", "DELETE", users+"/sessions/"+own, nil)
	first.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)
	again := signedIn(t, c, "ann@example.com")
	c.want(t, 204, "", "DELETE", users+"/sessions", nil)
	again.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)

	// Signing out deletes the cookie; with all, it ends every session.
	one, two := signedIn(t, c, "ann@example.com"), signedIn(t, c, "ann@example.com")
	out := one.want(t, 204, "", "POST", authPath+"/logout", nil)
	equal(t, "cookie", cookie(out), "")
	one.want(t, 401, "invalid_token", "POST", authPath+"/logout", nil)
	two.want(t, 200, "", "GET", mePath+"/profile", nil)
	three := signedIn(t, c, "ann@example.com")
	three.want(t, 204, "", "POST", authPath+"/logout?all=true", nil)
	two.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)

	// Disabling and deleting a user, or another password, ends sessions at once.
	for what, end := range map[string]func(){
		"disable": func() {
			c.want(t, 200, "", "POST", users+"/disable", nil)
			c.want(t, 200, "", "POST", users+"/enable", nil)
		},
		"password": func() { c.want(t, 200, "", "PATCH", users, object{"password": secret}) },
		"delete":   func() { c.want(t, 204, "", "DELETE", users, nil) },
	} {
		if what == "delete" {
			continue
		}
		d := signIn(t, c, "ann@example.com", secret, "complete").data()
		end()
		for _, token := range []string{d["session_token"].(string), d["access_token"].(string)} {
			equal(t, what, c.with(token).want(t, 401, "invalid_token", "GET", mePath+"/profile", nil).details()["reason"], "revoked")
		}
	}
	gone := signedIn(t, c, "ann@example.com")
	c.want(t, 204, "", "DELETE", users, nil)
	gone.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)

	// Tokens of unknown sessions, of another tenant, and truncated ones.
	other := w.tenant(t, "sessions-other")
	token := bob.token
	for _, bad := range []string{"st_", token[:len(token)-1], token + "x", token[:40] + "A" + token[41:], "st_" + long(len(token)-3)} {
		if bad != token {
			c.with(bad).want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)
		}
	}
	other.with(token).want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)

	// Applications have no account.
	form := object{"current": "x", "next": "y", "new_email": "a@b.c", "ceremony_id": "x", "kind": "totp", "label": "x"}
	for path, item := range document().doc.Paths.Map() {
		for method, op := range item.Operations() {
			if path == authPath+"/session" || path == authPath+"/flows/{flow_id}" || op.Security == nil || len(*op.Security) != 2 || op.Tags[0] == "oauth2" || isRelated(op) {
				continue
			}
			for _, name := range []string{"{session_id}", "{factor_id}", "{kind}", "{pending_change_id}"} {
				path = strings.ReplaceAll(path, name, "x")
			}
			if method == "DELETE" && path == mePath+"/sessions" {
				path += "?except=current"
			}
			c.want(t, 403, "permission_denied", method, path, form)
		}
	}
}

func sessionCookie(t *testing.T, _ *world, c *client) {
	member(t, c, "ann@example.com")
	token := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	send := func(method, path string, header http.Header) answer {
		t.Helper()
		h := http.Header{"Cookie": {"__Host-sid=" + token}}
		for name, values := range header {
			h[name] = values
		}
		return c.with("").send(t, method, path, h, nil)
	}
	status := send("GET", authPath+"/session", nil)
	equal(t, "authenticated", []any{status.status, status.data()["authenticated"], status.data()["aal"]}, []any{200, true, "aal1"})
	equal(t, "without a cookie", c.with("").want(t, 200, "", "GET", authPath+"/session", nil).data(), object{"authenticated": false, "enrolment_required": false})
	equal(t, "of a program", c.want(t, 200, "", "GET", authPath+"/session", nil).data(), object{"authenticated": false, "enrolment_required": false})
	c.with("st_x").want(t, 401, "invalid_token", "GET", authPath+"/session", nil)
	equal(t, "elsewhere", send("GET", "/api/v1/users", nil).code(), "unauthenticated")
	// Another site or a sibling domain cannot use the browser's cookie (Fetch metadata).
	for _, site := range []string{"cross-site", "same-site"} {
		equal(t, site, send("POST", authPath+"/logout", http.Header{"Sec-Fetch-Site": {site}}).code(), "permission_denied")
	}
	equal(t, "another origin", send("POST", authPath+"/logout", http.Header{"Origin": {"https://evil.test"}}).code(), "permission_denied")
	equal(t, "a form", send("POST", mePath+"/password", http.Header{"Content-Type": {"text/plain"}, "Sec-Fetch-Site": {"same-origin"}}).code(), "unsupported_media_type")
	equal(t, "the same origin", send("POST", authPath+"/logout", http.Header{"Sec-Fetch-Site": {"same-origin"}}).status, 204)
	equal(t, "ended", send("GET", authPath+"/session", nil).code(), "invalid_token")
}

func selfService(t *testing.T, w *world, c *client) {
	id := member(t, c, "ann@example.com")
	me := signedIn(t, c, "ann@example.com")
	p := me.want(t, 200, "", "PATCH", mePath+"/profile", object{"name": nil, "given_name": "Ann", "locale": "de-AT", "attributes": object{"a": 1}}).data()
	equal(t, "profile", []any{p["name"], p["given_name"], p["locale"], p["attributes"]}, []any{nil, "Ann", "de-AT", object{"a": 1.0}})
	equal(t, "read again", me.want(t, 200, "", "GET", mePath+"/profile", nil).data(), p)
	for _, member := range []string{"id", "email", "email_verified", "created_at"} {
		equal(t, member, me.want(t, 400, "immutable_field", "PATCH", mePath+"/profile", object{member: p[member]}).details()["fields"], []any{member})
	}
	// Members that the user cannot set are ignored.
	me.want(t, 200, "", "PATCH", mePath+"/profile", object{"state": "disabled", "groups": []any{"x"}, "role": "admin"})
	me.want(t, 400, "validation_failed", "PATCH", mePath+"/profile", object{"locale": "no such"})
	me.want(t, 400, "invalid_json", "PATCH", mePath+"/profile", `{`)

	// The password.
	other := signedIn(t, c, "ann@example.com")
	change := func(status int, code, current, next string) answer {
		t.Helper()
		return me.want(t, status, code, "POST", mePath+"/password", object{"current": current, "next": next})
	}
	change(400, "password_incorrect", "wrong", "another long secret")
	change(400, "password_policy_violation", secret, "short")
	change(400, "validation_failed", "", "x")
	me.want(t, 400, "invalid_json", "POST", mePath+"/password", `{`)
	change(204, "", secret, "another long secret")
	me.want(t, 200, "", "GET", mePath+"/profile", nil)
	other.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)
	w.mailbox.take(t, "ann@example.com", "wurde geändert") // in the language of the profile
	signIn(t, c, "ann@example.com", "another long secret", "complete")
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+id, object{"password": nil})
	c.with("").want(t, 401, "invalid_credentials", "POST", authPath+"/sign-in", object{"email": "ann@example.com", "password": "another long secret"})

	// Guesses at the current password are limited as at sign-in.
	member(t, c, "bob@example.com")
	bob := signedIn(t, c, "bob@example.com")
	for range 5 {
		bob.want(t, 400, "password_incorrect", "POST", mePath+"/password", object{"current": "wrong", "next": "another long secret"})
	}
	bob.want(t, 429, "rate_limited", "POST", mePath+"/password", object{"current": secret, "next": "another long secret"})
}

// noPassword signs in without a password after an administrator removed it.
func noPassword(t *testing.T, w *world, c *client) {
	id := member(t, c, "ann@example.com")
	c.want(t, 202, "", "POST", "/api/v1/users/"+id+"/reset-password", nil)
	token := link(t, w.mailbox.take(t, "ann@example.com", "Choose a new password"))
	me := c.with(c.with("").want(t, 200, "", "POST", authPath+"/password/reset", object{"token": token, "password": secret}).data()["session_token"].(string))
	me.want(t, 200, "", "GET", mePath+"/profile", nil)
	c.want(t, 404, "user_not_found", "POST", "/api/v1/users/x/reset-password", nil)
}

func signUp(t *testing.T, w *world, c *client) {
	anon := c.with("")
	form := object{"email": "ann@example.com", "password": secret, "name": "Ann", "locale": "en", "attributes": object{"plan": "free"}}
	a := anon.want(t, 202, "", "POST", authPath+"/sign-up", form)
	equal(t, "data", a.data(), object{"status": "email_verification_required"})
	mail := w.mailbox.take(t, "ann@example.com", "Confirm your e-mail address")
	if !strings.Contains(mail.HTML, c.base()+"/auth/verify-email?token=") || !strings.Contains(mail.Subject, c.name()) {
		t.Errorf("mail: %s\n%s", mail.Subject, mail.HTML)
	}
	u := c.want(t, 200, "", "GET", "/api/v1/users?email=ann@example.com", nil).list()[0].(map[string]any)
	equal(t, "state", u["state"], "pending")

	// The credentials are right, but the address is not verified yet.
	waiting := signIn(t, c, "ann@example.com", secret, "email_verification_required")
	equal(t, "no tokens", []any{waiting.data()["session_token"], waiting.data()["access_token"], cookie(waiting)}, []any{nil, nil, "none"})
	anon.want(t, 202, "", "POST", authPath+"/email/resend", object{"email": "ann@example.com"})
	second := link(t, w.mailbox.take(t, "ann@example.com", "Confirm your e-mail address"))
	token := link(t, mail)
	for range 2 { // programs that preview links use it, too
		equal(t, "verified", anon.want(t, 200, "", "POST", authPath+"/email/verify", object{"token": token}).data(), object{"email": "ann@example.com", "verified": true})
	}
	anon.want(t, 200, "", "POST", authPath+"/email/verify", object{"token": second})
	me := signedIn(t, c, "ann@example.com")
	me.want(t, 409, "email_already_verified", "POST", mePath+"/email/resend-verification", nil)
	anon.want(t, 400, "ceremony_invalid", "POST", authPath+"/email/verify", object{"token": "nothing"})
	anon.want(t, 400, "validation_failed", "POST", authPath+"/email/verify", object{})
	anon.want(t, 400, "invalid_json", "POST", authPath+"/email/verify", `{`)
	w.tenant(t, "sign-up-other").with("").want(t, 400, "ceremony_invalid", "POST", authPath+"/email/verify", object{"token": second})

	for form, code := range map[string]string{
		`{"email":"ann","password":"` + secret + `"}`: "email_invalid", `{"email":"x@y.z","password":"short"}`: "password_policy_violation",
		`{"email":"x@y.z"}`: "validation_failed", `{"email":"x@y.z","password":"` + secret + `","locale":"??"}`: "validation_failed", `{`: "invalid_json",
	} {
		anon.want(t, 400, code, "POST", authPath+"/sign-up", form)
	}
	for _, path := range []string{"/email/resend", "/password/forgot"} {
		anon.want(t, 202, "", "POST", authPath+path, object{"email": "nobody@example.com"})
		anon.want(t, 400, "validation_failed", "POST", authPath+path, object{})
		anon.want(t, 400, "invalid_json", "POST", authPath+path, `{`)
	}
	equal(t, "events", w.types(t, c, "user.created", "user.signed_up", "user.email", "user.activated"), []string{
		"user.created", "user.signed_up", "user.email_verified", "user.activated",
	})
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"sign_up": "closed"})
	anon.want(t, 403, "permission_denied", "POST", authPath+"/sign-up", form)

	// Users that administrators create get the mail, too.
	c.want(t, 201, "", "POST", "/api/v1/users", object{"email": "bob@example.com", "password": secret})
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"require_verified_email": false})
	bob := signedIn(t, c, "bob@example.com")
	w.mailbox.take(t, "bob@example.com", "Confirm your e-mail address")
	sent := bob.want(t, 202, "", "POST", mePath+"/email/resend-verification", nil)
	equal(t, "sent", sent.data(), object{"sent": true, "resend_after": 60.0})
	w.mailbox.take(t, "bob@example.com", "Confirm your e-mail address")
	bob.want(t, 429, "rate_limited", "POST", mePath+"/email/resend-verification", nil)
}

func passwordReset(t *testing.T, w *world, c *client) {
	id := member(t, c, "ann@example.com")
	me := signedIn(t, c, "ann@example.com")
	anon := c.with("")
	anon.want(t, 202, "", "POST", authPath+"/password/forgot", object{"email": "ANN@example.com"})
	mail := w.mailbox.take(t, "ann@example.com", "Choose a new password")
	if !strings.Contains(mail.Text, c.base()+"/auth/reset-password?token=") {
		t.Errorf("the link does not lead to the tenant: %s", mail.Text)
	}
	token := link(t, mail)
	reset := func(c *client, status int, code, token, password string) answer {
		t.Helper()
		return c.want(t, status, code, "POST", authPath+"/password/reset", object{"token": token, "password": password})
	}
	reset(w.tenant(t, "password-reset-other").with(""), 400, "ceremony_invalid", token, "another long secret")
	reset(anon, 400, "password_policy_violation", token, "short")
	reset(anon, 400, "validation_failed", token, "")
	anon.want(t, 400, "invalid_json", "POST", authPath+"/password/reset", `{`)
	equal(t, "status", reset(anon, 200, "", token, "another long secret").data()["status"], "complete")
	reset(anon, 400, "ceremony_invalid", token, "yet another secret")
	me.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)
	signIn(t, c, "ann@example.com", "another long secret", "complete")

	// A link is invalid after the password was changed otherwise.
	c.want(t, 202, "", "POST", "/api/v1/users/"+id+"/reset-password", nil)
	token = link(t, w.mailbox.take(t, "ann@example.com", "Choose a new password"))
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+id, object{"password": secret})
	reset(anon, 400, "ceremony_invalid", token, "another long secret")

	// It verifies the address, but not for a user who may not sign in.
	pending := c.want(t, 201, "", "POST", "/api/v1/users", object{"email": "bob@example.com"}).data()["id"].(string)
	c.want(t, 202, "", "POST", "/api/v1/users/"+pending+"/reset-password", nil)
	token = link(t, w.mailbox.take(t, "bob@example.com", "Choose a new password"))
	reset(anon, 200, "", token, secret)
	u := c.want(t, 200, "", "GET", "/api/v1/users/"+pending, nil).data()
	equal(t, "verified", []any{u["state"], u["email_verified"], u["password_set"]}, []any{"active", true, true})
	c.want(t, 202, "", "POST", "/api/v1/users/"+pending+"/reset-password", nil)
	token = link(t, w.mailbox.take(t, "bob@example.com", "Choose a new password"))
	c.want(t, 200, "", "POST", "/api/v1/users/"+pending+"/disable", nil)
	reset(anon, 400, "ceremony_invalid", token, secret)

	// A password that must be replaced is replaced first.
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+id, object{"password_must_be_reset": true})
	forced := signIn(t, c, "ann@example.com", secret, "password_change_required").data()
	equal(t, "no tokens", []any{forced["session_token"], forced["access_token"]}, []any{nil, nil})
	equal(t, "status", reset(anon, 200, "", forced["continue_token"].(string), "another long secret").data()["status"], "complete")
	signIn(t, c, "ann@example.com", "another long secret", "complete")
}

// types returns the types of a tenant's events that have one of some prefixes.
func (w *world) types(t testing.TB, c *client, prefixes ...string) (types []string) {
	t.Helper()
	for _, e := range w.events(t, c, 0) {
		for _, prefix := range prefixes {
			if strings.HasPrefix(string(e.Type), prefix) {
				types = append(types, string(e.Type))
			}
		}
	}
	return types
}

// passwordAttack guesses passwords, of an account and of an address without one. Both lead to
// the same events.
func passwordAttack(t *testing.T, w *world, c *client) {
	const known, unknown = "known@attack.test", "unknown@attack.test"
	id := member(t, c, known)
	for _, email := range []string{known, unknown} {
		before := len(w.events(t, c, 0))
		for range 10 {
			c.with("").want(t, 401, "invalid_credentials", "POST", authPath+"/sign-in", object{"email": email, "password": "wrong"})
			w.later(time.Minute) // the longest wait between attempts
		}
		var got []object
		for _, e := range w.events(t, c, before) {
			if e.Type != eventlog.UserSignInFailed {
				got = append(got, object{"type": string(e.Type), "data": parse(t, string(e.Data))})
			}
		}
		var owner any
		if email == known {
			owner = object{"id": id, "email": known}
		}
		failed := func(n float64) object {
			return object{"user": owner, "reason": "invalid_credentials", "failures": n}
		}
		equal(t, "events", got, []object{
			{"type": "user.locked", "data": failed(5)},
			{"type": "security.brute_force_detected", "data": failed(10)},
		})
	}
}

// signUpMails signs up with addresses that have an account. The response is the same, and the
// owner gets a mail, at most one per minute.
func signUpMails(t *testing.T, w *world, c *client) {
	const known, unknown = "known@sign-up.test", "unknown@sign-up.test"
	member(t, c, known)
	c.with("").want(t, 202, "", "POST", authPath+"/sign-up", object{"email": unknown, "password": secret})
	w.mailbox.take(t, unknown, "Confirm your e-mail address")
	for range 10 {
		for _, email := range []string{known, "KNOWN@sign-up.test", unknown} {
			a := c.with("").want(t, 202, "", "POST", authPath+"/sign-up", object{"email": email, "password": secret})
			equal(t, "data", a.data(), object{"status": "email_verification_required"})
		}
	}
	c.with("").want(t, 202, "", "POST", authPath+"/sign-up", object{"email": "last@sign-up.test", "password": secret})
	w.mailbox.take(t, "last@sign-up.test", "Confirm your e-mail address")
	time.Sleep(100 * time.Millisecond) // a few jobs are done at the same time
	equal(t, "mails", []int{w.mailbox.count(known), w.mailbox.count(unknown)}, []int{1, 0})
	w.mailbox.take(t, known, "You have an account")
	signIn(t, c, known, secret, "complete")
	signIn(t, c, unknown, secret, "email_verification_required")
}
