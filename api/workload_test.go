package api_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/oauth/protocol"
	"stonetown/oauth/workload"
)

const issuersPath = "/api/v1/trusted-issuers"

// platform is an issuer of tokens of workloads, with a discovery document and keys over HTTP.
type platform struct {
	*httptest.Server
	key     atomic.Pointer[signer]
	fetches atomic.Int32
}

func newPlatform(t testing.TB) *platform {
	t.Helper()
	p := new(platform)
	p.rotate(t, "1")
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body any
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			body = object{"issuer": p.URL, "jwks_uri": p.URL + "/keys"}
		case "/liar/.well-known/openid-configuration":
			body = object{"issuer": p.URL, "jwks_uri": p.URL + "/keys"}
		case "/keys":
			p.fetches.Add(1)
			body = keySet(*p.key.Load())
		default:
			http.NotFound(w, r)
			return
		}
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// rotate replaces the key of the platform.
func (p *platform) rotate(t testing.TB, kid string) {
	key := newSigner(t, kid)
	p.key.Store(&key)
}

const mainBranch = "repo:acme/app:ref:refs/heads/main"

// token returns a token as GitHub Actions gives one to a job; nil removes a claim.
func (p *platform) token(t testing.TB, audience string, changes object) string {
	t.Helper()
	claims := object{
		"iss": p.URL, "sub": mainBranch, "repository": "acme/app", "ref": "refs/heads/main", "environment": "production",
		"kubernetes.io": object{"namespace": "billing", "serviceaccount": object{"name": "worker"}}, "run_attempt": 1,
	}
	maps.Copy(claims, changes)
	return p.key.Load().assert(t, "", audience, claims)
}

// trust creates a trusted issuer and returns its id.
func trust(t testing.TB, c *client, form object) string {
	t.Helper()
	return c.want(t, 201, "", "POST", issuersPath, form).data()["id"].(string)
}

// present presents a token of a workload to get one of an application.
func presentWorkload(t testing.TB, c *client, clientID, assertion string, more url.Values) answer {
	t.Helper()
	v := url.Values{"grant_type": {protocol.GrantJWTBearer}, "client_id": {clientID}, "assertion": {assertion}}
	maps.Copy(v, more)
	return c.form(t, nil, v)
}

// lastEvent returns the data of the last event of a type.
func lastEvent(t testing.TB, w *world, c *client, typ eventlog.Type) object {
	t.Helper()
	all := w.told(t, c, typ)
	if len(all) == 0 {
		t.Fatalf("no event %s", typ)
	}
	return all[len(all)-1]["data"].(object)
}

// applicationID returns the id of an application.
func applicationID(t testing.TB, c *client, clientID string) string {
	t.Helper()
	return c.want(t, 200, "", "GET", appsPath+"?q="+clientID, nil).list()[0].(object)["id"].(string)
}

// signedWith returns a JWT with any header, beside alg.
func signedWith(t testing.TB, by signer, header, claims object) string {
	t.Helper()
	full := object{"alg": "ES256"}
	maps.Copy(full, header)
	var parts []string
	for _, part := range []object{full, claims} {
		text, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(text))
	}
	input := strings.Join(parts, ".")
	digest := sha256.Sum256([]byte(input))
	r, v, err := ecdsa.Sign(rand.Reader, by.private.(*ecdsa.PrivateKey), digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return input + "." + base64.RawURLEncoding.EncodeToString(append(r.FillBytes(make([]byte, 32)), v.FillBytes(make([]byte, 32))...))
}

func workloadTokens(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	base := c.base()
	ci := newPlatform(t)
	grants := func() string {
		return fmt.Sprint(c.with("").want(t, 200, "", "GET", "/.well-known/openid-configuration", nil).body["grant_types_supported"])
	}
	if strings.Contains(grants(), protocol.GrantJWTBearer) {
		t.Error("the grant is listed and no issuer is trusted")
	}
	issuer := trust(t, c, object{"issuer": ci.URL, "description": "CI"})
	if !strings.Contains(grants(), protocol.GrantJWTBearer) {
		t.Error("the grant is not listed")
	}
	app := newMachine(t, c, object{"workload_identities": []any{object{"issuer_id": issuer, "subject": mainBranch, "claims": object{"environment": "production"}}}})

	a := presentWorkload(t, c, app.id, ci.token(t, base, object{"jti": "first"}), nil)
	equal(t, "answer", []any{a.status, a.body["token_type"], a.body["scope"], a.body["refresh_token"]}, []any{200, "Bearer", "resources:read resources:write", nil})
	if life := a.body["expires_in"].(float64); life > 60 || life < 50 { // the assertion is valid for a minute
		t.Errorf("expires in %v seconds", life)
	}
	token := a.body["access_token"].(string)
	claims := claimsOf(t, token)
	equal(t, "claims", []any{claims["sub"], claims["client_id"], claims["aud"], claims["act"]}, []any{app.id, app.id, base, nil})
	c.with(token).want(t, 200, "", "GET", "/api/v1/resource-types", nil)
	c.with(token).want(t, 403, "insufficient_scope", "GET", appsPath, nil)
	event := lastEvent(t, w, c, eventlog.TokenWorkloadExchanged)
	equal(t, "event", []any{event["subject"], event["jti"], event["new_jti"], event["trusted_issuer"]}, []any{mainBranch, "first", claims["jti"], object{"id": issuer, "issuer": ci.URL}})

	a = presentWorkload(t, c, app.id, ci.token(t, base, nil), url.Values{"scope": {"resources:read"}, "resource": {base}})
	equal(t, "narrowed", []any{a.status, a.body["scope"]}, []any{200, "resources:read"})
	equal(t, "another resource", presentWorkload(t, c, app.id, ci.token(t, base, nil), url.Values{"resource": {"https://elsewhere.example.com"}}).code(), "invalid_target")
	equal(t, "a scope that it lacks", presentWorkload(t, c, app.id, ci.token(t, base, nil), url.Values{"scope": {"users:read"}}).code(), "invalid_scope")
	a = c.form(t, basic(app.id, app.secret), url.Values{"grant_type": {protocol.GrantJWTBearer}, "assertion": {ci.token(t, base, nil)}})
	equal(t, "with client authentication", a.status, 200)
	a = c.form(t, basic(app.id, "cs_wrong"), url.Values{"grant_type": {protocol.GrantJWTBearer}, "assertion": {ci.token(t, base, nil)}})
	equal(t, "with a wrong secret", a.status, 401)

	// Keys are fetched once, and again for a new one, but not for each that is made up.
	equal(t, "fetches", ci.fetches.Load(), int32(1))
	ci.rotate(t, "2")
	equal(t, "a new key", presentWorkload(t, c, app.id, ci.token(t, base, nil), nil).status, 200)
	published := ci.key.Load()
	for range 3 {
		ci.rotate(t, "made-up")
		equal(t, "a key that is made up", presentWorkload(t, c, app.id, ci.token(t, base, nil), nil).code(), "invalid_grant")
	}
	ci.key.Store(published)
	equal(t, "fetches", ci.fetches.Load(), int32(2))

	// Claims in objects, keys that are part of the issuer, an audience of its own and tokens that are used again.
	cluster := newPlatform(t)
	second := trust(t, c, object{"issuer": "https://kubernetes.default.svc.cluster.local", "jwks": keySet(*cluster.key.Load()), "audience": "stonetown", "single_use": false})
	pod := newMachine(t, c, object{"workload_identities": []any{object{"issuer_id": second, "claims": object{"/kubernetes.io/namespace": "billing", "/kubernetes.io/serviceaccount/name": "worker"}}}})
	mounted := cluster.token(t, "stonetown", object{"iss": "https://kubernetes.default.svc.cluster.local", "sub": "system:serviceaccount:billing:worker", "aud": []any{"stonetown"}, "jti": nil})
	for range 2 {
		equal(t, "presented again", presentWorkload(t, c, pod.id, mounted, nil).status, 200)
	}
	equal(t, "no fetch", cluster.fetches.Load(), int32(0))
	equal(t, "another application", presentWorkload(t, c, app.id, mounted, nil).code(), "invalid_grant")

	// A token can be bound to a key.
	bound := newMachine(t, c, object{"dpop_bound_access_tokens": true, "workload_identities": []any{object{"issuer_id": issuer, "subject": mainBranch}}})
	equal(t, "without a proof", presentWorkload(t, c, bound.id, ci.token(t, base, nil), nil).code(), "invalid_dpop_proof")
}

func workloadRefusals(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	base := c.base()
	ci, other := newPlatform(t), newPlatform(t)
	issuer, otherID := trust(t, c, object{"issuer": ci.URL}), trust(t, c, object{"issuer": other.URL, "signing_algs": []any{"RS256"}})
	identities := []any{object{"issuer_id": issuer, "subject": mainBranch, "claims": object{"environment": "production"}}, object{"issuer_id": otherID, "subject": "robot"}}
	app := newMachine(t, c, object{"workload_identities": identities})
	at := appsPath + "/" + applicationID(t, c, app.id)
	now := time.Now()
	refused := func(what, assertion, reason string) {
		t.Helper()
		a := presentWorkload(t, c, app.id, assertion, nil)
		equal(t, what, []any{a.status, a.code()}, []any{400, "invalid_grant"})
		if reason != "" && !strings.Contains(fmt.Sprint(a.body["error_description"]), reason) {
			t.Errorf("%s: %v, want %q", what, a.body["error_description"], reason)
		}
	}
	for what, attack := range map[string]struct {
		audience string
		changes  object
		reason   string
	}{
		"wrong aud":                         {"https://other.example.com", nil, "aud must be"},
		"the token endpoint as aud":         {base + "/oauth2/token", nil, "aud must be"},
		"several audiences":                 {"", object{"aud": []any{base, "https://other.example.com"}}, "aud must be"},
		"no aud":                            {"", object{"aud": nil}, "aud must be"},
		"an empty list as aud":              {"", object{"aud": []any{}}, "aud must be"},
		"iss of another issuer":             {base, object{"iss": other.URL}, "not valid"},
		"iss of the tenant":                 {base, object{"iss": base}, "not valid"},
		"unknown iss":                       {base, object{"iss": "https://nobody.example.com"}, "not valid"},
		"no iss":                            {base, object{"iss": nil}, "not valid"},
		"iss with a slash":                  {base, object{"iss": ci.URL + "/"}, "not valid"},
		"expired":                           {base, object{"exp": now.Add(-time.Second).Unix()}, "exp is in the past"},
		"no exp":                            {base, object{"exp": nil}, "exp is missing"},
		"far exp":                           {base, object{"iat": nil, "exp": now.Add(25 * time.Hour).Unix()}, "lifetime is longer than 3600"},
		"long lifetime":                     {base, object{"iat": now.Add(-time.Hour).Unix(), "exp": now.Add(30 * time.Minute).Unix()}, "lifetime is longer than 3600"},
		"nbf ahead":                         {base, object{"nbf": now.Add(time.Minute).Unix()}, "nbf is in the future"},
		"iat ahead":                         {base, object{"iat": now.Add(time.Minute).Unix()}, "iat is in the future"},
		"no jti":                            {base, object{"jti": nil}, "jti is missing"},
		"no sub":                            {base, object{"sub": nil}, "sub is missing"},
		"another sub":                       {base, object{"sub": "repo:acme/app:pull_request"}, "may not act"},
		"a longer sub":                      {base, object{"sub": mainBranch + "x"}, "may not act"},
		"another environment":               {base, object{"environment": "staging"}, "may not act"},
		"no environment":                    {base, object{"environment": nil}, "may not act"},
		"an environment that is not a text": {base, object{"environment": []any{"production"}}, "may not act"},
		"the sub of another identity":       {base, object{"sub": "robot"}, "may not act"},
		"a logout token":                    {base, object{"events": object{}}, "events"},
	} {
		refused(what, ci.token(t, attack.audience, attack.changes), attack.reason)
	}
	refused("an algorithm that the issuer is not allowed", other.token(t, base, object{"sub": "robot"}), "not valid")

	// Headers.
	good := strings.Split(ci.token(t, base, nil), ".")
	encode := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	evil := newSigner(t, "1")
	refused("alg none", encode(object{"alg": "none"})+"."+good[1]+".", "")
	public, err := x509.MarshalPKIXPublicKey(ci.key.Load().private.Public())
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range [][]byte{public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})} {
		input := encode(object{"alg": "HS256", "kid": "1"}) + "." + good[1]
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(input))
		refused("HS256 with the public key", input+"."+base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), "")
	}
	sign := func(by signer, header, claims object) string {
		t.Helper()
		return signedWith(t, by, header, claims)
	}
	claims := object{"iss": ci.URL, "sub": mainBranch, "environment": "production", "aud": base, "jti": "h", "exp": now.Add(time.Minute).Unix()}
	refused("another key under the kid", sign(evil, object{"kid": "1"}, claims), "not valid")
	refused("a kid of a path", sign(evil, object{"kid": "../../dev/null"}, claims), "not valid")
	refused("its own key in the header", sign(evil, object{"kid": "1", "jwk": evil.public}, claims), "not valid")
	stolen := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("jku was fetched") }))
	defer stolen.Close()
	refused("jku", sign(evil, object{"kid": "1", "jku": stolen.URL, "x5u": stolen.URL}, claims), "not valid")
	refused("crit", sign(*ci.key.Load(), object{"kid": "1", "crit": []any{"exp"}, "exp": 1}, claims), "not valid")
	for _, typ := range []string{"at+jwt", "logout+jwt", "dpop+jwt", "application/at+jwt", "client-authentication+jwt", "secevent+jwt"} {
		refused("typ "+typ, sign(*ci.key.Load(), object{"kid": "1", "typ": typ}, claims), "not valid")
	}
	refused("a key of another issuer", sign(*other.key.Load(), object{"kid": "1"}, claims), "not valid")
	refused("no JWT", "hello", "")
	refused("too large", strings.Repeat("x", 20<<10), "")
	refused("an own access token", w.token(t, c, w.application(t, c, "resources:read")), "")
	equal(t, "typ JWT", presentWorkload(t, c, app.id, sign(*ci.key.Load(), object{"kid": "1", "typ": "JWT"}, claims), nil).status, 200)
	refused("its jti again, in another token", sign(*ci.key.Load(), object{"kid": "1"}, claims), "jti was used before")

	// The form, and clients.
	equal(t, "no assertion", c.form(t, nil, url.Values{"grant_type": {protocol.GrantJWTBearer}, "client_id": {app.id}}).code(), "invalid_request")
	equal(t, "no client", c.form(t, nil, url.Values{"grant_type": {protocol.GrantJWTBearer}, "assertion": {ci.token(t, base, nil)}}).code(), "invalid_request")
	equal(t, "unknown client", presentWorkload(t, c, "client_unknown", ci.token(t, base, nil), nil).body["error_description"], "the workload may not act as this client")
	unbound := newMachine(t, c, nil)
	equal(t, "a client that names no workload", presentWorkload(t, c, unbound.id, ci.token(t, base, nil), nil).body["error_description"], "the workload may not act as this client")

	// Parallel requests with one jti: one wins.
	once := ci.token(t, base, nil)
	var won atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if presentWorkload(t, c, app.id, once, nil).status == 200 {
				won.Add(1)
			}
		})
	}
	all.Wait()
	equal(t, "winners", won.Load(), int32(1))

	// Another tenant, which trusts the same issuer.
	stranger := w.tenant(t, "workload-stranger")
	trust(t, stranger, object{"issuer": ci.URL, "audience": base})
	equal(t, "at another tenant", presentWorkload(t, stranger, app.id, ci.token(t, base, nil), nil).code(), "invalid_grant")
	c.with("").want(t, 401, "unauthenticated", "GET", issuersPath, nil)
	stranger.want(t, 404, "trusted_issuer_not_found", "GET", issuersPath+"/"+issuer, nil)
	equal(t, "the issuer of another tenant", fields(stranger.want(t, 400, "validation_failed", "POST", appsPath, object{"name": "A", "type": "m2m", "workload_identities": identities})), []string{"workload_identities/0/issuer_id"})

	// What permits it ends: the application, the issuer, the relation, the identity.
	works := func(what string) {
		t.Helper()
		equal(t, what, presentWorkload(t, c, app.id, ci.token(t, base, nil), nil).status, 200)
	}
	works("before")
	c.want(t, 200, "", "POST", at+"/disable", nil)
	equal(t, "disabled application", presentWorkload(t, c, app.id, ci.token(t, base, nil), nil).code(), "unauthorized_client")
	c.want(t, 200, "", "POST", at+"/enable", nil)
	works("enabled again")
	c.want(t, 200, "", "PATCH", issuersPath+"/"+issuer, object{"enabled": false})
	refused("disabled issuer", ci.token(t, base, nil), "not valid")
	c.want(t, 200, "", "PATCH", issuersPath+"/"+issuer, object{"enabled": true})
	works("trusted again")
	c.want(t, 403, "permission_denied", "DELETE", path("application", app.id)+"/relations", relation(object{"type": "workload_identity", "id": "x"}, "impersonator"))
	c.want(t, 200, "", "PATCH", at, object{"workload_identities": identities[1:]})
	refused("removed identity", ci.token(t, base, nil), "may not act")
	c.want(t, 200, "", "PATCH", at, object{"workload_identities": identities})
	works("added again")
	if text := w.log.String(); !strings.Contains(text, "workload refused") || !strings.Contains(text, "no workload identity of the application matches") {
		t.Error("the log has no reason")
	}
	if strings.Contains(w.log.String(), once) {
		t.Error("the log has an assertion")
	}
	c.want(t, 204, "", "DELETE", at, nil)
	refused("deleted application", ci.token(t, base, nil), "may not act")
}

func trustedIssuers(t *testing.T, w *world, c *client) {
	form := object{"issuer": "https://ci.example.com", "description": "CI", "max_lifetime_s": 900, "signing_algs": []any{"RS256"}}
	d := c.want(t, 201, "", "POST", issuersPath, form).data()
	at := issuersPath + "/" + d["id"].(string)
	equal(t, "read", c.want(t, 200, "", "GET", at, nil).data(), d)
	equal(t, "defaults", []any{d["enabled"], d["jwks"], d["jwks_uri"], d["audience"], d["single_use"]}, []any{true, nil, nil, nil, true})
	c.want(t, 409, "trusted_issuer_exists", "POST", issuersPath, form)
	second := c.want(t, 201, "", "POST", issuersPath, object{"issuer": "https://b.example.com"}).data()
	page := c.want(t, 200, "", "GET", issuersPath+"?limit=1", nil)
	equal(t, "first page", page.list(), []any{second})
	equal(t, "second page", c.want(t, 200, "", "GET", issuersPath+"?limit=1&cursor="+url.QueryEscape(page.meta("next_cursor").(string)), nil).list(), []any{d})
	c.want(t, 400, "validation_failed", "GET", issuersPath+"?limit=0", nil)
	c.want(t, 400, "cursor_invalid", "GET", issuersPath+"?cursor=x", nil)

	key := newSigner(t, "1")
	private := maps.Clone(key.public)
	private["d"] = "AAAA"
	for field, bad := range map[string][]object{
		"issuer":         {{"issuer": nil}, {"issuer": ""}, {"issuer": "ci"}, {"issuer": "https://c.example.com#x"}, {"issuer": "https://c.example.com?x"}, {"issuer": "https://c.exa mple.com"}, {"issuer": c.base()}, {"issuer": c.base() + "/"}, {"issuer": 1}, {"issuer": "spiffe://example.org"}},
		"jwks":           {{"jwks": object{}}, {"jwks": object{"keys": []any{}}}, {"jwks": object{"keys": []any{private}}}, {"jwks": object{"keys": []any{object{"kty": "oct", "k": "AAAA"}}}}, {"jwks": keySet(key), "signing_algs": []any{"RS256"}}, {"jwks": "x"}},
		"jwks_uri":       {{"jwks_uri": "ftp://x"}, {"jwks_uri": "https://u:p@example.com/"}, {"jwks": keySet(key), "jwks_uri": "https://example.com/keys"}, {"jwks_uri": 1}},
		"audience":       {{"audience": "a\nb"}, {"audience": strings.Repeat("x", 501)}},
		"description":    {{"description": strings.Repeat("x", 501)}, {"description": "a\x01"}, {"description": 1}},
		"signing_algs":   {{"signing_algs": []any{"none"}}, {"signing_algs": []any{"HS256"}}, {"signing_algs": []any{}}, {"signing_algs": "RS256"}},
		"max_lifetime_s": {{"max_lifetime_s": 59}, {"max_lifetime_s": 86401}, {"max_lifetime_s": "1"}, {"max_lifetime_s": 1.5}},
		"enabled":        {{"enabled": "yes"}},
		"single_use":     {{"single_use": 1}},
	} {
		for _, changes := range bad {
			form := object{"issuer": "https://c.example.com"}
			maps.Copy(form, changes)
			equal(t, fmt.Sprint(changes), fields(c.want(t, 400, "validation_failed", "POST", issuersPath, form)), []string{field})
			if field != "issuer" {
				equal(t, fmt.Sprint("PATCH ", changes), fields(c.want(t, 400, "validation_failed", "PATCH", at, changes)), []string{field})
			}
		}
	}
	c.want(t, 201, "", "POST", issuersPath, object{"issuer": "spiffe://example.org", "jwks": keySet(key)})
	c.want(t, 400, "immutable_field", "PATCH", at, object{"issuer": "https://d.example.com"})
	changed := c.want(t, 200, "", "PATCH", at, object{"enabled": false, "audience": "x", "jwks_uri": "https://ci.example.com/keys", "max_lifetime_s": nil}).data()
	equal(t, "changed", []any{changed["enabled"], changed["audience"], changed["jwks_uri"], changed["max_lifetime_s"], changed["signing_algs"]}, []any{false, "x", "https://ci.example.com/keys", 3600.0, []any{"RS256"}})
	changes, _ := lastEvent(t, w, c, eventlog.TrustedIssuerUpdated)["changes"].(object)
	equal(t, "changes", changes["max_lifetime_s"], []any{900.0, 3600.0})
	c.want(t, 404, "trusted_issuer_not_found", "PATCH", issuersPath+"/iss_x", object{"enabled": false})
	c.want(t, 404, "trusted_issuer_not_found", "GET", issuersPath+"/%00", nil)

	// An issuer in use; applications; rights.
	app := newMachine(t, c, object{"allowed_scopes": []any{"users:write"}, "workload_identities": []any{object{"issuer_id": d["id"], "subject": "s"}}})
	of := appsPath + "/" + applicationID(t, c, app.id)
	c.want(t, 409, "trusted_issuer_in_use", "DELETE", at, nil)
	equal(t, "grant types", c.want(t, 200, "", "GET", of, nil).data()["grant_types"], []any{"client_credentials", protocol.GrantJWTBearer})
	id := d["id"]
	for field, bad := range map[string][]any{
		"workload_identities/0/issuer_id": {object{"subject": "s"}, object{"issuer_id": "iss_x", "subject": "s"}},
		"workload_identities/0/subject":   {object{"issuer_id": id}, object{"issuer_id": id, "subject": strings.Repeat("x", 501)}},
		"workload_identities/0/claims":    {object{"issuer_id": id, "claims": object{"": "x"}}, object{"issuer_id": id, "claims": object{"a": ""}}, object{"issuer_id": id, "claims": object{"/~2": "x"}}},
	} {
		for _, identity := range bad {
			equal(t, fmt.Sprint(identity), fields(c.want(t, 400, "validation_failed", "PATCH", of, object{"workload_identities": []any{identity}})), []string{field})
		}
	}
	one := object{"issuer_id": id, "subject": "s"}
	equal(t, "twice", fields(c.want(t, 400, "validation_failed", "PATCH", of, object{"workload_identities": []any{one, one}})), []string{"workload_identities/1"})
	many := []any{}
	for n := range 21 {
		many = append(many, object{"issuer_id": id, "subject": fmt.Sprint(n)})
	}
	equal(t, "too many", fields(c.want(t, 400, "validation_failed", "PATCH", of, object{"workload_identities": many})), []string{"workload_identities"})
	equal(t, "of users only", fields(c.want(t, 400, "validation_failed", "POST", appsPath, object{"name": "A", "type": "spa", "redirect_uris": []any{callback}, "workload_identities": []any{one}})), []string{"workload_identities"})
	equal(t, "fapi2", fields(c.want(t, 400, "validation_failed", "POST", appsPath, object{"name": "A", "type": "m2m", "profile": "fapi2", "jwks": keySet(key), "workload_identities": []any{one}})), []string{"workload_identities"})
	equal(t, "type", fields(c.want(t, 400, "validation_failed", "PATCH", of, object{"workload_identities": []any{object{"issuer_id": id, "claims": object{"a": 1}}}})), []string{"workload_identities"})

	less := c.with(w.token(t, c, w.application(t, c, "applications:write", "resources:write")))
	denied := func(method, target string, body any) {
		t.Helper()
		equal(t, method+" "+target, less.want(t, 403, "permission_denied", method, target, body).details()["required_scope"], "users:write")
	}
	denied("PATCH", of, object{"workload_identities": []any{one, object{"issuer_id": id, "subject": "mine"}}})
	for _, trusts := range []object{{"enabled": true}, {"enabled": true, "jwks_uri": nil, "jwks": keySet(key), "signing_algs": nil}} {
		denied("PATCH", at, trusts)
	}
	less.want(t, 200, "", "PATCH", at, object{"jwks_uri": nil}) // it is disabled
	c.want(t, 200, "", "PATCH", at, object{"enabled": true})
	for _, trusts := range []object{{"jwks": keySet(key), "signing_algs": nil}, {"audience": "y"}, {"max_lifetime_s": 7200}, {"single_use": false}, {"signing_algs": []any{"ES256", "RS256"}}} {
		denied("PATCH", at, trusts)
	}
	less.want(t, 200, "", "PATCH", at, object{"description": "renamed"})
	less.want(t, 403, "permission_denied", "POST", path("application", app.id)+"/relations", relation(object{"type": "workload_identity", "id": "mine"}, "impersonator"))
	less.want(t, 403, "permission_denied", "POST", "/api/v1/resources", resource("workload_identity", "mine"))
	less.want(t, 200, "", "PATCH", at, object{"enabled": false})
	tree := c.want(t, 200, "", "POST", "/api/v1/resources/expand", object{"resource": resource("application", app.id), "action": "impersonator"}).text
	if !strings.Contains(tree, id.(string)) {
		t.Errorf("the relation is not in the engine: %s", tree)
	}
	c.want(t, 200, "", "PATCH", of, object{"workload_identities": nil})
	c.want(t, 204, "", "DELETE", at, nil)
	c.want(t, 404, "trusted_issuer_not_found", "DELETE", at, nil)
	equal(t, "deleted", lastEvent(t, w, c, eventlog.TrustedIssuerDeleted)["trusted_issuer"], object{"id": id, "issuer": "https://ci.example.com"})

	// Discovery documents of others, and keys that are not there.
	ci := newPlatform(t)
	for _, issuer := range []string{ci.URL + "/liar", ci.URL + "/absent"} {
		liar := trust(t, c, object{"issuer": issuer})
		app := newMachine(t, c, object{"workload_identities": []any{object{"issuer_id": liar, "subject": mainBranch}}})
		equal(t, issuer, presentWorkload(t, c, app.id, ci.token(t, c.base(), object{"iss": issuer}), nil).code(), "invalid_grant")
	}

	tenant, err := w.tenants.TenantByHost(context.Background(), c.host)
	if err != nil {
		t.Fatal(err)
	}
	for n := len(c.want(t, 200, "", "GET", issuersPath, nil).list()); n < workload.MaxIssuers; n++ {
		i := workload.Defaults()
		i.Issuer = fmt.Sprintf("https://%d.example.com", n)
		if _, err := w.oauth.Workloads.Create(context.Background(), protocol.Tenant{ID: tenant.ID, BaseURL: tenant.BaseURL}, i); err != nil {
			t.Fatal(err)
		}
	}
	c.want(t, 409, "trusted_issuer_limit_reached", "POST", issuersPath, object{"issuer": "https://one-more.example.com"})
}
