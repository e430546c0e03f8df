package relyingparty

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"golang.org/x/oauth2"
)

func TestSignIn(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	p.claims = object{"acr": "urn:example:mfa", "amr": []string{"pwd", "otp"}, "auth_time": p.clock.Now().Add(-time.Minute).Unix(), "email": "ann@example.com"}
	week := 7 * 24 * time.Hour
	to, pending, err := s.Begin(t.Context(), p.discovered(), Request{
		RedirectURI: redirectURI, LoginHint: "ann@example.com", Prompt: []string{"login", "consent"}, ACRValues: []string{"a", "b"}, UILocales: []string{"de"}, MaxAge: &week,
	})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	want := url.Values{
		"tenant": {"1"}, "response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {redirectURI}, "scope": {"openid profile email"},
		"state": {pending.State}, "nonce": {pending.Nonce}, "code_challenge": {oauth2.S256ChallengeFromVerifier(pending.Verifier)}, "code_challenge_method": {"S256"},
		"login_hint": {"ann@example.com"}, "prompt": {"login consent"}, "acr_values": {"a b"}, "ui_locales": {"de"}, "max_age": {"604800"},
	}
	if got := u.Query(); !reflect.DeepEqual(got, want) || u.Host != strings.TrimPrefix(p.URL, "http://") {
		t.Errorf("%s: %v, want %v", to, got, want)
	}
	if random := []string{pending.State, pending.Nonce, pending.Verifier}; len(slices.Compact(slices.Sorted(slices.Values(random)))) != 3 || len(pending.State) < 43 {
		t.Errorf("%q", random)
	}
	identity, err := s.Finish(t.Context(), p.discovered(), pending, p.authorize(to))
	if err != nil {
		t.Fatal(detail(err))
	}
	if identity.Issuer != p.URL || identity.Subject != "user-1" || identity.Email != "ann@example.com" || !identity.EmailVerified ||
		identity.ACR != "urn:example:mfa" || !slices.Equal(identity.AMR, []string{"pwd", "otp"}) || !identity.AuthTime.Equal(p.clock.Now().Add(-time.Minute)) ||
		identity.SessionID != "session-1" || identity.Claims["name"] != "Ann Example" || identity.IDToken == "" {
		t.Errorf("%+v", identity)
	}
	// The secret is in the header, encoded as RFC 6749 §2.3.1 demands, and nowhere else.
	if p.token.Get("basic") != clientID+":"+secret || p.token.Has("client_secret") {
		t.Errorf("%v", p.token)
	}
	// An independent library accepts the token as well.
	config := &oidc.Config{ClientID: clientID, SupportedSigningAlgs: []string{"ES256"}, Now: p.clock.Now}
	verifier := oidc.NewVerifier(p.URL, oidc.NewRemoteKeySet(t.Context(), p.URL+"/keys"), config)
	if _, err := verifier.Verify(t.Context(), identity.IDToken); err != nil {
		t.Errorf("go-oidc: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestAlgorithms(t *testing.T) {
	for alg, key := range map[jwa.SignatureAlgorithm]string{
		jwa.RS256(): "rsa", jwa.RS384(): "rsa", jwa.RS512(): "rsa", jwa.PS256(): "rsa", jwa.PS384(): "rsa", jwa.PS512(): "rsa",
		jwa.ES256(): "p256", jwa.ES384(): "p384", jwa.ES512(): "p521", jwa.EdDSA(): "ed25519",
	} {
		p := newProvider(t)
		p.metadata["id_token_signing_alg_values_supported"] = nil // all are allowed
		p.jwks = object{"keys": []object{public(t, key, nil)}}
		p.key, p.alg = key, alg
		p.claims = object{"at_hash": halfHash(alg.String(), accessToken)}
		s := p.service(nil, nil)
		if _, err := p.signIn(s, p.discovered()); err != nil {
			t.Errorf("%s: %s", alg, detail(err))
		}
		p.metadata["id_token_signing_alg_values_supported"] = slices.DeleteFunc(slices.Clone(Algorithms), func(other string) bool { return other == alg.String() })
		if _, err := s.Discover(t.Context(), p.URL); err != nil {
			t.Fatal(detail(err))
		}
		_, err := p.signIn(s, p.discovered())
		wantError(t, alg.String()+" that is not in the metadata", err, Invalid, IDToken, "alg")
	}
	// The example of Core, appendix A.3.
	if got := halfHash("RS256", "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y"); got != "77QmUPtjPfzWtF2AnpK9RQ" {
		t.Errorf("at_hash %s", got)
	}
}

// TestIDTokenClaims changes one thing of a valid sign-in at a time.
func TestIDTokenClaims(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	now := p.clock.Now().Unix()
	for what, test := range map[string]struct {
		claims object
		reason string // empty: accepted
	}{
		"unchanged":                  {nil, ""},
		"aud as a list":              {object{"aud": []string{clientID}}, ""},
		"two audiences":              {object{"aud": []string{"other", clientID}, "azp": clientID}, ""},
		"two audiences, no azp":      {object{"aud": []string{"other", clientID}}, "azp"},
		"another azp":                {object{"azp": "other"}, "azp"},
		"another aud":                {object{"aud": "other"}, "aud"},
		"aud in another case":        {object{"aud": strings.ToUpper(clientID)}, "aud"},
		"no aud":                     {object{"aud": nil}, "aud"},
		"aud is a number":            {object{"aud": 1}, "JSON"},
		"another iss":                {object{"iss": "https://evil.example"}, "iss"},
		"iss with a slash":           {object{"iss": p.URL + "/"}, "iss"},
		"no iss":                     {object{"iss": nil}, "iss"},
		"another nonce":              {object{"nonce": "other"}, "nonce"},
		"no nonce":                   {object{"nonce": nil}, "nonce"},
		"empty nonce":                {object{"nonce": ""}, "nonce"},
		"no sub":                     {object{"sub": nil}, "sub"},
		"empty sub":                  {object{"sub": ""}, "sub"},
		"NUL in sub":                 {object{"sub": "a\x00b"}, "sub"},
		"sub is a number":            {object{"sub": 1}, "JSON"},
		"long sub":                   {object{"sub": strings.Repeat("a", maxSubject+1)}, "sub"},
		"exp within the skew":        {object{"exp": now - 59}, ""},
		"exp in the past":            {object{"exp": now - 60}, "exp"},
		"no exp":                     {object{"exp": nil}, "exp"},
		"exp is text":                {object{"exp": "4102444800"}, "JSON"},
		"iat within the skew":        {object{"iat": now + 60}, ""},
		"iat in the future":          {object{"iat": now + 61}, "iat"},
		"no iat":                     {object{"iat": nil}, "iat"},
		"nbf within the skew":        {object{"nbf": now + 60}, ""},
		"nbf in the future":          {object{"nbf": now + 61}, "nbf"},
		"at_hash":                    {object{"at_hash": halfHash("ES256", accessToken)}, ""},
		"at_hash of another token":   {object{"at_hash": halfHash("ES256", "other")}, "at_hash"},
		"at_hash is empty":           {object{"at_hash": ""}, "at_hash"},
		"c_hash of another code":     {object{"c_hash": halfHash("ES256", "other")}, "c_hash"},
		"acr and sid as numbers":     {object{"acr": 1, "sid": 2, "amr": 3, "auth_time": "now", "tid": []int{1}, "events": []int{}}, ""},
		"a logout token's event too": {object{"events": object{logoutEvent: object{}}}, ""},
	} {
		p.claims = test.claims
		_, err := p.signIn(s, p.discovered())
		if test.reason != "" {
			wantError(t, what, err, Invalid, IDToken, test.reason)
		} else if err != nil {
			t.Errorf("%s: %s", what, detail(err))
		}
	}

	// c_hash of the code is accepted.
	p.claims = nil
	pending, params := p.begin(s, p.discovered(), Request{})
	p.claims = object{"c_hash": halfHash("ES256", params.Get("code"))}
	if _, err := s.Finish(t.Context(), p.discovered(), pending, params); err != nil {
		t.Errorf("c_hash: %s", detail(err))
	}
}

func TestMaxAge(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	for _, test := range []struct {
		what   string
		maxAge time.Duration
		ago    time.Duration // of the authentication, from the start of the sign-in
		none   bool
		reason string
	}{
		{"recent", time.Hour, time.Hour, false, ""},
		{"within the skew", time.Hour, time.Hour + Skew, false, ""},
		{"old", time.Hour, time.Hour + Skew + time.Second, false, "auth_time"},
		{"anew", 0, -time.Minute, false, ""},
		{"not anew", 0, Skew + time.Second, false, "auth_time"},
		{"not stated", time.Hour, 0, true, "auth_time"},
	} {
		p.claims = object{"auth_time": p.clock.Now().Add(-test.ago).Unix()}
		if test.none {
			p.claims = nil
		}
		pending, params := p.begin(s, p.discovered(), Request{MaxAge: &test.maxAge})
		p.clock.advance(10 * time.Minute) // the user reads
		_, err := s.Finish(t.Context(), p.discovered(), pending, params)
		if test.reason != "" {
			wantError(t, test.what, err, Invalid, IDToken, test.reason)
		} else if err != nil {
			t.Errorf("%s: %s", test.what, detail(err))
		}
	}
}

// TestFresh asks for a new authentication in the way of each kind. An older one is refused if the
// provider states it.
func TestFresh(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	for _, test := range []struct {
		what   string
		claims object
		reason string
	}{
		{"not stated", nil, ""},
		{"new", object{"auth_time": p.clock.Now().Unix()}, ""},
		{"within the skew", object{"auth_time": p.clock.Now().Add(-Skew).Unix()}, ""},
		{"old", object{"auth_time": p.clock.Now().Add(-Skew - time.Second).Unix()}, "auth_time"},
	} {
		p.claims = test.claims
		pending, params := p.begin(s, p.discovered(), Request{Fresh: true})
		_, err := s.Finish(t.Context(), p.discovered(), pending, params)
		if test.reason != "" {
			wantError(t, test.what, err, Invalid, IDToken, test.reason)
		} else if err != nil {
			t.Errorf("%s: %s", test.what, detail(err))
		}
	}
	prompt := func(provider Provider, r Request) string {
		t.Helper()
		r.RedirectURI = redirectURI
		to, _, err := s.Begin(t.Context(), provider, r)
		if err != nil {
			t.Fatal(detail(err))
		}
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("prompt")
	}
	for want, got := range map[string]string{
		"":               prompt(p.discovered(), Request{}),
		"login":          prompt(p.discovered(), Request{Fresh: true, Prompt: []string{"login"}}),
		"consent login":  prompt(p.discovered(), Request{Fresh: true, Prompt: []string{"consent"}}),
		"select_account": prompt(Provider{Kind: GitHub, ClientID: clientID}, Request{Fresh: true}),
	} {
		if got != want {
			t.Errorf("prompt is %q, want %q", got, want)
		}
	}
}

// TestObserve measures each request of a sign-in.
func TestObserve(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	got := map[Step]int{}
	s.observe = func(step Step, took time.Duration, err error) {
		if took <= 0 || err != nil {
			t.Errorf("%s: %v, %v", step, took, err)
		}
		got[step]++
	}
	if _, err := p.signIn(s, p.discovered()); err != nil {
		t.Fatal(detail(err))
	}
	if want := map[Step]int{Discovery: 1, Token: 1, Keys: 1, Userinfo: 1}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestForgedIDTokens has tokens of an attacker who knows the nonce and everything that is public.
func TestForgedIDTokens(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	es, rs, attacker := signers()["p256"], signers()["rsa"], signers()["other"]
	jwkText := string(asText(t, public(t, "rsa", nil)))
	for what, forge := range map[string]struct {
		mint   func(claims object) string
		reason string
	}{
		"genuine":            {func(c object) string { return sign(t, jwa.ES256(), es, object{"kid": "p256", "typ": "JWT"}, c) }, ""},
		"no kid":             {func(c object) string { return sign(t, jwa.ES256(), es, nil, c) }, ""},
		"none":               {func(c object) string { return sign(t, jwa.NoSignature(), nil, object{"kid": "p256"}, c) }, "alg"},
		"HS256 with the JWK": {func(c object) string { return sign(t, jwa.HS256(), []byte(jwkText), object{"kid": "rsa"}, c) }, "alg"},
		"HS256 with the PEM": {func(c object) string { return sign(t, jwa.HS256(), pemOf(t, rs), object{"kid": "rsa"}, c) }, "alg"},
		"HS256 with the secret": {func(c object) string {
			return sign(t, jwa.HS256(), []byte(secret), nil, c)
		}, "alg"},
		"RS256 by the key of ES256": {func(c object) string { return sign(t, jwa.RS256(), rs, object{"kid": "p256"}, c) }, "does not allow alg"},
		"RS384, not in metadata":    {func(c object) string { return sign(t, jwa.RS384(), rs, object{"kid": "rsa"}, c) }, "alg"},
		"another key, same kid":     {func(c object) string { return sign(t, jwa.ES256(), attacker, object{"kid": "p256"}, c) }, "signature"},
		"unknown kid":               {func(c object) string { return sign(t, jwa.ES256(), attacker, object{"kid": "evil"}, c) }, "does not publish"},
		"jwk in the header": {func(c object) string {
			return sign(t, jwa.ES256(), attacker, object{"kid": "p256", "jku": "https://evil.example/keys"}, c)
		}, "signature"},
		"crit": {func(c object) string {
			return sign(t, jwa.ES256(), es, object{"kid": "p256", "crit": []string{"exp"}, "exp": 1}, c)
		}, "crit"},
		"access token": {func(c object) string { return sign(t, jwa.ES256(), es, object{"kid": "p256", "typ": "at+jwt"}, c) }, "typ"},
		"logout token": {func(c object) string { return sign(t, jwa.ES256(), es, object{"kid": "p256", "typ": "logout+jwt"}, c) }, "typ"},
		"a claim twice": {func(c object) string {
			return sign(t, jwa.ES256(), es, object{"kid": "p256"}, `{"sub":"admin",`+string(asText(t, c))[1:])
		}, "JSON"},
		"claims in case": {func(c object) string {
			return sign(t, jwa.ES256(), es, object{"kid": "p256"}, strings.ToUpper(string(asText(t, c))))
		}, "iss"},
		"claims are null":   {func(object) string { return sign(t, jwa.ES256(), es, object{"kid": "p256"}, "null") }, "JSON"},
		"claims are a list": {func(object) string { return sign(t, jwa.ES256(), es, object{"kid": "p256"}, "[]") }, "JSON"},
		"encrypted":         {func(object) string { return "eyJ.a.b.c.d" }, "encrypted"},
		"no signature": {func(c object) string {
			genuine := sign(t, jwa.ES256(), es, object{"kid": "p256"}, c)
			return genuine[:strings.LastIndex(genuine, ".")+1]
		}, "signature"},
		"changed": {func(c object) string {
			parts := strings.Split(sign(t, jwa.ES256(), es, object{"kid": "p256"}, c), ".")
			c["sub"] = "admin"
			return parts[0] + "." + base64.RawURLEncoding.EncodeToString(asText(t, c)) + "." + parts[2]
		}, "signature"},
		"a header member twice": {func(c object) string {
			parts := strings.Split(sign(t, jwa.ES256(), es, object{"kid": "p256"}, c), ".")
			return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","alg":"ES256","kid":"p256"}`)) + "." + parts[1] + "." + parts[2]
		}, "not a signed JWT"},
		"huge": {func(c object) string {
			return sign(t, jwa.ES256(), es, object{"kid": "p256"}, with(c, object{"x": strings.Repeat("a", maxToken)}))
		}, "too large"},
		"empty": {func(object) string { return "" }, "no id_token"},
		"text":  {func(object) string { return "hunter2" }, "not a signed JWT"},
		"JSON serialization": {func(c object) string {
			parts := strings.Split(sign(t, jwa.ES256(), es, object{"kid": "p256"}, c), ".")
			return `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`
		}, "not a signed JWT"},
	} {
		p.mint = forge.mint
		_, err := p.signIn(s, p.discovered())
		if forge.reason != "" {
			wantError(t, what, err, Invalid, IDToken, forge.reason)
		} else if err != nil {
			t.Errorf("%s: %s", what, detail(err))
		}
	}
}

// TestCallback changes the parameters with which the browser returns.
func TestCallback(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	const code = "code-1"
	for what, test := range map[string]struct {
		change  func(url.Values)
		class   Class
		contain string
	}{
		"no state":       {func(v url.Values) { v.Del("state") }, Invalid, "state"},
		"another state":  {func(v url.Values) { v.Set("state", "other") }, Invalid, "state"},
		"state twice":    {func(v url.Values) { v.Add("state", v.Get("state")) }, Invalid, "twice"},
		"code twice":     {func(v url.Values) { v.Add("code", code) }, Invalid, "twice"},
		"no code":        {func(v url.Values) { v.Del("code") }, Invalid, "no code"},
		"huge code":      {func(v url.Values) { v.Set("code", strings.Repeat("a", maxParam+1)) }, Invalid, "too long"},
		"code and error": {func(v url.Values) { v.Set("error", "access_denied") }, Invalid, "both"},
		"iss of another": {func(v url.Values) { v.Set("iss", "https://evil.example") }, Invalid, "RFC 9207"},
		"error of another": {func(v url.Values) {
			v.Del("code")
			v.Set("error", "access_denied")
			v.Set("iss", "https://evil.example")
		}, Invalid, "RFC 9207"},
		"error without state": {func(v url.Values) { v.Del("code"); v.Del("state"); v.Set("error", "access_denied") }, Invalid, "state"},
		"denied":              {func(v url.Values) { v.Del("code"); v.Set("error", "access_denied"); v.Set("iss", p.URL) }, Denied, `"access_denied"`},
		"login required":      {func(v url.Values) { v.Del("code"); v.Set("error", "login_required") }, InteractionRequired, "login_required"},
		"not authorized":      {func(v url.Values) { v.Del("code"); v.Set("error", "unauthorized_client") }, Misconfigured, "unauthorized_client"},
		"server error": {func(v url.Values) {
			v.Del("code")
			v.Set("error", "server_error")
			v.Set("error_description", "a\r\nb\x1b[31m<script>"+strings.Repeat("x", 500))
		}, Unavailable, `"a  b [31m<script>`},
		"unknown error": {func(v url.Values) { v.Del("code"); v.Set("error", "nothing_like_this") }, Unavailable, "nothing_like_this"},
	} {
		pending, params := p.begin(s, p.discovered(), Request{})
		test.change(params)
		before := p.count("/token")
		identity, err := s.Finish(t.Context(), p.discovered(), pending, params)
		wantError(t, what, err, test.class, Authorization, test.contain)
		if !reflect.DeepEqual(identity, Identity{}) || p.count("/token") != before {
			t.Errorf("%s: the code was sent, or %+v returned", what, identity)
		}
		if len(detail(err)) > 400 || strings.ContainsAny(detail(err), "\r\n\x1b") {
			t.Errorf("%s: %q", what, detail(err))
		}
	}

	// The iss of the provider is accepted; where its metadata announces it, it is required.
	pending, params := p.begin(s, p.discovered(), Request{})
	params.Set("iss", p.URL)
	if _, err := s.Finish(t.Context(), p.discovered(), pending, params); err != nil {
		t.Error(detail(err))
	}
	p.metadata["authorization_response_iss_parameter_supported"] = true
	if _, err := s.Discover(t.Context(), p.URL); err != nil {
		t.Fatal(detail(err))
	}
	_, err := p.signIn(s, p.discovered())
	wantError(t, "no iss", err, Invalid, Authorization, "iss is missing")
}

// TestMixUp has an honest provider and one of an attacker (RFC 9700 §4.4).
func TestMixUp(t *testing.T) {
	honest, evil := newProvider(t), newProvider(t)
	s := honest.service(nil, nil)
	evil.clock = honest.clock

	// The attacker's provider sends the browser to the honest one and obtains its code with the
	// callback of the attacker: the code must not reach the attacker's token endpoint.
	to, pending, err := s.Begin(t.Context(), evil.discovered(), Request{RedirectURI: redirectURI})
	if err != nil {
		t.Fatal(err)
	}
	params := honest.authorize(to)
	params.Set("iss", honest.URL)
	_, err = s.Finish(t.Context(), evil.discovered(), pending, params)
	wantError(t, "code of the honest provider", err, Invalid, Authorization, "RFC 9207")
	if evil.count("/token") != 0 {
		t.Error("the attacker received the code")
	}

	// A sign-in that began at one provider does not end at another.
	pending, params = honest.begin(s, honest.discovered(), Request{})
	_, err = s.Finish(t.Context(), evil.discovered(), pending, params)
	wantError(t, "sign-in of another provider", err, Stale, Authorization, "another provider")

	// The attacker's token endpoint passes an ID token of the honest provider on.
	evil.mint = func(claims object) string {
		return sign(t, jwa.ES256(), signers()["p256"], object{"kid": "p256"}, with(claims, object{"iss": honest.URL}))
	}
	_, err = evil.signIn(s, evil.discovered())
	wantError(t, "token of the honest provider", err, Invalid, IDToken, "iss")

	// A changed client is another one.
	pending, params = honest.begin(s, honest.discovered(), Request{})
	other := honest.discovered()
	other.ClientID = "app_2"
	_, err = s.Finish(t.Context(), other, pending, params)
	wantError(t, "another client", err, Stale, Authorization, "changed")
}

func TestCodeInjection(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	// The attacker's own code, in the victim's browser: PKCE refuses it at the provider.
	_, attacker := p.begin(s, p.discovered(), Request{})
	pending, params := p.begin(s, p.discovered(), Request{})
	params.Set("code", attacker.Get("code"))
	_, err := s.Finish(t.Context(), p.discovered(), pending, params)
	wantError(t, "code of another sign-in", err, Stale, Token, `"invalid_grant": "no such code: [removed]"`)

	// If the provider ignores PKCE, the nonce is that of the attacker.
	p.mint = func(claims object) string {
		return sign(t, jwa.ES256(), signers()["p256"], nil, with(claims, object{"nonce": "attacker"}))
	}
	_, err = p.signIn(s, p.discovered())
	wantError(t, "nonce of another sign-in", err, Invalid, IDToken, "nonce")
	p.mint = nil

	// A code works once.
	pending, params = p.begin(s, p.discovered(), Request{})
	if _, err := s.Finish(t.Context(), p.discovered(), pending, params); err != nil {
		t.Fatal(detail(err))
	}
	_, err = s.Finish(t.Context(), p.discovered(), pending, params)
	wantError(t, "used code", err, Stale, Token, "invalid_grant")

	_, err = s.Finish(t.Context(), p.discovered(), Pending{Issuer: p.URL, ClientID: clientID}, url.Values{"code": {"1"}, "state": {""}})
	wantError(t, "nothing pending", err, Invalid, Authorization, "state")
}

func TestTokenEndpoint(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	answer := func(status int, media, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	reached := false
	inside := newProvider(t)
	inside.serve["/inside"] = func(http.ResponseWriter, *http.Request) { reached = true }
	for what, test := range map[string]struct {
		serve   http.HandlerFunc
		class   Class
		contain string
	}{
		"invalid client":  {answer(401, "application/json", `{"error":"invalid_client","error_description":"bad secret `+secret+`"}`), Misconfigured, `"bad secret [removed]"`},
		"error with 200":  {answer(200, "application/json", `{"error":"bad_verification_code"}`), Stale, "bad_verification_code"},
		"error as a form": {answer(200, "application/x-www-form-urlencoded", `error=incorrect_client_credentials`), Misconfigured, "incorrect_client_credentials"},
		"500":             {answer(500, "text/html", "<html>"), Unavailable, "500"},
		"429":             {answer(429, "application/json", "{}"), Unavailable, "429"},
		"404":             {answer(404, "text/html", "<html>"), Misconfigured, "404"},
		"no JSON":         {answer(200, "application/json", `{"access_token":"`+accessToken), Invalid, "not a token response"},
		"no access token": {answer(200, "application/json", `{"id_token":"x"}`), Invalid, "not a token response"},
		"MAC token":       {answer(200, "application/json", `{"access_token":"x","token_type":"mac"}`), Invalid, "token_type"},
		"huge":            {answer(200, "application/json", `{"access_token":"`+strings.Repeat("a", 300<<10)+`"}`), Invalid, "too_large"},
		"redirect inside": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, inside.URL+"/inside", http.StatusTemporaryRedirect)
		}, Misconfigured, "307"},
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Unreachable, "connection"},
	} {
		p.on("/token", test.serve)
		_, err := p.signIn(s, p.discovered())
		wantError(t, what, err, test.class, Token, test.contain)
	}
	if reached {
		t.Error("a redirect was followed")
	}
	pending, params := p.begin(s, p.discovered(), Request{})
	ctx, cancel := context.WithCancel(t.Context())
	p.on("/token", func(_ http.ResponseWriter, r *http.Request) { _ = r.ParseForm(); cancel(); <-r.Context().Done() })
	if _, err := s.Finish(ctx, p.discovered(), pending, params); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestClientAuthentication(t *testing.T) {
	p := newProvider(t)
	for _, test := range []struct {
		methods []string
		with    func(*Provider)
		basic   string
		post    string
	}{
		{nil, nil, clientID + ":" + secret, ""},
		{[]string{"private_key_jwt", "client_secret_post", "client_secret_basic"}, nil, clientID + ":" + secret, ""},
		{[]string{"client_secret_post"}, nil, "", secret},
		{nil, func(p *Provider) { p.AuthMethod = ClientSecretPost }, "", secret},
		{[]string{"none"}, func(p *Provider) { p.Secret = "" }, "", ""},
	} {
		p.metadata["token_endpoint_auth_methods_supported"] = test.methods
		of := p.discovered()
		if test.with != nil {
			test.with(&of)
		}
		if _, err := p.signIn(p.service(nil, nil), of); err != nil {
			t.Errorf("%v: %s", test.methods, detail(err))
		}
		if p.token.Get("basic") != test.basic || p.token.Get("client_secret") != test.post || test.basic == "" && p.token.Get("client_id") != clientID {
			t.Errorf("%v: %v", test.methods, p.token)
		}
	}
	p.metadata["token_endpoint_auth_methods_supported"] = []string{"tls_client_auth"}
	_, err := p.signIn(p.service(nil, nil), p.discovered())
	wantError(t, "no method", err, Misconfigured, Configuration, "token_endpoint_auth_methods_supported")
	of := p.discovered()
	of.AuthMethod = "private_key_jwt"
	_, err = p.signIn(p.service(nil, nil), of)
	wantError(t, "another method", err, Misconfigured, Configuration, "not supported")
}

func TestUserinfo(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	for what, test := range map[string]struct {
		claims, info object
		email        string
		verified     bool
	}{
		"of userinfo":                    {nil, object{"email": "a@x.example", "email_verified": true}, "a@x.example", true},
		"text":                           {nil, object{"email": "a@x.example", "email_verified": "true"}, "a@x.example", true},
		"other text":                     {nil, object{"email": "a@x.example", "email_verified": "yes"}, "a@x.example", false},
		"not stated":                     {nil, object{"email": "a@x.example"}, "a@x.example", false},
		"of the token":                   {object{"email": "a@x.example", "email_verified": true}, nil, "a@x.example", true},
		"the token says no":              {object{"email": "a@x.example", "email_verified": false}, object{"email": "a@x.example", "email_verified": true}, "a@x.example", false},
		"the same address in both":       {object{"email": "a@x.example"}, object{"email": "a@x.example", "email_verified": true}, "a@x.example", true},
		"the flag is of another address": {object{"email": "victim@x.example"}, object{"email": "a@x.example", "email_verified": true}, "victim@x.example", false},
		"the flag has no address":        {object{"email_verified": true}, object{"email": "victim@x.example"}, "victim@x.example", false},
		"only a flag":                    {object{"email_verified": true}, nil, "", false},
		"not text":                       {object{"email": object{}}, object{"email": object{}, "email_verified": true}, "", false},
		"a list":                         {object{"email": []string{"a@x.example"}, "email_verified": true}, nil, "", false},
	} {
		p.claims, p.info = test.claims, with(object{"sub": "user-1", "acr": "gold", "tid": "1", "nickname": "info"}, test.info)
		identity, err := p.signIn(s, p.discovered())
		if err != nil {
			t.Errorf("%s: %s", what, detail(err))
			continue
		}
		_, stated := identity.Claims["email_verified"]
		if identity.Email != test.email || identity.EmailVerified != test.verified || stated != (test.email != "") || stated && identity.Claims["email_verified"] != test.verified {
			t.Errorf("%s: %q %v, %v", what, identity.Email, identity.EmailVerified, identity.Claims)
		}
		if identity.ACR != "" || identity.Claims["acr"] != nil || identity.Claims["tid"] != nil || identity.Claims["nickname"] != "info" {
			t.Errorf("%s: %v", what, identity.Claims)
		}
	}

	p.claims = object{"nickname": "token"}
	if identity, err := p.signIn(s, p.discovered()); err != nil || identity.Claims["nickname"] != "token" {
		t.Errorf("%v, %s", identity.Claims, detail(err))
	}

	signed := func(claims object) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/jwt; charset=utf-8")
			_, _ = w.Write([]byte(sign(t, jwa.ES256(), signers()["p256"], nil, claims)))
		}
	}
	p.serve["/userinfo"] = signed(object{"iss": p.URL, "aud": clientID, "sub": "user-1", "name": "Signed"})
	if identity, err := p.signIn(s, p.discovered()); err != nil || identity.Claims["name"] != "Signed" {
		t.Errorf("%v, %s", identity.Claims, detail(err))
	}
	reply := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); _, _ = w.Write([]byte(body)) }
	}
	for what, test := range map[string]struct {
		serve   http.HandlerFunc
		class   Class
		contain string
	}{
		"another user":         {reply(200, `{"sub":"user-2"}`), Invalid, "sub"},
		"no user":              {reply(200, `{"email":"a@x.example"}`), Invalid, "sub"},
		"null":                 {reply(200, `null`), Invalid, "sub"},
		"no JSON":              {reply(200, `<html>`), Invalid, "JSON"},
		"a name twice":         {reply(200, `{"sub":"user-1","sub":"user-1"}`), Invalid, "JSON"},
		"huge":                 {reply(200, `{"sub":"user-1","x":"`+strings.Repeat("a", 300<<10)+`"}`), Invalid, "too_large"},
		"500":                  {reply(500, ``), Unavailable, "500"},
		"403":                  {reply(403, ``), Misconfigured, "403"},
		"signed for another":   {signed(object{"iss": p.URL, "aud": "app_2", "sub": "user-1"}), Invalid, "client"},
		"signed by another":    {signed(object{"iss": "https://evil.example", "aud": clientID, "sub": "user-1"}), Invalid, "provider"},
		"signed, another user": {signed(object{"iss": p.URL, "aud": clientID, "sub": "user-2"}), Invalid, "sub"},
		"signed by nobody": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/jwt")
			_, _ = w.Write([]byte(sign(t, jwa.NoSignature(), nil, nil, object{"iss": p.URL, "aud": clientID, "sub": "user-1"})))
		}, Invalid, "alg"},
	} {
		p.serve["/userinfo"] = test.serve
		_, err := p.signIn(s, p.discovered())
		wantError(t, what, err, test.class, Userinfo, test.contain)
	}
}
