package relyingparty

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
)

// recording has the shapes of a provider's answers.
type recording struct {
	Discovery object            `json:"discovery"`
	Key       object            `json:"key"`
	IDToken   object            `json:"id_token"`
	Token     object            `json:"token"`
	User      json.RawMessage   `json:"user"`
	Emails    json.RawMessage   `json:"emails"`
	Callback  map[string]string `json:"callback"`
	Denied    map[string]string `json:"denied"`
	Errors    []struct {
		Status int             `json:"status"`
		Class  Class           `json:"class"`
		Body   json.RawMessage `json:"body"`
	} `json:"errors"`
}

// hosts are those of the endpoints. A local server has them as the first part of the path.
var hosts = regexp.MustCompile(`https://((accounts\.google|oauth2\.googleapis|www\.googleapis|openidconnect\.googleapis|login\.microsoftonline|graph\.microsoft|appleid\.apple|api\.github|github)\.com)\b`)

// recorded is a local provider that behaves as a recording, and a service that takes it for the
// provider of a kind.
type recorded struct {
	*provider
	recording
	*Service
	of    Provider
	token string // the path of the token endpoint
}

func openRecorded(t *testing.T, kind Kind) *recorded {
	t.Helper()
	r := &recorded{provider: newProvider(t), of: Provider{Kind: kind, ClientID: clientID, Secret: secret}}
	local := func(text []byte) []byte { return hosts.ReplaceAll(text, []byte(r.URL+"/$1")) }
	_, name, _ := strings.Cut(string(kind), ".")
	shapes, err := os.ReadFile("testdata/recorded/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(local(shapes), &r.recording); err != nil {
		t.Fatal(err)
	}
	var preset Preset
	if err := json.Unmarshal(local(asText(t, Presets()[kind])), &preset); err != nil {
		t.Fatal(err)
	}
	r.Service = r.service(map[Kind]Preset{kind: preset}, nil)
	if preset.Directories != nil {
		r.of.Directory = "common"
	}

	serveJSON := func(address string, body func() any) {
		r.serve[pathOf(t, address)] = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = w.Write(asText(t, body()))
		}
	}
	tokenEndpoint := r.Discovery["token_endpoint"]
	if preset.API != nil {
		tokenEndpoint = preset.Metadata.TokenEndpoint
		r.answer = with(r.Token, object{"id_token": nil})
		withToken := func(body json.RawMessage) http.HandlerFunc {
			return func(w http.ResponseWriter, req *http.Request) {
				if req.Header.Get("Authorization") != "Bearer "+accessToken || req.Header.Get("Accept") != githubMedia {
					w.WriteHeader(http.StatusUnauthorized)
				}
				_, _ = w.Write(body)
			}
		}
		r.serve[pathOf(t, preset.API.User)], r.serve[pathOf(t, preset.API.Emails)] = withToken(r.User), withToken(r.Emails)
	} else {
		r.jwks, r.key, r.alg = object{"keys": []object{public(t, "rsa", r.Key)}}, "rsa", jwa.RS256()
		r.claims, r.answer = with(r.IDToken, object{"at_hash": halfHash("RS256", accessToken), "sid": nil}), r.Token
		serveJSON(preset.locate(r.of.Directory).url, func() any { return r.Discovery })
		serveJSON(r.Discovery["jwks_uri"].(string), func() any { return r.jwks })
	}
	r.token = pathOf(t, tokenEndpoint.(string))
	r.serve[r.token] = r.endpoint
	return r
}

func pathOf(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Path
}

// in is a sign-in. change may change the callback.
func (r *recorded) in(change func(url.Values)) (Identity, error) {
	r.t.Helper()
	pending, params := r.begin(r.Service, r.of, Request{})
	for name, value := range r.Callback {
		params.Set(name, value)
	}
	if change != nil {
		change(params)
	}
	return r.Finish(r.t.Context(), r.of, pending, params)
}

// fails are the recorded errors, after a sign-in.
func (r *recorded) fails() {
	r.t.Helper()
	if sent := r.provider.token; sent.Has("basic") || sent.Get("client_id") != clientID || sent.Get("client_secret") == "" {
		r.t.Errorf("token request %v", sent)
	}
	_, err := r.in(func(v url.Values) {
		v.Del("code")
		for name, value := range r.Denied {
			v.Set(name, value)
		}
	})
	wantError(r.t, "denied", err, Denied, Authorization, r.Denied["error"])
	for _, failure := range r.Errors {
		serve := r.serve[r.token]
		r.serve[r.token] = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(failure.Status)
			_, _ = w.Write(failure.Body)
		}
		_, err := r.in(nil)
		wantError(r.t, string(failure.Body), err, failure.Class, Token, "the provider answers")
		r.serve[r.token] = serve
	}
	if len(r.Errors) < 2 {
		r.t.Error("no errors are recorded")
	}
}

func TestGoogle(t *testing.T) {
	r := openRecorded(t, Google)
	i, err := r.in(nil)
	if err != nil || i.Subject != "100000000000000000001" || i.Email != "ann@example.com" || !i.EmailVerified || i.Claims["hd"] != "example.com" || i.Claims["family_name"] != "Example" {
		t.Errorf("%+v, %s", i, detail(err))
	}
	if r.count("/openidconnect.googleapis.com/v1/userinfo") != 0 {
		t.Error("userinfo was called")
	}
	for _, test := range []struct {
		claims   object
		verified bool
	}{
		{object{"email": "ann@gmail.com", "hd": nil}, true},
		{object{"email": "Ann@Gmail.com", "hd": nil}, true},
		{object{"email": "ann@example.com", "hd": nil}, false},
		{object{"email": "ann@example.com", "hd": ""}, false},
		{object{"email": "ann@notgmail.com", "hd": nil}, false},
		{object{"email": "ann@gmail.com.example", "hd": nil}, false},
		{object{"email": "ann@example.com", "hd": "example.com", "email_verified": false}, false},
		{object{"email": "ann@example.com", "hd": "example.com", "email_verified": true}, true},
	} {
		maps.Copy(r.claims, test.claims)
		if i, err := r.in(nil); err != nil || i.EmailVerified != test.verified || i.Claims["email_verified"] != test.verified {
			t.Errorf("%v: verified %t, %s", test.claims, i.EmailVerified, detail(err))
		}
	}
	issuer := r.Discovery["issuer"].(string)
	if _, err := r.in(func(v url.Values) { v.Set("iss", issuer) }); err != nil {
		t.Error(detail(err))
	}
	_, err = r.in(func(v url.Values) { v.Set("iss", "accounts.google.com") })
	wantError(t, "iss", err, Invalid, Authorization, "RFC 9207")
	r.claims["iss"] = "accounts.google.com"
	if i, err := r.in(nil); err != nil || i.Issuer != "accounts.google.com" {
		t.Errorf("the old issuer: %s", detail(err))
	}
	r.claims["iss"] = "accounts.google.com.evil.example"
	_, err = r.in(nil)
	wantError(t, "another issuer", err, Invalid, IDToken, "iss")
	r.fails()
}

func TestMicrosoft(t *testing.T) {
	r := openRecorded(t, Microsoft)
	issuer := r.claims["iss"]
	i, err := r.in(nil)
	if err != nil || i.Issuer != issuer || i.Email != "ann@example.com" || !i.EmailVerified || i.Claims["email_verified"] != true || i.Claims["oid"] == nil {
		t.Fatalf("%+v, %s", i, detail(err))
	}
	// Only xms_edov states that an address was verified: an administrator of any tenant can give
	// a user the address of another person.
	for _, test := range []struct {
		edov, verified any
		want           bool
	}{
		{true, nil, true},
		{"1", nil, true},
		{1, nil, true},
		{"true", nil, true},
		{nil, true, false},
		{false, true, false},
		{"0", nil, false},
		{0, nil, false},
		{nil, nil, false},
	} {
		r.claims = with(with(r.claims, object{"xms_edov": nil, "email_verified": nil}), object{"xms_edov": test.edov, "email_verified": test.verified})
		if i, err := r.in(nil); err != nil || i.EmailVerified != test.want || i.Claims["email_verified"] != test.want {
			t.Errorf("%v, %v: %v, %s", test.edov, test.verified, i.EmailVerified, detail(err))
		}
	}

	const other = "55555555-6666-7777-8888-999999999999"
	otherIssuer := strings.Replace(r.Discovery["issuer"].(string), placeOfID, other, 1)
	for what, test := range map[string]struct {
		claims object
		reason string
	}{
		"another tenant":            {object{"iss": otherIssuer, "tid": other}, ""},
		"tid of another":            {object{"tid": other}, "iss"},
		"iss of another":            {object{"iss": otherIssuer}, "iss"},
		"no tid":                    {object{"tid": nil}, "iss"},
		"the template":              {object{"iss": r.Discovery["issuer"], "tid": placeOfID}, "iss"},
		"a path for tid":            {object{"iss": strings.Replace(r.Discovery["issuer"].(string), placeOfID, "../x", 1), "tid": "../x"}, "iss"},
		"empty tid":                 {object{"iss": strings.Replace(r.Discovery["issuer"].(string), placeOfID, "", 1), "tid": ""}, "iss"},
		"a list of tenants":         {object{"tid": []string{other}}, "iss"},
		"an issuer that ends alike": {object{"iss": "https://evil.example/" + other + "/v2.0", "tid": other}, "iss"},
	} {
		whole := r.claims
		r.claims = with(r.claims, test.claims)
		_, err := r.in(nil)
		if test.reason != "" {
			wantError(t, what, err, Invalid, IDToken, test.reason)
		} else if err != nil {
			t.Errorf("%s: %s", what, detail(err))
		}
		r.claims = whole
	}
	for iss, ok := range map[string]bool{issuer.(string): true, otherIssuer: true, r.Discovery["issuer"].(string): false, "https://evil.example/" + other + "/v2.0": false} {
		if _, err := r.in(func(v url.Values) { v.Set("iss", iss) }); (err == nil) != ok {
			t.Errorf("%s: %s", iss, detail(err))
		}
	}

	// Some keys are for one tenant only.
	r.provider.clock.advance(fetchEvery)
	r.jwks = object{"keys": []object{public(t, "rsa", with(r.Key, object{"issuer": otherIssuer}))}}
	_, err = r.in(nil)
	wantError(t, "key of another tenant", err, Invalid, IDToken, "key")
	r.claims = with(r.claims, object{"iss": otherIssuer, "tid": other})
	if _, err := r.in(nil); err != nil {
		t.Errorf("key of the tenant: %s", detail(err))
	}
	r.fails()
	to, err := r.LogoutURL(t.Context(), r.of, Logout{IDToken: "x"})
	if err != nil || !strings.Contains(to, "/common/oauth2/v2.0/logout?") {
		t.Errorf("%s, %v", to, err)
	}
}

func appleKey(t testing.TB) (*AppleKey, string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(signers()["p256"])
	if err != nil {
		t.Fatal(err)
	}
	file := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	key, err := ParseAppleKey("TEAM123456", "KEY1234567", file)
	if err != nil {
		t.Fatal(err)
	}
	return key, file
}

func TestApple(t *testing.T) {
	r := openRecorded(t, Apple)
	r.of.Secret = ""
	r.of.AppleKey, _ = appleKey(t)
	to, _, err := r.Begin(t.Context(), r.of, Request{RedirectURI: redirectURI})
	if err != nil || !strings.Contains(to, "response_mode=form_post") || !strings.Contains(to, "scope=openid+name+email") {
		t.Errorf("%s, %s", to, detail(err))
	}
	i, err := r.in(nil)
	if err != nil {
		t.Fatal(detail(err))
	}
	// The address in the form is not believed, because the browser sends it.
	if i.Email != "invented@privaterelay.appleid.com" || !i.EmailVerified || i.Claims["given_name"] != "Ann" || i.Claims["family_name"] != "Example" || i.Claims["name"] != "Ann Example" {
		t.Errorf("%+v", i)
	}
	sent := r.provider.token.Get("client_secret")
	payload, err := jws.Verify([]byte(sent), jws.WithKey(jwa.ES256(), signers()["p256"].Public()))
	if err != nil {
		t.Fatal(err)
	}
	now := r.provider.clock.Now()
	want := fmt.Sprintf(`{"aud":%q,"exp":%d,"iat":%d,"iss":"TEAM123456","sub":"app_1"}`, r.Discovery["issuer"], now.Add(5*time.Minute).Unix(), now.Unix())
	message, err := jws.ParseString(sent)
	if err != nil {
		t.Fatal(err)
	}
	if kid, _ := message.Signatures()[0].ProtectedHeaders().KeyID(); string(payload) != want || kid != "KEY1234567" {
		t.Errorf("%s, kid %s, want %s", payload, kid, want)
	}

	// Later sign-ins have no form, and an invalid one is ignored.
	for _, user := range []string{"", "{", `{"name":{"firstName":1}}`, `{"name":null}`, `[]`} {
		i, err := r.in(func(v url.Values) { v.Set("user", user) })
		if err != nil || i.Claims["given_name"] != nil || i.Claims["name"] != nil {
			t.Errorf("%q: %v, %s", user, i.Claims, detail(err))
		}
	}
	r.claims = with(r.claims, object{"email_verified": "false"})
	if i, err := r.in(nil); err != nil || i.EmailVerified || i.Claims["email_verified"] != false {
		t.Errorf("%+v, %s", i, detail(err))
	}
	r.fails()
}

func TestParseAppleKey(t *testing.T) {
	_, file := appleKey(t)
	if _, err := ParseAppleKey("T", "K", "\n"+file+"\n"); err != nil {
		t.Error(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(signers()["rsa"])
	if err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string][3]string{
		"no team": {"", "K", file}, "no key id": {"T", "", file}, "no file": {"T", "K", ""}, "text": {"T", "K", "hunter2"}, "two keys": {"T", "K", file + file},
		"RSA":    {"T", "K", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))},
		"public": {"T", "K", string(pemOf(t, signers()["p256"]))},
		"broken": {"T", "K", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")}))},
	} {
		if _, err := ParseAppleKey(test[0], test[1], test[2]); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestGitHub(t *testing.T) {
	r := openRecorded(t, GitHub)
	to, pending, err := r.Begin(t.Context(), r.of, Request{RedirectURI: redirectURI})
	if err != nil || strings.Contains(to, "nonce=") || pending.Nonce != "" || !strings.Contains(to, "scope=read%3Auser+user%3Aemail") || !strings.Contains(to, "code_challenge=") {
		t.Errorf("%s, %s", to, detail(err))
	}
	i, err := r.in(nil)
	if err != nil {
		t.Fatal(detail(err))
	}
	if i.Subject != "9007199254740993" || i.Claims["sub"] != i.Subject || i.Email != "ann@example.com" || !i.EmailVerified || i.Claims["email"] != i.Email ||
		i.Claims["preferred_username"] != "ann-example" || i.Claims["picture"] == nil || i.Claims["name"] != "Ann Example" || i.IDToken != "" || i.Issuer == "" {
		t.Errorf("%+v", i)
	}
	reply := func(status int, header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if header != "" {
				w.Header().Set("X-RateLimit-Remaining", header)
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	const user, emails = "/api.github.com/user", "/api.github.com/user/emails"
	for what, test := range map[string]struct {
		path     string
		serve    http.HandlerFunc
		email    string
		verified bool
		class    Class
	}{
		"primary is not verified": {emails, reply(200, "", `[{"email":"b@example.com","verified":true},{"email":"a@example.com","primary":true,"verified":false}]`), "a@example.com", false, ""},
		"no primary":              {emails, reply(200, "", `[{"email":"b@example.com","verified":true}]`), "", false, ""},
		"no addresses":            {emails, reply(200, "", `[]`), "", false, ""},
		"scope was not granted":   {emails, reply(404, "4999", `{"message":"Not Found","status":"404"}`), "", false, ""},
		"app has no permission":   {emails, reply(403, "4999", `{"message":"Resource not accessible by integration"}`), "", false, ""},
		"rate limit":              {emails, reply(403, "0", `{"message":"API rate limit exceeded"}`), "", false, Unavailable},
		"addresses fail":          {emails, reply(502, "", ``), "", false, Unavailable},
		"no list":                 {emails, reply(200, "", `{}`), "", false, Invalid},
		"token is refused":        {user, reply(401, "", `{"message":"Bad credentials"}`), "", false, Misconfigured},
		"no id":                   {user, reply(200, "", `{"login":"x"}`), "", false, Invalid},
		"id is text":              {user, reply(200, "", `{"login":"x","id":"1"}`), "", false, Invalid},
		"id is negative":          {user, reply(200, "", `{"login":"x","id":-1}`), "", false, Invalid},
		"two ids":                 {user, reply(200, "", `{"login":"x","id":1,"id":2}`), "", false, Invalid},
		"user fails":              {user, reply(503, "", ``), "", false, Unavailable},
	} {
		before := r.serve[test.path]
		r.serve[test.path] = test.serve
		i, err := r.in(nil)
		r.serve[test.path] = before
		if test.class != "" {
			wantError(t, what, err, test.class, Userinfo, "")
		} else if err != nil || i.Email != test.email || i.EmailVerified != test.verified {
			t.Errorf("%s: %+v, %s", what, i, detail(err))
		}
	}
	r.fails()
}
