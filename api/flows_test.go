package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"stonetown/internal/eventlog"
	"stonetown/webhooks/signature"
)

const flowPath = "/api/v1/sign-in-flow"

// decider is the service of an action.
type decider struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(http.ResponseWriter)
	got    []received
}

func newDecider(t testing.TB) *decider {
	t.Helper()
	d := &decider{}
	d.says(`{}`)
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		one := received{header: r.Header, body: body}
		if err != nil || json.Unmarshal(body, &one.event) != nil {
			t.Errorf("the service got %q, %v", body, err)
		}
		d.mu.Lock()
		d.got = append(d.got, one)
		answer := d.answer
		d.mu.Unlock()
		answer(w)
	}))
	t.Cleanup(d.Close)
	return d
}

// does sets what the service does from now on, and forgets the requests so far.
func (d *decider) does(answer func(http.ResponseWriter)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer, d.got = answer, nil
}

func (d *decider) says(body string) {
	d.does(func(w http.ResponseWriter) { _, _ = io.WriteString(w, body) })
}

func (d *decider) requests() []received {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.got
}

func flowStep(name, kind string, more object) object {
	return with(object{"name": name, "kind": kind}, more)
}

// publishFlow publishes a document. Its actions get their secrets before.
func publishFlow(t testing.TB, c *client, document object) (version float64, secrets map[string]signature.Secret) {
	t.Helper()
	c.want(t, 200, "", "PUT", flowPath+"/draft", document)
	secrets = map[string]signature.Secret{}
	actions, _ := document["actions"].([]any)
	for _, a := range actions {
		name := a.(object)["name"].(string)
		secrets[name] = signingSecret(t, c.want(t, 200, "", "POST", flowPath+"/actions/"+name+"/secret", object{"previous_ttl_s": 0}).data())
	}
	return c.want(t, 200, "", "POST", flowPath+"/publish", nil).data()["version"].(float64), secrets
}

// signInFlowLife: a draft is edited, previewed, published and rolled back; versions stay as they are.
func signInFlowLife(t *testing.T, w *world, c *client) {
	empty := c.want(t, 200, "", "GET", flowPath, nil).data()
	equal(t, "before", empty, object{"version": 0.0, "note": "", "sign_up": []any{}, "sign_in": []any{}, "actions": []any{}, "restored_from": nil, "published_at": nil, "published_by": nil})
	for _, r := range [][2]string{{"GET", "/draft"}, {"DELETE", "/draft"}, {"POST", "/publish"}, {"POST", "/preview"}} {
		var form any
		if r[0] == "POST" {
			form = object{}
		}
		c.want(t, 404, "sign_in_flow_draft_not_found", r[0], flowPath+r[1], form)
	}
	c.want(t, 404, "sign_in_action_not_found", "POST", flowPath+"/actions/risk/secret", object{})

	deny := object{"sign_in": []any{flowStep("Block", "deny", object{"when": `email.endsWith("@blocked.example")`, "message": "Use your other address."})}}
	draft := c.want(t, 200, "", "PUT", flowPath+"/draft", with(deny, object{"expected_revision": ""})).data()
	equal(t, "draft", c.want(t, 200, "", "GET", flowPath+"/draft", nil).data(), draft)
	c.want(t, 409, "sign_in_flow_changed", "PUT", flowPath+"/draft", with(deny, object{"expected_revision": ""}))
	c.want(t, 200, "", "PUT", flowPath+"/draft", with(deny, object{"expected_revision": draft["revision"]}))
	c.want(t, 409, "sign_in_flow_changed", "POST", flowPath+"/publish", object{"expected_revision": draft["revision"]})

	// A preview has no effect, and names what is wrong with a condition.
	preview := func(form object) object {
		t.Helper()
		return c.want(t, 200, "", "POST", flowPath+"/preview", form).data()
	}
	said := preview(object{"context": object{"email": "Eve@Blocked.example"}})
	equal(t, "preview", []any{said["outcome"], said["message"], said["steps"].([]any)[0].(object)["result"]}, []any{"denied", "Use your other address.", "denied"})
	equal(t, "preview of others", preview(object{"context": object{"email": "x@example.com"}})["outcome"], "allowed")
	equal(t, "the active one", preview(object{"flow": "active"})["outcome"], "allowed")
	id := member(t, c, "eve@blocked.example")
	equal(t, "of a user", preview(object{"user_id": id})["outcome"], "denied")
	c.want(t, 404, "user_not_found", "POST", flowPath+"/preview", object{"user_id": "usr_none"})
	for _, form := range []object{
		{"flow": "x"},
		{"point": "x"},
		{"context": object{"ip": "x"}},
		{"context": object{"email": "two\nlines"}},
		{"context": object{"attributes": object{"x": long(17 << 10)}}},
		{"context": object{"amr": anys(strings.Split(strings.Repeat("x,", 21), ","))}},
	} {
		c.want(t, 400, "validation_failed", "POST", flowPath+"/preview", form)
	}

	// Published, a sign-in is refused; rolled back to a version before, it is not.
	signIn(t, c, "eve@blocked.example", secret, "complete")
	first := c.want(t, 200, "", "POST", flowPath+"/publish", object{"note": "Blocked addresses"}).data()
	equal(t, "version", []any{first["version"], first["note"], first["published_by"].(object)["type"]}, []any{1.0, "Blocked addresses", "application"})
	equal(t, "event", lastEvent(t, w, c, eventlog.SignInFlowPublished), object{"sign_in_flow": first, "from_version": 0.0, "to_version": 1.0})
	equal(t, "active", c.want(t, 200, "", "GET", flowPath, nil).data(), first)
	c.want(t, 404, "sign_in_flow_draft_not_found", "GET", flowPath+"/draft", nil)
	refused := c.with("").want(t, 403, "permission_denied", "POST", authPath+"/sign-in", object{"email": "eve@blocked.example", "password": secret})
	equal(t, "message", []any{refused.body["message"], refused.details()["reason"], refused.header.Values("Set-Cookie") == nil}, []any{"Use your other address.", "sign_in_flow", true})
	denied := lastEvent(t, w, c, eventlog.SignInFlowDenied)
	equal(t, "event", denied, object{
		"user": object{"id": id, "email": "eve@blocked.example"}, "version": 1.0, "point": "sign_in", "action": nil, "reason": nil, "outcome": "denied",
		"step": object{"position": 1.0, "name": "Block", "kind": "deny"},
	})
	page := c.visit(t, "POST", "/auth/sign-in", nil, url.Values{"email": {"eve@blocked.example"}, "password": {secret}})
	if page.status != 403 || !strings.Contains(page.html, "Use your other address.") || cookieOf(page) != "" {
		t.Errorf("page: %d %s", page.status, page.html)
	}
	publishFlow(t, c, object{})
	signIn(t, c, "eve@blocked.example", secret, "complete")
	third := c.want(t, 200, "", "POST", flowPath+"/versions/1/rollback", object{"note": "Again"}).data()
	equal(t, "restored", []any{third["version"], third["restored_from"], third["sign_in"]}, []any{3.0, 1.0, first["sign_in"]})
	equal(t, "event", lastEvent(t, w, c, eventlog.SignInFlowPublished)["from_version"], 2.0)
	c.with("").want(t, 403, "permission_denied", "POST", authPath+"/sign-in", object{"email": "eve@blocked.example", "password": secret})

	// Versions.
	equal(t, "a version", c.want(t, 200, "", "GET", flowPath+"/versions/1", nil).data(), first)
	numbers := func(a answer) (numbers []any) {
		for _, v := range a.list() {
			numbers = append(numbers, v.(object)["version"])
		}
		return numbers
	}
	page1 := c.want(t, 200, "", "GET", flowPath+"/versions?limit=2", nil)
	page2 := c.want(t, 200, "", "GET", flowPath+"/versions?limit=2&cursor="+url.QueryEscape(page1.meta("next_cursor").(string)), nil)
	equal(t, "pages", append(numbers(page1), numbers(page2)...), []any{3.0, 2.0, 1.0})
	for _, number := range []string{"4", "0", "-1", "x", "99999999999999999999"} {
		c.want(t, 404, "sign_in_flow_version_not_found", "GET", flowPath+"/versions/"+number, nil)
		c.want(t, 404, "sign_in_flow_version_not_found", "POST", flowPath+"/versions/"+number+"/rollback", object{})
	}
	c.want(t, 400, "validation_failed", "GET", flowPath+"/versions?limit=0", nil)
	c.want(t, 400, "cursor_invalid", "GET", flowPath+"/versions?cursor=x", nil)
	for _, target := range []string{"/publish", "/versions/1/rollback"} {
		c.want(t, 400, "validation_failed", "POST", flowPath+target, object{"note": "two\nlines"})
		c.want(t, 400, "validation_failed", "POST", flowPath+target, object{"note": long(501)})
	}
	c.want(t, 200, "", "PUT", flowPath+"/draft", deny)
	c.want(t, 204, "", "DELETE", flowPath+"/draft", nil)
	json := http.Header{"Idempotency-Key": {long(256)}, "Content-Type": {"application/json"}}
	for _, target := range []string{"PUT /draft", "POST /preview", "POST /publish", "POST /versions/1/rollback", "POST /actions/x/secret"} {
		method, target, _ := strings.Cut(target, " ")
		equal(t, "a long key", c.send(t, method, flowPath+target, json, []byte("{}")).code(), "idempotency_key_invalid")
		c.want(t, 400, "invalid_json", method, flowPath+target, `{`)
	}
	equal(t, "a long key", c.send(t, "DELETE", flowPath+"/draft", http.Header{"Idempotency-Key": {long(256)}}, nil).code(), "idempotency_key_invalid")

	// Rights, and other tenants.
	reader := c.with(w.token(t, c, w.application(t, c, "settings:read")))
	reader.want(t, 200, "", "GET", flowPath+"/versions", nil)
	reader.want(t, 403, "insufficient_scope", "PUT", flowPath+"/draft", deny)
	other := w.tenant(t, c.name()+"-other")
	other.want(t, 404, "sign_in_flow_version_not_found", "GET", flowPath+"/versions/1", nil)
	equal(t, "other", other.want(t, 200, "", "GET", flowPath, nil).data()["version"], 0.0)
}

// wantFlowFaults requires the faults of a draft, each a field and a code.
func wantFlowFaults(t testing.TB, c *client, form object, want ...string) {
	t.Helper()
	a := c.want(t, 400, "validation_failed", "PUT", flowPath+"/draft", form)
	var got []string
	for _, f := range a.details()["field_errors"].([]any) {
		got = append(got, f.(object)["field"].(string)+" "+f.(object)["code"].(string))
	}
	equal(t, "faults", got, want)
}

// signInFlowForms: errors name the step and its position.
func signInFlowForms(t *testing.T, w *world, c *client) {
	action := func(more object) object {
		return with(object{"name": "a", "url": "https://example.com/x", "effects": []any{"deny"}}, more)
	}
	calls := flowStep("Call", "action", object{"action": "a"})
	for _, tc := range []struct {
		form   object
		faults []string
	}{
		{object{"sign_in": []any{flowStep("", "deny", nil)}}, []string{"sign_in/0/name required"}},
		{object{"sign_in": []any{flowStep("x", "captcha", nil)}}, []string{"sign_in/0/kind unknown_value"}},
		{object{"sign_up": []any{flowStep("x", "require_factor", nil)}}, []string{"sign_up/0/kind unknown_value"}},
		{object{"sign_in": []any{flowStep("ok", "deny", nil), flowStep("x", "deny", object{"when": "emial == ''"})}}, []string{"sign_in/1/when invalid"}},
		{object{"sign_in": []any{flowStep("x", "deny", object{"when": "email"})}}, []string{"sign_in/0/when invalid"}},
		{object{"sign_in": []any{flowStep("x", "deny", object{"when": long(5000)})}}, []string{"sign_in/0/when invalid"}},
		{object{"sign_in": []any{flowStep("x", "deny", object{"message": "two\nlines"})}}, []string{"sign_in/0/message invalid"}},
		{object{"sign_in": []any{flowStep("x", "deny", object{"message": long(301)})}}, []string{"sign_in/0/message invalid"}},
		{object{"sign_in": []any{flowStep("x", "require_factor", object{"message": "x"})}}, []string{"sign_in/0/message not_applicable"}},
		{object{"sign_in": []any{flowStep("x", "deny", object{"action": "a"})}}, []string{"sign_in/0/action not_applicable"}},
		{object{"sign_in": []any{calls}}, []string{"sign_in/0/action not_found"}},
		{object{"actions": []any{action(object{"name": "No name"})}}, []string{"actions/0/name invalid"}},
		{object{"sign_in": []any{calls}, "actions": []any{action(nil), action(nil)}}, []string{"actions/1/name taken"}},
		{object{"sign_in": []any{calls}, "actions": []any{action(object{"url": "ftp://example.com"})}}, []string{"actions/0/url invalid"}},
		{object{"sign_in": []any{calls}, "actions": []any{action(object{"effects": []any{}})}}, []string{"actions/0/effects required"}},
		{object{"sign_in": []any{calls}, "actions": []any{action(object{"effects": []any{"allow"}})}}, []string{"actions/0/effects unknown_value"}},
		{object{"sign_in": []any{calls}, "actions": []any{action(object{"on_error": "ignore"})}}, []string{"actions/0/on_error unknown_value"}},
		{object{"sign_up": []any{calls}, "actions": []any{action(object{"effects": []any{"deny", "add_claims"}})}}, []string{"sign_up/0/action not_applicable"}},
		{object{"sign_in": []any{calls, calls, calls, calls}, "actions": []any{action(nil)}}, []string{"sign_in too_many"}},
	} {
		wantFlowFaults(t, c, tc.form, tc.faults...)
	}
	wordy, many := []any{}, []any{}
	for n := range 5 {
		wordy = append(wordy, flowStep(fmt.Sprint(n), "deny", object{"when": `email == "` + strings.Repeat("x", 3600) + `"`}))
	}
	wantFlowFaults(t, c, object{"sign_in": wordy[:2], "sign_up": wordy[2:]}, "sign_in/1/when too_large")
	for n := range 21 {
		many = append(many, flowStep(fmt.Sprint(n), "deny", nil))
	}
	wantFlowFaults(t, c, object{"sign_in": many}, "sign_in too_many")
	a := c.want(t, 400, "validation_failed", "PUT", flowPath+"/draft", object{"sign_in": []any{flowStep("ok", "deny", nil), flowStep("Tor", "deny", object{"when": "emial == ''"})}})
	if message := a.body["message"].(string); !strings.HasPrefix(message, `step 2 of sign_in, "Tor": when is not a condition: `) {
		t.Error(message)
	}
}

// signInFlowActions: services decide about sign-ins within what their actions declare.
func signInFlowActions(t *testing.T, w *world, c *client) {
	service := newDecider(t)
	id := member(t, c, "ann@example.com")
	document := func(onError string, effects ...string) object {
		return object{
			"sign_in": []any{flowStep("Risk", "action", object{"action": "risk"})},
			"actions": []any{object{"name": "risk", "url": service.URL + "/sign-in?key=1", "effects": anys(effects), "on_error": onError}},
		}
	}
	c.want(t, 200, "", "PUT", flowPath+"/draft", document("deny", "deny"))
	missing := c.want(t, 409, "sign_in_action_secret_missing", "POST", flowPath+"/publish", object{})
	equal(t, "action", missing.details()["action"], "risk")
	for _, ttl := range []int{-1, 604_801} {
		c.want(t, 400, "validation_failed", "POST", flowPath+"/actions/risk/secret", object{"previous_ttl_s": ttl})
	}

	version, secrets := publishFlow(t, c, document("deny", "deny", "require_factor", "add_claims"))
	equal(t, "event", lastEvent(t, w, c, eventlog.SignInFlowSecretRotated), object{"action": "risk"})
	attempt := func(status int, code string) answer {
		t.Helper()
		return c.with("").want(t, status, code, "POST", authPath+"/sign-in", object{"email": "ann@example.com", "password": secret})
	}
	attempt(200, "")
	got := service.requests()
	if len(got) != 1 || !w.verified(got[0], secrets["risk"]) {
		t.Fatalf("%d requests, or a wrong signature", len(got))
	}
	data := got[0].event["data"].(object)
	equal(t, "request", []any{got[0].event["event_type"], data["point"], data["action"], data["test"], data["user"].(object)["id"], data["amr"]},
		[]any{"sign_in_flow.action", "sign_in", "risk", false, id, []any{"pwd"}})

	// Both secrets sign after a rotation.
	next := signingSecret(t, c.want(t, 200, "", "POST", flowPath+"/actions/risk/secret", nil).data())
	service.says(`{}`)
	attempt(200, "")
	if got := service.requests(); !w.verified(got[0], next) || signature.Verify(got[0].header, got[0].body, secrets["risk"], w.now(), signature.Tolerance) != nil {
		t.Error("one of the secrets does not verify")
	}

	// Effects.
	service.says(`{"deny":{"message":"Call <b>us</b>."}}`)
	equal(t, "message", attempt(403, "permission_denied").body["message"], "Call <b>us</b>.")
	if page := c.visit(t, "POST", "/auth/sign-in", nil, url.Values{"email": {"ann@example.com"}, "password": {secret}}); !strings.Contains(page.html, "Call &lt;b&gt;us&lt;/b&gt;.") {
		t.Errorf("page: %s", page.html)
	}
	service.says(`{"require_factor":true}`)
	equal(t, "a factor", attempt(200, "").data()["status"], "mfa_enrolment_required")
	service.says(`{"add_claims":{"department":"ops","level":3}}`)
	app := newParty(t, c, object{"allowed_scopes": []any{"openid", "offline_access"}})
	app.session = attempt(200, "").data()["session_token"].(string)
	tokens := app.exchange(t, app.code(t, url.Values{"scope": {"openid offline_access"}}), nil).body
	info := func(token any) object {
		return c.with(token.(string)).want(t, 200, "", "GET", "/oauth2/userinfo", nil).body
	}
	for place, claims := range map[string]object{"ID token": claimsOf(t, tokens["id_token"].(string)), "access token": claimsOf(t, tokens["access_token"].(string)), "userinfo": info(tokens["access_token"])} {
		equal(t, place, []any{claims["department"], claims["level"]}, []any{"ops", 3.0})
	}
	refreshed := app.refresh(t, tokens["refresh_token"].(string), nil).body
	equal(t, "refreshed", claimsOf(t, refreshed["access_token"].(string))["department"], "ops")
	equal(t, "requests of a refresh", len(service.requests()), 1)

	// A service that fails.
	failing := map[string]func(http.ResponseWriter){
		"response_invalid": func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"deny":`) },
		"status":           func(w http.ResponseWriter) { w.WriteHeader(500) },
		"too_large":        func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"add_claims":{"x":"` + long(17<<10) + `"}}`)) },
		"claim_refused":    func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"add_claims":{"sub":"usr_other"}}`) },
	}
	for reason, answer := range failing {
		service.does(answer)
		attempt(403, "permission_denied")
		event := lastEvent(t, w, c, eventlog.SignInFlowActionFailed)
		equal(t, reason, []any{event["reason"], event["outcome"], event["version"]}, []any{reason, "denied", version})
	}
	for _, body := range []string{
		`{"add_claims":{"acr":"aal2"}}`, `{"add_claims":{"scope":"users:write"}}`, `{"add_claims":{"tid":"x"}}`, `{"add_claims":{"two words":1}}`, `{"add_claims":{"x":null}}`,
		`{"add_claims":{"x":"` + long(2<<10) + `"}}`, `{"allow":true}`, `{"deny":{"message":"two\nlines"}}`, `{"deny":{"message":"` + long(301) + `"}}`, `[]`, ``, `null`, `{} {}`, `{"deny":{},"deny":null}`,
		`{"deny":true}`, `{"deny":{"Message":"x"}}`, `{"deny":{"message":1}}`, `{"require_factor":"true"}`, `{"require_factor":1}`, `{"Require_Factor":true}`, `{"add_claims":[]}`,
	} {
		service.says(body)
		attempt(403, "permission_denied")
	}
	for _, body := range []string{`{}`, `{"deny":null,"require_factor":null,"add_claims":null}`, `{"require_factor":false,"add_claims":{}}`, " {\n}\n"} {
		service.says(body)
		attempt(200, "")
	}
	service.says(`{"deny":{"message":null},"require_factor":true}`)
	equal(t, "without a message", attempt(403, "permission_denied").details()["reason"], "sign_in_flow")
	service.does(func(w http.ResponseWriter) {
		w.Header().Set("Location", service.URL+"/other")
		w.WriteHeader(302)
	})
	attempt(403, "permission_denied")
	equal(t, "redirects that were followed", len(service.requests()), 1)
	publishFlow(t, c, document("continue", "deny"))
	service.says(`{"require_factor":true}`)
	attempt(200, "")
	event := lastEvent(t, w, c, eventlog.SignInFlowActionFailed)
	equal(t, "undeclared", []any{event["reason"], event["outcome"]}, []any{"effect_undeclared", "failed"})
	service.does(func(w http.ResponseWriter) { w.WriteHeader(204) })
	attempt(200, "")
	// A denial is no failure, whatever else is wrong with the response.
	for _, body := range []string{`{"deny":{"message":"two\nlines"}}`, `{"deny":{"message":"` + long(301) + `"}}`, `{"deny":{},"require_factor":true}`, `{"deny":{},"add_claims":{"sub":"usr_other"}}`} {
		service.says(body)
		if message := attempt(403, "permission_denied").body["message"].(string); len(message) > 300 || strings.Contains(message, "\n") {
			t.Errorf("%s: message %q", body, message)
		}
	}

	// A preview calls the service only if it is asked to.
	service.says(`{"deny":{}}`)
	preview := func(more object) object {
		t.Helper()
		return c.want(t, 200, "", "POST", flowPath+"/preview", with(object{"flow": "active", "user_id": id}, more)).data()
	}
	equal(t, "not called", []any{preview(nil)["outcome"], len(service.requests())}, []any{"allowed", 0})
	equal(t, "called", []any{preview(object{"call_actions": true})["outcome"], service.requests()[0].event["data"].(object)["test"]}, []any{"denied", true})

	// Who publishes gives the service the users, and can add to tokens.
	settings := c.with(w.token(t, c, w.application(t, c, "settings:write", "settings:read")))
	both := c.with(w.token(t, c, w.application(t, c, "settings:write", "users:read")))
	c.want(t, 200, "", "PUT", flowPath+"/draft", document("deny", "add_claims"))
	equal(t, "scope", settings.want(t, 403, "permission_denied", "POST", flowPath+"/publish", object{}).details()["required_scope"], "users:read")
	equal(t, "scope", both.want(t, 403, "permission_denied", "POST", flowPath+"/publish", object{}).details()["required_scope"], "applications:write")
	settings.want(t, 403, "permission_denied", "POST", fmt.Sprintf("%s/versions/%v/rollback", flowPath, version), object{})
	settings.want(t, 403, "permission_denied", "POST", flowPath+"/preview", object{"user_id": id})
	settings.want(t, 403, "permission_denied", "POST", flowPath+"/preview", object{"call_actions": true})

	// A rollback needs the secrets of its actions, which are kept with its version.
	publishFlow(t, c, object{})
	c.want(t, 200, "", "POST", fmt.Sprintf("%s/versions/%v/rollback", flowPath, version), nil)
	service.says(`{}`)
	attempt(200, "")
	equal(t, "called after the rollback", len(service.requests()), 1)
	if _, err := w.db.Exec(t.Context(), `DELETE FROM sign_in_flow_secrets WHERE action = 'risk'`); err != nil {
		t.Fatal(err)
	}
	c.want(t, 409, "sign_in_action_secret_missing", "POST", fmt.Sprintf("%s/versions/%v/rollback", flowPath, version), nil)
	attempt(403, "permission_denied")
	equal(t, "reason", lastEvent(t, w, c, eventlog.SignInFlowActionFailed)["reason"], "secret_missing")
}

// signInFlowClaims: the claims of a sign-in reach the tokens of first-party applications only, and no
// exchanged token.
func signInFlowClaims(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	service := newDecider(t)
	service.says(`{"add_claims":{"department":"ops","secret":"x"}}`)
	ann := member(t, c, "ann@example.com")
	publishFlow(t, c, object{
		"sign_in": []any{flowStep("Risk", "action", object{"action": "risk"})},
		"actions": []any{object{"name": "risk", "url": service.URL, "effects": []any{"add_claims"}}},
	})
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	user := c.with(session)
	// reach requires the claims of a sign-in in some tokens and in the UserInfo response, or that there are none.
	reach := func(what string, want any, tokens object) {
		t.Helper()
		places := map[string]object{"userinfo": c.with(tokens["access_token"].(string)).want(t, 200, "", "GET", "/oauth2/userinfo", nil).body}
		for _, name := range []string{"access_token", "id_token"} {
			if token, ok := tokens[name].(string); ok {
				places[name] = claimsOf(t, token)
			}
		}
		for place, claims := range places {
			equal(t, what+": "+place, []any{claims["sub"], claims["department"], claims["secret"]}, []any{ann, want, map[bool]any{want != nil: "x"}[true]})
		}
	}

	own := newParty(t, c, object{"allowed_scopes": []any{"openid", "offline_access"}, "token_exchange": exchanging(ordersAPI)})
	own.session = session
	tokens := own.exchange(t, own.code(t, url.Values{"scope": {"openid offline_access"}}), nil).body
	reach("first party", "ops", tokens)
	// A configured claim precedes one of the same name.
	named := newParty(t, c, object{"allowed_scopes": []any{"openid"}, "claims": []any{configured("department", object{"attribute": "id"}, "id_token", "access_token", "userinfo")}})
	named.session = session
	reach("configured", ann, named.exchange(t, named.code(t, url.Values{"scope": {"openid"}}), nil).body)

	guest := newParty(t, c, object{"first_party": false, "allowed_scopes": []any{"openid", "offline_access"}})
	guest.session = session
	guest.ask(t, url.Values{"scope": {"openid offline_access"}})
	_, to := guest.browse(t, user.want(t, 200, "", "POST", authPath+"/consent", object{"flow_id": guest.flow, "decision": "allow"}).data()["redirect_to"].(string))
	foreign := guest.exchange(t, to.Query().Get("code"), nil).body
	reach("third party", nil, foreign)
	reach("third party, refreshed", nil, guest.refresh(t, foreign["refresh_token"].(string), nil).body)

	// Exchanged tokens, and the tokens exchanged for those.
	exchanged, _ := own.swapped(t, tokens["access_token"].(string), nil)
	reach("exchanged", nil, object{"access_token": exchanged})
	again, _ := own.swapped(t, exchanged, nil)
	reach("exchanged again", nil, object{"access_token": again})
	permit(t, c, "audience", ordersAPI, "caller", object{"type": "user", "id": ann})
	_, claims := own.swapped(t, tokens["access_token"].(string), url.Values{"audience": {ordersAPI}})
	equal(t, "for another audience", []any{claims["sub"], claims["department"]}, []any{ann, nil})

	// The claims are not shown to the user, nor to those who read sessions and events.
	for _, a := range []answer{user.want(t, 200, "", "GET", mePath+"/sessions", nil), c.want(t, 200, "", "GET", usersPath+"/"+ann+"/sessions", nil)} {
		if strings.Contains(a.text, "department") {
			t.Errorf("the sessions have the claims: %s", a.text)
		}
	}
	for _, e := range w.events(t, c, 0) {
		if strings.Contains(string(e.Data), "department\":\"ops") {
			t.Errorf("%s has the claims: %s", e.Type, e.Data)
		}
	}

	// An application that is no longer of the tenant gets them no more.
	listed := c.want(t, 200, "", "GET", appsPath+"?q="+own.id, nil).list()[0].(object)
	c.want(t, 200, "", "PATCH", appsPath+"/"+listed["id"].(string), object{"first_party": false})
	equal(t, "no longer first party", c.with(tokens["access_token"].(string)).want(t, 200, "", "GET", "/oauth2/userinfo", nil).body["department"], nil)
}

// signInFlowPaths: a flow is in the way of every kind of sign-in, of sign-ups, and of sign-ins that began
// before it was published.
func signInFlowPaths(t *testing.T, w *world, c *client) {
	anon := c.with("")
	member(t, c, "ann@example.com")
	key, _ := enrol(t, w, signedIn(t, c, "ann@example.com"))
	member(t, c, "bob@example.com")
	anon.want(t, 202, "", "POST", authPath+"/password/forgot", object{"email": "bob@example.com"})
	reset := link(t, w.mailbox.take(t, "bob@example.com", "Choose a new password"))
	halfway := signIn(t, c, "ann@example.com", secret, "mfa_required").data()["mfa_token"]
	p := newOpenID(t, w)
	staff(t, c, p, object{"jit_provisioning": true})
	federated := func(subject string) (begun, object) {
		b := c.start(t, "staff", "")
		return b, b.complete("staff", p.signIn(t, b.request, object{"sub": subject, "email": subject + "@example.org", "email_verified": true}))
	}
	_, form := federated("fed")
	anon.want(t, 200, "", "POST", authPath+"/federation/complete", form)

	publishFlow(t, c, object{
		"sign_up": []any{flowStep("Closed", "deny", object{"when": `connection != "staff"`, "message": "Ask for an account."})},
		"sign_in": []any{flowStep("Closed", "deny", object{"message": "Closed for today."})},
	})
	closed := func(path string, form object, message string) {
		t.Helper()
		a := anon.want(t, 403, "permission_denied", "POST", authPath+path, form)
		equal(t, path, []any{a.body["message"], len(a.header.Values("Set-Cookie"))}, []any{message, 0})
	}
	closed("/sign-in", object{"email": "bob@example.com", "password": secret}, "Closed for today.")
	w.later(step) // the code of enrolment was used
	closed("/mfa/verify", object{"mfa_token": halfway, "kind": "totp", "code": code(t, key, w.now())}, "Closed for today.")
	closed("/password/reset", object{"token": reset, "password": "another horse battery"}, "Closed for today.")
	closed("/sign-up", object{"email": "new@example.com", "password": "another horse battery"}, "Ask for an account.")
	_, form = federated("fed")
	closed("/federation/complete", form, "Closed for today.")
	_, form = federated("first")
	closed("/federation/complete", form, "Closed for today.")
	b := c.start(t, "staff", "")
	page := c.visit(t, "GET", "/federation/staff/callback?"+p.signIn(t, b.request, object{"sub": "fed"}).Encode(), http.Header{"Cookie": b.cookies}, nil)
	if page.status != 403 || !strings.Contains(page.html, "Closed for today.") || cookieOf(page) != "" {
		t.Errorf("callback: %d %s", page.status, page.html)
	}
	if page := c.visit(t, "POST", "/auth/sign-up", nil, url.Values{"email": {"new@example.com"}, "password": {"another horse battery"}, "name": {"New"}}); page.status != 403 || !strings.Contains(page.html, "Ask for an account.") {
		t.Errorf("sign-up: %d %s", page.status, page.html)
	}

	// An application gets no code; the user goes back to it with access_denied.
	app := newParty(t, c, object{"allowed_scopes": []any{"openid"}})
	_, to := app.ask(t, url.Values{"scope": {"openid"}})
	next := to.Query().Get("next")
	page = c.visit(t, "POST", "/auth/sign-in", nil, url.Values{"email": {"bob@example.com"}, "password": {"another horse battery"}, "next": {next}})
	back := strings.ReplaceAll(next, "&", "&amp;") + "&amp;cancel=true"
	if page.status != 403 || !strings.Contains(page.html, `<a href="`+back+`">Back to the application</a>`) {
		t.Errorf("the page has no way back: %d %s", page.status, page.html)
	}
	a, to := app.browse(t, next+"&cancel=true")
	equal(t, "back", []any{a.status, to.Query().Get("error"), to.Query().Get("state"), to.Query().Has("code")}, []any{302, "access_denied", "a b&c=", false})
	app.browser = nil
	if a, to := app.browse(t, next+"&cancel=true"); a.status != 400 || to.String() != "" {
		t.Errorf("another browser: %d %s", a.status, to)
	}

	// Sessions from before go on.
	publishFlow(t, c, object{"sign_in": []any{flowStep("Factor", "require_factor", object{"when": `email == "bob@example.com"`})}})
	bob := anon.want(t, 200, "", "POST", authPath+"/sign-in", object{"email": "bob@example.com", "password": "another horse battery"})
	equal(t, "bob", bob.data()["status"], "mfa_enrolment_required")
}
