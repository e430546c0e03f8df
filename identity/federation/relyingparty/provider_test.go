package relyingparty

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"go.uber.org/goleak"
	"golang.org/x/oauth2"

	"stonetown/internal/outbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	clientID    = "app_1"
	secret      = "s3cr3t/with+signs"
	redirectURI = "https://a.example.com/federation/staff/callback"
	accessToken = "at-7Zk0c2VjcmV0"
)

type object = map[string]any

// with is an object with changes; nil takes a member out.
func with(m, changes object) object {
	m = maps.Clone(m)
	maps.Copy(m, changes)
	maps.DeleteFunc(m, func(_ string, value any) bool { return value == nil })
	return m
}

// signers are one private key of each type, and more.
var signers = sync.OnceValue(func() map[string]crypto.Signer {
	made := map[string]crypto.Signer{}
	var failed error
	keep := func(name string, key crypto.Signer, err error) { made[name], failed = key, errors.Join(failed, err) }
	for name, bits := range map[string]int{"rsa": 2048, "rsa2": 2048} {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		keep(name, key, err)
	}
	for name, curve := range map[string]elliptic.Curve{"p256": elliptic.P256(), "other": elliptic.P256(), "p384": elliptic.P384(), "p521": elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		keep(name, key, err)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	keep("ed25519", key, err)
	if failed != nil {
		panic(failed)
	}
	return made
})

// public is a key as its JWK, with changes.
func public(t testing.TB, name string, changes object) object {
	t.Helper()
	imported, err := jwk.Import(signers()[name].Public())
	if err != nil {
		t.Fatal(err)
	}
	m := object{}
	if err := json.Unmarshal(asText(t, imported), &m); err != nil {
		t.Fatal(err)
	}
	m["kid"] = name
	return with(m, changes)
}

func asText(t testing.TB, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// sign signs claims, given as an object or as text, under a header.
func sign(t testing.TB, alg jwa.SignatureAlgorithm, key any, header object, payload any) string {
	t.Helper()
	body, ok := payload.(string)
	if !ok {
		body = string(asText(t, payload))
	}
	h := jws.NewHeaders()
	for name, value := range header {
		if err := h.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	options := []jws.SignOption{jws.WithKey(alg, key, jws.WithProtectedHeaders(h))}
	if alg == jwa.NoSignature() {
		options = []jws.SignOption{jws.WithInsecureNoSignature(jws.WithProtectedHeaders(h))}
	}
	token, err := jws.Sign([]byte(body), options...)
	if err != nil {
		t.Fatal(err)
	}
	return string(token)
}

// clock is the time of a test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// provider is an OpenID provider with one user. Tests change what it answers.
type provider struct {
	*httptest.Server
	t     testing.TB
	clock *clock

	mu       sync.Mutex
	metadata object
	jwks     any
	claims   object // of ID tokens, changed
	info     any    // the answer of the userinfo endpoint
	key      string // that signs
	alg      jwa.SignatureAlgorithm
	header   object                      // of ID tokens
	mint     func(claims object) string  // replaces the signature
	answer   object                      // of the token endpoint, changed
	serve    map[string]http.HandlerFunc // replaces endpoints
	flows    map[string]url.Values       // authorization requests, by code
	requests map[string]int              // by path
	token    url.Values                  // the last token request, with the client of its header
}

func newProvider(t testing.TB) *provider {
	t.Helper()
	p := &provider{
		t: t, clock: &clock{now: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)}, key: "p256", alg: jwa.ES256(),
		serve: map[string]http.HandlerFunc{}, flows: map[string]url.Values{}, requests: map[string]int{},
	}
	p.Server = httptest.NewServer(http.HandlerFunc(p.ServeHTTP))
	t.Cleanup(p.Close)
	p.metadata = object{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize?tenant=1", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"userinfo_endpoint": p.URL + "/userinfo", "end_session_endpoint": p.URL + "/logout",
		"id_token_signing_alg_values_supported": []string{"RS256", "ES256", "HS256", "none"}, "response_types_supported": []string{"code"},
		"claims_supported": []string{"sub", "email"},
	}
	p.jwks = object{"keys": []object{public(t, "p256", nil), public(t, "rsa", nil)}}
	p.info = object{"sub": "user-1", "name": "Ann Example", "email": "ann@example.com", "email_verified": true}
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.requests[r.URL.Path]++
	serve := p.serve[r.URL.Path]
	p.mu.Unlock()
	if serve != nil {
		serve(w, r)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_, _ = w.Write(asText(p.t, p.metadata))
	case "/keys":
		_, _ = w.Write(asText(p.t, p.jwks))
	case "/userinfo":
		if r.Header.Get("Authorization") != "Bearer "+accessToken {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(asText(p.t, p.info))
	case "/token":
		p.redeem(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// on replaces what a path serves; nil: as before. The request before may be in progress.
func (p *provider) on(path string, serve http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serve[path] = serve
}

// endpoint serves token responses at a path.
func (p *provider) endpoint(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	p.redeem(w, r)
}

func (p *provider) redeem(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	p.token = r.PostForm
	if id, password, ok := r.BasicAuth(); ok {
		id, _ = url.QueryUnescape(id)
		password, _ = url.QueryUnescape(password)
		p.token.Set("basic", id+":"+password)
	}
	code := r.PostForm.Get("code")
	flow, ok := p.flows[code]
	delete(p.flows, code)
	if !ok || oauth2.S256ChallengeFromVerifier(r.PostForm.Get("code_verifier")) != flow.Get("code_challenge") || r.PostForm.Get("redirect_uri") != flow.Get("redirect_uri") {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"no such code: ` + code + `"}`))
		return
	}
	claims := with(object{
		"iss": p.URL, "sub": "user-1", "aud": flow.Get("client_id"), "nonce": flow.Get("nonce"),
		"iat": p.clock.Now().Unix(), "exp": p.clock.Now().Add(5 * time.Minute).Unix(), "sid": "session-1",
	}, p.claims)
	mint := p.mint
	if mint == nil {
		mint = func(claims object) string {
			return sign(p.t, p.alg, signers()[p.key], with(object{"kid": p.key}, p.header), claims)
		}
	}
	_, _ = w.Write(asText(p.t, with(object{"access_token": accessToken, "token_type": "Bearer", "expires_in": 60, "id_token": mint(claims)}, p.answer)))
}

// authorize is the browser of a user who signs in at the provider: it returns the parameters of the
// callback.
func (p *provider) authorize(to string) url.Values {
	p.t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	code := "code-" + oauth2.GenerateVerifier()
	p.flows[code] = u.Query()
	return url.Values{"code": {code}, "state": {u.Query().Get("state")}}
}

// count returns the number of requests of a path.
func (p *provider) count(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

// discovered is the configuration of a provider with discovery.
func (p *provider) discovered() Provider {
	return Provider{Kind: OIDC, Issuer: p.URL, ClientID: clientID, Secret: secret}
}

// service is a service with the clock of the provider. log receives its log, if it is not nil.
func (p *provider) service(presets map[Kind]Preset, log *slog.Logger) *Service {
	p.t.Helper()
	client := outbound.New(outbound.Config{AllowInsecure: true})
	p.t.Cleanup(client.Close)
	s, err := New(Config{Client: client, Clock: p.clock.Now, Presets: presets, Log: log})
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// begin starts a sign-in and returns the parameters of the callback.
func (p *provider) begin(s *Service, of Provider, r Request) (Pending, url.Values) {
	p.t.Helper()
	if r.RedirectURI == "" {
		r.RedirectURI = redirectURI
	}
	to, pending, err := s.Begin(p.t.Context(), of, r)
	if err != nil {
		p.t.Fatalf("begin: %v", detail(err))
	}
	return pending, p.authorize(to)
}

// signIn is a sign-in from its start to its end.
func (p *provider) signIn(s *Service, of Provider) (Identity, error) {
	p.t.Helper()
	pending, params := p.begin(s, of, Request{})
	return s.Finish(p.t.Context(), of, pending, params)
}

// detail is an error with its detail.
func detail(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return string(e.Class) + " at " + string(e.Step) + ": " + e.Detail
	}
	if err != nil {
		return "other: " + err.Error()
	}
	return "none"
}

// wantError fails the test unless err has a class, a step and a detail that contains some text, and
// quotes no secret.
func wantError(t testing.TB, what string, err error, class Class, step Step, contains string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Class != class || e.Step != step || !strings.Contains(e.Detail, contains) {
		t.Errorf("%s: %s, want %s at %s: %s", what, detail(err), class, step, contains)
		return
	}
	if e.Error() == "" || e.Error() != sentences[class] {
		t.Errorf("%s: the message is %q", what, e.Error())
	}
	for _, secret := range []string{secret, accessToken, "code-", "eyJ"} {
		if strings.Contains(e.Detail, secret) {
			t.Errorf("%s: %q contains %q", what, e.Detail, secret)
		}
	}
}
