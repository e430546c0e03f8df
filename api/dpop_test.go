package api_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/oauth/dpop/dpoptest"
)

// proving returns the application with proofs of a key (RFC 9449); nil: without.
func (p *relyingParty) proving(key *dpoptest.Key) *relyingParty {
	with := *p
	with.client = p.client.proving(key)
	return &with
}

// credential gets a token by client credentials.
func (p *relyingParty) credential(t testing.TB) answer {
	t.Helper()
	return p.form(t, basic(p.id, p.secret), url.Values{"grant_type": {"client_credentials"}})
}

// boundTo checks that an answer's token is bound to a key (empty: to none), and returns it.
func boundTo(t testing.TB, what string, a answer, thumbprint string) string {
	t.Helper()
	if a.status != 200 {
		t.Fatalf("%s: %d %s", what, a.status, a.text)
	}
	token := a.body["access_token"].(string)
	got := []any{a.body["token_type"], claimsOf(t, token)["cnf"]}
	if thumbprint == "" {
		equal(t, what, got, []any{"Bearer", nil})
	} else {
		equal(t, what, got, []any{"DPoP", object{"jkt": thumbprint}})
	}
	return token
}

func newMachine(t testing.TB, c *client, form object) *relyingParty {
	t.Helper()
	setup := object{"name": "Machine", "type": "m2m", "redirect_uris": []any{}, "allowed_scopes": []any{"resources:read", "resources:write"}}
	maps.Copy(setup, form)
	return newParty(t, c, setup)
}

// boundTokens uses a token that is bound to a key, with and without proofs.
func boundTokens(t *testing.T, w *world, c *client) {
	base := c.base()
	const target = "/api/v1/resource-types"
	key, thief := dpoptest.NewKey(t), dpoptest.NewKey(t)
	machine := newMachine(t, c, nil)
	token := boundTo(t, "token", machine.proving(key).credential(t), key.Thumbprint)
	unbound := boundTo(t, "without proof", machine.credential(t), "")

	// With a proof of its key the token is accepted.
	own := c.with(token).proving(key)
	define(t, own)
	own.want(t, 201, "", "POST", "/api/v1/resources", resource("document", "a b/c"))
	equal(t, "escaped", own.want(t, 200, "", "GET", path("document", "a b/c")+"?x=y", nil).data()["external_id"], "a b/c")
	equal(t, "HEAD", own.send(t, "HEAD", target, nil, nil).status, 200)
	again := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"once"}}
	for _, replayed := range []string{"", "true"} {
		a := own.send(t, "POST", "/api/v1/resources", again, []byte(`{"type":"document","external_id":"d"}`))
		equal(t, "under a key", []any{a.status, a.header.Get("Idempotent-Replayed")}, []any{201, replayed})
	}
	own.want(t, 403, "insufficient_scope", "GET", "/api/v1/users", nil)
	equal(t, "challenge", own.do(t, "GET", "/api/v1/users", nil).header["Www-Authenticate"], []string{
		`DPoP realm="` + base + `", resource_metadata="` + base + `/.well-known/oauth-protected-resource", algs="ES256 RS256 PS256 EdDSA", error="insufficient_scope", scope="users:read"`, `Bearer realm="` + base + `", resource_metadata="` + base + `/.well-known/oauth-protected-resource"`,
	})
	c.with(unbound).want(t, 200, "", "GET", target, nil)

	// The proof must name the tenant's address; headers that name another host are ignored.
	proof := func(changes object) string { return key.Proof(t, "GET", base+target, token, changes) }
	get := func(authorization string, proofs ...string) answer {
		t.Helper()
		return c.with("").send(t, "GET", target, http.Header{"Authorization": {authorization}, "Dpop": proofs, "X-Forwarded-Host": {"evil.test"}, "X-Forwarded-Proto": {"http"}}, nil)
	}
	equal(t, "another spelling", get("dpop "+token, proof(object{"htu": "HTTPS://" + strings.ToUpper(c.host) + ":443/api/x/../%761/resource-types?q#f"})).status, 200)

	now := time.Now().Unix()
	used := proof(nil)
	equal(t, "first", get("DPoP "+token, used).status, 200)
	claims := strings.Split(used, ".")
	for what, tc := range map[string]struct {
		authorization string
		proofs        []string
		code, reason  string
	}{
		"as a bearer token":         {"Bearer " + token, nil, "invalid_token", "bound"},
		"so, with a proof":          {"Bearer " + token, []string{proof(nil)}, "invalid_token", "bound"},
		"not bound":                 {"DPoP " + unbound, []string{key.Proof(t, "GET", base+target, unbound, nil)}, "invalid_token", "not_bound"},
		"a thief's key":             {"DPoP " + token, []string{thief.Proof(t, "GET", base+target, token, nil)}, "invalid_token", "wrong_key"},
		"no token":                  {"DPoP", []string{proof(nil)}, "invalid_token", "malformed"},
		"a session":                 {"DPoP sess_x", []string{proof(nil)}, "invalid_token", "malformed"},
		"a proof as a bearer token": {"Bearer " + proof(nil), nil, "invalid_token", "wrong_type"},
		"a proof as a bound token":  {"DPoP " + proof(nil), []string{proof(nil)}, "invalid_token", "wrong_type"},
		"no proof":                  {"DPoP " + token, nil, "invalid_dpop_proof", "missing"},
		"two proofs":                {"DPoP " + token, []string{proof(nil), proof(nil)}, "invalid_dpop_proof", "repeated"},
		"two in one header":         {"DPoP " + token, []string{proof(nil) + ", " + proof(nil)}, "invalid_dpop_proof", "bad_signature"},
		"an access token as proof":  {"DPoP " + token, []string{token}, "invalid_dpop_proof", "wrong_type"},
		"no signature":              {"DPoP " + token, []string{claims[0] + "." + claims[1] + "."}, "invalid_dpop_proof", "bad_signature"},
		"used":                      {"DPoP " + token, []string{used}, "invalid_dpop_proof", "replayed"},
		"too old":                   {"DPoP " + token, []string{proof(object{"iat": now - 90})}, "invalid_dpop_proof", "wrong_time"},
		"too new":                   {"DPoP " + token, []string{proof(object{"iat": now + 90})}, "invalid_dpop_proof", "wrong_time"},
		"another method":            {"DPoP " + token, []string{proof(object{"htm": "POST"})}, "invalid_dpop_proof", "wrong_method"},
		"another path":              {"DPoP " + token, []string{proof(object{"htu": base + "/api/v1/resources"})}, "invalid_dpop_proof", "wrong_url"},
		"the forwarded host":        {"DPoP " + token, []string{proof(object{"htu": "http://evil.test" + target})}, "invalid_dpop_proof", "wrong_url"},
		"the server's own name":     {"DPoP " + token, []string{proof(object{"htu": c.server.URL + target})}, "invalid_dpop_proof", "wrong_url"},
		"no token's hash":           {"DPoP " + token, []string{proof(object{"ath": nil})}, "invalid_dpop_proof", "wrong_token"},
		"another token's hash":      {"DPoP " + token, []string{key.Proof(t, "GET", base+target, unbound, nil)}, "invalid_dpop_proof", "wrong_token"},
		"no jti":                    {"DPoP " + token, []string{proof(object{"jti": nil})}, "invalid_dpop_proof", "malformed"},
	} {
		a := get(tc.authorization, tc.proofs...)
		equal(t, what, []any{a.status, a.code(), a.details()["reason"]}, []any{401, tc.code, tc.reason})
		tried, other := `Bearer realm="`+base+`", resource_metadata="`+base+`/.well-known/oauth-protected-resource"`, `DPoP realm="`+base+`", resource_metadata="`+base+`/.well-known/oauth-protected-resource", algs="ES256 RS256 PS256 EdDSA"`
		if strings.HasPrefix(tc.authorization, "DPoP") {
			tried, other = other, tried
		}
		equal(t, what, a.header["Www-Authenticate"], []string{tried + `, error="` + tc.code + `"`, other})
	}
	equal(t, "nothing", c.with("").want(t, 401, "unauthenticated", "GET", target, nil).header["Www-Authenticate"],
		[]string{`Bearer realm="` + base + `", resource_metadata="` + base + `/.well-known/oauth-protected-resource"`, `DPoP realm="` + base + `", resource_metadata="` + base + `/.well-known/oauth-protected-resource", algs="ES256 RS256 PS256 EdDSA"`})

	// Introspection states the key.
	said := machine.present(t, introspectPath, basic(machine.id, machine.secret), url.Values{"token": {token}}).body
	equal(t, "introspection", []any{said["active"], said["token_type"], said["cnf"]}, []any{true, "DPoP", object{"jkt": key.Thumbprint}})
	said = machine.present(t, introspectPath, basic(machine.id, machine.secret), url.Values{"token": {unbound}}).body
	equal(t, "introspection", []any{said["active"], said["token_type"], said["cnf"]}, []any{true, "Bearer", nil})

	// A bound token can be revoked.
	equal(t, "revoke", machine.present(t, revokePath, basic(machine.id, machine.secret), url.Values{"token": {token}}).status, 200)
	equal(t, "revoked", own.want(t, 401, "invalid_token", "GET", target, nil).details()["reason"], "revoked")
	if log := w.log.String(); strings.Contains(log, token) || strings.Contains(log, used) {
		t.Error("a token or a proof was logged")
	}
}

// proofs sends invalid and repeated proofs to the endpoints for clients.
func proofs(t *testing.T, w *world, c *client) {
	endpoint := c.base() + "/oauth2/token"
	key := dpoptest.NewKey(t)
	machine := newMachine(t, c, nil)
	send := func(proofs ...string) answer {
		t.Helper()
		h := basic(machine.id, machine.secret)
		h["Dpop"] = proofs
		return machine.form(t, h, url.Values{"grant_type": {"client_credentials"}})
	}
	now := time.Now().Unix()
	for what, bad := range map[string][]string{
		"empty":          {""},
		"garbage":        {"x.y.z"},
		"two":            {key.Proof(t, "POST", endpoint, "", nil), key.Proof(t, "POST", endpoint, "", nil)},
		"an URL's":       {key.Proof(t, "POST", c.base()+"/oauth2/par", "", nil)},
		"another host's": {key.Proof(t, "POST", "https://another.test/oauth2/token", "", nil)},
		"another method": {key.Proof(t, "GET", endpoint, "", nil)},
		"old":            {key.Proof(t, "POST", endpoint, "", object{"iat": now - 90})},
		"new":            {key.Proof(t, "POST", endpoint, "", object{"iat": now + 90})},
		"no jti":         {key.Proof(t, "POST", endpoint, "", object{"jti": nil})},
		"access token":   {c.token},
	} {
		a := send(bad...)
		equal(t, what, []any{a.status, a.code(), a.header.Get("Pragma")}, []any{400, "invalid_dpop_proof", "no-cache"})
	}

	// Only valid proofs of an authenticated client are consumed.
	id := object{"jti": "id-1"}
	good := key.Proof(t, "POST", endpoint, "", id)
	equal(t, "wrong", send(key.Proof(t, "GET", endpoint, "", id)).code(), "invalid_dpop_proof")
	h := basic(machine.id, "x")
	h["Dpop"] = []string{good}
	equal(t, "a stranger", machine.form(t, h, url.Values{"grant_type": {"client_credentials"}}).code(), "invalid_client")
	boundTo(t, "right", send(good), key.Thumbprint)
	equal(t, "again", send(good).code(), "invalid_dpop_proof")
	equal(t, "its jti again", send(key.Proof(t, "POST", endpoint, "", id)).code(), "invalid_dpop_proof")
	other := dpoptest.NewKey(t)
	boundTo(t, "its jti by another key", send(other.Proof(t, "POST", endpoint, "", id)), other.Thumbprint)
	elsewhere := newMachine(t, w.tenant(t, "proofs-other"), nil)
	h = basic(elsewhere.id, elsewhere.secret)
	h["Dpop"] = []string{key.Proof(t, "POST", "https://proofs-other.test/oauth2/token", "", id)}
	boundTo(t, "its jti at another tenant", elsewhere.form(t, h, url.Values{"grant_type": {"client_credentials"}}), key.Thumbprint)

	// Of 50 parallel uses of a proof, one succeeds, at each endpoint and over all processes.
	token := boundTo(t, "token", machine.proving(key).credential(t), key.Thumbprint)
	servers := []*client{c, {server: httptestServer(t, w, nil), host: c.host}}
	resource := key.Proof(t, "GET", c.base()+"/api/v1/resource-types", token, nil)
	endpointProof := key.Proof(t, "POST", endpoint, "", nil)
	for what, try := range map[string]func(*client) answer{
		"token": func(c *client) answer {
			at := *machine
			at.client = c.with("")
			h := basic(machine.id, machine.secret)
			h["Dpop"] = []string{endpointProof}
			return at.form(t, h, url.Values{"grant_type": {"client_credentials"}})
		},
		"resource": func(c *client) answer {
			return c.with("").send(t, "GET", "/api/v1/resource-types", http.Header{"Authorization": {"DPoP " + token}, "Dpop": {resource}}, nil)
		},
	} {
		var wg sync.WaitGroup
		answers := make(chan answer, 50)
		for i := range cap(answers) {
			wg.Go(func() { answers <- try(servers[i%2]) })
		}
		wg.Wait()
		close(answers)
		won := 0
		for a := range answers {
			if a.status == 200 {
				won++
			} else {
				equal(t, what, a.code(), "invalid_dpop_proof")
			}
		}
		equal(t, what+": who won", won, 1)
	}
}

// boundGrants binds codes, refresh tokens and pushed requests to keys.
func boundGrants(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	member(t, c, "ann@example.com")
	p, page := newParty(t, c, object{"name": "Server"}), newParty(t, c, object{"name": "Page", "type": "spa"})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	page.session = p.session
	key, other := dpoptest.NewKey(t), dpoptest.NewKey(t)

	// Code, userinfo and ID token.
	got := page.proving(key).exchange(t, page.code(t, nil), nil)
	token := boundTo(t, "code", got, key.Thumbprint)
	equal(t, "ID token", claimsOf(t, got.body["id_token"].(string))["cnf"], object{"jkt": key.Thumbprint})
	for _, method := range []string{"GET", "POST"} {
		equal(t, "userinfo", c.with(token).proving(key).want(t, 200, "", method, "/oauth2/userinfo", nil).body["email"], "ann@example.com")
		c.with(token).want(t, 401, "invalid_token", method, "/oauth2/userinfo", nil)
		form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Dpop": {key.Proof(t, "POST", c.base()+"/oauth2/userinfo", token, nil)}}
		equal(t, "in a form", c.with("").send(t, "POST", "/oauth2/userinfo", form, []byte("access_token="+token)).code(), "invalid_token")
		c.with(token).proving(other).want(t, 401, "invalid_token", method, "/oauth2/userinfo", nil)
	}
	idToken := got.body["id_token"].(string)
	a := c.with("").send(t, "GET", "/oauth2/userinfo", http.Header{"Authorization": {"DPoP " + token}, "Dpop": {idToken}}, nil)
	equal(t, "an ID token as proof", []any{a.code(), a.details()["reason"]}, []any{"invalid_dpop_proof", "wrong_type"})

	// A public client needs its key for each refresh; without it the token is not consumed.
	refresh := got.body["refresh_token"].(string)
	for _, thief := range []*dpoptest.Key{nil, other} {
		equal(t, "another key", page.proving(thief).refresh(t, refresh, nil).code(), "invalid_grant")
	}
	got = page.proving(key).refresh(t, refresh, nil)
	token = boundTo(t, "refreshed", got, key.Thumbprint)
	for _, thief := range []*dpoptest.Key{nil, other} { // a replaced one neither: it is not the client
		equal(t, "replayed by another", page.proving(thief).refresh(t, refresh, nil).code(), "invalid_grant")
	}
	c.with(token).proving(key).want(t, 200, "", "GET", "/oauth2/userinfo", nil)
	equal(t, "replayed", page.proving(key).refresh(t, refresh, nil).code(), "invalid_grant")
	c.with(token).proving(key).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil)

	// An unbound refresh token can become bound. Reuse of the old token is still detected.
	got = page.exchange(t, page.code(t, nil), nil)
	boundTo(t, "without proof", got, "")
	first := got.body["refresh_token"].(string)
	got = page.proving(other).refresh(t, first, nil)
	boundTo(t, "bound later", got, other.Thumbprint)
	equal(t, "then with it", page.refresh(t, got.body["refresh_token"].(string), nil).code(), "invalid_grant")
	equal(t, "who had it", page.refresh(t, first, nil).code(), "invalid_grant")
	equal(t, "ends the family", page.proving(other).refresh(t, got.body["refresh_token"].(string), nil).code(), "invalid_grant")

	// A client with a secret may change its key (RFC 9449 §5).
	got = p.proving(key).exchange(t, p.code(t, nil), nil)
	boundTo(t, "server", got, key.Thumbprint)
	got = p.proving(other).refresh(t, got.body["refresh_token"].(string), nil)
	boundTo(t, "another key", got, other.Thumbprint)
	boundTo(t, "none", p.refresh(t, got.body["refresh_token"].(string), nil), "")

	// A code that was requested with a key requires that key, and is not consumed with another.
	jkt := url.Values{"dpop_jkt": {key.Thumbprint}}
	for _, by := range []*relyingParty{p, page} {
		code := by.code(t, jkt)
		for _, thief := range []*dpoptest.Key{nil, other} {
			equal(t, "another key", by.proving(thief).exchange(t, code, nil).code(), "invalid_grant")
		}
		token := boundTo(t, "its key", by.proving(key).exchange(t, code, nil), key.Thumbprint)
		equal(t, "replayed without the key", by.exchange(t, code, nil).code(), "invalid_grant")
		c.with(token).proving(key).want(t, 200, "", "GET", "/oauth2/userinfo", nil)
		equal(t, "replayed", by.proving(key).exchange(t, code, nil).code(), "invalid_grant")
		c.with(token).proving(key).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil)
	}
	for _, bad := range []url.Values{{"dpop_jkt": {"x"}}, {"dpop_jkt": {key.Thumbprint + "="}}, {"dpop_jkt": {""}}, {"dpop_jkt": {key.Thumbprint, key.Thumbprint}}} {
		_, to := p.ask(t, bad)
		equal(t, "dpop_jkt", to.Query().Get("error"), "invalid_request")
	}
	// The binding is kept while the user signs in.
	browser := newParty(t, c, object{"name": "Browser"})
	_, to := browser.ask(t, jkt)
	browser.session = p.session
	_, to = browser.browse(t, to.Query().Get("next"))
	equal(t, "after signing in", browser.exchange(t, to.Query().Get("code"), nil).code(), "invalid_grant")
	boundTo(t, "after signing in", browser.proving(key).exchange(t, to.Query().Get("code"), nil), key.Thumbprint)

	// The tokens of a device are bound to its key.
	tv := newParty(t, c, object{"name": "Television", "type": "native", "redirect_uris": []any{}})
	begun := tv.present(t, devicePath, nil, url.Values{"client_id": {tv.id}, "scope": {"openid"}}).body
	c.with(p.session).want(t, 200, "", "POST", authPath+"/device", object{"user_code": begun["user_code"], "decision": "allow"})
	got = tv.proving(key).form(t, nil, url.Values{"grant_type": {deviceGrant}, "client_id": {tv.id}, "device_code": {begun["device_code"].(string)}})
	boundTo(t, "device", got, key.Thumbprint)
	equal(t, "another key", tv.proving(other).refresh(t, got.body["refresh_token"].(string), nil).code(), "invalid_grant")
	boundTo(t, "its key", tv.proving(key).refresh(t, got.body["refresh_token"].(string), nil), key.Thumbprint)

	// A pushed request can name its key by a proof.
	const par = "/oauth2/par"
	push := func(by *relyingParty, changes url.Values) answer {
		t.Helper()
		return by.present(t, par, basic(p.id, p.secret), p.request(changes))
	}
	for what, pushed := range map[string]answer{"proof": push(p.proving(key), nil), "parameter": push(p, jkt), "both": push(p.proving(key), jkt)} {
		if pushed.status != 201 {
			t.Fatalf("%s: %d %s", what, pushed.status, pushed.text)
		}
		_, to := p.browse(t, "/oauth2/authorize?"+url.Values{"client_id": {p.id}, "request_uri": {pushed.body["request_uri"].(string)}}.Encode())
		code := to.Query().Get("code")
		equal(t, what, p.proving(other).exchange(t, code, nil).code(), "invalid_grant")
		boundTo(t, what, p.proving(key).exchange(t, code, nil), key.Thumbprint)
	}
	equal(t, "they disagree", push(p.proving(other), jkt).code(), "invalid_request")
	h := basic(p.id, p.secret)
	h["Dpop"] = []string{key.Proof(t, "POST", c.base()+"/oauth2/token", "", nil)}
	equal(t, "another endpoint's proof", p.present(t, par, h, p.request(nil)).code(), "invalid_dpop_proof")
	h["Dpop"] = []string{key.Proof(t, "POST", c.base()+par, "", nil)}
	equal(t, "its own", p.present(t, par, h, p.request(nil)).status, 201)
	equal(t, "again", p.present(t, par, h, p.request(nil)).code(), "invalid_dpop_proof")

	// dpop_bound_access_tokens requires proofs.
	strict := newParty(t, c, object{"name": "Strict", "dpop_bound_access_tokens": true, "token_exchange": exchanging()})
	strict.session = p.session
	machine := newMachine(t, c, object{"dpop_bound_access_tokens": true})
	equal(t, "client credentials", machine.credential(t).code(), "invalid_dpop_proof")
	boundTo(t, "client credentials", machine.proving(key).credential(t), key.Thumbprint)
	code := strict.code(t, nil)
	equal(t, "code", strict.exchange(t, code, nil).code(), "invalid_dpop_proof")
	got = strict.proving(key).exchange(t, code, nil)
	token = boundTo(t, "code", got, key.Thumbprint)
	equal(t, "refresh", strict.refresh(t, got.body["refresh_token"].(string), nil).code(), "invalid_dpop_proof")
	boundTo(t, "refresh", strict.proving(key).refresh(t, got.body["refresh_token"].(string), nil), key.Thumbprint)
	equal(t, "exchange", strict.swap(t, token, nil).code(), "invalid_dpop_proof")
	boundTo(t, "exchange", strict.proving(key).swap(t, token, nil), key.Thumbprint)
}

// boundExchange keeps the binding of tokens in token exchanges.
func boundExchange(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	ann, bob := member(t, c, "ann@example.com"), member(t, c, "bob@example.com")
	acting := object{"enabled": true, "act_as": object{"enabled": true, "allowed_subject_types": []any{"user"}}}
	p := newParty(t, c, object{"name": "Server", "token_exchange": acting})
	page := newParty(t, c, object{"name": "Page", "type": "spa", "token_exchange": exchanging()})
	loose := newParty(t, c, object{"name": "Loose", "token_exchange": object{"enabled": true, "require_client_authentication": false}})
	key, other := dpoptest.NewKey(t), dpoptest.NewKey(t)
	as := func(by *relyingParty, email string) *relyingParty {
		t.Helper()
		by.session = signIn(t, c, email, secret, "complete").data()["session_token"].(string)
		return by
	}
	issue := func(by *relyingParty, key *dpoptest.Key) map[string]any {
		t.Helper()
		a := by.proving(key).exchange(t, by.code(t, url.Values{"scope": {"openid me:read"}}), nil)
		if a.status != 200 {
			t.Fatalf("%d %s", a.status, a.text)
		}
		return a.body
	}
	only := func(what string, by *relyingParty, token, typ string, more url.Values) {
		t.Helper()
		v := url.Values{"subject_token_type": {tokenTypes + typ}}
		maps.Copy(v, more)
		for _, thief := range []*dpoptest.Key{nil, other} {
			equal(t, what+", another key", by.proving(thief).swap(t, token, v).code(), "invalid_request")
		}
		boundTo(t, what, by.proving(key).swap(t, token, v), key.Thumbprint)
	}
	as(p, "ann@example.com")
	as(page, "ann@example.com")
	as(loose, "ann@example.com")

	subject := issue(p, key)
	only("access token", p, subject["access_token"].(string), "access_token", nil)
	only("narrower", p, subject["access_token"].(string), "jwt", url.Values{"scope": {"me:read"}})
	only("ID token", p, subject["id_token"].(string), "id_token", nil)
	// A client that authenticates needs no key for a refresh token (RFC 9449 §5).
	boundTo(t, "refresh token", p.swap(t, subject["refresh_token"].(string), url.Values{"subject_token_type": {tokenTypes + "refresh_token"}}), "")

	// A public client needs the key for all tokens.
	public := issue(page, key)
	for typ, name := range map[string]string{"access_token": "access_token", "id_token": "id_token", "refresh_token": "refresh_token"} {
		only("page's "+typ, page, public[name].(string), typ, nil)
	}
	loosely := issue(loose, key)
	loose.secret = ""
	only("not authenticated", loose, loosely["refresh_token"].(string), "refresh_token", nil)

	// In chains of exchanges, and by another application.
	token := boundTo(t, "once", p.proving(key).swap(t, subject["access_token"].(string), nil), key.Thumbprint)
	only("twice", p, token, "access_token", nil)
	only("another's", p, public["access_token"].(string), "access_token", url.Values{"scope": {"openid"}})
	c.with(token).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil)
	c.with(token).proving(key).want(t, 200, "", "GET", "/oauth2/userinfo", nil)

	// A token that is bound to none becomes bound with a proof.
	free := issue(p, nil)["access_token"].(string)
	boundTo(t, "unbound", p.swap(t, free, nil), "")
	boundTo(t, "bound", p.proving(other).swap(t, free, nil), other.Thumbprint)

	// The actor's token needs its key as well.
	permit(t, c, "user", ann, "act_as", user(bob))
	actor := issue(as(p, "bob@example.com"), key)["access_token"].(string)
	by := url.Values{"actor_token": {actor}, "actor_token_type": {tokenTypes + "access_token"}}
	only("actor", p, free, "access_token", by)
	theirs := issue(p, other)["access_token"].(string)
	equal(t, "two keys", p.proving(key).swap(t, subject["access_token"].(string), url.Values{"actor_token": {theirs}, "actor_token_type": {tokenTypes + "access_token"}}).code(), "invalid_request")

	// A proof is not accepted as a token (RFC 8725 §3.11).
	proof := key.Proof(t, "POST", c.base()+"/oauth2/token", "", nil)
	for _, typ := range []string{"access_token", "id_token", "jwt", "refresh_token"} {
		equal(t, "a proof as "+typ, p.swap(t, proof, url.Values{"subject_token_type": {tokenTypes + typ}}).code(), "invalid_request")
	}

	// Refusals are recorded with their reason.
	reasons := map[any]bool{}
	for _, record := range w.exchanges(t, c) {
		reasons[record["reason"]] = true
	}
	for _, reason := range []string{"subject_token_key", "actor_token_key"} {
		equal(t, reason, reasons[reason], true)
	}
	h := basic(p.id, p.secret)
	h["Dpop"] = []string{"x"}
	equal(t, "no proof", p.form(t, h, url.Values{"grant_type": {exchangeGrant}, "subject_token": {free}, "subject_token_type": {tokenTypes + "access_token"}}).code(), "invalid_dpop_proof")
	records := w.exchanges(t, c)
	equal(t, "on record", records[len(records)-1]["reason"], "dpop_proof")
}
