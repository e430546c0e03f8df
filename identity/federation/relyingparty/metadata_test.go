package relyingparty

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"

	"stonetown/internal/outbound"
)

func pemOf(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func TestDiscover(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	p.metadata = with(p.metadata, object{"backchannel_logout_supported": true, "backchannel_logout_session_supported": true, "acr_values_supported": []string{"a"}, "x": object{}})
	m, err := s.Discover(t.Context(), p.URL)
	if err != nil {
		t.Fatal(detail(err))
	}
	if m.Issuer != p.URL || m.EndSessionEndpoint != p.URL+"/logout" || !m.BackchannelLogout || !m.BackchannelLogoutSession || m.IssParameter ||
		len(m.Claims) != 2 || len(m.ACRValues) != 1 || fmt.Sprint(m.algorithms()) != "[RS256 ES256]" {
		t.Errorf("%+v", m)
	}
	whole := p.metadata
	for what, test := range map[string]struct {
		changes object
		reason  string
	}{
		"another issuer":          {object{"issuer": "https://evil.example"}, `"https://evil.example"`},
		"issuer with a slash":     {object{"issuer": p.URL + "/"}, "issuer"},
		"issuer in another case":  {object{"issuer": strings.ToUpper(p.URL)}, "issuer"},
		"no issuer":               {object{"issuer": nil}, "issuer"},
		"issuer is a number":      {object{"issuer": 1}, "JSON"},
		"no authorization":        {object{"authorization_endpoint": nil}, "authorization_endpoint is missing"},
		"no token":                {object{"token_endpoint": nil}, "token_endpoint is missing"},
		"no keys":                 {object{"jwks_uri": nil}, "jwks_uri is missing"},
		"javascript":              {object{"authorization_endpoint": "javascript:alert(1)//https://x.example"}, "authorization_endpoint"},
		"file":                    {object{"jwks_uri": "file:///etc/passwd"}, "jwks_uri"},
		"user in a URL":           {object{"token_endpoint": "https://a:b@x.example"}, "token_endpoint"},
		"port of SSH":             {object{"userinfo_endpoint": "https://x.example:22"}, "userinfo_endpoint"},
		"logout is not a URL":     {object{"end_session_endpoint": "/logout"}, "end_session_endpoint"},
		"no code":                 {object{"response_types_supported": []string{"id_token"}}, "response_types_supported"},
		"only symmetric and none": {object{"id_token_signing_alg_values_supported": []string{"HS256", "none"}}, "id_token_signing_alg"},
	} {
		p.metadata = with(whole, test.changes)
		_, err := s.Discover(t.Context(), p.URL)
		wantError(t, what, err, Misconfigured, Discovery, test.reason)
	}
	p.metadata = whole

	inside := newProvider(t)
	for what, test := range map[string]struct {
		serve  http.HandlerFunc
		class  Class
		reason string
	}{
		"404": {http.NotFound, Misconfigured, "404"},
		"503": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, Unavailable, "503"},
		"redirect inside": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, inside.URL+wellKnown, http.StatusFound)
		}, Misconfigured, "302"},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, Misconfigured, "JSON"},
		"null":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "null") }, Misconfigured, "issuer"},
		"a name twice": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"issuer":%q,"issuer":%q}`, p.URL, p.URL)
		}, Misconfigured, "JSON"},
		"huge":     {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", 300<<10)) }, Invalid, "too_large"},
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Unreachable, "connection"},
	} {
		p.on(wellKnown, test.serve)
		_, err := s.Discover(t.Context(), p.URL)
		wantError(t, what, err, test.class, Discovery, test.reason)
	}
	if inside.count(wellKnown) != 0 {
		t.Error("a redirect was followed")
	}
	p.on(wellKnown, nil)

	// A slash at the end of an issuer is not doubled (Discovery §4.1).
	p.metadata = with(whole, object{"issuer": p.URL + "/"})
	if _, err := s.Discover(t.Context(), p.URL+"/"); err != nil {
		t.Error(detail(err))
	}
}

// Without the setting for tests, nothing that is not on the public Internet is fetched.
func TestGuard(t *testing.T) {
	p := newProvider(t)
	client := outbound.New(outbound.Config{})
	defer client.Close()
	s, err := New(Config{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	port := p.URL[strings.LastIndex(p.URL, ":"):]
	for _, issuer := range []string{
		p.URL, "https://127.0.0.1" + port, "https://localhost" + port, "https://[::1]" + port, "https://169.254.169.254", "https://metadata.google.internal", "https://10.0.0.1",
		"http://example.com", "https://example.com?x=1", "https://example.com#x", "https://example.com?", "",
	} {
		_, err := s.Discover(t.Context(), issuer)
		wantError(t, issuer, err, Misconfigured, Discovery, "issuer: ")
		if s.CheckIssuer(issuer) == nil {
			t.Errorf("%s is accepted", issuer)
		}
	}
	m := Metadata{Issuer: "https://example.com", AuthorizationEndpoint: "https://example.com/a", TokenEndpoint: "https://127.0.0.1/t", JWKSURI: "https://example.com/k"}
	_, _, err = s.Begin(t.Context(), Provider{Kind: OIDC, Metadata: &m, ClientID: clientID}, Request{RedirectURI: redirectURI})
	wantError(t, "an endpoint inside", err, Misconfigured, Discovery, "token_endpoint")
	if p.count(wellKnown) != 0 {
		t.Error("a request was sent")
	}
	for _, preset := range Presets() {
		if preset.Metadata == nil && preset.Issuer != "" && preset.Directories == nil && s.CheckIssuer(preset.Issuer) != nil {
			t.Errorf("%s is refused", preset.Issuer)
		}
	}
}

// A provider whose endpoints the tenant sets needs no discovery.
func TestEndpointsByTenant(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	of := Provider{Kind: OIDC, ClientID: clientID, Secret: secret, Scopes: []string{"groups"}, Metadata: &Metadata{
		Issuer: p.URL, AuthorizationEndpoint: p.URL + "/authorize", TokenEndpoint: p.URL + "/token", JWKSURI: p.URL + "/keys",
	}}
	to, _, err := s.Begin(t.Context(), of, Request{RedirectURI: redirectURI})
	if err != nil || !strings.Contains(to, "scope=openid+groups") {
		t.Errorf("%s, %s", to, detail(err))
	}
	identity, err := p.signIn(s, of)
	if err != nil || identity.Subject != "user-1" || p.count(wellKnown) != 0 || p.count("/userinfo") != 0 {
		t.Errorf("%+v, %s", identity, detail(err))
	}
	to, err = s.LogoutURL(t.Context(), of, Logout{IDToken: "x"})
	if err != nil || to != "" {
		t.Errorf("%q, %v", to, err)
	}

	// Only the preset makes a template of an issuer.
	of.Metadata.Issuer = "https://login.example/" + placeOfID
	p.claims = object{"iss": "https://login.example/72f988bf-86f1-41af-91ab-2d7cd011db47", "tid": "72f988bf-86f1-41af-91ab-2d7cd011db47"}
	_, err = p.signIn(s, of)
	wantError(t, "a template by a tenant", err, Invalid, IDToken, "iss")

	of = p.discovered()
	of.Directory = "common"
	_, _, err = s.Begin(t.Context(), of, Request{RedirectURI: redirectURI})
	wantError(t, "a directory of a provider without them", err, Misconfigured, Configuration, "directories")
	_, _, err = s.Begin(t.Context(), Provider{Kind: "saml", ClientID: clientID}, Request{RedirectURI: redirectURI})
	wantError(t, "another kind", err, Misconfigured, Configuration, "kind")
	of = p.discovered()
	of.ClientID = ""
	_, _, err = s.Begin(t.Context(), of, Request{RedirectURI: redirectURI})
	wantError(t, "no client", err, Misconfigured, Configuration, "client_id")
}

// TestKeyRotation replaces keys at the provider.
func TestKeyRotation(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	signsIn := func(what string, reason string) {
		t.Helper()
		_, err := p.signIn(s, p.discovered())
		if reason != "" {
			wantError(t, what, err, Invalid, IDToken, reason)
		} else if err != nil {
			t.Errorf("%s: %s", what, detail(err))
		}
	}
	fetches := func(what string, want int) {
		t.Helper()
		if got := p.count("/keys"); got != want {
			t.Errorf("%s: %d fetches, want %d", what, got, want)
		}
	}
	signsIn("first", "")
	signsIn("second", "")
	fetches("cached", 1)

	p.clock.advance(time.Second)
	p.jwks = object{"keys": []object{public(t, "rsa2", object{"kid": "new"}), public(t, "p256", nil)}}
	p.header, p.key, p.alg = object{"kid": "new"}, "rsa2", jwa.RS256()
	signsIn("new key", "")
	fetches("new key", 2)

	// Unknown keys lead to one fetch a minute, however many there are.
	p.clock.advance(time.Second)
	p.header = object{"kid": "unknown"}
	for range 5 {
		signsIn("unknown key", "does not publish")
	}
	fetches("at once", 2)
	p.clock.advance(earlyAfter)
	signsIn("unknown key", "does not publish")
	signsIn("unknown key", "does not publish")
	fetches("after a minute", 3)

	// Another key under the same id.
	p.clock.advance(earlyAfter)
	p.jwks = object{"keys": []object{public(t, "other", object{"kid": "p256"})}}
	p.header, p.key, p.alg = nil, "other", jwa.ES256()
	p.header = object{"kid": "p256"}
	signsIn("replaced key", "")
	fetches("replaced key", 4)

	// The provider publishes nothing for a while.
	p.clock.advance(fetchEvery)
	p.serve["/keys"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }
	signsIn("keys cannot be fetched", "")
	signsIn("keys cannot be fetched", "")
	fetches("with a pause", 5)
	p.clock.advance(retryAfter)
	signsIn("keys cannot be fetched", "")
	fetches("after the pause", 6)
	p.clock.advance(staleAfter)
	_, err := p.signIn(s, p.discovered())
	wantError(t, "keys are too old", err, Unavailable, Keys, "503")
	delete(p.serve, "/keys")
	p.clock.advance(retryAfter)
	signsIn("keys are there again", "")
}

// TestKeySets has key sets in which the key of the token is not, or not alone.
func TestKeySets(t *testing.T) {
	for what, test := range map[string]struct {
		jwks   any
		class  Class
		step   Step
		reason string
	}{
		"no keys":             {object{"keys": []object{}}, Misconfigured, Keys, "no key"},
		"not a set":           {[]object{}, Misconfigured, Keys, "no key"},
		"symmetric":           {object{"keys": []object{{"kty": "oct", "k": "c2VjcmV0", "kid": "p256", "alg": "HS256"}}}, Misconfigured, Keys, "no key"},
		"private":             {object{"keys": []object{public(t, "p256", object{"d": "AAAA"})}}, Misconfigured, Keys, "no key"},
		"for encryption":      {object{"keys": []object{public(t, "p256", object{"use": "enc"})}}, Misconfigured, Keys, "no key"},
		"not for verifying":   {object{"keys": []object{public(t, "p256", object{"key_ops": []string{"sign"}})}}, Misconfigured, Keys, "no key"},
		"another alg":         {object{"keys": []object{public(t, "p256", object{"alg": "RS256"})}}, Misconfigured, Keys, "no key"},
		"not a point":         {object{"keys": []object{public(t, "p256", object{"x": "AAAA"})}}, Misconfigured, Keys, "no key"},
		"short RSA":           {object{"keys": []object{{"kty": "RSA", "n": "u1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gunVTLw7onLRnrq0_IzW7yWR7QkrmBL7jTKEn5u", "e": "AQAB"}}}, Misconfigured, Keys, "no key"},
		"of another provider": {object{"keys": []object{public(t, "other", nil)}}, Invalid, IDToken, "does not publish"},
		"swapped, same kid":   {object{"keys": []object{public(t, "other", object{"kid": "p256"})}}, Invalid, IDToken, "signature"},
		"same kid twice":      {object{"keys": []object{public(t, "p256", nil), public(t, "other", object{"kid": "p256"})}}, Invalid, IDToken, "several keys"},
		"kid and others":      {object{"keys": []any{public(t, "rsa", nil), object{"kty": "AKP"}, 7, public(t, "p256", object{"use": "sig", "key_ops": []string{"verify"}, "x5c": []string{}})}}, "", "", ""},
	} {
		p := newProvider(t)
		p.jwks = test.jwks
		_, err := p.signIn(p.service(nil, nil), p.discovered())
		if test.class != "" {
			wantError(t, what, err, test.class, test.step, test.reason)
		} else if err != nil {
			t.Errorf("%s: %s", what, detail(err))
		}
	}
}

// Requests for the same document share one fetch, and a failed one is logged.
func TestDocuments(t *testing.T) {
	p := newProvider(t)
	var log bytes.Buffer
	s := p.service(nil, slog.New(slog.NewTextHandler(&log, nil)))
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	p.serve[wellKnown] = func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		w.WriteHeader(500)
	}
	var wg sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wg.Go(func() { _, errs[i] = s.Metadata(t.Context(), p.discovered()) })
	}
	<-arrived

	// A caller that leaves does not end the fetch of the others.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Metadata(ctx, p.discovered()); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	close(release)
	wg.Wait()
	for _, err := range errs {
		wantError(t, "shared", err, Unavailable, Discovery, "500")
	}
	if p.count(wellKnown) != 1 {
		t.Errorf("%d fetches", p.count(wellKnown))
	}
	if !strings.Contains(log.String(), "status (500)") {
		t.Errorf("log: %s", log.String())
	}
	// After the pause, it is tried again.
	delete(p.serve, wellKnown)
	if _, err := s.Metadata(t.Context(), p.discovered()); err == nil {
		t.Error("no pause")
	}
	p.clock.advance(retryAfter)
	if _, err := s.Metadata(t.Context(), p.discovered()); err != nil {
		t.Error(detail(err))
	}
	// An administrator does not have to wait.
	p.clock.advance(fetchEvery)
	p.serve[wellKnown] = http.NotFound
	if _, err := s.Metadata(t.Context(), p.discovered()); err != nil {
		t.Errorf("stale: %s", detail(err))
	}
	delete(p.serve, wellKnown)
	if _, err := s.Discover(t.Context(), p.URL); err != nil {
		t.Error(detail(err))
	}
}

// Slow providers occupy a limited number of fetches, and each one of them.
func TestSlowProviders(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	for range maxFetching {
		s.metadata.fetching <- struct{}{}
	}
	_, err := s.Metadata(t.Context(), p.discovered())
	wantError(t, "all places are taken", err, Unavailable, Discovery, "too many")
	<-s.metadata.fetching
	if _, err := s.Metadata(t.Context(), p.discovered()); err != nil {
		t.Error(detail(err))
	}
	s.metadata.fetching <- struct{}{}
	p.clock.advance(fetchEvery)
	if _, err := s.Metadata(t.Context(), p.discovered()); err != nil {
		t.Errorf("cached: %s", detail(err))
	}
	p.clock.advance(staleAfter)
	m, err := s.Metadata(t.Context(), p.discovered())
	wantError(t, "too old, and all places are taken", err, Unavailable, Discovery, "too many")
	if m.Issuer != "" {
		t.Errorf("%+v", m)
	}
}

func TestNew(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("no client")
	}
}
