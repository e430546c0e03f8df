package api_test

import (
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

const settingsPath = "/api/v1/settings"

// refreshLeeway accepts a replaced refresh token within the leeway of the tenant.
func refreshLeeway(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	member(t, c, "ann@example.com")
	p := newParty(t, c, object{"type": "spa"})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	issue := func() string {
		t.Helper()
		return p.exchange(t, p.code(t, nil), nil).body["refresh_token"].(string)
	}
	renew := func(token string) string {
		t.Helper()
		a := p.refresh(t, token, nil)
		if a.status != 200 {
			t.Fatalf("refresh: %d %s", a.status, a.text)
		}
		return a.body["refresh_token"].(string)
	}
	refused := func(what string, tokens ...string) {
		t.Helper()
		for _, token := range tokens {
			equal(t, what, p.refresh(t, token, nil).code(), "invalid_grant")
		}
	}
	pass := func(d time.Duration) {
		t.Helper()
		if _, err := w.db.Exec(t.Context(), `UPDATE refresh_tokens SET rotated_at = rotated_at - $1 WHERE rotated_at <> 0`, d.Microseconds()); err != nil {
			t.Fatal(err)
		}
	}
	// A token that was replaced without leeway stays invalid.
	strict := issue()
	strictNext := renew(strict)
	refused("without leeway", strict, strictNext)
	c.want(t, 200, "", "PATCH", settingsPath, object{"refresh_reuse_leeway_s": 30})

	// Within the leeway it leads to the same successor, until that is used.
	first := issue()
	second := renew(first)
	pass(29 * time.Second)
	equal(t, "again", renew(first), second)
	third := renew(second)
	equal(t, "the next one, again", renew(second), third)
	refused("an older predecessor", first)
	refused("the family", second, third)

	// Not after the leeway, and not for other clients.
	thief := newParty(t, c, object{"name": "Thief", "type": "spa"})
	first = issue()
	second = renew(first)
	equal(t, "a thief", thief.refresh(t, first, nil).code(), "invalid_grant")
	pass(31 * time.Second)
	refused("late", first, second)

	// Two tabs share one token. They renew at once, again and again.
	first = issue()
	for range 3 {
		var wg sync.WaitGroup
		answers := make(chan answer, 5)
		for range cap(answers) {
			wg.Go(func() { answers <- p.refresh(t, first, nil) })
		}
		wg.Wait()
		close(answers)
		next, accessTokens := map[any]bool{}, map[any]bool{}
		for a := range answers {
			equal(t, "at once", a.status, 200)
			next[a.body["refresh_token"]], accessTokens[a.body["access_token"]] = true, true
			first, _ = a.body["refresh_token"].(string)
		}
		equal(t, "refresh tokens and access tokens", []int{len(next), len(accessTokens)}, []int{1, 5})
	}

	// A copy is noticed when it is used out of step.
	second = renew(first)
	equal(t, "a copy in step", renew(first), second)
	third = renew(second)
	pass(31 * time.Second)
	refused("a copy out of step", second)
	refused("the family", third)
	equal(t, "events", w.types(t, c, "security.refresh"), slices.Repeat([]string{"security.refresh_token_reused"}, 4))
}

// refreshFamily ends a family of refresh tokens after the lifetime of the tenant.
func refreshFamily(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	p := newParty(t, c, object{"type": "native"})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	lasts := func() time.Duration {
		t.Helper()
		issued := p.exchange(t, p.code(t, nil), nil)
		grant := claimsOf(t, issued.body["access_token"].(string))["gid"]
		var created, expires, tokens int64
		err := w.db.QueryRow(t.Context(), `
			SELECT g.created_at, g.expires_at, r.expires_at FROM grants g JOIN refresh_tokens r ON r.tenant_id = g.tenant_id AND r.grant_id = g.id WHERE g.id = $1`, grant).Scan(&created, &expires, &tokens)
		if err != nil {
			t.Fatal(err)
		}
		if tokens > expires {
			t.Error("a refresh token outlives what it follows from")
		}
		return time.Duration(expires-created) * time.Microsecond
	}
	equal(t, "by default", lasts(), 90*24*time.Hour)
	c.want(t, 200, "", "PATCH", settingsPath, object{"refresh_family_max_s": 600})
	equal(t, "as the tenant says", lasts(), 10*time.Minute)
	token := p.exchange(t, p.code(t, nil), nil).body["refresh_token"].(string)
	if _, err := w.db.Exec(t.Context(), `UPDATE grants SET expires_at = $1`, time.Now().UnixMicro()); err != nil {
		t.Fatal(err)
	}
	equal(t, "after that", p.refresh(t, token, nil).code(), "invalid_grant")
}

// withoutState accepts requests without state, by PKCE, if the tenant permits it.
func withoutState(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	p := newParty(t, c, nil)
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	_, to := p.ask(t, url.Values{"state": nil})
	equal(t, "required", to.Query().Get("error"), "invalid_request")
	c.want(t, 200, "", "PATCH", settingsPath, object{"require_state": false})
	for what, state := range map[string][]string{"none": nil, "empty": {""}} {
		a, to := p.ask(t, url.Values{"state": state})
		equal(t, what, []any{a.status, to.Query().Has("state"), to.Query().Get("iss"), to.Query().Get("error")}, []any{302, false, c.base(), ""})
		equal(t, what, p.exchange(t, to.Query().Get("code"), nil).status, 200)
	}
	_, to = p.ask(t, nil)
	equal(t, "one that is sent", to.Query().Get("state"), "a b&c=")
	_, to = p.ask(t, url.Values{"state": nil, "code_challenge": nil})
	equal(t, "PKCE all the same", []any{to.Query().Get("error"), to.Query().Has("state")}, []any{"invalid_request", false})
	_, to = p.ask(t, url.Values{"state": {"a", "a"}})
	equal(t, "two", to.Query().Get("error"), "invalid_request")
	_, to = p.ask(t, url.Values{"state": {"\x00"}})
	equal(t, "no text", to.Query().Get("error"), "invalid_request")
	a, _ := p.ask(t, url.Values{"state": nil, "response_mode": {"form_post"}})
	fields := hiddenFields(a.text)
	_, sent := fields["state"]
	equal(t, "form", []any{fields["code"] != "", sent}, []any{true, false})

	// The same holds when the user signs in first, and for pushed requests.
	p.session = ""
	_, to = p.ask(t, url.Values{"state": nil})
	resume := to.Query().Get("next")
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	_, to = p.browse(t, resume)
	equal(t, "resumed", []any{to.Query().Has("code"), to.Query().Has("state")}, []any{true, false})
	pushed := p.present(t, "/oauth2/par", basic(p.id, p.secret), p.request(url.Values{"state": nil}))
	equal(t, "pushed", pushed.status, 201)
}

// previousSecrets keeps a rotated secret valid for the time of the tenant or of the request.
func previousSecrets(t *testing.T, _ *world, c *client) {
	d := c.want(t, 201, "", "POST", appsPath, object{"name": "x", "type": "m2m"}).data()
	rotate := func(body object, want time.Duration) (previous string) {
		t.Helper()
		previous, _ = d["client_secret"].(string)
		now := c.want(t, 200, "", "POST", appsPath+"/"+d["id"].(string)+"/rotate-secret", body).data()
		d["client_secret"] = now["client_secret"]
		at, err := time.Parse(time.RFC3339, now["previous_expires_at"].(string))
		if left := time.Until(at); err != nil || left > want || left < want-time.Minute {
			t.Errorf("the previous secret has %v left, %v, want %v", left, err, want)
		}
		return previous
	}
	ask := func(secret string) int {
		t.Helper()
		return c.form(t, nil, credentials(d["client_id"].(string), secret)).status
	}
	rotate(object{}, 72*time.Hour)
	c.want(t, 200, "", "PATCH", settingsPath, object{"previous_secret_ttl_s": 3600})
	equal(t, "kept", ask(rotate(object{}, time.Hour)), 200)
	rotate(object{"previous_ttl_s": 7200}, 2*time.Hour)
	c.want(t, 200, "", "PATCH", settingsPath, object{"previous_secret_ttl_s": 0})
	equal(t, "dead", ask(rotate(object{}, 0)), 401)
	equal(t, "the new one", ask(d["client_secret"].(string)), 200)
}
