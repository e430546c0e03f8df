package api_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/api"
	"stonetown/internal/idempotency"
	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
	oauthclient "stonetown/oauth/client"
)

// under sends a request under an idempotency key.
func (c *client) under(t testing.TB, key, method, target string, body any) answer {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Idempotency-Key": {key}}
	if body != nil {
		header.Set("Content-Type", "application/json")
	}
	return c.send(t, method, target, header, text)
}

func idempotencyKeys(t *testing.T, w *world, c *client) {
	define(t, c)
	target := path("document", "d") + "/relations"
	ann := relation(user("ann"), "viewer")

	first := c.under(t, "k1", "POST", target, ann)
	again := c.under(t, "k1", "POST", target, ann)
	equal(t, "status", []int{first.status, again.status}, []int{201, 201}) // without the key it would be 200
	equal(t, "body", again.text, first.text)
	equal(t, "replayed", []string{first.header.Get("Idempotent-Replayed"), again.header.Get("Idempotent-Replayed")}, []string{"", "true"})
	if first.header.Get("X-Request-Id") == again.header.Get("X-Request-Id") {
		t.Error("two requests have one id")
	}
	created := c.under(t, "k2", "POST", "/api/v1/resources", resource("folder", "f"))
	replayed := c.under(t, "k2", "POST", "/api/v1/resources", resource("folder", "f"))
	equal(t, "Location", replayed.header.Get("Location"), created.header.Get("Location"))
	gone := c.under(t, "k3", "DELETE", target, ann)
	goneAgain := c.under(t, "k3", "DELETE", target, ann) // without the key it would be 404
	equal(t, "deleted", []int{gone.status, goneAgain.status}, []int{204, 204})
	equal(t, "token", goneAgain.header.Get("X-Consistency-Token"), gone.header.Get("X-Consistency-Token"))
	missing := c.under(t, "k4", "DELETE", target, ann)
	relate(t, c, "document", "d", "viewer", user("ann"))
	equal(t, "a refusal is an answer too", c.under(t, "k4", "DELETE", target, ann).text, missing.text)
	equal(t, "still there", allowed(t, c, user("ann"), "view", "document", "d"), true)

	// A key with another request is refused.
	a := c.under(t, "k1", "POST", target, relation(user("bob"), "viewer"))
	equal(t, "another body", []any{a.status, a.code()}, []any{422, "idempotency_key_reused"})
	equal(t, "another path", c.under(t, "k1", "POST", path("document", "e")+"/relations", ann).status, 201)
	equal(t, "another method", c.under(t, "k1", "DELETE", target, ann).status, 204)
	other := c.with(w.token(t, c, w.application(t, c, "resources:read", "resources:write")))
	equal(t, "another caller", other.under(t, "k1", "POST", target, relation(user("cid"), "viewer")).status, 201)
	elsewhere := w.tenant(t, "idempotency-other")
	define(t, elsewhere)
	equal(t, "another tenant", elsewhere.under(t, "k1", "POST", target, relation(user("cid"), "viewer")).status, 201)
	for range 2 { // reads ignore it
		equal(t, "a check", c.under(t, "k1", "POST", checkPath, check(user("cid"), "view", resource("document", "d"))).status, 200)
		equal(t, "a list", c.under(t, "k1", "GET", target, nil).status, 200)
	}

	// Errors that do not depend on the request are not stored.
	equal(t, "no token", c.with("x").under(t, "k5", "POST", target, ann).status, 401)
	equal(t, "no scope", c.with(w.token(t, c, w.application(t, c, "resources:read"))).under(t, "k5", "POST", target, ann).status, 403)
	equal(t, "too large", c.under(t, "k5", "POST", target, long(1<<20)).status, 413)
	equal(t, "after that", c.under(t, "k5", "POST", target, relation(user("dan"), "viewer")).status, 201)

	// Every operation that accepts a key refuses an invalid one.
	fill := strings.NewReplacer("{name}", "document", "{type}", "document", "{external_id}", "x", "{user_id}", "usr_x", "{group_id}", "grp_x", "{job_id}", "job_x")
	for target, item := range document().doc.Paths.Map() {
		for method, op := range item.Operations() {
			for _, p := range op.Parameters {
				if p.Value.Name != "Idempotency-Key" {
					continue
				}
				mediaType := "application/json"
				if op.RequestBody != nil {
					for mediaType = range op.RequestBody.Value.Content { // which has one
					}
				}
				for _, bad := range [][]string{{""}, {"a b"}, {"ü"}, {long(256)}, {"a", "b"}} {
					a := c.send(t, method, fill.Replace(target), http.Header{"Idempotency-Key": bad, "Content-Type": {mediaType}}, []byte("{}"))
					if a.status != 400 || a.code() != "idempotency_key_invalid" {
						t.Errorf("%s %s under %q: %d %s", method, target, bad, a.status, a.text)
					}
				}
			}
		}
	}
	equal(t, "the longest key", c.under(t, long(255), "POST", target, relation(user("eve"), "viewer")).status, 201)

	// A key expires after a day.
	w.ahead.Store(int64(idempotency.Window))
	defer w.ahead.Store(0)
	equal(t, "a day later", c.under(t, "k1", "POST", target, relation(user("bob"), "viewer")).status, 201)
}

// idempotencyRace sends 50 equal requests at the same time. One is executed.
func idempotencyRace(t *testing.T, w *world, c *client) {
	define(t, c)
	before := revisionOf(t, c)
	var wg sync.WaitGroup
	var done, replayed, refused atomic.Int64
	for range 50 {
		wg.Go(func() {
			switch a := c.under(t, "key", "POST", path("document", "d")+"/relations", relation(user("ann"), "viewer")); {
			case a.status == 201 && a.header.Get("Idempotent-Replayed") == "":
				done.Add(1)
			case a.status == 201:
				replayed.Add(1)
			case a.status == 409 && a.code() == "idempotency_in_progress" && a.header.Get("Retry-After") == "1":
				refused.Add(1)
			default:
				t.Errorf("%d %s", a.status, a.text)
			}
		})
	}
	wg.Wait()
	if done.Load() != 1 || replayed.Load()+refused.Load() != 49 {
		t.Errorf("%d done, %d replayed, %d refused", done.Load(), replayed.Load(), refused.Load())
	}
	if after := revisionOf(t, c); after != before+1 {
		t.Errorf("revision %d, want %d", after, before+1)
	}
}

// revisionOf is the number that a tenant's state has at present.
func revisionOf(t *testing.T, c *client) int {
	t.Helper()
	relate(t, c, "folder", "probe", "viewer", user("probe")) // the first time a write, later none
	token := c.want(t, 200, "", "POST", checkPath, check(user("probe"), "view", resource("folder", "probe"))).meta("consistency_token").(string)
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(text[bytes.LastIndexByte(text, '|')+1:]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// idempotencyAfterDeath repeats a request whose process died between the commit and the storage of
// the response. The retry gets the first result, and nothing is executed twice.
func idempotencyAfterDeath(t *testing.T, w *world, c *client) {
	define(t, c)
	target := path("document", "d") + "/relations"
	revive := func() {
		t.Helper()
		err := w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE idempotency_keys SET status = 0, lease_until = 0`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	first := c.under(t, "key", "POST", target, relation(user("ann"), "viewer"))
	gone := c.under(t, "gone", "DELETE", target, relation(user("ann"), "viewer"))
	before := revisionOf(t, c)
	revive()
	again := c.under(t, "key", "POST", target, relation(user("ann"), "viewer"))
	goneAgain := c.under(t, "gone", "DELETE", target, relation(user("ann"), "viewer"))
	equal(t, "status", []int{again.status, goneAgain.status}, []int{first.status, gone.status})
	equal(t, "token", again.meta("consistency_token"), first.meta("consistency_token"))
	equal(t, "replayed", again.header.Get("Idempotent-Replayed"), "")
	equal(t, "revision", revisionOf(t, c), before)
	equal(t, "not written again", allowed(t, c, user("ann"), "view", "document", "d"), false)
}

func TestRateLimits(t *testing.T) {
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, url(t), nil)
			tight, err := ratelimit.New(ratelimit.Config{DB: w.db, Limits: ratelimit.Limits{
				{Family: ratelimit.Admin, By: ratelimit.Caller}: {Requests: 5, Window: time.Hour},
				{Family: ratelimit.Token, By: ratelimit.IP}:     {Requests: 3, Window: time.Minute},
				{Family: ratelimit.Token, By: ratelimit.Caller}: {Requests: 2, Window: time.Hour},
			}})
			if err != nil {
				t.Fatal(err)
			}
			c := w.tenant(t, "limits")
			app := w.application(t, c, "resources:read", "resources:write")
			other := c.with(w.token(t, c, w.application(t, c, "resources:read", "resources:write")))
			unlimited := c
			limited := httptestServer(t, w, func(config *api.Config) { config.Limits = tight })
			c, other = &client{server: limited, host: c.host, token: c.token}, &client{server: limited, host: c.host, token: other.token}

			for i := range 5 {
				a := c.do(t, "POST", "/api/v1/resource-types", fmt.Sprintf(`{"name":"t%d"}`, i))
				equal(t, "status", a.status, 201)
				equal(t, "RateLimit-Policy", a.header.Get("RateLimit-Policy"), `"admin.caller";q=5;w=3600`)
				if want := fmt.Sprintf(`"admin.caller";r=%d;t=`, 4-i); !strings.HasPrefix(a.header.Get("RateLimit"), want) {
					t.Errorf("RateLimit: %s, want %s...", a.header.Get("RateLimit"), want)
				}
			}
			a := c.want(t, 429, "rate_limited", "POST", "/api/v1/resource-types", `{"name":"t5"}`)
			equal(t, "details", a.details(), object{"limit": 5.0, "window_s": 3600.0, "family": "admin"})
			if after, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || after < 1 || after > 720 {
				t.Errorf("Retry-After: %q", a.header.Get("Retry-After"))
			}
			equal(t, "another caller", other.do(t, "POST", "/api/v1/resource-types", `{"name":"t6"}`).status, 201)
			for range 20 { // questions are not limited
				free := c.want(t, 200, "", "GET", "/api/v1/resource-types", nil)
				equal(t, "RateLimit", free.header.Get("RateLimit"), "")
			}
			equal(t, "not an answer to keep", c.under(t, "k", "POST", "/api/v1/resource-types", object{"name": "t7"}).status, 429)

			ann, _ := w.console(t, unlimited, "ann")
			console := &client{server: limited, host: controlHost, token: ann.token}
			for range 5 {
				console.want(t, 200, "", "GET", orgsPath, nil)
			}
			a = console.want(t, 429, "RATE_LIMITED", "GET", orgsPath, nil)
			if equal(t, "field errors", faultsOf(t, a), []string(nil)); a.header.Get("Retry-After") == "" {
				t.Errorf("no Retry-After: %v", a.header)
			}

			// The tenant may have limits of its own.
			unlimited.want(t, 200, "", "PATCH", "/api/v1/settings", `{"rate_limits":{"admin.caller":"1000/h","authz.caller":"1/h"}}`)
			eventually(t, func() bool { // other processes keep tenants for a moment
				return strings.Contains(c.do(t, "POST", "/api/v1/resource-types", "{}").header.Get("RateLimit-Policy"), "q=1000;")
			})
			equal(t, "with more", c.under(t, "k", "POST", "/api/v1/resource-types", object{"name": "t7"}).status, 201)
			c.want(t, 200, "", "GET", "/api/v1/resource-types", nil)
			equal(t, "questions", c.want(t, 429, "rate_limited", "GET", "/api/v1/resource-types", nil).details()["family"], "authz")

			// The limit of a client, which requires its secret, and that of the address.
			form := func(secret string, header http.Header) answer {
				return c.form(t, header, credentials(app.id, secret))
			}
			equal(t, "first", form(app.secret, nil).status, 200)
			wrong := form("cs_wrong", nil)
			equal(t, "wrong secret", wrong.status, 401)
			equal(t, "third", form(app.secret, nil).status, 200)
			byAddress := form(app.secret, nil)
			equal(t, "fourth", []any{byAddress.status, byAddress.code()}, []any{429, "rate_limited"})
			// No proxy is trusted, so X-Forwarded-For is ignored.
			for i := range 3 {
				forged := http.Header{"X-Forwarded-For": {fmt.Sprintf("198.51.100.%d", i)}, "Forwarded": {"for=198.51.100.1"}, "X-Real-Ip": {"198.51.100.1"}}
				equal(t, "a forged address", form(app.secret, forged).status, 429)
			}
		})
	}
}

// eventually waits until a condition holds, and fails if it does not.
func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for range 1000 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it did not come true")
}

func credentials(id, secret string) url.Values {
	return url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}
}

func webOrigins(t *testing.T, w *world, c *client) {
	const ours, theirs, disabled = "https://app.example.com", "https://other.example.com", "https://old.example.com"
	app := w.newApplication(t, c, oauthclient.Application{Name: "web", Type: oauthclient.Machine, AllowedScopes: []string{"resources:read"}, AllowedOrigins: []string{ours, "http://localhost:3000"}})
	off := w.newApplication(t, c, oauthclient.Application{Name: "off", Type: oauthclient.SPA, AllowedOrigins: []string{disabled}})
	w.newApplication(t, c, oauthclient.Application{Name: "third", Type: oauthclient.SPA, AllowedOrigins: []string{theirs}})
	tenant, err := w.tenants.TenantByHost(t.Context(), c.host)
	if err != nil {
		t.Fatal(err)
	}
	found, err := w.oauth.Clients.ByClientID(t.Context(), tenant.ID, off.id)
	if err == nil {
		_, err = w.oauth.Clients.Update(t.Context(), tenant.ID, found.ID, "", func(a *oauthclient.Application) { a.State = oauthclient.Disabled })
	}
	if err != nil {
		t.Fatal(err)
	}
	const target = "/api/v1/resource-types"
	preflight := func(target, origin, method string) http.Header {
		return c.raw(t, "OPTIONS", target, http.Header{
			"Origin": {origin}, "Access-Control-Request-Method": {method}, "Access-Control-Request-Headers": {"authorization,content-type,dpop,idempotency-key"},
		}, "")
	}
	for origin, want := range map[string]string{
		ours: ours, theirs: theirs, "http://localhost:3000": "http://localhost:3000",
		disabled: "", "https://evil.example.com": "", "null": "", "https://app.example.com.evil": "", "http://app.example.com": "",
		"https://APP.example.com": "", "https://app.example.com:8443": "",
	} {
		for _, h := range []http.Header{
			preflight(target, origin, "POST"),
			c.send(t, "GET", target, http.Header{"Origin": {origin}}, nil).header,
			c.with("bad").send(t, "GET", target, http.Header{"Origin": {origin}}, nil).header, // errors can be read too
		} {
			equal(t, origin, h.Get("Access-Control-Allow-Origin"), want)
			equal(t, origin, h.Get("Access-Control-Allow-Credentials"), "")
			if !strings.Contains(h.Get("Vary"), "Origin") {
				t.Errorf("%s: Vary is %q", origin, h.Get("Vary"))
			}
		}
	}
	h := preflight(target, ours, "POST")
	if !strings.Contains(h.Get("Access-Control-Allow-Headers"), "dpop,idempotency-key") || h.Get("Access-Control-Allow-Methods") != "POST" {
		t.Errorf("preflight: %v", h)
	}
	h = c.send(t, "GET", target, http.Header{"Origin": {ours}}, nil).header
	for _, name := range []string{"X-Request-Id", "Retry-After", "Ratelimit", "Idempotent-Replayed", "X-Consistency-Token", "WWW-Authenticate"} {
		if !strings.Contains(strings.ToLower(h.Get("Access-Control-Expose-Headers")), strings.ToLower(name)) {
			t.Errorf("%s is not exposed: %s", name, h.Get("Access-Control-Expose-Headers"))
		}
	}
	// Changes are effective at once.
	reads := func(origin string) bool {
		return c.send(t, "GET", target, http.Header{"Origin": {origin}}, nil).header.Get("Access-Control-Allow-Origin") == origin
	}
	const added = "https://new.example.com"
	equal(t, "before", reads(added), false)
	late := c.want(t, 201, "", "POST", appsPath, object{"name": "late", "type": "spa", "allowed_origins": []any{added}}).data()["id"].(string)
	equal(t, "of a new application", reads(added), true)
	c.want(t, 200, "", "POST", appsPath+"/"+late+"/disable", nil)
	equal(t, "of a disabled application", reads(added), false)
	c.want(t, 200, "", "POST", appsPath+"/"+late+"/enable", nil)
	equal(t, "of an enabled application", reads(added), true)
	c.want(t, 200, "", "PATCH", appsPath+"/"+late, object{"allowed_origins": []any{}})
	equal(t, "removed", reads(added), false)
	c.want(t, 200, "", "PATCH", settingsPath, object{"trusted_origins": []any{added}})
	equal(t, "of the tenant", reads(added), true)
	c.want(t, 200, "", "PATCH", settingsPath, object{"trusted_origins": nil})
	equal(t, "no more of the tenant", reads(added), false)
	c.want(t, 200, "", "PATCH", appsPath+"/"+late, object{"allowed_origins": []any{added}})
	equal(t, "added", reads(added), true)
	c.want(t, 204, "", "DELETE", appsPath+"/"+late, nil)
	equal(t, "of a deleted application", reads(added), false)

	equal(t, "no such path", preflight("/nowhere", ours, "GET").Get("Access-Control-Allow-Origin"), "")
	for _, target := range []string{"/.well-known/jwks.json", "/api/v1/openapi.json"} {
		equal(t, target, c.with("").send(t, "GET", target, http.Header{"Origin": {"https://anyone.example"}}, nil).header.Get("Access-Control-Allow-Origin"), "*")
	}

	// The token endpoint accepts the origins of the named client.
	ask := func(origin string, client application) string {
		return c.form(t, http.Header{"Origin": {origin}}, credentials(client.id, client.secret)).header.Get("Access-Control-Allow-Origin")
	}
	equal(t, "own origin", ask(ours, app), ours)
	equal(t, "another application's origin", ask(theirs, app), "")
	equal(t, "nobody's origin", ask("https://evil.example.com", app), "")

	// The origins of another tenant are refused.
	other := w.tenant(t, "origins-other")
	equal(t, "another tenant", other.send(t, "GET", target, http.Header{"Origin": {ours}}, nil).header.Get("Access-Control-Allow-Origin"), "")

	for _, bad := range []string{"*", "https://*.example.com", "https://example.com/", "https://example.com/path", "http://example.com", "example.com", "https://Example.com", "https://user@example.com", "null", "javascript:alert(1)", "https://example.com?x"} {
		err := w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			_, _, err := w.oauth.Clients.CreateIn(t.Context(), tx, tenant.ID, oauthclient.Application{Name: "x", Type: oauthclient.SPA, AllowedOrigins: []string{bad}})
			return err
		})
		if err == nil {
			t.Errorf("origin %q was accepted", bad)
		}
	}
}

// forgedRequests sends headers that name another method, URL or address. They have no effect.
func forgedRequests(t *testing.T, w *world, c *client) {
	define(t, c)
	other := w.tenant(t, "forged-other")
	for name, value := range map[string]string{
		"X-Http-Method-Override": "DELETE", "X-Method-Override": "DELETE", "X-Forwarded-Host": other.host, "Forwarded": "host=" + other.host,
		"X-Original-Url": "/nowhere", "X-Rewrite-Url": "/nowhere", "X-Forwarded-Proto": "http", "X-Host": other.host,
	} {
		a := c.send(t, "GET", "/api/v1/resource-types/document", http.Header{name: {value}}, nil)
		equal(t, name, a.status, 200)
		oidc := c.with("").send(t, "GET", "/.well-known/openid-configuration", http.Header{name: {value}}, nil)
		equal(t, name, oidc.body["issuer"], "https://"+c.host)
	}
	if bytes.Contains([]byte(w.log.String()), []byte(c.token)) {
		t.Error("a token was logged")
	}
}

// rawRequests are requests that no client library sends.
func rawRequests(t *testing.T, w *world, c *client) {
	define(t, c)
	relate(t, c, "document", "d", "viewer", user("u"))
	other := w.tenant(t, "raw-other")
	send := func(text string) *http.Response {
		t.Helper()
		conn, err := net.Dial("tcp", c.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		text = strings.NewReplacer("\n", "\r\n", "TOKEN", c.token, "HOST", c.host, "OTHER", other.host).Replace(text)
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	const document = "/api/v1/resource-types/document HTTP/1.1\n"
	for name, test := range map[string]struct {
		text string
		want int
	}{
		"as it should be":      {"GET " + document + "Host: HOST\nAuthorization: Bearer TOKEN\n\n", 200},
		"two hosts":            {"GET " + document + "Host: HOST\nHost: OTHER\nAuthorization: Bearer TOKEN\n\n", 400},
		"a list of hosts":      {"GET " + document + "Host: HOST, OTHER\nAuthorization: Bearer TOKEN\n\n", 400},
		"no host":              {"GET " + document + "Authorization: Bearer TOKEN\n\n", 400},
		"an address as target": {"GET http://OTHER" + document + "Host: HOST\nAuthorization: Bearer TOKEN\n\n", 401}, // it names the other tenant
		"two lengths":          {"POST " + document + "Host: HOST\nContent-Length: 2\nContent-Length: 3\n\n{}", 400},
		"a length of nothing":  {"POST " + document + "Host: HOST\nContent-Length: -1\n\n{}", 400},
		"a folded field":       {"GET " + document + "Host: HOST\n X: y\nAuthorization: Bearer TOKEN\n\n", 400},
		"a broken escape":      {"GET /api/v1/resources/document/%zz HTTP/1.1\nHost: HOST\nAuthorization: Bearer TOKEN\n\n", 400},
	} {
		if got := send(test.text).StatusCode; got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func tenantSettings(t *testing.T, w *world, c *client) {
	const target = "/api/v1/settings"
	seen := len(w.events(t, c, 0))
	limits := func(a answer) any { return a.data()["rate_limits"] }
	equal(t, "at first", limits(c.want(t, 200, "", "GET", target, nil)), map[string]any{})
	patch := func(patch string, want object) answer {
		t.Helper()
		a := c.want(t, 200, "", "PATCH", target, patch)
		equal(t, patch, limits(a), want)
		equal(t, "after "+patch, limits(c.want(t, 200, "", "GET", target, nil)), want)
		return a
	}
	first := patch(`{"rate_limits":{"authz.caller":"1000/s","token.ip":"unlimited"}}`, object{"authz.caller": "1000/s", "token.ip": "unlimited"})
	patch(`{"rate_limits":{"authz.caller":"5/min","admin.ip":null}}`, object{"authz.caller": "5/min", "token.ip": "unlimited"})
	patch(`{"rate_limits":{"token.ip":null}}`, object{"authz.caller": "5/min"})
	patch(`{}`, object{"authz.caller": "5/min"})
	patch(`{"rate_limits":{}}`, object{"authz.caller": "5/min"})
	patch(`{"unknown":1}`, object{"authz.caller": "5/min"})
	patch(`{"rate_limits":null}`, object{})

	found := w.events(t, c, seen)
	equal(t, "events", len(found), 4) // those that changed nothing are none
	equal(t, "type", string(found[0].Type), "tenant.settings_updated")
	equal(t, "request", found[0].Origin.RequestID, first.header.Get("X-Request-Id"))
	policy := object{"min_length": 8.0, "max_length": 128.0}
	equal(t, "data", parse(t, string(found[1].Data)), object{
		"settings": object{
			"rate_limits": object{"authz.caller": "5/min", "token.ip": "unlimited"}, "password_policy": policy,
			"mfa_policy": object{"mode": "optional", "kinds": []any{"sms", "totp", "webauthn"}}, "session": object{"idle_s": 86400.0, "absolute_s": 2592000.0},
			"sign_up": "open", "require_verified_email": true,
			"dcr_mode": "off", "dcr_require_pkce": true, "client_id_documents": "off", "client_id_document_hosts": []any{}, "require_state": true, "refresh_reuse_leeway_s": 0.0, "refresh_family_max_s": 7776000.0, "previous_secret_ttl_s": 259200.0, "client_assertion_max_s": 3600.0,
			"token_defaults": object{"access_token_ttl_s": 3600.0, "refresh_token_ttl_s": 2592000.0}, "trusted_origins": []any{},
		},
		"changes": object{"rate_limits": []any{
			object{"authz.caller": "1000/s", "token.ip": "unlimited"}, object{"authz.caller": "5/min", "token.ip": "unlimited"},
		}},
	})

	passwords := func(patch string, want object) {
		t.Helper()
		equal(t, patch, c.want(t, 200, "", "PATCH", target, patch).data()["password_policy"], want)
		equal(t, "after "+patch, c.want(t, 200, "", "GET", target, nil).data()["password_policy"], want)
	}
	passwords(`{}`, policy)
	passwords(`{"password_policy":{"min_length":12}}`, object{"min_length": 12.0, "max_length": 128.0})
	passwords(`{"password_policy":{"max_length":64},"rate_limits":{"token.ip":"1/s"}}`, object{"min_length": 12.0, "max_length": 64.0})
	violated := c.want(t, 400, "password_policy_violation", "POST", "/api/v1/users", object{"email": "ann@example.com", "password": "eleven char"})
	equal(t, "policy", violated.details()["policy"], object{"min_length": 12.0, "max_length": 64.0})
	passwords(`{"password_policy":{"min_length":null}}`, object{"min_length": 8.0, "max_length": 64.0})
	passwords(`{"password_policy":null,"rate_limits":null}`, policy)
	found = w.events(t, c, seen+4)
	equal(t, "events", len(found), 4)
	equal(t, "changes", parse(t, string(found[1].Data)).(map[string]any)["changes"], object{
		"rate_limits":     []any{object{}, object{"token.ip": "1/s"}},
		"password_policy": []any{object{"min_length": 12.0, "max_length": 128.0}, object{"min_length": 12.0, "max_length": 64.0}},
	})
	now := c.want(t, 200, "", "PATCH", target, `{"mfa_policy":{"mode":"required","kinds":["webauthn","totp","totp"]},"session":{"idle_s":300},"sign_up":"closed","require_verified_email":false}`).data()
	equal(t, "policies", []any{now["mfa_policy"], now["session"], now["sign_up"], now["require_verified_email"]}, []any{
		object{"mode": "required", "kinds": []any{"totp", "webauthn"}}, object{"idle_s": 300.0, "absolute_s": 2592000.0}, "closed", false,
	})
	now = c.want(t, 200, "", "PATCH", target, `{"mfa_policy":{"kinds":null},"session":null,"sign_up":null,"require_verified_email":null}`).data()
	equal(t, "taken back", []any{now["mfa_policy"], now["session"], now["sign_up"], now["require_verified_email"]}, []any{
		object{"mode": "required", "kinds": []any{"sms", "totp", "webauthn"}}, object{"idle_s": 86400.0, "absolute_s": 2592000.0}, "open", true,
	})
	ofApplications := func(patch string, want ...any) {
		t.Helper()
		for _, a := range []answer{c.want(t, 200, "", "PATCH", target, patch), c.want(t, 200, "", "GET", target, nil)} {
			d := a.data()
			equal(t, patch, []any{d["dcr_mode"], d["require_state"], d["refresh_reuse_leeway_s"], d["refresh_family_max_s"], d["previous_secret_ttl_s"]}, want)
		}
	}
	ofApplications(`{}`, "off", true, 0.0, 7776000.0, 259200.0)
	ofApplications(`{"dcr_mode":"initial_access_token","require_state":false,"refresh_reuse_leeway_s":60,"refresh_family_max_s":31536000,"previous_secret_ttl_s":604800}`,
		"initial_access_token", false, 60.0, 31536000.0, 604800.0)
	seen = len(w.events(t, c, 0))
	ofApplications(`{"previous_secret_ttl_s":0,"refresh_family_max_s":300}`, "initial_access_token", false, 60.0, 300.0, 0.0)
	found = w.events(t, c, seen)
	equal(t, "changes", parse(t, string(found[0].Data)).(map[string]any)["changes"], object{"previous_secret_ttl_s": []any{604800.0, 0.0}, "refresh_family_max_s": []any{31536000.0, 300.0}})
	ofApplications(`{"dcr_mode":null,"require_state":null,"refresh_reuse_leeway_s":null,"refresh_family_max_s":null,"previous_secret_ttl_s":null}`, "off", true, 0.0, 7776000.0, 259200.0)
	// Applications that do not say how long their tokens are good follow the tenant.
	now = c.want(t, 200, "", "PATCH", target, `{"token_defaults":{"access_token_ttl_s":120},"trusted_origins":["https://console.example.com"]}`).data()
	equal(t, "tokens", []any{now["token_defaults"], now["trusted_origins"]}, []any{object{"access_token_ttl_s": 120.0, "refresh_token_ttl_s": 2592000.0}, []any{"https://console.example.com"}})
	lifetimes := func(d object) any { return []any{d["access_token_ttl_s"], d["refresh_token_ttl_s"]} }
	app := c.want(t, 201, "", "POST", appsPath, object{"name": "x", "type": "spa", "refresh_token_ttl_s": 600}).data()
	equal(t, "lifetimes", lifetimes(app), []any{120.0, 600.0})
	app = c.want(t, 200, "", "PATCH", appsPath+"/"+app["id"].(string), object{"access_token_ttl_s": 60, "refresh_token_ttl_s": nil}).data()
	equal(t, "lifetimes", lifetimes(app), []any{60.0, 2592000.0})
	from := c.send(t, "GET", target, http.Header{"Authorization": {"Bearer " + c.token}, "Origin": {"https://console.example.com"}}, nil)
	equal(t, "origin", from.header.Get("Access-Control-Allow-Origin"), "https://console.example.com")
	now = c.want(t, 200, "", "PATCH", target, `{"token_defaults":null,"trusted_origins":null}`).data()
	equal(t, "taken back", []any{now["token_defaults"], now["trusted_origins"]}, []any{object{"access_token_ttl_s": 3600.0, "refresh_token_ttl_s": 2592000.0}, []any{}})
	for bad, field := range map[string]string{
		`{"token_defaults":1}`: "token_defaults", `{"token_defaults":{"access_token_ttl_s":59}}`: "token_defaults/access_token_ttl_s", `{"token_defaults":{"refresh_token_ttl_s":299}}`: "token_defaults/refresh_token_ttl_s",
		`{"trusted_origins":"x"}`: "trusted_origins", `{"trusted_origins":["https://*.example.com"]}`: "trusted_origins",
		`{"dcr_mode":"anyone"}`: "dcr_mode", `{"dcr_mode":1}`: "dcr_mode", `{"client_id_documents":"on"}`: "client_id_documents", `{"client_id_document_hosts":["*.example.com"]}`: "client_id_document_hosts", `{"client_id_document_hosts":"x"}`: "client_id_document_hosts", `{"require_state":"no"}`: "require_state",
		`{"refresh_reuse_leeway_s":61}`: "refresh_reuse_leeway_s", `{"refresh_reuse_leeway_s":-1}`: "refresh_reuse_leeway_s", `{"refresh_reuse_leeway_s":1.5}`: "refresh_reuse_leeway_s",
		`{"refresh_family_max_s":299}`: "refresh_family_max_s", `{"refresh_family_max_s":31536001}`: "refresh_family_max_s", `{"previous_secret_ttl_s":604801}`: "previous_secret_ttl_s",
		`{"client_assertion_max_s":59}`: "client_assertion_max_s", `{"client_assertion_max_s":3601}`: "client_assertion_max_s",
		`{"password_policy":1}`: "password_policy", `{"password_policy":{"min_length":7}}`: "password_policy/min_length", `{"password_policy":{"min_length":"8"}}`: "password_policy/min_length",
		`{"password_policy":{"max_length":257},"rate_limits":{"token.ip":"9/s"}}`: "password_policy/max_length",
		`{"mfa_policy":{"mode":"x"}}`: "mfa_policy/mode", `{"mfa_policy":{"kinds":["x"]}}`: "mfa_policy/kinds", `{"mfa_policy":{"kinds":1}}`: "mfa_policy/kinds", `{"mfa_policy":true}`: "mfa_policy",
		`{"session":{"idle_s":299}}`: "session/idle_s", `{"session":{"absolute_s":31536001}}`: "session/absolute_s", `{"session":[]}`: "session",
		`{"sign_up":true}`: "sign_up", `{"require_verified_email":"yes"}`: "require_verified_email",
	} {
		equal(t, bad, fields(c.want(t, 400, "validation_failed", "PATCH", target, bad)), []string{field})
	}

	for bad, field := range map[string]string{
		`{"rate_limits":1}`: "rate_limits", `{"rate_limits":{"x.ip":"1/s"}}`: "rate_limits/x.ip", `{"rate_limits":{"none.ip":null}}`: "rate_limits/none.ip",
		`{"rate_limits":{"token.ip":5}}`: "rate_limits/token.ip", `{"rate_limits":{"token.ip":"0/s"}}`: "rate_limits/token.ip",
		`{"rate_limits":{"token.ip":"5/week"}}`: "rate_limits/token.ip", `{"rate_limits":{"token.ip":"10000001/s"}}`: "rate_limits/token.ip",
	} {
		equal(t, bad, fields(c.want(t, 400, "validation_failed", "PATCH", target, bad)), []string{field})
	}
	equal(t, "after bad ones", limits(c.want(t, 200, "", "GET", target, nil)), map[string]any{})
	reader := c.with(w.token(t, c, w.application(t, c, "settings:read")))
	reader.want(t, 200, "", "GET", target, nil)
	reader.want(t, 403, "insufficient_scope", "PATCH", target, `{}`)
	other := w.tenant(t, "settings-other")
	patch(`{"rate_limits":{"authz.ip":"9/s"}}`, object{"authz.ip": "9/s"})
	equal(t, "another tenant", limits(other.want(t, 200, "", "GET", target, nil)), map[string]any{})
}
