package dpop

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
)

type members = map[string]any

func with(m members, name string, value any) members {
	m = maps.Clone(m)
	if value == nil {
		delete(m, name)
	} else {
		m[name] = value
	}
	return m
}

// asJWK is the JWK of a key, public or private.
func asJWK(t testing.TB, key any) members {
	t.Helper()
	of, err := jwk.Import(key)
	var text []byte
	if err == nil {
		text, err = json.Marshal(of)
	}
	var m members
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func segment(t testing.TB, m members) string {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// sign makes a JWS of any header, which the library would not do.
func sign(t testing.TB, alg jwa.SignatureAlgorithm, key any, header, claims members) string {
	t.Helper()
	input := segment(t, header) + "." + segment(t, claims)
	signer, err := jws.SignerFor(alg)
	var signature []byte
	if err == nil {
		signature, err = signer.Sign(key, []byte(input))
	}
	if err != nil {
		t.Fatal(err)
	}
	return input + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func newEC(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newRSA(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

var (
	now   = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	asked = Request{Method: "POST", URL: "https://a.example.com/oauth2/token", Now: now}
)

func TestVerify(t *testing.T) {
	ec, other, p384 := newEC(t, elliptic.P256()), newEC(t, elliptic.P256()), newEC(t, elliptic.P384())
	rsa2048, rsa1024 := newRSA(t, 2048), newRSA(t, 1024)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	header := members{"typ": "dpop+jwt", "alg": "ES256", "jwk": asJWK(t, ec.Public())}
	claims := members{"jti": "id-1", "htm": "POST", "htu": asked.URL, "iat": now.Unix()}
	es := func(h, c members) string { return sign(t, jwa.ES256(), ec, h, c) }
	good := es(header, claims)
	parts := strings.Split(good, ".")
	large := with(asJWK(t, rsa2048.Public()), "n", base64.RawURLEncoding.EncodeToString([]byte("\xff"+strings.Repeat("x", 512))))
	token := "eyJ.a.b"
	bound := with(claims, "ath", digest(token))

	for name, test := range map[string]struct {
		proofs []string
		want   Reason // empty: right
		change func(*Request)
	}{
		"right":             {[]string{good}, "", nil},
		"RS256":             {[]string{sign(t, jwa.RS256(), rsa2048, with(with(header, "alg", "RS256"), "jwk", asJWK(t, rsa2048.Public())), claims)}, "", nil},
		"PS256":             {[]string{sign(t, jwa.PS256(), rsa2048, with(with(header, "alg", "PS256"), "jwk", asJWK(t, rsa2048.Public())), claims)}, "", nil},
		"EdDSA":             {[]string{sign(t, jwa.EdDSA(), ed, with(with(header, "alg", "EdDSA"), "jwk", asJWK(t, ed.Public())), claims)}, "", nil},
		"kid":               {[]string{es(with(header, "kid", "../x' OR 1"), claims)}, "", nil},
		"nonce":             {[]string{es(header, with(claims, "nonce", "x"))}, "", nil},
		"oldest":            {[]string{es(header, with(claims, "iat", now.Unix()-60))}, "", nil},
		"from the future":   {[]string{es(header, with(claims, "iat", now.Unix()+60))}, "", nil},
		"fraction":          {[]string{es(header, with(claims, "iat", float64(now.Unix())+.5))}, "", nil},
		"longest jti":       {[]string{es(header, with(claims, "jti", strings.Repeat("x", maxID)))}, "", nil},
		"query, fragment":   {[]string{es(header, with(claims, "htu", asked.URL+"?x=y#z"))}, "", nil},
		"another spelling":  {[]string{es(header, with(claims, "htu", "HTTPS://A.EXAMPLE.com:443/x/../%6Fauth2/./token"))}, "", nil},
		"token":             {[]string{es(header, bound)}, "", func(r *Request) { r.Token = token }},
		"token not ours":    {[]string{es(header, bound)}, "", nil},
		"none":              {nil, Missing, nil},
		"two":               {[]string{good, good}, Repeated, nil},
		"two in one":        {[]string{good + ", " + good}, BadSignature, nil},
		"empty":             {[]string{""}, Malformed, nil},
		"garbage":           {[]string{"hunter2"}, Malformed, nil},
		"padding":           {[]string{good + "="}, BadSignature, nil},
		"huge":              {[]string{good + strings.Repeat("A", maxProof)}, Malformed, nil},
		"header no object":  {[]string{"W10." + parts[1] + "." + parts[2]}, Malformed, nil},
		"header null":       {[]string{"bnVsbA." + parts[1] + "." + parts[2]}, WrongType, nil},
		"header repeated":   {[]string{base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"dpop+jwt","typ":"dpop+jwt","alg":"ES256"}`)) + "." + parts[1] + "." + parts[2]}, Malformed, nil},
		"two parts":         {[]string{parts[0] + "." + parts[1]}, BadSignature, nil},
		"no signature":      {[]string{parts[0] + "." + parts[1] + "."}, BadSignature, nil},
		"truncated":         {[]string{good[:len(good)-3]}, BadSignature, nil},
		"claims exchanged":  {[]string{parts[0] + "." + segment(t, with(claims, "jti", "id-2")) + "." + parts[2]}, BadSignature, nil},
		"signed by another": {[]string{sign(t, jwa.ES256(), other, header, claims)}, BadSignature, nil},
		"JSON serialization": {
			[]string{`{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`}, Malformed, nil,
		},

		"no typ":       {[]string{es(with(header, "typ", nil), claims)}, WrongType, nil},
		"JWT":          {[]string{es(with(header, "typ", "JWT"), claims)}, WrongType, nil},
		"access token": {[]string{es(with(header, "typ", "at+jwt"), claims)}, WrongType, nil},
		"long typ":     {[]string{es(with(header, "typ", "application/dpop+jwt"), claims)}, WrongType, nil},
		"typ a number": {[]string{es(with(header, "typ", 1), claims)}, WrongType, nil},

		"no alg":         {[]string{es(with(header, "alg", nil), claims)}, UnsupportedAlg, nil},
		"alg none":       {[]string{segment(t, with(header, "alg", "none")) + "." + parts[1] + "."}, UnsupportedAlg, nil},
		"alg es256":      {[]string{es(with(header, "alg", "es256"), claims)}, UnsupportedAlg, nil},
		"HS256":          {[]string{sign(t, jwa.HS256(), []byte(strings.Repeat("k", 32)), with(with(header, "alg", "HS256"), "jwk", members{"kty": "oct", "k": strings.Repeat("a", 43)}), claims)}, UnsupportedAlg, nil},
		"ES384":          {[]string{sign(t, jwa.ES384(), p384, with(with(header, "alg", "ES384"), "jwk", asJWK(t, p384.Public())), claims)}, UnsupportedAlg, nil},
		"RS512":          {[]string{sign(t, jwa.RS512(), rsa2048, with(with(header, "alg", "RS512"), "jwk", asJWK(t, rsa2048.Public())), claims)}, UnsupportedAlg, nil},
		"RS256 of EC":    {[]string{es(with(header, "alg", "RS256"), claims)}, WrongKey, nil},
		"ES256 of RSA":   {[]string{es(with(header, "jwk", asJWK(t, rsa2048.Public())), claims)}, WrongKey, nil},
		"EdDSA of EC":    {[]string{es(with(header, "alg", "EdDSA"), claims)}, WrongKey, nil},
		"PS256 as RS256": {[]string{sign(t, jwa.PS256(), rsa2048, with(with(header, "alg", "RS256"), "jwk", asJWK(t, rsa2048.Public())), claims)}, BadSignature, nil},

		"no key":            {[]string{es(with(header, "jwk", nil), claims)}, WrongKey, nil},
		"key a string":      {[]string{es(with(header, "jwk", "x"), claims)}, WrongKey, nil},
		"key set":           {[]string{es(with(header, "jwk", members{"keys": []any{asJWK(t, ec.Public())}}), claims)}, WrongKey, nil},
		"private key":       {[]string{es(with(header, "jwk", asJWK(t, ec)), claims)}, WrongKey, nil},
		"private RSA":       {[]string{sign(t, jwa.RS256(), rsa2048, with(with(header, "alg", "RS256"), "jwk", asJWK(t, rsa2048)), claims)}, WrongKey, nil},
		"one prime":         {[]string{sign(t, jwa.RS256(), rsa2048, with(with(header, "alg", "RS256"), "jwk", with(asJWK(t, rsa2048.Public()), "p", "AQAB")), claims)}, WrongKey, nil},
		"symmetric":         {[]string{es(with(header, "jwk", members{"kty": "oct", "k": strings.Repeat("a", 43)}), claims)}, WrongKey, nil},
		"P-384":             {[]string{es(with(header, "jwk", asJWK(t, p384.Public())), claims)}, WrongKey, nil},
		"off the curve":     {[]string{es(with(header, "jwk", with(asJWK(t, ec.Public()), "y", asJWK(t, other.Public())["y"])), claims)}, WrongKey, nil},
		"X25519":            {[]string{es(with(with(header, "alg", "EdDSA"), "jwk", members{"kty": "OKP", "crv": "X25519", "x": asJWK(t, ed.Public())["x"]}), claims)}, WrongKey, nil},
		"RSA of 1024 bits":  {[]string{es(with(with(header, "alg", "RS256"), "jwk", members{"kty": "RSA", "e": "AQAB", "n": base64.RawURLEncoding.EncodeToString(rsa1024.N.Bytes())}), claims)}, WrongKey, nil},
		"RSA of 4104 bits":  {[]string{es(with(with(header, "alg", "RS256"), "jwk", large), claims)}, WrongKey, nil},
		"jku":               {[]string{es(with(header, "jku", "https://evil.example.com/jwks"), claims)}, WrongKey, nil},
		"x5u":               {[]string{es(with(header, "x5u", "https://evil.example.com/x5u"), claims)}, WrongKey, nil},
		"x5c":               {[]string{es(with(header, "x5c", []string{"MIIB"}), claims)}, WrongKey, nil},
		"x5t":               {[]string{es(with(header, "x5t", "x"), claims)}, WrongKey, nil},
		"x5t#S256":          {[]string{es(with(header, "x5t#S256", "x"), claims)}, WrongKey, nil},
		"critical":          {[]string{es(with(with(header, "crit", []string{"x"}), "x", 1), claims)}, Malformed, nil},
		"unencoded payload": {[]string{es(with(header, "b64", true), claims)}, Malformed, nil},

		"no jti":         {[]string{es(header, with(claims, "jti", nil))}, Malformed, nil},
		"empty jti":      {[]string{es(header, with(claims, "jti", ""))}, Malformed, nil},
		"long jti":       {[]string{es(header, with(claims, "jti", strings.Repeat("x", maxID+1)))}, Malformed, nil},
		"jti a number":   {[]string{es(header, with(claims, "jti", 7))}, Malformed, nil},
		"no iat":         {[]string{es(header, with(claims, "iat", nil))}, Malformed, nil},
		"iat a string":   {[]string{es(header, with(claims, "iat", "1763629200"))}, Malformed, nil},
		"too old":        {[]string{es(header, with(claims, "iat", now.Unix()-61))}, WrongTime, nil},
		"too new":        {[]string{es(header, with(claims, "iat", now.Unix()+61))}, WrongTime, nil},
		"far too new":    {[]string{es(header, with(claims, "iat", 1e300))}, WrongTime, nil},
		"long ago":       {[]string{es(header, with(claims, "iat", -1e300))}, WrongTime, nil},
		"no htm":         {[]string{es(header, with(claims, "htm", nil))}, WrongMethod, nil},
		"lower case":     {[]string{es(header, with(claims, "htm", "post"))}, WrongMethod, nil},
		"another method": {[]string{es(header, with(claims, "htm", "GET"))}, WrongMethod, nil},
		"no htu":         {[]string{es(header, with(claims, "htu", nil))}, WrongURL, nil},
		"a path":         {[]string{es(header, with(claims, "htu", "/oauth2/token"))}, WrongURL, nil},
		"longer":         {[]string{es(header, with(claims, "htu", asked.URL+"/"))}, WrongURL, nil},
		"another host":   {[]string{es(header, with(claims, "htu", "https://b.example.com/oauth2/token"))}, WrongURL, nil},
		"host suffix":    {[]string{es(header, with(claims, "htu", "https://a.example.com.evil/oauth2/token"))}, WrongURL, nil},
		"a user":         {[]string{es(header, with(claims, "htu", "https://x@a.example.com/oauth2/token"))}, WrongURL, nil},
		"another port":   {[]string{es(header, with(claims, "htu", "https://a.example.com:8443/oauth2/token"))}, WrongURL, nil},
		"http":           {[]string{es(header, with(claims, "htu", "http://a.example.com/oauth2/token"))}, WrongURL, nil},
		"no ath":         {[]string{es(header, claims)}, WrongToken, func(r *Request) { r.Token = token }},
		"another ath":    {[]string{es(header, bound)}, WrongToken, func(r *Request) { r.Token = token + "x" }},
	} {
		r := asked
		r.Proofs = test.proofs
		if test.change != nil {
			test.change(&r)
		}
		proof, err := Verify(r)
		refused, _ := errors.AsType[*Error](err)
		switch {
		case test.want == "" && (err != nil || proof.ReplayKey == "" || len(proof.Thumbprint) != 43):
			t.Errorf("%s: %+v, %v", name, proof, err)
		case test.want != "" && (refused == nil || refused.Reason != test.want || proof != Proof{}):
			t.Errorf("%s: %+v, %v, want %s", name, proof, err, test.want)
		case err != nil && len(test.proofs) > 0 && len(test.proofs[0]) > 20 && strings.Contains(err.Error(), test.proofs[0][:20]):
			t.Errorf("%s: the error quotes the proof", name)
		}
	}

	// What a proof is known by: its key and jti together, and nothing else.
	verify := func(proof string) Proof {
		t.Helper()
		r := asked
		r.Proofs = []string{proof}
		p, err := Verify(r)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := verify(good)
	key, err := jwk.Import(&ec.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	if want := base64.RawURLEncoding.EncodeToString(sum); first.Thumbprint != want || !first.Until.Equal(now.Add(Window)) {
		t.Errorf("%+v, want %s until %s", first, want, now.Add(Window))
	}
	if again := verify(es(header, with(claims, "iat", now.Unix()-10))); again.ReplayKey != first.ReplayKey || !again.Until.Equal(now.Add(Window-10*time.Second)) {
		t.Errorf("the same jti again: %+v, first %+v", again, first)
	}
	if another := verify(es(header, with(claims, "jti", "id-2"))); another.ReplayKey == first.ReplayKey || another.Thumbprint != first.Thumbprint {
		t.Errorf("another jti: %+v, first %+v", another, first)
	}
	if theirs := verify(sign(t, jwa.ES256(), other, with(header, "jwk", asJWK(t, other.Public())), claims)); theirs.ReplayKey == first.ReplayKey || theirs.Thumbprint == first.Thumbprint {
		t.Errorf("the same jti of another key: %+v, first %+v", theirs, first)
	}
}

// The example of RFC 9449 §5.
const example = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19." +
	"eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ." +
	"2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg"

func exampleRequest(proof string) Request {
	return Request{Proofs: []string{proof}, Method: "POST", URL: "https://server.example.com/token", Now: time.Unix(1562262618, 0)}
}

// §6.1 gives the thumbprint.
func TestVerifyExample(t *testing.T) {
	got, err := Verify(exampleRequest(example))
	if want := "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"; err != nil || got.Thumbprint != want {
		t.Errorf("%+v, %v, want %s", got, err, want)
	}
}

// FuzzVerify looks for a proof that is accepted without its key, other than another
// spelling of the one that was made with it.
func FuzzVerify(f *testing.F) {
	want, err := Verify(exampleRequest(example))
	if err != nil {
		f.Fatal(err)
	}
	parts := strings.Split(example, ".")
	f.Add(example)
	f.Add(example + "=")
	f.Add(segment(f, members{"typ": "dpop+jwt", "alg": "none"}) + "." + parts[1] + ".")
	f.Fuzz(func(t *testing.T, proof string) {
		if got, err := Verify(exampleRequest(proof)); err == nil && got.ReplayKey != want.ReplayKey {
			t.Errorf("accepted %q", proof)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	key := newEC(b, elliptic.P256())
	r := asked
	r.Token = "eyJ.a.b"
	claims := members{"jti": "id-1", "htm": "POST", "htu": asked.URL, "iat": now.Unix(), "ath": digest(r.Token)}
	r.Proofs = []string{sign(b, jwa.ES256(), key, members{"typ": "dpop+jwt", "alg": "ES256", "jwk": asJWK(b, key.Public())}, claims)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Verify(r); err != nil {
			b.Fatal(err)
		}
	}
}
