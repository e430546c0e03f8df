package relyingparty

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"

	"stonetown/internal/jwks"
)

// FuzzIDToken signs any payload, or sends any token. What is accepted is accepted by go-oidc as well.
func FuzzIDToken(f *testing.F) {
	const issuer, nonce = "https://op.example", "n-1"
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	es := signers()["p256"]
	keys := jwks.Usable(asText(f, object{"keys": []object{public(f, "p256", nil), public(f, "rsa", nil)}}), Algorithms, maxKeys)
	good := object{"iss": issuer, "sub": "1", "aud": clientID, "nonce": nonce, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
	for _, changes := range []object{
		nil,
		{"aud": []string{"x", clientID}, "azp": clientID},
		{"exp": now.Unix() - 30},
		{"exp": 1e300},
		{"nonce": nil},
		{"email": object{}, "email_verified": "true"},
		{"amr": []any{1, "otp"}, "auth_time": 1.5, "sid": "x"},
		{"at_hash": halfHash("ES256", accessToken)},
		{"iat": -1e300},
		{"sub": "\x00"},
	} {
		f.Add(string(asText(f, with(good, changes))), "", string(asText(f, changes)))
	}
	f.Add("", sign(f, jwa.ES256(), es, object{"kid": "p256"}, good), `{"sub":"1"}`)
	f.Add("", sign(f, jwa.NoSignature(), nil, nil, good), "null")
	f.Add("", `eyJhbGciOiJFUzI1NiIsImFsZyI6Im5vbmUifQ.e30.`, "[]")
	algs := []string{"ES256", "RS256"}
	verifier := oidc.NewVerifier(issuer, staticKeys{}, &oidc.Config{ClientID: clientID, SupportedSigningAlgs: algs, Now: func() time.Time { return now.Add(-Skew) }})
	f.Fuzz(func(t *testing.T, payload, token, info string) {
		if token == "" {
			signed, err := jws.Sign([]byte(payload), jws.WithKey(jwa.ES256(), es))
			if err != nil {
				return
			}
			token = string(signed)
		}
		opened, err := open(keys, token, algs, []string{"", "jwt"})
		if err != nil {
			return
		}
		c, err := readClaims(opened.payload)
		if err != nil || c.check(issuers{main: issuer}, opened.key, clientID, now) != nil ||
			c.checkIDToken(Pending{Nonce: nonce}, opened.alg, accessToken, "code") != nil {
			return
		}
		if c.Issuer != issuer || *c.Nonce != nonce || c.Subject == "" || *c.Expires <= seconds(now.Add(-Skew)) {
			t.Fatalf("%s is accepted", opened.payload)
		}
		if *c.Expires < 1e11 && *c.IssuedAt > -1e11 { // what go-oidc does not take for an overflow
			if _, err := verifier.Verify(t.Context(), token); err != nil && !strings.Contains(err.Error(), "failed to unmarshal") {
				t.Errorf("go-oidc refuses %s: %v", opened.payload, err)
			}
		}
		var more map[string]any
		if json.Unmarshal([]byte(info), &more) != nil {
			more = nil
		}
		before := c.all["email"]
		merge(c.all, more)
		i := Identity{Claims: c.all}
		i.setEmail(Preset{})
		if of, ok := before.(string); ok && of != "" && i.Email != of {
			t.Errorf("email %q of the token becomes %q", of, i.Email)
		}
		if i.EmailVerified && (i.Email == "" || i.Claims["email_verified"] != true) {
			t.Errorf("%+v", i)
		}
		c.list("amr")
		if at, ok := c.date("auth_time"); ok {
			instant(at)
		}
	})
}

// staticKeys verifies nothing: the signature is verified by the caller.
type staticKeys struct{ oidc.KeySet }

func (staticKeys) VerifySignature(_ context.Context, token string) ([]byte, error) {
	return base64url.DecodeString(strings.Split(token, ".")[1])
}

// FuzzCallback has any parameters of a callback.
func FuzzCallback(f *testing.F) {
	for _, query := range []string{
		"code=c&state=s", "code=c&state=s&iss=https://op.example", "code=c&code=d&state=s", "error=access_denied&state=s&error_description=%00%ff", "state=s&error=x&code=c",
		"code=c&state=s&iss=https%3A%2F%2Flogin.example%2F00000000-1111-2222-3333-444444444444%2Fv2.0", "user=%7B%22name%22%3A%7B%22firstName%22%3A%22A%22%7D%7D&code=c&state=s",
	} {
		f.Add(query, false)
		f.Add(query, true)
	}
	f.Fuzz(func(t *testing.T, query string, required bool) {
		params, _ := url.ParseQuery(query)
		m := Metadata{Issuer: "https://op.example", IssParameter: required}
		a, err := readAnswer(params)
		if err != nil {
			return
		}
		err = checkAnswer(a, Provider{ClientID: clientID}, m, issuers{main: m.Issuer}, Pending{State: "s", Issuer: m.Issuer, ClientID: clientID})
		only := func(name, want string) bool { return len(params[name]) == 1 && params[name][0] == want }
		valid := only("state", "s") && len(params["code"]) == 1 && params.Get("code") != "" && params.Get("error") == "" &&
			(only("iss", m.Issuer) || params.Get("iss") == "" && !required)
		if (err == nil) != valid {
			t.Errorf("%v: %v", params, err)
		}
		if err := at(Authorization, err); err != nil && (len(detail(err)) > 2000 || strings.ContainsAny(detail(err), "\r\n\x00")) {
			t.Errorf("%q", detail(err))
		}
		all := map[string]any{"given_name": "B"}
		addName(all, a.user)
		if all["given_name"] != "B" || all["email"] != nil {
			t.Errorf("%v", all)
		}
		many := issuers{template: "https://login.example/" + placeOfID + "/v2.0"}
		if many.acceptAnswer(a.iss) && (strings.Count(a.iss, "/") != 4 || len(a.iss) != len(many.template)-len(placeOfID)+36) {
			t.Errorf("%q is accepted", a.iss)
		}
	})
}
