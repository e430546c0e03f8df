package assertion

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
)

const (
	client  = "cli_a"
	issuer  = "https://a.example.com"
	longest = time.Hour
)

var (
	names = []string{issuer, issuer + "/oauth2/token"}
	now   = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
)

type object = map[string]any

// signers are one private key of each type that is accepted, and more.
var signers = sync.OnceValue(func() map[string]crypto.Signer {
	made := map[string]crypto.Signer{}
	var err error
	keep := func(name string, key crypto.Signer, failed error) { made[name], err = key, errors.Join(err, failed) }
	long, failed := rsa.GenerateKey(rand.Reader, 2048)
	keep("rsa2048", long, failed)
	for name, curve := range map[string]elliptic.Curve{"p256": elliptic.P256(), "other256": elliptic.P256(), "p384": elliptic.P384()} {
		key, failed := ecdsa.GenerateKey(curve, rand.Reader)
		keep(name, key, failed)
	}
	_, key, failed := ed25519.GenerateKey(rand.Reader)
	keep("ed25519", key, failed)
	if err != nil {
		panic(err)
	}
	return made
})

// public is a key as its JWK, with changes.
func public(t testing.TB, name string, changes object) object {
	t.Helper()
	return members(t, signers()[name].Public(), name, changes)
}

func members(t testing.TB, key any, kid string, changes object) object {
	t.Helper()
	imported, err := jwk.Import(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(imported)
	if err != nil {
		t.Fatal(err)
	}
	m := object{}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	m["kid"] = kid
	return with(m, changes)
}

// with is an object with changes; nil takes a member out.
func with(m, changes object) object {
	m = maps.Clone(m)
	maps.Copy(m, changes)
	maps.DeleteFunc(m, func(_ string, value any) bool { return value == nil })
	return m
}

func setOf(t testing.TB, keys ...object) []byte {
	t.Helper()
	text, err := json.Marshal(object{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func keysOf(t testing.TB, keys ...object) Keys {
	t.Helper()
	parsed, err := ParseKeys(setOf(t, keys...))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func claimsWith(changes object) object {
	return with(object{"iss": client, "sub": client, "aud": issuer, "jti": "1", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}, changes)
}

// sign signs claims, given as an object or as text, under a header.
func sign(t testing.TB, alg jwa.SignatureAlgorithm, key any, header object, payload any) string {
	t.Helper()
	body, ok := payload.(string)
	if !ok {
		text, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		body = string(text)
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

func TestVerify(t *testing.T) {
	keys := keysOf(t, public(t, "rsa2048", nil), public(t, "p256", nil), public(t, "ed25519", object{"alg": "EdDSA", "use": "sig", "key_ops": []string{"verify"}}))
	for name, by := range map[string]struct {
		alg jwa.SignatureAlgorithm
		key string
	}{"RS256": {jwa.RS256(), "rsa2048"}, "PS256": {jwa.PS256(), "rsa2048"}, "ES256": {jwa.ES256(), "p256"}, "EdDSA": {jwa.EdDSA(), "ed25519"}} {
		for _, kid := range []any{by.key, nil} { // only one of these is for the algorithm
			got, err := Verify(sign(t, by.alg, signers()[by.key], with(object{"kid": kid}, nil), claimsWith(nil)), client, keys, names, longest, now)
			if want := (Assertion{client, "1", now.Add(time.Minute), name, names[0]}); err != nil || got != want {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	}

	es := signers()["p256"]
	header := object{"kid": "p256"}
	for name, test := range map[string]struct {
		header, claims object
		ok             bool
	}{
		"typ":                        {object{"typ": "JWT"}, nil, true},
		"typ of its own":             {object{"typ": "application/client-authentication+JWT"}, nil, true},
		"access token":               {object{"typ": "at+jwt"}, nil, false},
		"access token, whole type":   {object{"typ": "application/at+jwt"}, nil, false},
		"DPoP proof":                 {object{"typ": "dpop+jwt"}, nil, false},
		"logout token":               {object{"typ": "logout+jwt"}, nil, false},
		"token endpoint":             {nil, object{"aud": names[1]}, true},
		"list of one":                {nil, object{"aud": []string{issuer}}, true},
		"all names":                  {nil, object{"aud": names}, true},
		"another tenant":             {nil, object{"aud": "https://b.example.com"}, false},
		"this and another":           {nil, object{"aud": []string{issuer, "https://b.example.com"}}, false},
		"almost this":                {nil, object{"aud": issuer + "/"}, false},
		"no aud":                     {nil, object{"aud": nil}, false},
		"empty list":                 {nil, object{"aud": []string{}}, false},
		"aud is a number":            {nil, object{"aud": 1}, false},
		"aud is null":                {nil, object{"aud": []any{nil}}, false},
		"iss of another":             {nil, object{"iss": "cli_b"}, false},
		"sub of another":             {nil, object{"sub": "cli_b"}, false},
		"of another":                 {nil, object{"iss": "cli_b", "sub": "cli_b"}, false},
		"no iss":                     {nil, object{"iss": nil}, false},
		"no sub":                     {nil, object{"sub": nil}, false},
		"no jti":                     {nil, object{"jti": nil}, false},
		"empty jti":                  {nil, object{"jti": ""}, false},
		"jti is a number":            {nil, object{"jti": 1}, false},
		"long jti":                   {nil, object{"jti": strings.Repeat("a", maxText+1)}, false},
		"no exp":                     {nil, object{"exp": nil}, false},
		"exp is text":                {nil, object{"exp": "1795252860"}, false},
		"exp is now":                 {nil, object{"exp": now.Unix()}, false},
		"exp was":                    {nil, object{"exp": now.Unix() - 1}, false},
		"exp in half a second":       {nil, object{"exp": float64(now.Unix()) + .5}, true},
		"exp at most ahead":          {nil, object{"exp": now.Add(longest).Unix()}, true},
		"exp ahead by their clock":   {nil, object{"exp": now.Add(longest + Skew).Unix(), "iat": now.Add(Skew).Unix()}, true},
		"exp too far ahead":          {nil, object{"exp": now.Add(longest+Skew).Unix() + 1, "iat": nil}, false},
		"exp in milliseconds":        {nil, object{"exp": now.Add(time.Minute).UnixMilli()}, false},
		"exp is huge":                {nil, object{"exp": 1e300}, false},
		"exp is negative":            {nil, object{"exp": -1e300}, false},
		"no iat":                     {nil, object{"iat": nil}, true},
		"iat ahead by their clock":   {nil, object{"iat": now.Add(Skew).Unix()}, true},
		"iat ahead":                  {nil, object{"iat": now.Add(Skew).Unix() + 1}, false},
		"iat long ago":               {nil, object{"iat": now.Add(-time.Hour).Unix()}, false},
		"iat is text":                {nil, object{"iat": "now"}, false},
		"nbf":                        {nil, object{"nbf": now.Unix()}, true},
		"nbf long ago":               {nil, object{"nbf": now.Add(-time.Hour).Unix()}, true},
		"nbf ahead by their clock":   {nil, object{"nbf": now.Add(Skew).Unix()}, true},
		"nbf ahead":                  {nil, object{"nbf": now.Add(Skew).Unix() + 1}, false},
		"more claims":                {nil, object{"scope": "x", "x": object{"y": 1}}, true},
		"crit":                       {object{"crit": []string{"exp"}, "exp": 1}, nil, false},
		"unknown kid":                {object{"kid": "x"}, nil, false},
		"kid that is a path":         {object{"kid": "../../../dev/null"}, nil, false},
		"kid that is SQL":            {object{"kid": "x' OR '1'='1"}, nil, false},
		"kid of a key of other type": {object{"kid": "rsa2048"}, nil, false},
	} {
		_, err := Verify(sign(t, jwa.ES256(), es, with(header, test.header), claimsWith(test.claims)), client, keys, names, longest, now)
		if test.ok != (err == nil) || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		// Only its signer learns why an assertion is refused.
		if refusal, ok := errors.AsType[*Refusal](err); ok && refusal.Signed != (test.header == nil) {
			t.Errorf("%s: %+v", name, refusal)
		}
	}
	_, err := Verify(sign(t, jwa.ES256(), es, header, claimsWith(object{"exp": now.Add(time.Hour).Unix()})), client, keys, names, 10*time.Minute, now)
	if err == nil || !strings.HasSuffix(err.Error(), "its lifetime is longer than 600 seconds") {
		t.Errorf("longer than the server accepts: %v", err)
	}
}

func TestVerifyForged(t *testing.T) {
	keys := keysOf(t, public(t, "rsa2048", nil), public(t, "p256", object{"kid": "p256"}))
	es, rs, attacker := signers()["p256"], signers()["rsa2048"], signers()["other256"]
	good := sign(t, jwa.ES256(), es, object{"kid": "p256"}, claimsWith(nil))
	// The forger must be able to make one that is accepted, or the refusals would prove nothing.
	if _, err := Verify(good, client, keys, names, longest, now); err != nil {
		t.Fatal(err)
	}
	attackerJWK, err := jwk.Import(attacker.Public())
	if err != nil {
		t.Fatal(err)
	}
	der := func(key crypto.Signer) []byte {
		der, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	asPEM := func(key crypto.Signer) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der(key)})
	}
	text, err := json.Marshal(public(t, "rsa2048", nil))
	if err != nil {
		t.Fatal(err)
	}
	b64 := func(s string) string { return base64url.EncodeToString([]byte(s)) }
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"empty":              "",
		"no token":           "hunter2",
		"two parts":          parts[0] + "." + parts[1],
		"four parts":         good + "." + parts[2],
		"no signature":       parts[0] + "." + parts[1] + ".",
		"truncated":          good[:len(good)-1],
		"longer":             good + "A",
		"padding":            good + "=",
		"space":              " " + good,
		"NUL":                good + "\x00",
		"NUL inside":         parts[0] + "." + parts[1] + "\x00." + parts[2],
		"huge":               sign(t, jwa.ES256(), es, object{"kid": "p256"}, claimsWith(object{"x": strings.Repeat("a", maxSize)})),
		"JSON serialization": `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"claims changed":     parts[0] + "." + b64(`{"sub":"admin"}`) + "." + parts[2],
		"header changed":     b64(`{"alg":"ES256"}`) + "." + parts[1] + "." + parts[2],
		"none":               sign(t, jwa.NoSignature(), nil, object{"kid": "p256"}, claimsWith(nil)),
		"NONE":               b64(`{"alg":"NONE","kid":"p256"}`) + "." + parts[1] + ".",
		"no alg":             b64(`{"kid":"p256"}`) + "." + parts[1] + "." + parts[2],
		"HS256 of the PEM":   sign(t, jwa.HS256(), asPEM(rs), object{"kid": "rsa2048"}, claimsWith(nil)),
		"HS256 of the DER":   sign(t, jwa.HS256(), der(rs), object{"kid": "rsa2048"}, claimsWith(nil)),
		"HS256 of the JWK":   sign(t, jwa.HS256(), text, object{"kid": "rsa2048"}, claimsWith(nil)),
		"RS512":              sign(t, jwa.RS512(), rs, object{"kid": "rsa2048"}, claimsWith(nil)),
		"ES256K":             b64(`{"alg":"ES256K","kid":"p256"}`) + "." + parts[1] + "." + parts[2],
		"RS256 for ES256":    sign(t, jwa.RS256(), rs, object{"kid": "p256"}, claimsWith(nil)),
		"ES256 for RS256":    sign(t, jwa.ES256(), es, object{"kid": "rsa2048"}, claimsWith(nil)),
		"key of others":      sign(t, jwa.ES256(), attacker, object{"kid": "p256"}, claimsWith(nil)),
		"jwk":                sign(t, jwa.ES256(), attacker, object{"kid": "p256", "jwk": attackerJWK}, claimsWith(nil)),
		"jku":                sign(t, jwa.ES256(), attacker, object{"kid": "p256", "jku": "https://evil.example/jwks"}, claimsWith(nil)),
		"x5u":                sign(t, jwa.ES256(), attacker, object{"kid": "p256", "x5u": "https://evil.example/cert"}, claimsWith(nil)),
		"a name twice":       sign(t, jwa.ES256(), es, object{"kid": "p256"}, strings.Replace(textOf(t, claimsWith(nil)), `"sub"`, `"sub":"cli_b","sub"`, 1)),
		"names in capitals":  sign(t, jwa.ES256(), es, object{"kid": "p256"}, strings.ToUpper(textOf(t, claimsWith(nil)))),
		"exp out of range":   sign(t, jwa.ES256(), es, object{"kid": "p256"}, strings.Replace(textOf(t, claimsWith(nil)), `"exp":`, `"exp":1e400,"x":`, 1)),
		"claims are a list":  sign(t, jwa.ES256(), es, object{"kid": "p256"}, "[]"),
		"no claims":          sign(t, jwa.ES256(), es, object{"kid": "p256"}, "x"),
	} {
		if _, err := Verify(token, client, keys, names, longest, now); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		} else if len(token) > 20 && strings.Contains(err.Error(), token[:20]) {
			t.Errorf("%s: %v quotes it", name, err)
		}
	}

	// Only an unknown key is worth a second attempt with newer keys.
	for name, test := range map[string]struct {
		token string
		want  bool
	}{
		"unknown kid": {sign(t, jwa.ES256(), attacker, object{"kid": "next"}, claimsWith(nil)), true},
		"no kid":      {sign(t, jwa.EdDSA(), signers()["ed25519"], nil, claimsWith(nil)), true},
		"known kid":   {sign(t, jwa.ES256(), attacker, object{"kid": "p256"}, claimsWith(nil)), false},
	} {
		if _, err := Verify(test.token, client, keys, names, longest, now); errors.Is(err, ErrUnknownKey) != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	two := keysOf(t, public(t, "p256", nil), public(t, "other256", nil))
	if _, err := Verify(sign(t, jwa.ES256(), es, nil, claimsWith(nil)), client, two, names, longest, now); !errors.Is(err, ErrInvalid) || errors.Is(err, ErrUnknownKey) {
		t.Errorf("any of two keys: %v", err)
	}
}

func textOf(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseKeys(t *testing.T) {
	private := members(t, signers()["p256"], "p256", nil)
	x25519 := object{"kty": "OKP", "crv": "X25519", "x": "3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08"}
	many := make([]object, MaxKeys+1)
	for i := range many {
		many[i] = public(t, "p256", object{"kid": fmt.Sprint(i)})
	}
	for name, test := range map[string]struct {
		keys []object
		ok   bool
	}{
		"P-256":             {[]object{public(t, "p256", nil)}, true},
		"one without kid":   {[]object{public(t, "p256", object{"kid": nil})}, true},
		"for verifying":     {[]object{public(t, "rsa2048", object{"use": "sig", "alg": "PS256", "key_ops": []string{"verify", "sign"}})}, true},
		"most":              {many[:MaxKeys], true},
		"too many":          {many, false},
		"none":              {[]object{}, false},
		"null":              {nil, false},
		"two of a kid":      {[]object{public(t, "p256", nil), public(t, "rsa2048", object{"kid": "p256"})}, false},
		"two, one no kid":   {[]object{public(t, "p256", nil), public(t, "rsa2048", object{"kid": nil})}, false},
		"private":           {[]object{private}, false},
		"private, empty":    {[]object{public(t, "p256", object{"d": ""})}, false},
		"private RSA":       {[]object{members(t, signers()["rsa2048"], "x", nil)}, false},
		"private Ed25519":   {[]object{members(t, signers()["ed25519"], "x", nil)}, false},
		"symmetric":         {[]object{{"kty": "oct", "k": "AAAA"}}, false},
		"short RSA":         {[]object{public(t, "rsa2048", object{"n": strings.Repeat("_", 171)})}, false},
		"long RSA":          {[]object{public(t, "rsa2048", object{"n": strings.Repeat("_", 1368)})}, false},
		"RSA of exponent 1": {[]object{public(t, "rsa2048", object{"e": "AQ"})}, false},
		"P-384":             {[]object{public(t, "p384", nil)}, false},
		"X25519":            {[]object{x25519}, false},
		"not on the curve":  {[]object{public(t, "p256", object{"y": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"})}, false},
		"to encrypt":        {[]object{public(t, "rsa2048", object{"use": "enc"})}, false},
		"to sign":           {[]object{public(t, "rsa2048", object{"key_ops": []string{"sign"}})}, false},
		"other algorithm":   {[]object{public(t, "rsa2048", object{"alg": "RS512"})}, false},
		"of other type":     {[]object{public(t, "rsa2048", object{"alg": "ES256"})}, false},
		"HMAC":              {[]object{public(t, "rsa2048", object{"alg": "HS256"})}, false},
		"no type":           {[]object{public(t, "p256", object{"kty": nil})}, false},
		"unknown type":      {[]object{public(t, "p256", object{"kty": "x"})}, false},
		"kid is a number":   {[]object{public(t, "p256", object{"kid": 1})}, false},
		"long kid":          {[]object{public(t, "p256", object{"kid": strings.Repeat("a", maxText+1)})}, false},
		"half a key":        {[]object{public(t, "p256", object{"x": nil})}, false},
	} {
		keys, err := ParseKeys(setOf(t, test.keys...))
		if test.ok != (err == nil) || test.ok && len(keys) != len(test.keys) {
			t.Errorf("%s: %d keys, %v", name, len(keys), err)
		}
		if err != nil && strings.Contains(err.Error(), fmt.Sprint(private["d"])) {
			t.Errorf("%s: %v quotes a key", name, err)
		}
	}
	for _, set := range []string{"", "x", "[]", "1", "{}", `{"keys":1}`, `{"keys":[1]}`, `{"keys":[[]]}`, `{"keys":[],"keys":[]}`} {
		if _, err := ParseKeys([]byte(set)); err == nil {
			t.Errorf("%s is a set", set)
		}
	}

	// What is published may be for others, too.
	keys, err := UsableKeys(setOf(t, public(t, "p384", nil), private, public(t, "p256", nil), object{"kty": "x"}, public(t, "rsa2048", object{"use": "enc"}), x25519))
	if err != nil || len(keys) != 1 || keys[0].ID != "p256" {
		t.Errorf("%v, %v", keys, err)
	}
	if keys, err = UsableKeys(setOf(t, many...)); err != nil || len(keys) != MaxKeys {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	for _, set := range []string{"x", "{}", `{"keys":[1]}`, string(setOf(t, private))} {
		if _, err := UsableKeys([]byte(set)); err == nil {
			t.Errorf("%s is usable", set)
		}
	}
}

func TestClientID(t *testing.T) {
	token := sign(t, jwa.ES256(), signers()["other256"], nil, claimsWith(nil))
	if id, err := ClientID(token); err != nil || id != client {
		t.Errorf("%s, %v", id, err)
	}
	for _, token := range []string{"", "a.b", "..", "a.b.c.d", "a.!.c", "a.e30.c", strings.Repeat("a", maxSize+1)} {
		if id, err := ClientID(token); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s of %q, %v", id, token, err)
		}
	}
}

// Nobody without the key makes an assertion that is accepted, whatever it looks like.
func FuzzVerify(f *testing.F) {
	keys := keysOf(f, public(f, "p256", nil), public(f, "ed25519", nil))
	for _, changes := range []object{nil, {"aud": []string{issuer}}, {"exp": 1e300}, {"sub": nil}} {
		f.Add(sign(f, jwa.ES256(), signers()["other256"], object{"kid": "p256"}, claimsWith(changes)))
	}
	f.Add(sign(f, jwa.NoSignature(), nil, object{"kid": "p256"}, claimsWith(nil)))
	f.Add("a.e30.c")
	f.Fuzz(func(t *testing.T, token string) {
		if a, err := Verify(token, client, keys, names, longest, now); err == nil || !errors.Is(err, ErrInvalid) {
			t.Errorf("%v, %v", a, err)
		}
		if id, err := ClientID(token); err == nil && id == "" {
			t.Errorf("%q, %v", id, err)
		}
	})
}

// Claims that somebody signed who has the key are judged, whatever they are.
func FuzzClaims(f *testing.F) {
	keys := keysOf(f, public(f, "ed25519", nil))
	for _, changes := range []object{nil, {"aud": []any{issuer, 1}}, {"exp": 1e300}, {"nbf": -0.5}, {"iat": "x"}} {
		f.Add(textOf(f, claimsWith(changes)))
	}
	f.Fuzz(func(t *testing.T, payload string) {
		token := sign(t, jwa.EdDSA(), signers()["ed25519"], object{"kid": "ed25519"}, payload)
		a, err := Verify(token, client, keys, names, longest, now)
		if err != nil {
			return
		}
		id, idErr := ClientID(token)
		if idErr != nil || id != client || a.ClientID != client || a.ID == "" || !a.Expires.After(now) || a.Expires.After(now.Add(longest+Skew+time.Second)) {
			t.Errorf("%q: %+v, %q, %v", payload, a, id, idErr)
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	f.Add(setOf(f, public(f, "p256", nil), public(f, "rsa2048", nil)))
	f.Add(setOf(f, public(f, "ed25519", object{"use": "sig"})))
	f.Fuzz(func(t *testing.T, set []byte) {
		strict, err := ParseKeys(set)
		usable, usableErr := UsableKeys(set)
		if err == nil && (usableErr != nil || len(usable) != len(strict)) {
			t.Errorf("%s: %d keys, but %d usable: %v", set, len(strict), len(usable), usableErr)
		}
		for _, k := range usable {
			if len(k.Algs) == 0 || k.Public == nil {
				t.Errorf("%s: %+v", set, k)
			}
		}
	})
}
