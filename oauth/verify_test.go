package oauth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"

	"stonetown/oauth/client"
	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
)

// forge signs claims, any of which may be changed, under a header, likewise.
func forge(t testing.TB, alg jwa.SignatureAlgorithm, key any, header, members map[string]any) string {
	t.Helper()
	body, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
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
	token, err := jws.Sign(body, options...)
	if err != nil {
		t.Fatal(err)
	}
	return string(token)
}

func with(m map[string]any, name string, value any) map[string]any {
	m = maps.Clone(m)
	if value == nil {
		delete(m, name)
	} else {
		m[name] = value
	}
	return m
}

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func TestVerifyRefuses(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	app, secret := w.application(tenantA, client.Application{AllowedScopes: []string{"resources:read"}})
	good := w.token(tenantA, app, secret)
	ofA, ofB := w.steal(tenantA), w.steal(tenantB)
	es, rs, ps := ofA[keys.ES256], ofA[keys.RS256], ofA[keys.PS256]
	jwks, err := w.Keys.JWKS(ctx, tenantA)
	if err != nil {
		t.Fatal(err)
	}
	members := decode(t, good, 1)
	header := map[string]any{"typ": "at+jwt", "kid": es.kid}
	now := w.clock.Now().Unix()

	attacker, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	attackerJWK, err := jwk.Import(attacker.Public())
	if err != nil {
		t.Fatal(err)
	}
	publicDER := func(key crypto.Signer) []byte {
		der, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	publicPEM := func(key crypto.Signer) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER(key)})
	}

	// The forger must be able to make a token that is accepted, or the refusals
	// below would prove nothing.
	if _, err := w.Tokens.Verify(ctx, tenantA, forge(t, jwa.ES256(), es.private, header, members)); err != nil {
		t.Fatalf("the unchanged token is refused: %v", err)
	}

	parts := strings.Split(good, ".")
	for name, test := range map[string]struct {
		token string
		want  token.Reason
	}{
		"empty":               {"", token.Malformed},
		"not a token":         {"hunter2", token.Malformed},
		"two parts":           {parts[0] + "." + parts[1], token.Malformed},
		"no signature":        {parts[0] + "." + parts[1] + ".", token.Malformed},
		"truncated":           {good[:len(good)-1], token.Malformed},
		"longer":              {good + "A", token.BadSignature},
		"padding":             {good + "=", token.Malformed},
		"space":               {" " + good, token.Malformed},
		"NUL":                 {good + "\x00", token.Malformed},
		"NUL inside":          {parts[0] + "." + parts[1] + "\x00." + parts[2], token.Malformed},
		"huge":                {strings.Repeat("a", 32<<10) + ".a.a", token.Malformed},
		"JSON serialization":  {`{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, token.Malformed},
		"claims changed":      {parts[0] + "." + b64(`{"sub":"admin"}`) + "." + parts[2], token.BadSignature},
		"signature of others": {parts[0] + "." + parts[1] + "." + strings.Split(w.token(tenantA, app, secret), ".")[2], token.BadSignature},

		"alg none":           {forge(t, jwa.NoSignature(), nil, header, members), token.UnsupportedAlg},
		"alg None":           {b64(`{"alg":"None","typ":"at+jwt","kid":"`+es.kid+`"}`) + "." + parts[1] + ".", token.Malformed},
		"no alg":             {b64(`{"typ":"at+jwt","kid":"`+es.kid+`"}`) + "." + parts[1] + "." + parts[2], token.UnsupportedAlg},
		"HS256, public DER":  {forge(t, jwa.HS256(), publicDER(es.private), header, members), token.UnsupportedAlg},
		"HS256, public PEM":  {forge(t, jwa.HS256(), publicPEM(rs.private), with(header, "kid", rs.kid), members), token.UnsupportedAlg},
		"HS256, JWK set":     {forge(t, jwa.HS256(), jwks, header, members), token.UnsupportedAlg},
		"RS256, kid of ES":   {forge(t, jwa.RS256(), rs.private, header, members), token.BadSignature},
		"PS256, kid of RS":   {forge(t, jwa.PS256(), rs.private, with(header, "kid", rs.kid), members), token.BadSignature},
		"RS256, kid of PS":   {forge(t, jwa.RS256(), ps.private, with(header, "kid", ps.kid), members), token.BadSignature},
		"ES256, kid of RS":   {forge(t, jwa.ES256(), es.private, with(header, "kid", rs.kid), members), token.BadSignature},
		"PS512, right key":   {forge(t, jwa.PS512(), ps.private, with(header, "kid", ps.kid), members), token.UnsupportedAlg},
		"RS512, right key":   {forge(t, jwa.RS512(), rs.private, with(header, "kid", rs.kid), members), token.UnsupportedAlg},
		"attacker's key":     {forge(t, jwa.ES256(), attacker, header, members), token.BadSignature},
		"jwk in header":      {forge(t, jwa.ES256(), attacker, with(header, "jwk", attackerJWK), members), token.BadSignature},
		"jku in header":      {forge(t, jwa.ES256(), attacker, with(header, "jku", "https://evil.example.com/jwks"), members), token.BadSignature},
		"x5u in header":      {forge(t, jwa.ES256(), attacker, with(header, "x5u", "https://evil.example.com/x5u"), members), token.BadSignature},
		"no kid":             {forge(t, jwa.ES256(), es.private, with(header, "kid", nil), members), token.BadSignature},
		"kid path":           {forge(t, jwa.ES256(), es.private, with(header, "kid", "../../"+es.kid), members), token.BadSignature},
		"kid SQL":            {forge(t, jwa.ES256(), es.private, with(header, "kid", es.kid+"' OR '1'='1"), members), token.BadSignature},
		"kid NUL":            {forge(t, jwa.ES256(), es.private, with(header, "kid", es.kid+"\x00"), members), token.BadSignature},
		"kid of tenant B":    {forge(t, jwa.ES256(), ofB[keys.ES256].private, with(header, "kid", ofB[keys.ES256].kid), members), token.BadSignature},
		"critical extension": {forge(t, jwa.ES256(), es.private, with(with(header, "crit", []string{"exp"}), "exp", now), members), token.Malformed},

		"no typ":       {forge(t, jwa.ES256(), es.private, with(header, "typ", nil), members), token.WrongType},
		"ID token":     {forge(t, jwa.ES256(), es.private, with(header, "typ", "JWT"), members), token.WrongType},
		"logout token": {forge(t, jwa.ES256(), es.private, with(header, "typ", "logout+jwt"), members), token.WrongType},
		"DPoP proof":   {forge(t, jwa.ES256(), es.private, with(header, "typ", "dpop+jwt"), members), token.WrongType},

		"issuer B":          {forge(t, jwa.ES256(), es.private, header, with(members, "iss", tenantB.BaseURL)), token.WrongIssuer},
		"issuer with slash": {forge(t, jwa.ES256(), es.private, header, with(members, "iss", tenantA.BaseURL+"/")), token.WrongIssuer},
		"no issuer":         {forge(t, jwa.ES256(), es.private, header, with(members, "iss", nil)), token.WrongIssuer},
		"tenant B":          {forge(t, jwa.ES256(), es.private, header, with(members, "tid", tenantB.ID)), token.WrongTenant},
		"no tenant":         {forge(t, jwa.ES256(), es.private, header, with(members, "tid", nil)), token.WrongTenant},
		"another audience":  {forge(t, jwa.ES256(), es.private, header, with(members, "aud", "https://reports.example.com")), token.WrongAudience},
		"audience prefix":   {forge(t, jwa.ES256(), es.private, header, with(members, "aud", tenantA.BaseURL+".evil.com")), token.WrongAudience},
		"no audience":       {forge(t, jwa.ES256(), es.private, header, with(members, "aud", nil)), token.WrongAudience},
		"empty audience":    {forge(t, jwa.ES256(), es.private, header, with(members, "aud", []string{})), token.WrongAudience},
		"audience a number": {forge(t, jwa.ES256(), es.private, header, with(members, "aud", 7)), token.Malformed},
		"expired":           {forge(t, jwa.ES256(), es.private, header, with(members, "exp", now)), token.Expired},
		"no expiry":         {forge(t, jwa.ES256(), es.private, header, with(members, "exp", nil)), token.Malformed},
		"expiry a string":   {forge(t, jwa.ES256(), es.private, header, with(members, "exp", "4102444800")), token.Malformed},
		"beyond a day":      {forge(t, jwa.ES256(), es.private, header, with(members, "exp", now+86400+11)), token.Malformed},
		"not yet valid":     {forge(t, jwa.ES256(), es.private, header, with(members, "nbf", now+11)), token.NotYetValid},
		"no subject":        {forge(t, jwa.ES256(), es.private, header, with(members, "sub", nil)), token.Malformed},
		"no client":         {forge(t, jwa.ES256(), es.private, header, with(members, "client_id", nil)), token.Malformed},
		"no jti":            {forge(t, jwa.ES256(), es.private, header, with(members, "jti", nil)), token.Malformed},
	} {
		p, err := w.Tokens.Verify(ctx, tenantA, test.token)
		refusal, ok := errors.AsType[*token.Error](err)
		if p != nil || !ok {
			t.Errorf("%s: %+v, %v, want a TokenError", name, p, err)
		} else if refusal.Reason != test.want {
			t.Errorf("%s: %s, want %s", name, refusal.Reason, test.want)
		} else if len(test.token) > 20 && strings.Contains(err.Error(), test.token[:20]) {
			t.Errorf("%s: the error quotes the token", name)
		}
	}

	// The full media type is accepted as well as its short form (RFC 9068 §4), and several
	// audiences as well as one.
	for name, token := range map[string]string{
		"media type":       forge(t, jwa.ES256(), es.private, with(header, "typ", "application/AT+JWT"), members),
		"several audience": forge(t, jwa.ES256(), es.private, header, with(members, "aud", []string{"x", tenantA.BaseURL})),
		"clock skew":       forge(t, jwa.ES256(), es.private, header, with(members, "nbf", now+10)),
		"longest":          forge(t, jwa.ES256(), es.private, header, with(members, "exp", now+86400+10)),
		"last second":      forge(t, jwa.ES256(), es.private, header, with(members, "exp", now+1)),
	} {
		if _, err := w.Tokens.Verify(ctx, tenantA, token); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A token that was accepted on one tenant, and is remembered, is still refused
// on another; likewise when a tenant with the same keys moved elsewhere.
func TestVerifyIsPerTenant(t *testing.T) {
	w := newWorld(t)
	app, secret := w.application(tenantA, client.Application{})
	token := w.token(tenantA, app, secret)
	for range 2 {
		if _, err := w.Tokens.Verify(t.Context(), tenantA, token); err != nil {
			t.Fatal(err)
		}
		for name, other := range map[string]protocol.Tenant{
			"B": tenantB, "A elsewhere": {ID: tenantA.ID, BaseURL: tenantB.BaseURL}, "B at A's address": {ID: tenantB.ID, BaseURL: tenantA.BaseURL},
		} {
			if _, err := w.Tokens.Verify(t.Context(), other, token); err == nil {
				t.Errorf("tenant %s accepted a token of A", name)
			}
		}
	}
}

func TestVerifyRemembersUntilExpiry(t *testing.T) {
	w := newWorld(t)
	app, secret := w.application(tenantA, client.Application{AccessTokenTTL: time.Minute})
	raw := w.token(tenantA, app, secret)
	first, err := w.Tokens.Verify(t.Context(), tenantA, raw)
	if err != nil {
		t.Fatal(err)
	}
	w.clock.add(time.Minute - time.Nanosecond)
	if again, err := w.Tokens.Verify(t.Context(), tenantA, raw); err != nil || again != first {
		t.Errorf("the second answer is not the remembered one: %v", err)
	}
	w.clock.add(time.Nanosecond)
	_, err = w.Tokens.Verify(t.Context(), tenantA, raw)
	if refusal, ok := errors.AsType[*token.Error](err); !ok || refusal.Reason != token.Expired {
		t.Errorf("after its time: %v, want expired", err)
	}
	if _, err := w.Grants.Token(t.Context(), tenantA, request(app, secret)); err != nil {
		t.Errorf("a new token: %v", err)
	}
}

// FuzzVerify looks for a token that is accepted and says something else than
// the one issued. (Other spellings of that one may pass: the last character of
// a base64url signature has bits that mean nothing.)
func FuzzVerify(f *testing.F) {
	w := newWorld(f)
	app, secret := w.application(tenantA, client.Application{})
	good := w.token(tenantA, app, secret)
	want, err := w.Tokens.Verify(f.Context(), tenantA, good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good + "=")
	f.Add(b64(`{"alg":"none","typ":"at+jwt"}`) + "." + b64(`{}`) + ".")
	f.Fuzz(func(t *testing.T, token string) {
		if got, err := w.Tokens.Verify(t.Context(), tenantA, token); err == nil && got.TokenID != want.TokenID {
			t.Errorf("accepted %q", token)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	w := newWorld(b)
	app, secret := w.application(tenantA, client.Application{AllowedScopes: scope.Builtin})
	token := w.token(tenantA, app, secret)
	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.Tokens.Verify(b.Context(), tenantA, token); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if _, err := w.Tokens.Read(b.Context(), tenantA, token, w.clock.Now()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
