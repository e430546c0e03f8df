package oauth_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"

	"stonetown/internal/outbound"
	"stonetown/internal/sqldb"
	"stonetown/oauth"
	"stonetown/oauth/client"
	"stonetown/oauth/grants"
	"stonetown/oauth/protocol"
)

// signer is a key of an application.
type signer struct {
	t       testing.TB
	kid     string
	private ed25519.PrivateKey
}

func newSigner(t testing.TB, kid string) signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return signer{t, kid, private}
}

// setOf is the JWK set of the public halves of keys.
func setOf(t testing.TB, keys ...signer) []byte {
	t.Helper()
	set := jwk.NewSet()
	for _, k := range keys {
		public, err := jwk.Import(k.private.Public())
		if err == nil {
			err = errors.Join(public.Set(jwk.KeyIDKey, k.kid), set.AddKey(public))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// signing is an application that signs with a key.
func signing(t testing.TB, keys ...signer) client.Application {
	o := client.Machine.DefaultOptions()
	o.AuthMethod, o.JWKS = client.PrivateKeyJWT, setOf(t, keys...)
	return client.Application{Type: client.Machine, Options: o, AllowedScopes: []string{"resources:read"}}
}

var assertions atomic.Int64

// asserts is the request of an application with an assertion; changes are to its claims.
func (w *world) asserts(tenant protocol.Tenant, k signer, clientID string, changes map[string]any) grants.Request {
	w.t.Helper()
	members := map[string]any{
		"iss": clientID, "sub": clientID, "aud": tenant.BaseURL, "jti": fmt.Sprint(assertions.Add(1)), "exp": w.clock.now.Add(time.Minute).Unix(),
	}
	for name, value := range changes {
		members = with(members, name, value)
	}
	return presents(clientID, forge(w.t, jwa.EdDSA(), k.private, map[string]any{"kid": k.kid}, members))
}

func presents(clientID, assertion string) grants.Request {
	return grants.Request{
		GrantType:   protocol.GrantClientCredentials,
		Credentials: client.Credentials{ClientID: clientID, Assertion: assertion, ClientAuthMethods: []client.AuthMethod{client.PrivateKeyJWT}},
	}
}

// sameForAll is the description of refusals of clients that have not signed.
const sameForAll = "unknown client, or wrong secret or assertion"

// code returns the error code of a refusal; empty: the request is granted.
func (w *world) code(req grants.Request) protocol.Code {
	w.t.Helper()
	_, err := w.Grants.Token(context.Background(), tenantA, req)
	var refused *protocol.Error
	if err != nil && !errors.As(err, &refused) {
		w.t.Error(err)
	}
	if refused == nil {
		return ""
	}
	if refused.Code == protocol.InvalidClient && refused.Description != sameForAll && !strings.HasPrefix(refused.Description, "the client assertion is refused: ") {
		w.t.Errorf("refused in words of its own: %v", refused)
	}
	return refused.Code
}

func TestAssertion(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	key, other := newSigner(t, "a"), newSigner(t, "b")
	app, secret := w.application(tenantA, signing(t, key))
	if secret != "" || app.HasSecret() {
		t.Error("it has a secret")
	}
	second, _ := w.application(tenantA, signing(t, other))
	classic, secret := w.application(tenantA, client.Application{})
	page, _ := w.application(tenantA, client.Application{Type: client.SPA})
	foreign, _ := w.application(tenantB, signing(t, key))
	disabled, _ := w.application(tenantA, signing(t, key))
	w.tx(func(tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE applications SET state = 'disabled' WHERE client_id = $1`, disabled.ClientID)
		return err
	})

	good := w.asserts(tenantA, key, app.ClientID, nil)
	granted, err := w.Grants.Token(ctx, tenantA, good)
	if err != nil || decode(t, granted.AccessToken, 1)["client_id"] != app.ClientID {
		t.Fatalf("%+v, %v", granted, err)
	}
	classicToken := w.token(tenantA, classic, secret)
	both := w.asserts(tenantA, key, app.ClientID, nil)
	both.ClientSecret, both.ClientAuthMethods = secret, append(both.ClientAuthMethods, client.ClientSecretBasic)
	sneaky := w.asserts(tenantA, key, app.ClientID, nil)
	sneaky.ClientSecret = secret
	withSecret := request(classic, secret)
	withSecret.Assertion = w.asserts(tenantA, key, classic.ClientID, nil).Assertion
	for name, test := range map[string]struct {
		req  grants.Request
		want protocol.Code
	}{
		"replay":                      {good, protocol.InvalidClient},
		"another":                     {w.asserts(tenantA, key, app.ClientID, nil), ""},
		"token endpoint":              {w.asserts(tenantA, key, app.ClientID, map[string]any{"aud": tenantA.BaseURL + protocol.TokenPath}), ""},
		"PAR endpoint":                {w.asserts(tenantA, key, app.ClientID, map[string]any{"aud": []string{tenantA.BaseURL + protocol.PushPath, tenantA.BaseURL}}), ""},
		"another tenant":              {w.asserts(tenantB, key, app.ClientID, nil), protocol.InvalidClient},
		"two tenants":                 {w.asserts(tenantA, key, app.ClientID, map[string]any{"aud": []string{tenantA.BaseURL, tenantB.BaseURL}}), protocol.InvalidClient},
		"another tenant's client":     {w.asserts(tenantA, key, foreign.ClientID, nil), protocol.InvalidClient},
		"key of another client":       {w.asserts(tenantA, other, app.ClientID, nil), protocol.InvalidClient},
		"assertion of another client": {presents(app.ClientID, w.asserts(tenantA, other, second.ClientID, nil).Assertion), protocol.InvalidClient},
		"unknown client":              {w.asserts(tenantA, key, "nobody", nil), protocol.InvalidClient},
		"no client":                   {w.asserts(tenantA, key, "", nil), protocol.InvalidClient},
		"no assertion":                {presents(app.ClientID, ""), protocol.InvalidClient},
		"nonsense":                    {presents(app.ClientID, "x"), protocol.InvalidClient},
		"access token":                {presents(app.ClientID, granted.AccessToken), protocol.InvalidClient},
		"access token of another":     {presents(app.ClientID, classicToken), protocol.InvalidClient},
		"too late":                    {w.asserts(tenantA, key, app.ClientID, map[string]any{"exp": w.clock.now.Unix()}), protocol.InvalidClient},
		"for an hour":                 {w.asserts(tenantA, key, app.ClientID, map[string]any{"iat": w.clock.now.Unix(), "exp": w.clock.now.Add(time.Hour).Unix()}), ""},
		"for longer":                  {w.asserts(tenantA, key, app.ClientID, map[string]any{"exp": w.clock.now.Add(time.Hour + time.Minute).Unix()}), protocol.InvalidClient},
		"two ways":                    {both, protocol.InvalidRequest},
		"a secret besides":            {sneaky, protocol.InvalidClient},
		"a secret instead":            {request(app, secret), protocol.InvalidClient},
		"an empty secret":             {request(app, ""), protocol.InvalidClient},
		"who has a secret":            {w.asserts(tenantA, key, classic.ClientID, nil), protocol.InvalidClient},
		"who has one, with it":        {withSecret, protocol.InvalidClient},
		"who has nothing":             {w.asserts(tenantA, key, page.ClientID, nil), protocol.InvalidClient},
		"disabled":                    {w.asserts(tenantA, key, disabled.ClientID, nil), protocol.UnauthorizedClient},
		"disabled, wrong":             {w.asserts(tenantA, other, disabled.ClientID, nil), protocol.InvalidClient},
	} {
		if got := w.code(test.req); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}

	// No other client can consume the assertions of an application.
	said := w.asserts(tenantA, key, app.ClientID, map[string]any{"jti": "mine"})
	for name, req := range map[string]grants.Request{
		"wrong signature": w.asserts(tenantA, other, app.ClientID, map[string]any{"jti": "mine"}),
		"expired":         w.asserts(tenantA, key, app.ClientID, map[string]any{"jti": "mine", "exp": 1}),
	} {
		if got := w.code(req); got != protocol.InvalidClient {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := w.code(w.asserts(tenantA, other, second.ClientID, map[string]any{"jti": "mine"})); got != "" {
		t.Errorf("jti of another client: %q", got)
	}
	var wins atomic.Int32
	var racers sync.WaitGroup
	for range 50 {
		racers.Go(func() {
			if w.code(said) == "" {
				wins.Add(1)
			}
		})
	}
	racers.Wait()
	if wins.Load() != 1 {
		t.Errorf("one assertion counted %d times", wins.Load())
	}

	// It is remembered for as long as it could come back.
	long := w.asserts(tenantA, key, app.ClientID, map[string]any{"exp": w.clock.now.Add(time.Hour).Unix()})
	if got := w.code(long); got != "" {
		t.Errorf("for an hour: %q", got)
	}
	began := w.clock.now
	for _, last := range []struct {
		after time.Duration
		req   grants.Request
	}{{time.Minute - time.Second, said}, {time.Hour - time.Second, long}} {
		w.clock.now = began.Add(last.after)
		if err := w.Tidy(ctx); err != nil {
			t.Fatal(err)
		}
		if got := w.code(last.req); got != protocol.InvalidClient {
			t.Errorf("in its last second, after %s: %q", last.after, got)
		}
	}
	w.clock.now = w.clock.now.Add(2 * time.Hour)
	if err := w.Tidy(ctx); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := w.db.QueryRow(ctx, `SELECT count(*) FROM client_assertions`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// Every refusal of a client is logged with its reason, and without what the client sent. Only a
// client that has signed learns the reason.
func TestRefusalsOfClients(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, func(c *oauth.Config) { c.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	key, other := newSigner(t, "a"), newSigner(t, "a")
	app, _ := w.application(tenantA, signing(t, key))
	classic, secret := w.application(tenantA, client.Application{})
	page, _ := w.application(tenantA, client.Application{Type: client.SPA})
	w.tx(func(tx *sqldb.Tx) error {
		_, _, err := w.Clients.UpdateSettings(t.Context(), tx, tenantA.ID, func(s *client.Settings) { s.ClientAssertionMaxS = 600 })
		return err
	})
	used := w.asserts(tenantA, key, app.ClientID, nil)
	if got := w.code(used); got != "" {
		t.Fatal(got)
	}
	withAssertion := request(classic, "")
	withAssertion.ClientSecret, withAssertion.Assertion = "", used.Assertion
	misplaced := request(classic, secret)
	misplaced.ClientID = secret
	for _, test := range []struct {
		req      grants.Request
		reason   string
		clientID string
		told     bool
	}{
		{w.asserts(tenantA, key, app.ClientID, map[string]any{"exp": w.clock.now.Add(11 * time.Minute).Unix()}), "its lifetime is longer than 600 seconds", app.ClientID, true},
		{w.asserts(tenantB, key, app.ClientID, nil), "aud must name only this server", app.ClientID, true},
		{used, "its jti was used before", app.ClientID, true},
		{w.asserts(tenantA, other, app.ClientID, nil), "the signature is wrong", app.ClientID, false},
		{w.asserts(tenantA, newSigner(t, "b"), app.ClientID, nil), "signed with a key that the client has not registered", app.ClientID, false},
		{presents(app.ClientID, ""), "no client assertion", app.ClientID, false},
		{request(app, "cs_wrong"), "the application has private_key_jwt, and not a secret", app.ClientID, false},
		{withAssertion, "the application has a secret, and not private_key_jwt", classic.ClientID, false},
		{request(classic, "cs_wrong"), "the secret is wrong or has expired", classic.ClientID, false},
		{request(classic, ""), "no secret", classic.ClientID, false},
		{request(page, "cs_wrong"), "the application has no credentials", page.ClientID, false},
		{request(client.Application{ClientID: "client_unknown"}, "cs_wrong"), "unknown client", "client_unknown", false},
		{request(client.Application{ClientID: strings.Repeat("client_", 1000)}, "cs_wrong"), "unknown client", "", false},
		{misplaced, "unknown client", "", false},
		{request(client.Application{}, "cs_wrong"), "no client_id", "", false},
	} {
		log.Reset()
		_, err := w.Grants.Token(t.Context(), tenantA, test.req)
		want := sameForAll
		if test.told {
			want = "the client assertion is refused: " + test.reason
		}
		if refused, ok := errors.AsType[*protocol.Error](err); !ok || refused.Code != protocol.InvalidClient || refused.Description != want {
			t.Errorf("%s: %v", test.reason, err)
		}
		var line map[string]any
		if err := json.Unmarshal(log.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v in %q", test.reason, err, log.String())
		}
		if line["reason"] != test.reason || line["client_id"] != test.clientID || line["tenant"] != tenantA.ID {
			t.Errorf("%s: logged as %s", test.reason, log.String())
		}
		for _, sent := range []string{secret, "cs_wrong", test.req.Assertion} {
			if sent != "" && strings.Contains(log.String(), sent) {
				t.Errorf("%s: %s is in the log", test.reason, sent)
			}
		}
	}
}

// Secrets end where keys begin.
func TestSecretsOfSigners(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	key := newSigner(t, "a")
	app, secret := w.application(tenantA, client.Application{})
	rotate := func() (string, error) {
		r, err := w.Clients.RotateSecret(ctx, tenantA.ID, app.ID, "", new(time.Hour))
		return r.Secret, err
	}
	change := func(how func(*client.Application)) error {
		_, err := w.Clients.Update(ctx, tenantA.ID, app.ID, "", how)
		return err
	}
	newer, err := rotate()
	if err != nil {
		t.Fatal(err)
	}
	var field *client.ValidationError
	if err := change(func(a *client.Application) { a.AuthMethod = client.PrivateKeyJWT }); !errors.As(err, &field) || field.Field != "jwks" {
		t.Errorf("without keys: %v", err)
	}
	if got := w.code(request(app, secret)); got != "" {
		t.Errorf("before: %q", got)
	}
	if err := change(func(a *client.Application) { a.AuthMethod, a.JWKS = client.PrivateKeyJWT, setOf(t, key) }); err != nil {
		t.Fatal(err)
	}
	if _, err := rotate(); !errors.Is(err, client.ErrNotApplicable) {
		t.Errorf("rotated: %v", err)
	}
	refused := func(what string) {
		t.Helper()
		for _, old := range []string{secret, newer, ""} {
			if got := w.code(request(app, old)); got != protocol.InvalidClient {
				t.Errorf("%s: %q", what, got)
			}
		}
	}
	refused("signing")
	if got := w.code(w.asserts(tenantA, key, app.ClientID, nil)); got != "" {
		t.Errorf("signed: %q", got)
	}
	if err := change(func(a *client.Application) { a.AuthMethod = client.ClientSecretPost }); err != nil {
		t.Fatal(err)
	}
	refused("with a secret again")
	if got := w.code(w.asserts(tenantA, key, app.ClientID, nil)); got != protocol.InvalidClient {
		t.Errorf("signed: %q", got)
	}
	if secret, err = rotate(); err != nil || w.code(request(app, secret)) != "" {
		t.Errorf("a new secret: %v", err)
	}
}

// publisher is where an application publishes its keys.
type publisher struct {
	*httptest.Server
	fetches atomic.Int32
	answer  atomic.Pointer[http.HandlerFunc]
}

func newPublisher(t testing.TB) *publisher {
	p := new(publisher)
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p.fetches.Add(1)
		(*p.answer.Load())(rw, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *publisher) answers(h http.HandlerFunc) { p.answer.Store(&h) }

func (p *publisher) publishes(set []byte) {
	p.answers(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(set) })
}

// How published keys are fetched, as package client documents it.
const (
	fetchEvery = 15 * time.Minute
	staleAfter = 24 * time.Hour
	retryAfter = time.Minute
	maxWaiting = 64
	maxKeySet  = 128 << 10
)

func TestPublishedKeys(t *testing.T) {
	w := newWorld(t)
	p := newPublisher(t)
	one, two, three := newSigner(t, "1"), newSigner(t, "2"), newSigner(t, "3")
	setup := signing(t, one)
	setup.JWKS, setup.JWKSURI = nil, p.URL+"/keys"
	app, _ := w.application(tenantA, setup)
	step := func(what string, k signer, want protocol.Code, fetches int32) {
		t.Helper()
		before := p.fetches.Load()
		got := w.code(w.asserts(tenantA, k, app.ClientID, nil))
		if got != want || p.fetches.Load()-before != fetches {
			t.Errorf("%s: %q after %d fetches, want %q after %d", what, got, p.fetches.Load()-before, want, fetches)
		}
	}
	later := func(d time.Duration) { w.clock.now = w.clock.now.Add(d) }
	down := func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(503) }

	p.answers(down)
	step("unreachable", one, protocol.InvalidClient, 1)
	step("not asked again at once", one, protocol.InvalidClient, 0)
	p.publishes(setOf(t, one))
	later(retryAfter)
	step("reachable", one, "", 1)
	step("kept", one, "", 0)
	later(fetchEvery - time.Second)
	step("still kept", one, "", 0)
	later(time.Second)
	step("old", one, "", 1)

	// A new key is fetched as soon as it is used, but invented keys do not cause fetches.
	p.publishes(setOf(t, one, two))
	later(time.Second)
	step("new key", two, "", 1)
	step("old key beside it", one, "", 0)
	p.publishes(setOf(t, two, three))
	later(time.Second)
	step("too soon", three, protocol.InvalidClient, 0)
	step("made up", newSigner(t, "x"), protocol.InvalidClient, 0)
	later(retryAfter)
	step("made up, later", newSigner(t, "x"), protocol.InvalidClient, 1)
	step("new key, meanwhile", three, "", 0)
	step("key that was taken back", one, protocol.InvalidClient, 0)

	// What cannot be fetched for a time stays as it was.
	for name, h := range map[string]http.HandlerFunc{
		"down": down,
		"elsewhere": func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/keys" {
				http.Redirect(rw, r, "/other", http.StatusFound)
			}
		},
		"too large": func(rw http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(rw, "%s%s", setOf(t, one), strings.Repeat(" ", maxKeySet))
		},
		"no set":  func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "<html>") },
		"no keys": func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, `{"keys":[]}`) },
	} {
		p.answers(h)
		later(fetchEvery)
		step(name, three, "", 1)
		step(name+", again", three, "", 0)
		step(name+", other key", one, protocol.InvalidClient, 0)
	}
	later(staleAfter)
	step("down for long", three, protocol.InvalidClient, 1)
	p.publishes(setOf(t, three))
	later(retryAfter)
	step("back", three, "", 1)

	// Where they are is another place after a change, of which nothing is known.
	if _, err := w.Clients.Update(t.Context(), tenantA.ID, app.ID, "", func(a *client.Application) { a.JWKSURI += "/new" }); err != nil {
		t.Fatal(err)
	}
	p.answers(down)
	step("moved", three, protocol.InvalidClient, 1)

	// Whoever comes at the same time shares one fetch.
	begun, release := make(chan struct{}), make(chan struct{})
	p.answers(func(rw http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-release
		_, _ = rw.Write(setOf(t, three))
	})
	later(retryAfter)
	requests := make([]grants.Request, 2*maxWaiting)
	for i := range requests {
		requests[i] = w.asserts(tenantA, three, app.ClientID, nil)
	}
	before := p.fetches.Load()
	var granted, refused atomic.Int32
	var racers sync.WaitGroup
	for _, req := range requests {
		racers.Go(func() {
			if w.code(req) == "" {
				granted.Add(1)
			} else {
				refused.Add(1)
			}
		})
	}
	<-begun
	for end := time.Now().Add(10 * time.Second); refused.Load() < maxWaiting && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // until all requests beyond the limit are refused
	}
	close(release)
	racers.Wait()
	if p.fetches.Load() != before+1 || granted.Load() != maxWaiting || refused.Load() != maxWaiting {
		t.Errorf("%d fetches, %d granted, %d refused", p.fetches.Load()-before, granted.Load(), refused.Load())
	}
}

func TestKeysRefused(t *testing.T) {
	w := newWorld(t, func(c *oauth.Config) { c.Outbound = outbound.New(outbound.Config{}) })
	set := setOf(t, newSigner(t, "a"))
	for name, test := range map[string]struct {
		method client.AuthMethod
		jwks   string
		uri    string
		field  string
	}{
		"keys":                    {client.PrivateKeyJWT, string(set), "", ""},
		"place":                   {client.PrivateKeyJWT, "", "https://example.com:8443/keys", ""},
		"keys beside a secret":    {client.ClientSecretBasic, string(set), "", ""},
		"neither":                 {client.PrivateKeyJWT, "", "", "jwks"},
		"both":                    {client.PrivateKeyJWT, string(set), "https://example.com/keys", "jwks_uri"},
		"both beside a secret":    {client.ClientSecretBasic, string(set), "https://example.com/keys", "jwks_uri"},
		"no set":                  {client.PrivateKeyJWT, "{}", "", "jwks"},
		"private key":             {client.PrivateKeyJWT, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}]}`, "", "jwks"},
		"private, for no use yet": {client.ClientSecretBasic, `{"keys":[{"kty":"oct","k":"AAAA"}]}`, "", "jwks"},
		"http":                    {client.PrivateKeyJWT, "", "http://example.com/keys", "jwks_uri"},
		"metadata":                {client.PrivateKeyJWT, "", "https://169.254.169.254/latest", "jwks_uri"},
		"this machine":            {client.PrivateKeyJWT, "", "https://localhost/keys", "jwks_uri"},
		"user":                    {client.PrivateKeyJWT, "", "https://a@example.com/keys", "jwks_uri"},
		"SSH":                     {client.PrivateKeyJWT, "", "https://example.com:22/keys", "jwks_uri"},
	} {
		a := *client.Machine.Defaults()
		a.Name, a.AuthMethod, a.JWKSURI = "test", test.method, test.uri
		if test.jwks != "" {
			a.JWKS = json.RawMessage(test.jwks)
		}
		err := w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			_, _, err := w.Clients.CreateIn(t.Context(), tx, tenantA.ID, a)
			return err
		})
		var field *client.ValidationError
		if got := errors.As(err, &field); got != (test.field != "") || got && field.Field != test.field {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "nWGxne") {
			t.Errorf("%s: %v quotes the key", name, err)
		}
	}
	spa := *client.SPA.Defaults()
	spa.Name, spa.AuthMethod, spa.JWKS = "test", client.PrivateKeyJWT, set
	var field *client.ValidationError
	if _, _, err := w.Clients.Create(t.Context(), tenantA.ID, spa); !errors.As(err, &field) || field.Field != "token_endpoint_auth_method" {
		t.Errorf("a page can sign: %v", err)
	}
}
