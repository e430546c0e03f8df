package api_test

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
	"github.com/pquerna/otp/totp"

	"stonetown/api"
	"stonetown/internal/geo"
)

// code returns the code of an authenticator app at an instant.
func code(t testing.TB, key string, at time.Time) string {
	t.Helper()
	code, err := totp.GenerateCode(key, at)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// enrol adds an authenticator app and returns its key.
func enrol(t testing.TB, w *world, me *client) (key, factorID string) {
	t.Helper()
	d := me.want(t, 200, "", "POST", mePath+"/mfa/factors/totp/begin", object{"label": "App"}).data()
	key = d["secret"].(string)
	a := me.want(t, 201, "", "POST", mePath+"/mfa/factors/totp/complete", object{"ceremony_id": d["ceremony_id"], "code": code(t, key, w.now())})
	return key, a.data()["id"].(string)
}

// stepUp lifts the session of a client to AAL 2 and returns one with its new token.
func stepUp(t testing.TB, me *client, answer object) *client {
	t.Helper()
	return me.with(me.want(t, 200, "", "POST", authPath+"/step-up/complete", answer).data()["session_token"].(string))
}

const step = 30 * time.Second // of TOTP

func authenticatorApp(t *testing.T, w *world, c *client) {
	id := member(t, c, "ann@example.com")
	me := signedIn(t, c, "ann@example.com")
	begin := func() object {
		t.Helper()
		return me.want(t, 200, "", "POST", mePath+"/mfa/factors/totp/begin", object{"label": "My phone"}).data()
	}
	complete := func(status int, code string, form object) answer {
		t.Helper()
		return me.want(t, status, code, "POST", mePath+"/mfa/factors/totp/complete", form)
	}
	begun := begin()
	key := begun["secret"].(string)
	if uri := begun["otpauth_uri"].(string); !strings.HasPrefix(uri, "otpauth://totp/"+c.name()+":ann@example.com?") || !strings.Contains(uri, "issuer="+c.name()) || !strings.Contains(uri, "secret="+key) {
		t.Errorf("otpauth_uri: %s", uri)
	}
	if !strings.HasPrefix(begun["qr_code"].(string), "data:image/png;base64,iVBOR") {
		t.Error("qr_code is no picture")
	}
	wrong := complete(400, "code_invalid", object{"ceremony_id": begun["ceremony_id"], "code": "000000"})
	equal(t, "left", wrong.details()["attempts_left"], 4.0)
	me.want(t, 400, "ceremony_invalid", "POST", mePath+"/mfa/factors/sms/complete", object{"ceremony_id": begun["ceremony_id"], "code": "000000"})
	first := code(t, key, w.now())
	f := complete(201, "", object{"ceremony_id": begun["ceremony_id"], "code": first, "label": "Telephone"}).data()
	equal(t, "factor", []any{f["kind"], f["label"], f["last_used_at"]}, []any{"totp", "Telephone", nil})
	complete(400, "ceremony_invalid", object{"ceremony_id": begun["ceremony_id"], "code": first})
	w.mailbox.take(t, "ann@example.com", "second factor was added")
	equal(t, "listed", me.want(t, 200, "", "GET", mePath+"/mfa/factors", nil).list(), []any{any(f)})
	equal(t, "of the user", c.want(t, 200, "", "GET", "/api/v1/users/"+id, nil).data()["mfa_factors"], []any{object{"kind": "totp", "count": 1.0}})

	// Five wrong codes end a ceremony; that of another user is not found.
	begun = begin()
	for range 5 {
		complete(400, "code_invalid", object{"ceremony_id": begun["ceremony_id"], "code": "000000"})
	}
	complete(400, "ceremony_invalid", object{"ceremony_id": begun["ceremony_id"], "code": code(t, begun["secret"].(string), w.now())})
	member(t, c, "bob@example.com")
	bob, theirs := signedIn(t, c, "bob@example.com"), begin()
	bob.want(t, 400, "ceremony_invalid", "POST", mePath+"/mfa/factors/totp/complete", object{"ceremony_id": theirs["ceremony_id"], "code": code(t, theirs["secret"].(string), w.now())})
	complete(400, "validation_failed", object{})
	complete(400, "validation_failed", object{"ceremony_id": "x", "label": long(101)})
	me.want(t, 400, "invalid_json", "POST", mePath+"/mfa/factors/totp/complete", `{`)
	me.want(t, 400, "invalid_json", "POST", mePath+"/mfa/factors/totp/begin", `{`)
	me.want(t, 400, "validation_failed", "POST", mePath+"/mfa/factors/totp/begin", object{"label": long(101)})
	for _, kind := range []string{"x", "backup_code"} {
		me.want(t, 400, "factor_kind_unsupported", "POST", mePath+"/mfa/factors/"+kind+"/begin", object{})
	}

	// Now the password does not suffice, and its token is not an access token.
	verify := func(status int, code string, token any, form object) answer {
		t.Helper()
		form["mfa_token"] = token
		return c.with("").want(t, status, code, "POST", authPath+"/mfa/verify", form)
	}
	asked := signIn(t, c, "ann@example.com", secret, "mfa_required")
	equal(t, "factors", asked.data()["factors"], []any{object{"id": f["id"], "kind": "totp", "label": "Telephone"}})
	token := asked.data()["mfa_token"].(string)
	c.with(token).want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)
	equal(t, "cookie", cookie(asked), "none")
	c.with("").want(t, 200, "", "POST", authPath+"/mfa/challenge", object{"mfa_token": token, "kind": "totp"})
	verify(400, "code_invalid", token, object{"kind": "totp", "code": first}) // used
	verify(400, "factor_kind_unsupported", token, object{"kind": "x", "code": "1"})
	w.later(2 * step)
	verify(400, "code_invalid", token, object{"kind": "totp", "code": code(t, key, w.now().Add(-2*step))})
	verify(400, "code_invalid", token, object{"kind": "totp", "code": code(t, key, w.now().Add(2*step))})
	done := verify(200, "", token, object{"kind": "totp", "code": code(t, key, w.now().Add(-step))}).data()
	equal(t, "session", []any{done["session"].(map[string]any)["aal"], done["session"].(map[string]any)["amr"]}, []any{"aal2", []any{"pwd", "otp", "mfa"}})
	verify(400, "ceremony_invalid", token, object{"kind": "totp", "code": code(t, key, w.now())})
	verify(400, "validation_failed", "", object{"kind": "totp"})
	c.with("").want(t, 400, "invalid_json", "POST", authPath+"/mfa/verify", `{`)

	// Of two parallel uses of a code, one succeeds.
	now := code(t, key, w.now())
	tokens := []any{signIn(t, c, "ann@example.com", secret, "mfa_required").data()["mfa_token"], signIn(t, c, "ann@example.com", secret, "mfa_required").data()["mfa_token"]}
	var wg sync.WaitGroup
	accepted := make(chan int, len(tokens))
	for _, token := range tokens {
		wg.Go(func() {
			accepted <- c.with("").do(t, "POST", authPath+"/mfa/verify", object{"mfa_token": token, "kind": "totp", "code": now}).status
		})
	}
	wg.Wait()
	// The other is wrong, or limited as one more attempt.
	if one, other := <-accepted, <-accepted; min(one, other) != 200 || max(one, other) != 400 && max(one, other) != 429 {
		t.Errorf("accepted: %d and %d", one, other)
	}

	// Five failures end the sign-in; further attempts are limited, also after a success.
	token = signIn(t, c, "ann@example.com", secret, "mfa_required").data()["mfa_token"].(string)
	for {
		a := c.with("").do(t, "POST", authPath+"/mfa/verify", object{"mfa_token": token, "kind": "totp", "code": "000000"})
		if a.code() == "rate_limited" {
			break
		}
		equal(t, "failure", a.code(), "code_invalid")
	}
	token = signIn(t, c, "ann@example.com", secret, "mfa_required").data()["mfa_token"].(string)
	verify(429, "rate_limited", token, object{"kind": "totp", "code": code(t, key, w.now())})

	// A new password does not replace the factor.
	w.later(2 * time.Minute)
	c.want(t, 202, "", "POST", "/api/v1/users/"+id+"/reset-password", nil)
	reset := link(t, w.mailbox.take(t, "ann@example.com", "Choose a new password"))
	after := c.with("").want(t, 200, "", "POST", authPath+"/password/reset", object{"token": reset, "password": "another long secret"})
	equal(t, "after a reset", []any{after.data()["status"], after.data()["session_token"]}, []any{"mfa_required", nil})
}

func assurance(t *testing.T, w *world, c *client) {
	id := member(t, c, "ann@example.com")
	me := signedIn(t, c, "ann@example.com")
	codes := func(c *client, status int, code string) answer {
		t.Helper()
		return c.want(t, status, code, "POST", mePath+"/mfa/backup-codes", nil)
	}
	refused := codes(me, 401, "insufficient_user_authentication")
	d := refused.details()
	equal(t, "details", []any{d["required_aal"], d["acr_values"], d["enrolment_required"], d["sign_in_required"], d["step_up_url"]}, []any{2.0, "aal2", true, false, c.base() + "/api/v1/auth/step-up/begin"})
	if h := refused.header.Get("WWW-Authenticate"); !strings.Contains(h, `error="insufficient_user_authentication", acr_values="aal2", max_age=900`) {
		t.Errorf("WWW-Authenticate: %s", h)
	}
	// Adding the first factor requires a recent sign-in.
	w.later(11 * time.Minute)
	d = me.want(t, 401, "insufficient_user_authentication", "POST", mePath+"/mfa/factors/totp/begin", object{}).details()
	equal(t, "too old", []any{d["enrolment_required"], d["sign_in_required"]}, []any{true, true})
	me = signedIn(t, c, "ann@example.com")
	key, factorID := enrol(t, w, me)
	codes(me, 200, "") // adding it proved it

	// Another session of the user does not reach AAL 2, and cannot add a factor.
	w.later(step)
	done := signIn(t, c, "ann@example.com", secret, "mfa_required").data()
	stolen := me // until it is stale
	w.later(16 * time.Minute)
	for what, a := range map[string]answer{
		"codes":  codes(stolen, 401, "insufficient_user_authentication"),
		"remove": stolen.want(t, 401, "insufficient_user_authentication", "DELETE", mePath+"/mfa/factors/"+factorID, nil),
		"email":  stolen.want(t, 401, "insufficient_user_authentication", "POST", mePath+"/email/change", object{"new_email": "x@example.com"}),
		"add":    stolen.want(t, 401, "insufficient_user_authentication", "POST", mePath+"/mfa/factors/totp/begin", object{}),
		"finish": stolen.want(t, 401, "insufficient_user_authentication", "POST", mePath+"/mfa/factors/totp/complete", object{"ceremony_id": "x", "code": "1"}),
	} {
		equal(t, what, []any{a.details()["enrolment_required"], a.details()["max_age"]}, []any{false, 900.0})
	}
	if done["mfa_token"] == nil {
		t.Error("no mfa_token")
	}

	// Step-up replaces the token.
	begun := me.want(t, 200, "", "POST", authPath+"/step-up/begin", nil).data() // of the kind that there is
	equal(t, "factors", len(begun["factors"].([]any)), 1)
	me.want(t, 400, "factor_kind_unsupported", "POST", authPath+"/step-up/begin", object{"kind": "sms"})
	me.want(t, 400, "factor_kind_unsupported", "POST", authPath+"/step-up/begin", object{"factor_id": "x"})
	me.want(t, 400, "invalid_json", "POST", authPath+"/step-up/begin", `{`)
	me.want(t, 400, "validation_failed", "POST", authPath+"/step-up/begin", object{"kind": 1})
	me.want(t, 400, "invalid_json", "POST", authPath+"/step-up/complete", `{`)
	me.want(t, 400, "validation_failed", "POST", authPath+"/step-up/complete", object{})
	me.want(t, 400, "code_invalid", "POST", authPath+"/step-up/complete", object{"kind": "totp", "code": "000000"})
	me.want(t, 400, "factor_kind_unsupported", "POST", authPath+"/step-up/complete", object{"kind": "x"})
	lifted := me.want(t, 200, "", "POST", authPath+"/step-up/complete", object{"kind": "totp", "code": code(t, key, w.now())})
	equal(t, "acr", lifted.data()["acr"], "aal2")
	equal(t, "cookie", cookie(lifted), lifted.data()["session_token"])
	me.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)
	for _, token := range []string{lifted.data()["session_token"].(string), lifted.data()["access_token"].(string)} {
		codes(c.with(token), 200, "")
	}
	w.later(16 * time.Minute)
	jwt := c.with(lifted.data()["access_token"].(string))
	me = c.with(lifted.data()["session_token"].(string))
	codes(jwt, 401, "insufficient_user_authentication")
	codes(me, 401, "insufficient_user_authentication")

	// Each backup code is accepted once, also in parallel; replaced codes are invalid.
	me = stepUp(t, me, object{"kind": "totp", "code": code(t, key, w.now())})
	old := codes(me, 200, "").data()["codes"].([]any)
	set := codes(me, 200, "").data()["codes"].([]any)
	equal(t, "codes", len(set), 10)
	me.want(t, 400, "code_invalid", "POST", authPath+"/step-up/complete", object{"kind": "backup_code", "code": old[0]})
	mfaToken := func() any {
		t.Helper()
		return signIn(t, c, "ann@example.com", secret, "mfa_required").data()["mfa_token"]
	}
	last := signIn(t, c, "ann@example.com", secret, "mfa_required").data()["factors"].([]any)
	equal(t, "offered", last[1], any(object{"kind": "backup_code", "label": "Backup code"}))
	var wg sync.WaitGroup
	results := make(chan int, 2)
	for _, token := range []any{mfaToken(), mfaToken()} {
		typed := strings.ToUpper(strings.ReplaceAll(set[0].(string), "-", " "))
		wg.Go(func() {
			results <- c.with("").do(t, "POST", authPath+"/mfa/verify", object{"mfa_token": token, "kind": "backup_code", "code": typed}).status
		})
	}
	wg.Wait()
	one, two := <-results, <-results
	if (one == 200) == (two == 200) { // the other is wrong, or one too many at a time
		t.Errorf("used at the same time: %d and %d", one, two)
	}
	challenged := c.with("").want(t, 200, "", "POST", authPath+"/mfa/challenge", object{"mfa_token": mfaToken(), "kind": "backup_code"})
	equal(t, "challenge", challenged.data()["public_key"], nil)

	// Naming and removing.
	factor := mePath + "/mfa/factors/" + factorID
	equal(t, "label", me.want(t, 200, "", "PATCH", factor, object{"label": "Old"}).data()["label"], "Old")
	me.want(t, 400, "validation_failed", "PATCH", factor, object{"label": long(101)})
	me.want(t, 400, "invalid_json", "PATCH", factor, `{`)
	me.want(t, 404, "factor_not_found", "PATCH", mePath+"/mfa/factors/x", object{"label": "Old"})
	me.want(t, 404, "factor_not_found", "DELETE", mePath+"/mfa/factors/x", nil)
	me.want(t, 204, "", "DELETE", factor, nil)
	w.mailbox.take(t, "ann@example.com", "second factor was removed")
	signIn(t, c, "ann@example.com", secret, "complete") // backup codes went with the last factor
	equal(t, "events", w.types(t, c, "user.mfa", "user.backup", "session.stepped"), []string{
		"user.mfa_enrolled", "user.backup_codes_regenerated", "session.stepped_up", "user.backup_codes_regenerated", "user.backup_codes_regenerated",
		"session.stepped_up", "user.backup_codes_regenerated", "user.backup_codes_regenerated", "user.backup_code_used", "user.mfa_removed",
	})

	// An administrator removes the factors; the next sign-in starts with enrolment.
	me = signedIn(t, c, "ann@example.com")
	_, factorID = enrol(t, w, me)
	users := "/api/v1/users/" + id
	equal(t, "listed", c.want(t, 200, "", "GET", users+"/mfa/factors", nil).list()[0].(map[string]any)["id"], factorID)
	c.want(t, 404, "user_not_found", "GET", "/api/v1/users/x/mfa/factors", nil)
	c.want(t, 404, "user_not_found", "DELETE", "/api/v1/users/x/mfa/factors/x", nil)
	c.want(t, 404, "factor_not_found", "DELETE", users+"/mfa/factors/x", nil)
	c.want(t, 204, "", "DELETE", users+"/mfa/factors/"+factorID, nil)
	_, _ = enrol(t, w, me)
	c.want(t, 404, "user_not_found", "POST", "/api/v1/users/x/force-mfa-reset", nil)
	equal(t, "reset", c.want(t, 200, "", "POST", users+"/force-mfa-reset", nil).data()["mfa_factors"], []any{})
	me.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)
	enrolling := signIn(t, c, "ann@example.com", secret, "mfa_enrolment_required")
	only := c.with(enrolling.data()["continue_token"].(string))
	equal(t, "enrolment", only.want(t, 401, "insufficient_user_authentication", "GET", mePath+"/profile", nil).details()["enrolment_required"], true)
	equal(t, "session", only.want(t, 200, "", "GET", authPath+"/session", nil).data()["enrolment_required"], true)
	enrol(t, w, only)
	only.want(t, 200, "", "GET", mePath+"/profile", nil)
	equal(t, "session", only.want(t, 200, "", "GET", authPath+"/session", nil).data()["aal"], "aal2")
	w.later(step)
	signIn(t, c, "ann@example.com", secret, "mfa_required")
}

// mfaPolicy applies the tenant's policy for second factors.
func mfaPolicy(t *testing.T, w *world, c *client) {
	member(t, c, "ann@example.com")
	me := signedIn(t, c, "ann@example.com")
	policy := func(text string) {
		t.Helper()
		c.want(t, 200, "", "PATCH", "/api/v1/settings", `{"mfa_policy":`+text+`}`)
	}
	policy(`{"kinds":["webauthn"]}`)
	me.want(t, 400, "factor_kind_unsupported", "POST", mePath+"/mfa/factors/totp/begin", object{})
	policy(`{"mode":"off","kinds":null}`)
	me.want(t, 400, "factor_kind_unsupported", "POST", mePath+"/mfa/factors/totp/begin", object{})
	policy(`{"mode":"required"}`)
	me.want(t, 200, "", "GET", mePath+"/profile", nil) // sessions continue
	enrol(t, w, c.with(signIn(t, c, "ann@example.com", secret, "mfa_enrolment_required").data()["continue_token"].(string)))
	signIn(t, c, "ann@example.com", secret, "mfa_required")
	policy(`{"mode":"off"}`)
	signIn(t, c, "ann@example.com", secret, "complete")
}

func textMessages(t *testing.T, w *world, c *client) {
	member(t, c, "ann@example.com")
	me := signedIn(t, c, "ann@example.com")
	const number = "+4930123456"
	begin := mePath + "/mfa/factors/sms/begin"
	for _, bad := range []string{"", "030123456", "+49 30 123456", "+0123456789", "+79161234567"} {
		equal(t, bad, fields(me.want(t, 400, "validation_failed", "POST", begin, object{"phone_number": bad})), []string{"phone_number"})
	}
	d := me.want(t, 200, "", "POST", begin, object{"phone_number": number}).data()
	equal(t, "masked", []any{d["phone_number_masked"], d["resend_after"]}, []any{"+49••••••56", 30.0})
	read := func() string {
		t.Helper()
		return w.mailbox.take(t, number, "is your code for "+c.name()).Text[:6]
	}
	sent := read()
	other := "000000"
	if sent == other {
		other = "000001"
	}
	me.want(t, 400, "code_invalid", "POST", mePath+"/mfa/factors/sms/complete", object{"ceremony_id": d["ceremony_id"], "code": other})
	f := me.want(t, 201, "", "POST", mePath+"/mfa/factors/sms/complete", object{"ceremony_id": d["ceremony_id"], "code": sent}).data()
	equal(t, "kind", f["kind"], "sms")

	asked := signIn(t, c, "ann@example.com", secret, "mfa_required").data()
	token := asked["mfa_token"]
	challenge := func(form object) answer {
		t.Helper()
		form["mfa_token"] = token
		return c.with("").do(t, "POST", authPath+"/mfa/challenge", form)
	}
	first := challenge(object{"factor_id": f["id"]})
	equal(t, "masked", first.data()["phone_number_masked"], "+49••••••56")
	sent = read()
	verify := func(status int, code string, form object) answer {
		t.Helper()
		form["mfa_token"], form["kind"] = token, "sms"
		return c.with("").want(t, status, code, "POST", authPath+"/mfa/verify", form)
	}
	verify(400, "ceremony_invalid", object{"code": sent, "challenge_id": "x"})
	// The challenge of another sign-in is refused.
	mine := token
	token = signIn(t, c, "ann@example.com", secret, "mfa_required").data()["mfa_token"]
	verify(400, "ceremony_invalid", object{"code": sent, "challenge_id": first.data()["challenge_id"]})
	token = mine
	verify(400, "code_invalid", object{"code": other, "challenge_id": first.data()["challenge_id"]})
	done := verify(200, "", object{"code": sent, "challenge_id": first.data()["challenge_id"]})
	equal(t, "amr", done.data()["session"].(map[string]any)["amr"], []any{"pwd", "sms", "mfa"})

	// At most three messages in ten minutes; a code is valid for five.
	token = signIn(t, c, "ann@example.com", secret, "mfa_required").data()["mfa_token"]
	for {
		a := challenge(object{"kind": "sms"})
		if a.status == 429 {
			break
		}
		read()
	}
	w.later(15 * time.Minute)
	equal(t, "unknown token", challenge(object{"kind": "sms"}).code(), "ceremony_invalid") // over
	c.with("").want(t, 400, "validation_failed", "POST", authPath+"/mfa/challenge", object{})
	c.with("").want(t, 400, "invalid_json", "POST", authPath+"/mfa/challenge", `{`)
	token = signIn(t, c, "ann@example.com", secret, "mfa_required").data()["mfa_token"]
	equal(t, "kind", challenge(object{"kind": "totp"}).code(), "factor_kind_unsupported")
}

// parallelGuesses sends 100 guesses at a password at the same time.
func parallelGuesses(t *testing.T, w *world, c *client) {
	member(t, c, "ann@example.com")
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		var wg sync.WaitGroup
		answers := make(chan answer, 200)
		for i := range cap(answers) {
			wg.Go(func() {
				answers <- c.with("").do(t, "POST", authPath+"/sign-in", object{"email": email, "password": fmt.Sprint("guess ", i)})
			})
		}
		wg.Wait()
		close(answers)
		judged := 0
		for a := range answers {
			switch a.code() {
			case "invalid_credentials":
				judged++
			case "rate_limited", "service_unavailable": // too many wait for their password to be hashed
				if a.header.Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
			default:
				t.Errorf("%d %s", a.status, a.text)
			}
		}
		// Five attempts, and as many as the delays of 1, 2, 4 … seconds permit meanwhile.
		if judged < 5 || judged > 9 {
			t.Errorf("%s: %d of 200 guesses were judged", email, judged)
		}
		// The right password is limited as well.
		for {
			a := c.with("").do(t, "POST", authPath+"/sign-in", object{"email": email, "password": "guess"})
			wait, err := strconv.Atoi(cmp.Or(a.header.Get("Retry-After"), "0"))
			if err != nil || wait > 10 {
				break
			}
			w.later(time.Duration(wait) * time.Second)
		}
		c.with("").want(t, 429, "rate_limited", "POST", authPath+"/sign-in", object{"email": email, "password": secret})
	}
	w.later(2 * time.Minute)
	signIn(t, c, "ann@example.com", secret, "complete")
	for range 5 { // and forgotten
		c.with("").want(t, 401, "invalid_credentials", "POST", authPath+"/sign-in", object{"email": "ann@example.com", "password": "wrong"})
	}
	equal(t, "events", len(w.types(t, c, "user.locked")), 3)
}

func emailChange(t *testing.T, w *world, c *client) {
	id := member(t, c, "ann@example.com")
	member(t, c, "bob@example.com")
	me := signedIn(t, c, "ann@example.com")
	me.want(t, 401, "insufficient_user_authentication", "POST", mePath+"/email/change", object{"new_email": "new@example.com"})
	enrol(t, w, me)
	change := func(email string) (id, confirm, revert string) {
		t.Helper()
		d := me.want(t, 200, "", "POST", mePath+"/email/change", object{"new_email": email}).data()
		equal(t, "verified", d["verified"], false)
		id = d["pending_change_id"].(string)
		if email == "bob@example.com" { // only its owner gets a mail
			w.mailbox.take(t, email, "Your e-mail address was entered")
			return id, "", ""
		}
		return id, link(t, w.mailbox.take(t, email, "Confirm your new e-mail address")), link(t, w.mailbox.take(t, "ann@example.com", "is about to change"))
	}
	me.want(t, 400, "email_invalid", "POST", mePath+"/email/change", object{"new_email": "new"})
	me.want(t, 400, "validation_failed", "POST", mePath+"/email/change", object{})
	me.want(t, 400, "invalid_json", "POST", mePath+"/email/change", `{`)
	pending := func(id string) string { return mePath + "/email/change/" + id }
	taken, _, _ := change("bob@example.com")
	equal(t, "not told", me.want(t, 200, "", "GET", pending(taken), nil).data()["verified"], false)
	me.want(t, 204, "", "DELETE", pending(taken), nil)
	me.want(t, 404, "email_change_not_found", "DELETE", pending(taken), nil)
	me.want(t, 404, "email_change_not_found", "GET", pending(taken), nil)

	// The link of a canceled change is invalid.
	given, confirm, _ := change("other@example.com")
	me.want(t, 204, "", "DELETE", pending(given), nil)
	verify := func(status int, code, token string) answer {
		t.Helper()
		return c.with("").want(t, status, code, "POST", authPath+"/email/verify", object{"token": token})
	}
	verify(400, "ceremony_invalid", confirm)

	changed, confirm, revert := change("new@example.com")
	equal(t, "until then", me.want(t, 200, "", "GET", mePath+"/profile", nil).data()["email"], "ann@example.com")
	for range 2 {
		equal(t, "email", verify(200, "", confirm).data()["email"], "new@example.com")
	}
	equal(t, "changed", me.want(t, 200, "", "GET", pending(changed), nil).data()["verified"], true)
	me.want(t, 404, "email_change_not_found", "DELETE", pending(changed), nil)
	equal(t, "profile", me.want(t, 200, "", "GET", mePath+"/profile", nil).data()["email"], "new@example.com")
	signIn(t, c, "new@example.com", secret, "mfa_required")

	// The owner reverts it: all sessions end, and a mail for a new password is sent.
	back := func(status int, code string) answer {
		t.Helper()
		return c.with("").want(t, status, code, "POST", authPath+"/email/revert", object{"token": revert})
	}
	equal(t, "reverted", back(200, "").data()["email"], "ann@example.com")
	back(400, "ceremony_invalid")
	c.with("").want(t, 400, "validation_failed", "POST", authPath+"/email/revert", object{})
	c.with("").want(t, 400, "invalid_json", "POST", authPath+"/email/revert", `{`)
	me.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)
	equal(t, "email", c.want(t, 200, "", "GET", "/api/v1/users/"+id, nil).data()["email"], "ann@example.com")
	w.mailbox.take(t, "ann@example.com", "Choose a new password")
	verify(400, "ceremony_invalid", confirm)
	equal(t, "events", w.types(t, c, "user.email"), []string{
		"user.email_change_requested", "user.email_change_requested", "user.email_change_requested", "user.email_changed", "user.email_changed",
	})
}

// device is an authenticator with the browser in front of it.
type device struct {
	party         virtualwebauthn.RelyingParty
	authenticator virtualwebauthn.Authenticator
	credential    virtualwebauthn.Credential
}

// newCredential makes a key whose coordinates have no zeros in front, which the library
// would leave out.
func newCredential() virtualwebauthn.Credential {
	for {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		point, err := key.PublicKey.Bytes() // 4, x, y
		if err != nil {
			panic(err)
		}
		if point[1] == 0 || point[33] == 0 {
			continue
		}
		text, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			panic(err)
		}
		return virtualwebauthn.NewCredentialWithImportedKey(virtualwebauthn.KeyTypeEC2, text)
	}
}

func newDevice(host string) *device {
	return &device{
		party:         virtualwebauthn.RelyingParty{Name: host, ID: host, Origin: "https://" + host},
		authenticator: virtualwebauthn.NewAuthenticator(), credential: newCredential(),
	}
}

func publicKey(t testing.TB, d object) string {
	t.Helper()
	text, err := json.Marshal(object{"publicKey": d["public_key"]})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// create returns the response to a registration.
func (d *device) create(t testing.TB, begun object) json.RawMessage {
	t.Helper()
	options, err := virtualwebauthn.ParseAttestationOptions(publicKey(t, begun))
	if err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(virtualwebauthn.CreateAttestationResponse(d.party, d.authenticator, d.credential, *options))
}

// get returns the response to a request for an assertion.
func (d *device) get(t testing.TB, begun object) json.RawMessage {
	t.Helper()
	options, err := virtualwebauthn.ParseAssertionOptions(publicKey(t, begun))
	if err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(virtualwebauthn.CreateAssertionResponse(d.party, d.authenticator, d.credential, *options))
}

// register adds a passkey on a device of the user.
func (d *device) register(t testing.TB, me *client) string {
	t.Helper()
	begun := me.want(t, 200, "", "POST", mePath+"/mfa/factors/webauthn/begin", object{"label": "Key"}).data()
	handle := begun["public_key"].(map[string]any)["user"].(map[string]any)["id"].(string)
	f := me.want(t, 201, "", "POST", mePath+"/mfa/factors/webauthn/complete", object{"ceremony_id": begun["ceremony_id"], "credential": d.create(t, begun)}).data()
	d.authenticator.Options.UserHandle = decode(t, handle)
	d.authenticator.AddCredential(d.credential)
	return f["id"].(string)
}

func passkeys(t *testing.T, w *world, c *client) {
	id := member(t, c, "ann@example.com")
	me := signedIn(t, c, "ann@example.com")
	d := newDevice(c.host)
	begun := me.want(t, 200, "", "POST", mePath+"/mfa/factors/webauthn/begin", object{}).data()
	options := begun["public_key"].(map[string]any)
	selection := options["authenticatorSelection"].(map[string]any)
	equal(t, "options", []any{options["rp"].(map[string]any)["id"], selection["residentKey"], selection["userVerification"], options["attestation"]},
		[]any{c.host, "preferred", "required", "none"})
	var algorithms []any
	for _, p := range options["pubKeyCredParams"].([]any) {
		algorithms = append(algorithms, p.(map[string]any)["alg"])
	}
	equal(t, "algorithms", algorithms, []any{-7.0, -8.0, -257.0})
	complete := func(status int, code string, credential any) {
		t.Helper()
		me.want(t, status, code, "POST", mePath+"/mfa/factors/webauthn/complete", object{"ceremony_id": begun["ceremony_id"], "credential": credential})
	}
	complete(400, "credential_invalid", object{})
	elsewhere := *d
	elsewhere.party.Origin = "https://evil.test"
	complete(400, "credential_invalid", elsewhere.create(t, begun))
	elsewhere = *d
	elsewhere.party.ID = "test" // the domain above
	complete(400, "credential_invalid", elsewhere.create(t, begun))
	d.register(t, me)

	// A discoverable credential needs no user name.
	begin := func(form object) object {
		t.Helper()
		return c.with("").want(t, 200, "", "POST", authPath+"/webauthn/begin", form).data()
	}
	finish := func(c *client, status int, code string, begun object, credential any) answer {
		t.Helper()
		return c.with("").want(t, status, code, "POST", authPath+"/webauthn/complete", object{"ceremony_id": begun["ceremony_id"], "credential": credential})
	}
	asked := begin(object{})
	equal(t, "autofill", []any{asked["mediation"], asked["public_key"].(map[string]any)["allowCredentials"]}, []any{"conditional", nil})
	answered := d.get(t, asked)
	finish(w.tenant(t, "passkeys-other"), 400, "ceremony_invalid", asked, answered)
	done := finish(c, 200, "", asked, answered).data()
	equal(t, "session", []any{done["status"], done["session"].(map[string]any)["aal"], done["user"].(map[string]any)["id"]}, []any{"complete", "aal2", id})
	finish(c, 400, "ceremony_invalid", asked, answered) // replayed
	asked = begin(object{})
	finish(c, 400, "credential_invalid", asked, answered) // of another challenge
	finish(c, 400, "credential_invalid", asked, object{})
	finish(c, 400, "validation_failed", object{"ceremony_id": ""}, object{})
	c.with("").want(t, 400, "invalid_json", "POST", authPath+"/webauthn/complete", `{`)
	c.with("").want(t, 400, "invalid_json", "POST", authPath+"/webauthn/begin", `{`)
	c.with("").want(t, 400, "validation_failed", "POST", authPath+"/webauthn/begin", object{"email": long(3000)})

	for what, spoil := range map[string]func(*device){
		"another origin":          func(d *device) { d.party.Origin = "https://evil.test" },
		"another tenant's origin": func(d *device) { d.party.Origin = "https://passkeys-other.test" },
		"the domain above":        func(d *device) { d.party.ID = "test" },
		"another user's handle":   func(d *device) { d.authenticator.Options.UserHandle = []byte(strings.Repeat("x", 32)) },
		"no handle":               func(d *device) { d.authenticator.Options.UserHandle = nil },
		"a person not verified":   func(d *device) { d.authenticator.Options.UserNotVerified = true },
		"a person not present":    func(d *device) { d.authenticator.Options.UserNotPresent = true },
		"another key": func(d *device) {
			key := virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2)
			key.ID = d.credential.ID
			d.credential = key
		},
		"an unknown credential": func(d *device) { d.credential = newCredential() },
	} {
		bad := *d
		spoil(&bad)
		asked := begin(object{})
		a := c.with("").do(t, "POST", authPath+"/webauthn/complete", object{"ceremony_id": asked["ceremony_id"], "credential": bad.get(t, asked)})
		equal(t, what, a.code(), "credential_invalid")
	}

	// With a name; an address without an account gets an equal and stable response.
	named := begin(object{"email": "ann@example.com"})
	allowed := func(begun object) (ids []any) {
		for _, item := range begun["public_key"].(map[string]any)["allowCredentials"].([]any) {
			ids = append(ids, item.(map[string]any)["id"])
		}
		return ids
	}
	equal(t, "allowed", len(allowed(named)), 1)
	finish(c, 200, "", named, d.get(t, named))
	nobody := begin(object{"email": "nobody@example.com"})
	equal(t, "imaginary", allowed(nobody), allowed(begin(object{"email": "Nobody@example.com"})))
	// The credentials resemble those of real authenticators.
	kinds := map[string]int{}
	for i := range 60 {
		for _, item := range begin(object{"email": fmt.Sprintf("nobody%d@example.com", i)})["public_key"].(map[string]any)["allowCredentials"].([]any) {
			o := item.(map[string]any)
			kinds[fmt.Sprintf("%d %v %v", len(decode(t, o["id"].(string))), o["transports"], o["type"])]++
		}
	}
	for _, kind := range []string{"20 [hybrid internal] public-key", "16 [hybrid internal] public-key", "32 [internal] public-key"} {
		if kinds[kind] == 0 {
			t.Errorf("imaginary credentials: %v, none is %s", kinds, kind)
		}
	}
	finish(c, 400, "credential_invalid", nobody, d.get(t, nobody))

	// As a second factor, and to step up.
	member(t, c, "bob@example.com")
	factors := signIn(t, c, "ann@example.com", secret, "mfa_required").data()
	challenge := c.with("").want(t, 200, "", "POST", authPath+"/mfa/challenge", object{"mfa_token": factors["mfa_token"], "kind": "webauthn"}).data()
	c.with("").want(t, 400, "credential_invalid", "POST", authPath+"/mfa/verify", object{
		"mfa_token": factors["mfa_token"], "kind": "webauthn", "challenge_id": challenge["challenge_id"], "credential": object{},
	})
	verified := c.with("").want(t, 200, "", "POST", authPath+"/mfa/verify", object{
		"mfa_token": factors["mfa_token"], "kind": "webauthn", "challenge_id": challenge["challenge_id"], "credential": d.get(t, challenge),
	}).data()
	equal(t, "amr", verified["session"].(map[string]any)["amr"], []any{"pwd", "hwk", "mfa"})
	me = c.with(verified["session_token"].(string))
	w.later(16 * time.Minute)
	challenge = me.want(t, 200, "", "POST", authPath+"/step-up/begin", object{"kind": "webauthn"}).data()
	spoiled := *d
	spoiled.party.Origin = "https://evil.test"
	me.want(t, 400, "credential_invalid", "POST", authPath+"/step-up/complete", object{"kind": "webauthn", "challenge_id": challenge["challenge_id"], "credential": spoiled.get(t, challenge)})
	me.want(t, 400, "ceremony_invalid", "POST", authPath+"/step-up/complete", object{"kind": "webauthn", "challenge_id": "x", "credential": d.get(t, challenge)})
	me = stepUp(t, me, object{"kind": "webauthn", "challenge_id": challenge["challenge_id"], "credential": d.get(t, challenge)})

	// A credential belongs to one user. Of two parallel registrations, one fails.
	bob := signedIn(t, c, "bob@example.com")
	theirs := bob.want(t, 200, "", "POST", mePath+"/mfa/factors/webauthn/begin", object{}).data()
	bob.want(t, 409, "credential_exists", "POST", mePath+"/mfa/factors/webauthn/complete", object{"ceremony_id": theirs["ceremony_id"], "credential": d.create(t, theirs)})
	// A user has at most 20.
	for range 18 {
		newDevice(c.host).register(t, me)
	}
	late := me.want(t, 200, "", "POST", mePath+"/mfa/factors/webauthn/begin", object{}).data()
	newDevice(c.host).register(t, me)
	me.want(t, 409, "factor_limit_reached", "POST", mePath+"/mfa/factors/webauthn/complete", object{"ceremony_id": late["ceremony_id"], "credential": newDevice(c.host).create(t, late)})
	me.want(t, 409, "factor_limit_reached", "POST", mePath+"/mfa/factors/webauthn/begin", object{})

	// A user with a passkey needs no password.
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+id, object{"password": nil})
	asked = begin(object{})
	me = c.with(finish(c, 200, "", asked, d.get(t, asked)).data()["session_token"].(string))
	me.want(t, 400, "password_not_set", "POST", mePath+"/password", object{"current": secret, "next": "another long secret"})

	c.want(t, 200, "", "POST", "/api/v1/users/"+id+"/disable", nil)
	asked = begin(object{})
	finish(c, 403, "user_disabled", asked, d.get(t, asked))
	c.want(t, 204, "", "DELETE", "/api/v1/users/"+id, nil)
	asked = begin(object{})
	finish(c, 400, "credential_invalid", asked, d.get(t, asked))
}

func decode(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// rememberedDevice signs in on a remembered browser without a second factor.
func rememberedDevice(t *testing.T, w *world, c *client) {
	id := member(t, c, "ann@example.com")
	member(t, c, "bob@example.com")
	me := signedIn(t, c, "ann@example.com")
	key, _ := enrol(t, w, me)
	enrol(t, w, signedIn(t, c, "bob@example.com"))
	remember := func() (header http.Header) {
		t.Helper()
		w.later(step)
		token := signIn(t, c, "ann@example.com", secret, "mfa_required").data()["mfa_token"]
		a := c.with("").want(t, 200, "", "POST", authPath+"/mfa/verify", object{"mfa_token": token, "kind": "totp", "code": code(t, key, w.now()), "remember_device": true})
		for _, text := range a.header["Set-Cookie"] {
			if cookie, err := http.ParseSetCookie(text); err == nil && cookie.Name == "__Host-dev" {
				if !cookie.Secure || !cookie.HttpOnly || cookie.MaxAge != 30*24*60*60 {
					t.Errorf("cookie: %s", text)
				}
				return http.Header{"Cookie": {"__Host-dev=" + cookie.Value}, "Content-Type": {"application/json"}}
			}
		}
		t.Fatal("no device was remembered")
		return nil
	}
	from := func(header http.Header, email, status string) answer {
		t.Helper()
		a := c.with("").send(t, "POST", authPath+"/sign-in", header, []byte(`{"email":"`+email+`","password":"`+secret+`"}`))
		equal(t, "status", a.data()["status"], status)
		return a
	}
	known := remember()
	a := from(known, "ann@example.com", "complete")
	equal(t, "aal", a.data()["session"].(map[string]any)["aal"], "aal1") // what takes more still asks
	from(known, "bob@example.com", "mfa_required")
	from(http.Header{"Cookie": {"__Host-dev=x"}, "Content-Type": {"application/json"}}, "ann@example.com", "mfa_required")
	w.later(31 * 24 * time.Hour)
	from(known, "ann@example.com", "mfa_required")
	known = remember()
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+id, object{"password": nil})
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+id, object{"password": secret})
	from(known, "ann@example.com", "mfa_required")
}

// germany is a GeoIP database that locates this machine in Germany.
func germany(t testing.TB) *geo.Database {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Test", IncludeReservedNetworks: true})
	if err != nil {
		t.Fatal(err)
	}
	_, network, err := net.ParseCIDR("127.0.0.0/8")
	if err == nil {
		err = tree.Insert(network, mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String("DE")}})
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "places.mmdb")
	f, err := os.Create(path)
	if err == nil {
		_, err = tree.WriteTo(f)
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	database, err := geo.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { database.Close() })
	return database
}

// sessionLocations reads the location of a session.
func sessionLocations(t *testing.T, w *world, c *client) {
	id := member(t, c, "ann@example.com")
	me := signedIn(t, c, "ann@example.com")
	equal(t, "unknown", me.want(t, 200, "", "GET", mePath+"/sessions", nil).list()[0].(map[string]any)["ip_geo"], object{"city": nil, "country": nil})
	server := httptestServer(t, w, func(config *api.Config) { config.GeoIP = germany(t) })
	me.server = server
	admin := *c
	admin.server = server
	place := object{"city": nil, "country": "DE"}
	equal(t, "known", me.want(t, 200, "", "GET", mePath+"/sessions", nil).list()[0].(map[string]any)["ip_geo"], place)
	equal(t, "of a user", admin.want(t, 200, "", "GET", "/api/v1/users/"+id+"/sessions", nil).list()[0].(map[string]any)["ip_geo"], place)
}
