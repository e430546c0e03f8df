package oauth

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
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
func signing(t testing.TB, keys ...signer) Application {
	o := Machine.DefaultOptions()
	o.AuthMethod, o.JWKS = PrivateKeyJWT, setOf(t, keys...)
	return Application{Type: Machine, Options: o, AllowedScopes: []string{"resources:read"}}
}

var assertions atomic.Int64

// asserts is the request of an application with an assertion; changes are to its claims.
func (w *world) asserts(tenant Tenant, k signer, clientID string, changes map[string]any) TokenRequest {
	w.t.Helper()
	members := map[string]any{
		"iss": clientID, "sub": clientID, "aud": tenant.BaseURL, "jti": fmt.Sprint(assertions.Add(1)), "exp": w.clock.now.Add(time.Minute).Unix(),
	}
	for name, value := range changes {
		members = with(members, name, value)
	}
	return presents(clientID, forge(w.t, jwa.EdDSA(), k.private, map[string]any{"kid": k.kid}, members))
}

func presents(clientID, assertion string) TokenRequest {
	return TokenRequest{
		GrantType:   GrantClientCredentials,
		Credentials: Credentials{ClientID: clientID, Assertion: assertion, ClientAuthMethods: []ClientAuthMethod{PrivateKeyJWT}},
	}
}

// code is what a request is refused with; empty: it is granted.
func (w *world) code(req TokenRequest) Code {
	w.t.Helper()
	_, err := w.Token(context.Background(), tenantA, req)
	var refused *Error
	if err != nil && !errors.As(err, &refused) {
		w.t.Error(err)
	}
	if refused == nil {
		return ""
	}
	if refused.Code == InvalidClient && refused.Description != "unknown client, or wrong secret or assertion" {
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
	classic, secret := w.application(tenantA, Application{})
	page, _ := w.application(tenantA, Application{Type: SPA})
	foreign, _ := w.application(tenantB, signing(t, key))
	disabled, _ := w.application(tenantA, signing(t, key))
	w.tx(func(tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE applications SET state = 'disabled' WHERE client_id = $1`, disabled.ClientID)
		return err
	})

	good := w.asserts(tenantA, key, app.ClientID, nil)
	granted, err := w.Token(ctx, tenantA, good)
	if err != nil || decode(t, granted.AccessToken, 1)["client_id"] != app.ClientID {
		t.Fatalf("%+v, %v", granted, err)
	}
	classicToken := w.token(tenantA, classic, secret)
	both := w.asserts(tenantA, key, app.ClientID, nil)
	both.ClientSecret, both.ClientAuthMethods = secret, append(both.ClientAuthMethods, ClientSecretBasic)
	sneaky := w.asserts(tenantA, key, app.ClientID, nil)
	sneaky.ClientSecret = secret
	withSecret := request(classic, secret)
	withSecret.Assertion = w.asserts(tenantA, key, classic.ClientID, nil).Assertion
	for name, test := range map[string]struct {
		req  TokenRequest
		want Code
	}{
		"replay":                      {good, InvalidClient},
		"another":                     {w.asserts(tenantA, key, app.ClientID, nil), ""},
		"token endpoint":              {w.asserts(tenantA, key, app.ClientID, map[string]any{"aud": tenantA.BaseURL + TokenPath}), ""},
		"PAR endpoint":                {w.asserts(tenantA, key, app.ClientID, map[string]any{"aud": []string{tenantA.BaseURL + PushPath, tenantA.BaseURL}}), ""},
		"another tenant":              {w.asserts(tenantB, key, app.ClientID, nil), InvalidClient},
		"two tenants":                 {w.asserts(tenantA, key, app.ClientID, map[string]any{"aud": []string{tenantA.BaseURL, tenantB.BaseURL}}), InvalidClient},
		"another tenant's client":     {w.asserts(tenantA, key, foreign.ClientID, nil), InvalidClient},
		"key of another client":       {w.asserts(tenantA, other, app.ClientID, nil), InvalidClient},
		"assertion of another client": {presents(app.ClientID, w.asserts(tenantA, other, second.ClientID, nil).Assertion), InvalidClient},
		"unknown client":              {w.asserts(tenantA, key, "nobody", nil), InvalidClient},
		"no client":                   {w.asserts(tenantA, key, "", nil), InvalidClient},
		"no assertion":                {presents(app.ClientID, ""), InvalidClient},
		"nonsense":                    {presents(app.ClientID, "x"), InvalidClient},
		"access token":                {presents(app.ClientID, granted.AccessToken), InvalidClient},
		"access token of another":     {presents(app.ClientID, classicToken), InvalidClient},
		"too late":                    {w.asserts(tenantA, key, app.ClientID, map[string]any{"exp": w.clock.now.Unix()}), InvalidClient},
		"too early":                   {w.asserts(tenantA, key, app.ClientID, map[string]any{"exp": w.clock.now.Add(time.Hour).Unix()}), InvalidClient},
		"two ways":                    {both, InvalidRequest},
		"a secret besides":            {sneaky, InvalidClient},
		"a secret instead":            {request(app, secret), InvalidClient},
		"an empty secret":             {request(app, ""), InvalidClient},
		"who has a secret":            {w.asserts(tenantA, key, classic.ClientID, nil), InvalidClient},
		"who has one, with it":        {withSecret, InvalidClient},
		"who has nothing":             {w.asserts(tenantA, key, page.ClientID, nil), InvalidClient},
		"disabled":                    {w.asserts(tenantA, key, disabled.ClientID, nil), UnauthorizedClient},
		"disabled, wrong":             {w.asserts(tenantA, other, disabled.ClientID, nil), InvalidClient},
	} {
		if got := w.code(test.req); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}

	// Nobody else uses up what the application may say.
	said := w.asserts(tenantA, key, app.ClientID, map[string]any{"jti": "mine"})
	for name, req := range map[string]TokenRequest{
		"wrong signature": w.asserts(tenantA, other, app.ClientID, map[string]any{"jti": "mine"}),
		"expired":         w.asserts(tenantA, key, app.ClientID, map[string]any{"jti": "mine", "exp": 1}),
	} {
		if got := w.code(req); got != InvalidClient {
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
	w.clock.now = w.clock.now.Add(59 * time.Second)
	if err := w.tidy(ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.code(said); got != InvalidClient {
		t.Errorf("in its last second: %q", got)
	}
	w.clock.now = w.clock.now.Add(2 * time.Hour)
	if err := w.tidy(ctx); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := w.db.QueryRow(ctx, `SELECT count(*) FROM client_assertions`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// Secrets end where keys begin.
func TestSecretsOfSigners(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	key := newSigner(t, "a")
	app, secret := w.application(tenantA, Application{})
	rotate := func() (string, error) {
		r, err := w.RotateSecret(ctx, tenantA.ID, app.ID, "", new(time.Hour))
		return r.Secret, err
	}
	change := func(how func(*Application)) error {
		_, err := w.UpdateApplication(ctx, tenantA.ID, app.ID, "", how)
		return err
	}
	newer, err := rotate()
	if err != nil {
		t.Fatal(err)
	}
	var field *SetupError
	if err := change(func(a *Application) { a.AuthMethod = PrivateKeyJWT }); !errors.As(err, &field) || field.Field != "jwks" {
		t.Errorf("without keys: %v", err)
	}
	if got := w.code(request(app, secret)); got != "" {
		t.Errorf("before: %q", got)
	}
	if err := change(func(a *Application) { a.AuthMethod, a.JWKS = PrivateKeyJWT, setOf(t, key) }); err != nil {
		t.Fatal(err)
	}
	if _, err := rotate(); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("rotated: %v", err)
	}
	refused := func(what string) {
		t.Helper()
		for _, old := range []string{secret, newer, ""} {
			if got := w.code(request(app, old)); got != InvalidClient {
				t.Errorf("%s: %q", what, got)
			}
		}
	}
	refused("signing")
	if got := w.code(w.asserts(tenantA, key, app.ClientID, nil)); got != "" {
		t.Errorf("signed: %q", got)
	}
	if err := change(func(a *Application) { a.AuthMethod = ClientSecretPost }); err != nil {
		t.Fatal(err)
	}
	refused("with a secret again")
	if got := w.code(w.asserts(tenantA, key, app.ClientID, nil)); got != InvalidClient {
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

func TestPublishedKeys(t *testing.T) {
	w := newWorld(t)
	p := newPublisher(t)
	one, two, three := newSigner(t, "1"), newSigner(t, "2"), newSigner(t, "3")
	setup := signing(t, one)
	setup.JWKS, setup.JWKSURI = nil, p.URL+"/keys"
	app, _ := w.application(tenantA, setup)
	step := func(what string, k signer, want Code, fetches int32) {
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
	step("unreachable", one, InvalidClient, 1)
	step("not asked again at once", one, InvalidClient, 0)
	p.publishes(setOf(t, one))
	later(clientKeysRetry)
	step("reachable", one, "", 1)
	step("kept", one, "", 0)
	later(clientKeysFor - time.Second)
	step("still kept", one, "", 0)
	later(time.Second)
	step("old", one, "", 1)

	// A new key is looked for as soon as it is used, but not for everybody who makes one up.
	p.publishes(setOf(t, one, two))
	later(time.Second)
	step("new key", two, "", 1)
	step("old key beside it", one, "", 0)
	p.publishes(setOf(t, two, three))
	later(time.Second)
	step("too soon", three, InvalidClient, 0)
	step("made up", newSigner(t, "x"), InvalidClient, 0)
	later(clientKeysRetry)
	step("made up, later", newSigner(t, "x"), InvalidClient, 1)
	step("new key, meanwhile", three, "", 0)
	step("key that was taken back", one, InvalidClient, 0)

	// What cannot be fetched for a time stays as it was.
	for name, h := range map[string]http.HandlerFunc{
		"down": down,
		"elsewhere": func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/keys" {
				http.Redirect(rw, r, "/other", http.StatusFound)
			}
		},
		"too large": func(rw http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(rw, "%s%s", setOf(t, one), strings.Repeat(" ", maxClientKeys))
		},
		"no set":  func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "<html>") },
		"no keys": func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, `{"keys":[]}`) },
	} {
		p.answers(h)
		later(clientKeysFor)
		step(name, three, "", 1)
		step(name+", again", three, "", 0)
		step(name+", other key", one, InvalidClient, 0)
	}
	later(clientKeysStale)
	step("down for long", three, InvalidClient, 1)
	p.publishes(setOf(t, three))
	later(clientKeysRetry)
	step("back", three, "", 1)

	// Where they are is another place after a change, of which nothing is known.
	if _, err := w.UpdateApplication(t.Context(), tenantA.ID, app.ID, "", func(a *Application) { a.JWKSURI += "/new" }); err != nil {
		t.Fatal(err)
	}
	p.answers(down)
	step("moved", three, InvalidClient, 1)

	// Whoever comes at the same time shares one fetch.
	begun, release := make(chan struct{}), make(chan struct{})
	p.answers(func(rw http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-release
		_, _ = rw.Write(setOf(t, three))
	})
	later(clientKeysRetry)
	requests := make([]TokenRequest, 2*clientKeysWait)
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
	for end := time.Now().Add(10 * time.Second); refused.Load() < clientKeysWait && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // those for whom there is no place to wait
	}
	close(release)
	racers.Wait()
	if p.fetches.Load() != before+1 || granted.Load() != clientKeysWait || refused.Load() != clientKeysWait {
		t.Errorf("%d fetches, %d granted, %d refused", p.fetches.Load()-before, granted.Load(), refused.Load())
	}
}

func TestKeysRefused(t *testing.T) {
	w := newWorld(t)
	s, err := New(Config{DB: w.db, Seal: w.keys.sealer})
	if err != nil {
		t.Fatal(err)
	}
	set := setOf(t, newSigner(t, "a"))
	for name, test := range map[string]struct {
		method ClientAuthMethod
		jwks   string
		uri    string
		field  string
	}{
		"keys":                    {PrivateKeyJWT, string(set), "", ""},
		"place":                   {PrivateKeyJWT, "", "https://example.com:8443/keys", ""},
		"keys beside a secret":    {ClientSecretBasic, string(set), "", ""},
		"neither":                 {PrivateKeyJWT, "", "", "jwks"},
		"both":                    {PrivateKeyJWT, string(set), "https://example.com/keys", "jwks_uri"},
		"both beside a secret":    {ClientSecretBasic, string(set), "https://example.com/keys", "jwks_uri"},
		"no set":                  {PrivateKeyJWT, "{}", "", "jwks"},
		"private key":             {PrivateKeyJWT, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}]}`, "", "jwks"},
		"private, for no use yet": {ClientSecretBasic, `{"keys":[{"kty":"oct","k":"AAAA"}]}`, "", "jwks"},
		"http":                    {PrivateKeyJWT, "", "http://example.com/keys", "jwks_uri"},
		"metadata":                {PrivateKeyJWT, "", "https://169.254.169.254/latest", "jwks_uri"},
		"this machine":            {PrivateKeyJWT, "", "https://localhost/keys", "jwks_uri"},
		"user":                    {PrivateKeyJWT, "", "https://a@example.com/keys", "jwks_uri"},
		"SSH":                     {PrivateKeyJWT, "", "https://example.com:22/keys", "jwks_uri"},
	} {
		a := *Machine.Defaults()
		a.Name, a.AuthMethod, a.JWKSURI = "test", test.method, test.uri
		if test.jwks != "" {
			a.JWKS = json.RawMessage(test.jwks)
		}
		err := w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			_, _, err := s.CreateApplication(t.Context(), tx, tenantA.ID, a)
			return err
		})
		var field *SetupError
		if got := errors.As(err, &field); got != (test.field != "") || got && field.Field != test.field {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "nWGxne") {
			t.Errorf("%s: %v quotes the key", name, err)
		}
	}
	spa := *SPA.Defaults()
	spa.Name, spa.AuthMethod, spa.JWKS = "test", PrivateKeyJWT, set
	if err := spa.validate(t.Context(), nil, outbound.New(outbound.Config{})); err == nil {
		t.Error("a page can sign")
	}
}
