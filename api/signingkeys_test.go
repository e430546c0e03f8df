package api_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"stonetown/api"
	"stonetown/internal/eventlog"
	"stonetown/internal/seal"
	"stonetown/oauth"
	oauthclient "stonetown/oauth/client"
	"stonetown/oauth/keys"
	"stonetown/oauth/oauthtest"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

const signingKeysPath = "/api/v1/settings/signing-keys"

// process serves the world as another process would, with its own clock.
func (w *world) process(t testing.TB, clock func() time.Time) (*oauth.Service, func(*client) *client) {
	t.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	service := oauthtest.New(t, oauth.Config{DB: w.db, Seal: key, Relations: w.engine, Clock: clock})
	server := httptestServer(t, w, func(c *api.Config) { c.OAuth, c.Verifier = api.OAuthOf(service), service.Tokens })
	return service, func(c *client) *client { return &client{server: server, host: c.host, token: c.token} }
}

// headerOf reads the header of a JWT.
func headerOf(t testing.TB, token string) object {
	t.Helper()
	part, _, _ := bytes.Cut([]byte(token), []byte("."))
	return parse(t, string(decode(t, string(part)))).(map[string]any)
}

// jwks returns the ids of the published keys, which must have no private member.
func (c *client) jwks(t testing.TB) (kids []string, tag string) {
	t.Helper()
	a := c.with("").want(t, 200, "", "GET", protocol.JWKSPath, nil)
	for _, key := range a.body["keys"].([]any) {
		for name := range key.(map[string]any) {
			if !slices.Contains([]string{"kty", "crv", "x", "y", "n", "e", "kid", "alg", "use"}, name) {
				t.Errorf("the key set has a member %s", name)
			}
		}
		kids = append(kids, key.(map[string]any)["kid"].(string))
	}
	equal(t, "Cache-Control", a.header.Get("Cache-Control"), "public, max-age=900")
	return kids, a.header.Get("ETag")
}

// keyStates returns the states of the keys in a list, each with the names of its times.
func keyStates(a answer) (states []string) {
	for _, item := range a.list() {
		k := item.(map[string]any)
		text := fmt.Sprint(k["alg"], " ", k["state"])
		for _, name := range []string{"created", "published", "activated", "retired", "removed"} {
			if k[name+"_at"] != nil {
				text += " " + name[:3]
			}
		}
		states = append(states, text)
	}
	return states
}

// rs256 makes an application whose tokens are signed with RS256, and a token.
func (w *world) rs256(t testing.TB, c *client) {
	t.Helper()
	w.token(t, c, w.newApplication(t, c, oauthclient.Application{Name: "RS256", Type: oauthclient.Machine, SigningAlg: keys.RS256}))
}

func signingKeys(t *testing.T, w *world, c *client) {
	list := func(by *client) answer { t.Helper(); return by.want(t, 200, "", "GET", signingKeysPath, nil) }
	equal(t, "without an application that uses RS256", keyStates(list(c)), []string{"ES256 active cre pub act"})
	w.rs256(t, c)
	equal(t, "at first", keyStates(list(c)), []string{"ES256 active cre pub act", "RS256 active cre pub act"})
	first, tag := c.jwks(t)

	published := c.want(t, 200, "", "POST", signingKeysPath+"/rotate", `{}`)
	equal(t, "published", keyStates(published), []string{"ES256 active cre pub act", "ES256 next cre pub", "RS256 active cre pub act", "RS256 next cre pub"})
	kids, changed := c.jwks(t)
	equal(t, "the key set", []any{len(first), len(kids), tag != changed}, []any{2, 4, true})
	equal(t, "again", c.want(t, 200, "", "POST", signingKeysPath+"/rotate", `{"emergency":false}`).body["data"], published.body["data"])
	equal(t, "listed", list(c).body["data"], published.body["data"])
	for i, item := range published.list() {
		equal(t, "kid", item.(map[string]any)["kid"], kids[i])
	}

	// After an emergency rotation all processes use the new keys at once.
	_, second := w.process(t, time.Now)
	other := second(c)
	app := w.application(t, c, scope.Builtin...)
	c = c.with(w.token(t, c, app))
	equal(t, "elsewhere", list(other).body["data"], published.body["data"])
	stranger := w.tenant(t, "signing-keys-other")
	emergency := c.under(t, "key", "POST", signingKeysPath+"/rotate", object{"emergency": true})
	for _, at := range []*client{c, second(c)} {
		at.want(t, 401, "invalid_token", "GET", signingKeysPath, nil)
	}
	fresh := c.with(w.token(t, other, app)) // which the other process has signed
	equal(t, "emergency", keyStates(emergency), []string{
		"ES256 active cre pub act", "ES256 removed cre pub rem", "ES256 removed cre pub act rem", "RS256 active cre pub act", "RS256 removed cre pub rem", "RS256 removed cre pub act rem",
	})
	now, _ := c.jwks(t)
	there, _ := other.jwks(t)
	equal(t, "two processes", now, there)
	equal(t, "the key set", []any{len(now), slices.Contains(now, headerOf(t, fresh.token)["kid"].(string))}, []any{2, true})
	for _, kid := range now {
		equal(t, "an old key", slices.Contains(kids, kid), false)
	}
	equal(t, "listed", list(fresh).body["data"], emergency.body["data"])
	equal(t, "repeated", fresh.under(t, "key", "POST", signingKeysPath+"/rotate", object{"emergency": true}).text, emergency.text)
	list(stranger)

	// The event names the actor.
	var records []eventlog.Event
	for _, e := range w.events(t, c, 0) {
		if e.Type == eventlog.TenantSigningKeyRotated {
			records = append(records, e)
		}
	}
	equal(t, "events", len(records), 2)
	equal(t, "origin", []any{records[1].Origin.RequestID, records[1].Origin.Actor.ID}, []any{emergency.header.Get("X-Request-Id"), app.id})
	data := parse(t, string(records[0].Data)).(map[string]any)
	equal(t, "data", []any{data["emergency"], data["signing_keys"].([]any)[0]}, []any{false, object{"kid": kids[1], "alg": "ES256", "state": "next"}})

	reader := fresh.with(w.token(t, c, w.application(t, c, "settings:read")))
	list(reader)
	reader.want(t, 403, "insufficient_scope", "POST", signingKeysPath+"/rotate", `{}`)
	fresh.with(w.token(t, c, w.application(t, c, "settings:write"))).want(t, 403, "insufficient_scope", "GET", signingKeysPath, nil)
	fresh.with("").want(t, 401, "unauthenticated", "POST", signingKeysPath+"/rotate", `{}`)
	fresh.want(t, 400, "invalid_json", "POST", signingKeysPath+"/rotate", `{`)
	equal(t, "field", fields(fresh.want(t, 400, "validation_failed", "POST", signingKeysPath+"/rotate", `{"emergency":"yes"}`)), []string{"emergency"})
	equal(t, "after bad ones", list(fresh).body["data"], emergency.body["data"])
}

// keyRotation rotates keys while a relying party caches the key set.
func keyRotation(t *testing.T, w *world, c *client) {
	var ahead atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	service, here := w.process(t, clock)
	second, other := w.process(t, clock)
	c = here(c)
	w.rs256(t, c)
	app := w.newApplication(t, c, oauthclient.Application{Name: "test", Type: oauthclient.Machine, AllowedScopes: []string{"settings:read", "settings:write"}, AccessTokenTTL: 24 * time.Hour})
	token := func() string { t.Helper(); return w.token(t, c, app) }
	c = c.with(token())

	var fetched atomic.Int64
	ctx := oidc.ClientContext(t.Context(), &http.Client{Transport: counting{elsewhere{c}, &fetched}})
	party := oidc.NewRemoteKeySet(ctx, "https://"+c.host+protocol.JWKSPath)
	verifies := func(token string, fetches int64) {
		t.Helper()
		if _, err := party.VerifySignature(ctx, token); err != nil {
			t.Error(err)
		}
		equal(t, "fetches", fetched.Load(), fetches)
	}
	old := token()
	verifies(old, 1)
	verifies(old, 1)

	// Both processes rotate keys at the same time.
	upkeep := func(want ...string) {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		var loops sync.WaitGroup
		defer func() { stop(); loops.Wait() }()
		for _, s := range []*oauth.Service{service, second} {
			loops.Go(func() { s.Run(ctx, slog.New(slog.NewTextHandler(noErrors{t}, nil))) })
		}
		var got []string
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if got = keyStates(c.with(token()).want(t, 200, "", "GET", signingKeysPath, nil)); slices.Equal(got, want) {
				return
			}
		}
		t.Fatalf("keys: %v, want %v", got, want)
	}
	later := func(d time.Duration) { ahead.Add(int64(d)) }

	c.want(t, 200, "", "POST", signingKeysPath+"/rotate", `{}`)
	kids, _ := c.jwks(t)
	later(24 * time.Hour)
	before := token() // by the old key still
	equal(t, "by", headerOf(t, before)["kid"], headerOf(t, old)["kid"])
	verifies(before, 1)
	later(2 * time.Minute)
	upkeep("ES256 active cre pub act", "ES256 retired cre pub act ret", "RS256 active cre pub act", "RS256 retired cre pub act ret")
	later(time.Minute) // for so long a process may sign with the old one
	after := token()
	equal(t, "by", []any{headerOf(t, after)["kid"] != headerOf(t, old)["kid"], slices.Contains(kids, headerOf(t, after)["kid"].(string))}, []any{true, true})
	verifies(after, 2) // an unknown key is looked for once
	verifies(before, 2)
	later(23 * time.Hour)
	for _, at := range []*client{c, other(c)} {
		for _, token := range []string{before, after} {
			at.with(token).want(t, 200, "", "GET", signingKeysPath, nil)
		}
	}
	later(3 * time.Hour)
	upkeep("ES256 active cre pub act", "ES256 removed cre pub act ret rem", "RS256 active cre pub act", "RS256 removed cre pub act ret rem")
	kids, _ = other(c).jwks(t)
	equal(t, "the key set", []any{len(kids), slices.Contains(kids, headerOf(t, old)["kid"].(string))}, []any{2, false})
	equal(t, "events", w.types(t, c, "tenant."), []string{"tenant.signing_key_rotated", "tenant.signing_key_rotated", "tenant.signing_key_rotated"})

	// After parallel rotations on all processes, one key of each algorithm signs.
	var all sync.WaitGroup
	for i, emergency := range []bool{false, true, true, false, true, false} {
		all.Go(func() {
			s := []*oauth.Service{service, second}[i%2]
			if _, err := s.Keys.Rotate(t.Context(), mustTenant(t, w, c), emergency); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	count := map[string]int{}
	for _, item := range c.with(token()).want(t, 200, "", "GET", signingKeysPath, nil).list() {
		k := item.(map[string]any)
		count[fmt.Sprint(k["state"], " ", k["alg"])]++
	}
	equal(t, "active", []int{count["active ES256"], count["active RS256"], count["retired ES256"] + count["retired RS256"]}, []int{1, 1, 0})
	now, _ := c.jwks(t)
	there, _ := other(c).jwks(t)
	equal(t, "two processes", now, there)
	verifies(token(), 3)
}

// counting counts requests.
type counting struct {
	http.RoundTripper
	n *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// idTokenAlgorithm signs ID tokens by the algorithm of the application.
func idTokenAlgorithm(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	member(t, c, "ann@example.com")
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	ctx := oidc.ClientContext(t.Context(), &http.Client{Transport: elsewhere{c}})
	provider, err := oidc.NewProvider(ctx, "https://"+c.host)
	if err != nil {
		t.Fatal(err)
	}
	var offered struct {
		Algs []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := provider.Claims(&offered); err != nil {
		t.Fatal(err)
	}
	equal(t, "offered", offered.Algs, []string{"ES256", "RS256", "PS256", "EdDSA"})
	for _, tc := range []struct {
		form object
		want string
	}{
		{nil, "ES256"},
		{object{"id_token_signed_response_alg": "RS256"}, "RS256"},
		{object{"id_token_signed_response_alg": "ES256"}, "ES256"},
		{object{"id_token_signed_response_alg": "PS256"}, "PS256"},
		{object{"id_token_signed_response_alg": "EdDSA"}, "EdDSA"},
	} {
		p := newParty(t, c, tc.form)
		p.session = session
		got := p.exchange(t, p.code(t, url.Values{"scope": {"openid offline_access"}}), nil).body
		renewed := p.refresh(t, got["refresh_token"].(string), nil).body
		for _, tokens := range []object{got, renewed} {
			raw, access := tokens["id_token"].(string), tokens["access_token"].(string)
			equal(t, "alg", []any{headerOf(t, raw)["alg"], headerOf(t, access)["alg"]}, []any{tc.want, "ES256"})
			idToken, err := provider.Verifier(&oidc.Config{ClientID: p.id, SupportedSigningAlgs: []string{tc.want}}).Verify(ctx, raw)
			if err != nil {
				t.Fatal(err)
			}
			if err := idToken.VerifyAccessToken(access); err != nil {
				t.Error(err)
			}
			other := map[string]string{"RS256": "PS256", "PS256": "RS256", "ES256": "EdDSA", "EdDSA": "ES256"}[tc.want]
			if _, err := provider.Verifier(&oidc.Config{ClientID: p.id, SupportedSigningAlgs: []string{other}}).Verify(ctx, raw); err == nil {
				t.Errorf("signed by %s, too", other)
			}
		}
	}
}

// noErrors fails a test when something is logged.
type noErrors struct{ *testing.T }

func (f noErrors) Write(line []byte) (int, error) {
	f.Errorf("logged: %s", line)
	return len(line), nil
}
