package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"stonetown/api"
	"stonetown/internal/ratelimit"
)

// mailedLinks describes links without following them, and returns the destination of the user.
func mailedLinks(t *testing.T, w *world, c *client) {
	anon := c.with("")
	read := func(status int, code, token string) object {
		t.Helper()
		a := anon.want(t, status, code, "POST", authPath+"/link", object{"token": token})
		if status != 200 {
			return nil
		}
		return a.data()
	}
	purpose := func(token string) []any {
		t.Helper()
		d := read(200, "", token)
		return []any{d["purpose"], d["email"]}
	}
	const flow = "/oauth2/authorize/resume?flow=flw_x&y=z"
	anon.want(t, 202, "", "POST", authPath+"/sign-up", object{"email": "ann@links.example", "password": secret, "redirect_to": flow})
	mail := w.mailbox.take(t, "ann@links.example", "Confirm your e-mail address")
	if !strings.Contains(mail.Text, "&next=%2Foauth2%2Fauthorize%2Fresume%3Fflow%3Dflw_x%26y%3Dz\n") {
		t.Errorf("the link of sign-up leads nowhere:\n%s", mail.Text)
	}
	token := link(t, mail)
	for range 2 {
		equal(t, "sign-up", purpose(token), []any{"verify_email", "ann@links.example"})
	}
	signIn(t, c, "ann@links.example", secret, "email_verification_required") // still
	anon.want(t, 202, "", "POST", authPath+"/email/resend", object{"email": "ann@links.example", "redirect_to": "/device"})
	if mail := w.mailbox.take(t, "ann@links.example", "Confirm your e-mail address"); !strings.Contains(mail.Text, "&next=%2Fdevice\n") {
		t.Errorf("the link that was sent again leads nowhere:\n%s", mail.Text)
	}
	anon.want(t, 200, "", "POST", authPath+"/email/verify", object{"token": token})
	anon.want(t, 202, "", "POST", authPath+"/password/forgot", object{"email": "ann@links.example", "redirect_to": flow})
	mail = w.mailbox.take(t, "ann@links.example", "Choose a new password")
	if !strings.Contains(mail.Text, "&next=%2Foauth2") {
		t.Errorf("the link for a new password leads nowhere:\n%s", mail.Text)
	}
	token = link(t, mail)
	equal(t, "new password", purpose(token), []any{"reset_password", "ann@links.example"})
	anon.want(t, 200, "", "POST", authPath+"/password/reset", object{"token": token, "password": "another long secret"})
	read(400, "ceremony_invalid", token) // used
	read(400, "ceremony_invalid", "nothing")
	anon.want(t, 400, "validation_failed", "POST", authPath+"/link", object{})
	anon.want(t, 400, "invalid_json", "POST", authPath+"/link", `{`)

	for _, to := range []string{"https://evil.test", "//evil.test", "/\\evil.test", "\\\\evil.test", "evil", "/\t/evil.test", "/x\r\ny", "javascript:alert(1)", "/" + long(2048)} {
		for path, form := range map[string]object{"/sign-up": {"email": "x@example.com", "password": secret}, "/email/resend": {"email": "x@example.com"}, "/password/forgot": {"email": "x@example.com"}} {
			form["redirect_to"] = to
			anon.want(t, 400, "validation_failed", "POST", authPath+path, form)
		}
	}

	// Links of a change of address.
	me := c.with(signIn(t, c, "ann@links.example", "another long secret", "complete").data()["session_token"].(string))
	enrol(t, w, me)
	change := me.want(t, 200, "", "POST", mePath+"/email/change", object{"new_email": "new@example.com"}).data()["pending_change_id"].(string)
	confirm, revert := link(t, w.mailbox.take(t, "new@example.com", "Confirm your new e-mail address")), link(t, w.mailbox.take(t, "ann@links.example", "is about to change"))
	equal(t, "change", purpose(confirm), []any{"change_email", "new@example.com"})
	equal(t, "back", purpose(revert), []any{"revert_email", "ann@links.example"})
	me.want(t, 204, "", "DELETE", mePath+"/email/change/"+change, nil)
	read(400, "ceremony_invalid", confirm)
}

// emailRevert recovers an account. Nothing that an intruder has added since signs in.
func emailRevert(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	id := member(t, c, "ann@example.com")
	me := signedIn(t, c, "ann@example.com")
	key, kept := enrol(t, w, me)
	w.linked(t, c, id, "before", "1")
	me.want(t, 200, "", "POST", mePath+"/mfa/backup-codes", nil)
	revertible := func(from, to string) (confirm, revert string) {
		t.Helper()
		me.want(t, 200, "", "POST", mePath+"/email/change", object{"new_email": to})
		return link(t, w.mailbox.take(t, to, "Confirm your new e-mail address")), link(t, w.mailbox.take(t, from, "is about to change"))
	}

	// An intruder in the owner's session changes everything.
	confirm, revert := revertible("ann@example.com", "eve@example.com")
	w.later(time.Second)
	enrol(t, w, me)
	w.linked(t, c, id, "since", "2")
	codes := me.want(t, 200, "", "POST", mePath+"/mfa/backup-codes", nil).data()["codes"].([]any)
	c.with("").want(t, 200, "", "POST", authPath+"/email/verify", object{"token": confirm})
	confirmAgain, revertAgain := revertible("eve@example.com", "eve@example.org")
	c.with("").want(t, 200, "", "POST", authPath+"/email/verify", object{"token": confirmAgain})
	me.want(t, 204, "", "POST", mePath+"/password", object{"current": secret, "next": "eve's own long secret"})

	// The link stays valid.
	c.with("").want(t, 200, "", "POST", authPath+"/email/revert", object{"token": revert})
	equal(t, "email", c.want(t, 200, "", "GET", "/api/v1/users/"+id, nil).data()["email"], "ann@example.com")
	for _, password := range []string{secret, "eve's own long secret"} {
		c.with("").want(t, 401, "invalid_credentials", "POST", authPath+"/sign-in", object{"email": "ann@example.com", "password": password})
	}
	for what, token := range map[string]string{"revert": revertAgain, "again": revert} {
		equal(t, what, c.with("").want(t, 400, "ceremony_invalid", "POST", authPath+"/email/revert", object{"token": token}).status, 400)
	}
	for _, token := range []string{confirm, confirmAgain} {
		c.with("").want(t, 400, "ceremony_invalid", "POST", authPath+"/email/verify", object{"token": token})
	}
	factors := c.want(t, 200, "", "GET", "/api/v1/users/"+id+"/mfa/factors", nil).list()
	equal(t, "factors", []any{len(factors), factors[0].(map[string]any)["id"]}, []any{1, kept})
	identities := c.want(t, 200, "", "GET", "/api/v1/users/"+id+"/external-identities", nil).list()
	equal(t, "identities", []any{len(identities), identities[0].(map[string]any)["slug"]}, []any{1, "before"})

	// A mail leads to a new password. The factors of before are required; later codes are invalid.
	reset := link(t, w.mailbox.take(t, "ann@example.com", "Choose a new password"))
	w.later(time.Minute)
	waiting := c.with("").want(t, 200, "", "POST", authPath+"/password/reset", object{"token": reset, "password": "another long secret"}).data()
	equal(t, "status", waiting["status"], "mfa_required")
	verify := func(status int, code string, form object) {
		t.Helper()
		form["mfa_token"] = waiting["mfa_token"]
		c.with("").want(t, status, code, "POST", authPath+"/mfa/verify", form)
	}
	verify(400, "code_invalid", object{"kind": "backup_code", "code": codes[0]})
	verify(200, "", object{"kind": "totp", "code": code(t, key, w.now())})
	if removed := strings.Join(w.types(t, c, "user.mfa_removed", "user.identity_unlinked"), " "); removed != "user.mfa_removed user.identity_unlinked" {
		t.Errorf("events: %s", removed)
	}
}

func authPolicy(t *testing.T, _ *world, c *client) {
	anon := c.with("")
	policy := anon.want(t, 200, "", "GET", authPath+"/policy", nil).data()
	equal(t, "policy", policy, object{
		"sign_up": "open", "methods": []any{"password", "passkey"}, "connections": []any{}, "password_policy": object{"min_length": 8.0, "max_length": 128.0},
		"mfa_policy": object{"mode": "optional", "kinds": []any{"sms", "totp", "webauthn"}},
	})
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"sign_up": "closed"})
	equal(t, "closed", anon.want(t, 200, "", "GET", authPath+"/policy", nil).data()["sign_up"], "closed")
}

// tokenLifetimes reads the lifetime of the token of every step of a sign-in.
func tokenLifetimes(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	id := member(t, c, "ann@example.com")
	equal(t, "complete", signIn(t, c, "ann@example.com", secret, "complete").data()["expires_in"], 3600.0)
	in := func(status string) float64 {
		t.Helper()
		return signIn(t, c, "ann@example.com", secret, status).data()["expires_in"].(float64)
	}
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+id, object{"email_verified": false})
	c.want(t, 201, "", "POST", "/api/v1/users", object{"email": "bob@example.com", "password": secret})
	if s := signIn(t, c, "bob@example.com", secret, "email_verification_required").data()["expires_in"].(float64); s < 590 || s > 600 {
		t.Errorf("verification: %v", s)
	}
	enrol(t, w, signedIn(t, c, "ann@example.com"))
	if s := in("mfa_required"); s < 590 || s > 600 {
		t.Errorf("second factor: %v", s)
	}
	c.want(t, 200, "", "POST", "/api/v1/users/"+id+"/force-mfa-reset", nil)
	if s := in("mfa_enrolment_required"); s < 3600 {
		t.Errorf("enrolment: %v", s)
	}
}

// TestViewsAreNoAttempts requests the sign-in page, which begins a ceremony but does not count as an
// attempt to sign in.
func TestViewsAreNoAttempts(t *testing.T) {
	w := newWorld(t, databases["SQLite"](t), nil)
	limits, err := ratelimit.New(ratelimit.Config{DB: w.db})
	if err != nil {
		t.Fatal(err)
	}
	c := w.tenant(t, "views")
	member(t, c, "ann@example.com")
	c = &client{server: httptestServer(t, w, func(config *api.Config) { config.Limits = limits }), host: c.host}
	for range 40 { // 30 attempts may come in a minute
		c.want(t, 200, "", "POST", authPath+"/webauthn/begin", object{})
		c.want(t, 200, "", "GET", authPath+"/policy", nil)
		equal(t, "page", c.visit(t, "GET", "/auth/sign-in", http.Header{}, nil).status, 200)
	}
	signIn(t, c, "ann@example.com", secret, "complete")
}
