package requestobject

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"

	"stonetown/internal/jwks"
	"stonetown/oauth/assertion"
)

const issuer = "https://a.example.com"

var now = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

type object = map[string]any

var key = sync.OnceValue(func() *ecdsa.PrivateKey {
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return made
})

func website() Client {
	return Client{ID: "client_a", Keys: jwks.Set{{ID: "a", Public: key().Public(), Algs: []string{"ES256"}}}, Algs: Algs}
}

// with returns an object with changes; nil removes a member.
func with(m, changes object) object {
	m = maps.Clone(m)
	maps.Copy(m, changes)
	maps.DeleteFunc(m, func(_ string, value any) bool { return value == nil })
	return m
}

// claimsWith returns the claims of a valid request object, changed.
func claimsWith(changes object) object {
	return with(object{
		"iss": "client_a", "aud": issuer, "client_id": "client_a", "nbf": now.Add(-time.Minute).Unix(), "exp": now.Add(time.Minute).Unix(), "scope": "openid", "max_age": 60,
	}, changes)
}

func sign(t testing.TB, header object, payload any) string {
	t.Helper()
	body, ok := payload.([]byte)
	if !ok {
		var err error
		if body, err = json.Marshal(payload); err != nil {
			t.Fatal(err)
		}
	}
	h := jws.NewHeaders()
	for name, value := range header {
		if err := h.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	token, err := jws.Sign(body, jws.WithKey(jwa.ES256(), key(), jws.WithProtectedHeaders(h)))
	if err != nil {
		t.Fatal(err)
	}
	return string(token)
}

func TestRead(t *testing.T) {
	got, err := Read(sign(t, object{"kid": "a", "typ": "oauth-authz-req+jwt"}, claimsWith(object{
		"claims": object{"id_token": nil}, "resource": []string{"https://x.example.com", "https://y.example.com"}, "authorization_details": []any{object{"type": "document"}}, "state": nil, "nonce": "n", "jti": "1", "empty": []any{},
	})), website(), issuer, now)
	want := url.Values{
		"client_id": {"client_a"}, "scope": {"openid"}, "max_age": {"60"}, "claims": {`{"id_token":null}`}, "resource": {"https://x.example.com", "https://y.example.com"},
		"authorization_details": {`[{"type":"document"}]`}, "nonce": {"n"}, "empty": {"[]"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}

	bounded := func(c *Client) { c.Bounded = true }
	for name, test := range map[string]struct {
		header, claims object
		client         func(*Client)
		reason         string // empty: it is valid
	}{
		"typ JWT":                 {header: object{"typ": "JWT"}},
		"whole typ":               {header: object{"typ": "application/oauth-authz-req+JWT"}},
		"no times":                {claims: object{"exp": nil, "nbf": nil}},
		"several audiences":       {claims: object{"aud": []string{"https://b.example.com", issuer}}},
		"clock ahead":             {claims: object{"nbf": now.Add(Skew).Unix(), "iat": now.Add(Skew).Unix()}},
		"bounded":                 {client: bounded},
		"access token":            {header: object{"typ": "at+jwt"}, reason: jwks.ErrType.Error()},
		"typ of an assertion":     {header: object{"typ": "client-authentication+jwt"}, reason: jwks.ErrType.Error()},
		"DPoP proof":              {header: object{"typ": "dpop+jwt"}, reason: jwks.ErrType.Error()},
		"alg of the application":  {client: func(c *Client) { c.Algs = []string{"PS256"} }, reason: jwks.ErrAlg.Error()},
		"crit":                    {header: object{"crit": []string{"exp"}}, reason: jwks.ErrCritical.Error()},
		"assertion":               {claims: object{"sub": "client_a"}, reason: "sub is that of a JWT for another purpose"},
		"sub of another":          {claims: object{"sub": "x"}, reason: "sub is that of a JWT for another purpose"},
		"no iss":                  {claims: object{"iss": nil}, reason: "iss must be the client_id"},
		"iss of another":          {claims: object{"iss": "client_b"}, reason: "iss must be the client_id"},
		"iss is a list":           {claims: object{"iss": []string{"client_a"}}, reason: "iss must be the client_id"},
		"no client_id":            {claims: object{"client_id": nil}, reason: "client_id must be that of the request"},
		"client_id of another":    {claims: object{"client_id": "client_b"}, reason: "client_id must be that of the request"},
		"no aud":                  {claims: object{"aud": nil}, reason: "aud must contain the issuer"},
		"aud is another tenant":   {claims: object{"aud": "https://b.example.com"}, reason: "aud must contain the issuer"},
		"aud is an object":        {claims: object{"aud": object{}}, reason: "aud must contain the issuer"},
		"request inside":          {claims: object{"request": "x"}, reason: "it must not contain request or request_uri"},
		"request_uri inside":      {claims: object{"request_uri": "x"}, reason: "it must not contain request or request_uri"},
		"expired":                 {claims: object{"exp": now.Unix()}, reason: "exp is in the past"},
		"exp is text":             {claims: object{"exp": "x"}, reason: "exp is not a number"},
		"exp is huge":             {claims: object{"exp": 1e300}, reason: "it is valid for longer than 3600 seconds"},
		"valid for long":          {claims: object{"nbf": now.Add(-time.Hour).Unix(), "exp": now.Add(time.Minute).Unix()}, reason: "it is valid for longer than 3600 seconds"},
		"not yet valid":           {claims: object{"nbf": now.Add(2 * Skew).Unix()}, reason: "nbf is in the future"},
		"issued later":            {claims: object{"iat": now.Add(2 * Skew).Unix()}, reason: "iat is in the future"},
		"bounded, no exp":         {client: bounded, claims: object{"exp": nil}, reason: "exp and nbf are required"},
		"bounded, no nbf":         {client: bounded, claims: object{"nbf": nil}, reason: "exp and nbf are required"},
		"bounded, old":            {client: bounded, claims: object{"nbf": now.Add(-2 * time.Hour).Unix()}, reason: "nbf is more than 3600 seconds ago"},
		"no key for the alg of a": {client: func(c *Client) { c.Keys[0].Algs = []string{"PS256"} }, reason: jwks.ErrAlgorithm.Error()},
	} {
		by := website()
		if test.client != nil {
			test.client(&by)
		}
		_, err := Read(sign(t, with(object{"kid": "a"}, test.header), claimsWith(test.claims)), by, issuer, now)
		reason := ""
		if refusal, ok := errors.AsType[*Refusal](err); ok {
			reason = refusal.Reason
		} else if err != nil {
			reason = err.Error()
		}
		if reason != test.reason {
			t.Errorf("%s: %q, want %q", name, reason, test.reason)
		}
	}

	unsigned, err := jws.Sign([]byte(`{}`), jws.WithInsecureNoSignature())
	if err != nil {
		t.Fatal(err)
	}
	valid := sign(t, object{"kid": "a"}, claimsWith(nil))
	parts, other := strings.Split(valid, "."), strings.Split(sign(t, object{"kid": "a"}, claimsWith(object{"scope": "admin"})), ".")
	for name, test := range map[string]struct {
		token string
		want  error
	}{
		"unsigned":      {string(unsigned), ErrUnsigned},
		"unknown key":   {sign(t, object{"kid": "b"}, claimsWith(nil)), jwks.ErrUnknown},
		"no JWT":        {"x", &Refusal{jwks.ErrNotSigned.Error()}},
		"no signature":  {parts[0] + "." + parts[1] + ".", &Refusal{jwks.ErrNotSigned.Error()}},
		"other claims":  {parts[0] + "." + other[1] + "." + parts[2], &Refusal{jwks.ErrSignature.Error()}},
		"not an object": {sign(t, object{"kid": "a"}, []byte(`[]`)), &Refusal{"the claims are not valid JSON"}},
		"null":          {sign(t, object{"kid": "a"}, []byte(`null`)), &Refusal{"the claims are not valid JSON"}},
		"a name twice":  {sign(t, object{"kid": "a"}, []byte(`{"iss":"client_a","iss":"client_b"}`)), &Refusal{"the claims are not valid JSON"}},
		"large":         {sign(t, object{"kid": "a"}, claimsWith(object{"x": strings.Repeat("x", MaxSize)})), &Refusal{jwks.ErrTooLarge.Error()}},
	} {
		if params, err := Read(test.token, website(), issuer, now); err == nil || params != nil || err.Error() != test.want.Error() {
			t.Errorf("%s: %v, %v", name, params, err)
		}
	}
}

// A request object is no client assertion, and a client assertion no request object, even with the
// same key and with all claims that the other requires (RFC 9101 §10.8).
func TestPurposes(t *testing.T) {
	by := website()
	both := claimsWith(object{"jti": "1", "aud": issuer})
	for _, typ := range []any{nil, "JWT", "oauth-authz-req+jwt"} {
		token := sign(t, with(object{"kid": "a", "typ": typ}, nil), both)
		if _, err := Read(token, by, issuer, now); err != nil {
			t.Error(err)
		}
		if _, err := assertion.Verify(token, by.ID, by.Keys, []string{issuer}, time.Hour, now); !errors.Is(err, assertion.ErrInvalid) {
			t.Errorf("%v: the request object is an assertion: %v", typ, err)
		}
	}
	token := sign(t, object{"kid": "a"}, with(both, object{"sub": by.ID}))
	if _, err := assertion.Verify(token, by.ID, by.Keys, []string{issuer}, time.Hour, now); err != nil {
		t.Error(err)
	}
	if _, err := Read(token, by, issuer, now); err == nil {
		t.Error("the assertion is a request object")
	}
}

// No text without the client's signature is a request object.
func FuzzRead(f *testing.F) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sign(f, object{"kid": "a"}, claimsWith(nil)))
	f.Add("a.e30.c")
	by := website()
	by.Keys[0].Public = other.Public()
	f.Fuzz(func(t *testing.T, token string) {
		if params, err := Read(token, by, issuer, now); err == nil || params != nil {
			t.Errorf("%v, %v", params, err)
		}
	})
}

// Claims that the client signed are parameters or refused, whatever they are.
func FuzzClaims(f *testing.F) {
	for _, changes := range []object{nil, {"aud": []any{issuer, 1}}, {"exp": 1e300}, {"scope": object{}}, {"nbf": "x"}, {"sub": nil}} {
		text, err := json.Marshal(claimsWith(changes))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		params, err := Read(sign(t, object{"kid": "a"}, payload), website(), issuer, now)
		if err != nil {
			return
		}
		if params.Get("client_id") != "client_a" || params.Has("request") || params.Has("request_uri") || params.Has("sub") || params.Has("aud") {
			t.Errorf("%q: %v", payload, params)
		}
		for name, values := range params {
			if len(values) == 0 {
				t.Errorf("%s has no value", name)
			}
		}
	})
}
