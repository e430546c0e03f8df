package oauth_test

import (
	"errors"
	"testing"
	"time"

	"stonetown/oauth"
	"stonetown/oauth/client"
	"stonetown/oauth/dpop"
	"stonetown/oauth/dpop/dpoptest"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
)

const (
	tokenURL    = "https://a.example.com/oauth2/token"
	resourceURL = "https://a.example.com/api/v1/resource-types"
)

// proof makes a proof by the world's clock.
func (w *world) proof(key *dpoptest.Key, method, url, token string, changes map[string]any) string {
	w.t.Helper()
	claims := map[string]any{"iat": w.clock.now.Unix()}
	for name, value := range changes {
		claims[name] = value
	}
	return key.Proof(w.t, method, url, token, claims)
}

// boundToken gets an access token that is bound to a key.
func (w *world) boundToken(app client.Application, secret string, key *dpoptest.Key) string {
	w.t.Helper()
	r := request(app, secret)
	r.Proofs = []string{w.proof(key, "POST", tokenURL, "", nil)}
	got, err := w.Grants.Token(w.t.Context(), tenantA, r)
	if err != nil || got.TokenType != protocol.TokenTypeDPoP {
		w.t.Fatalf("%+v, %v", got, err)
	}
	return got.AccessToken
}

func TestVerifyBound(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	app, secret := w.application(tenantA, client.Application{})
	key, other := dpoptest.NewKey(t), dpoptest.NewKey(t)
	bound, unbound := w.boundToken(app, secret, key), w.token(tenantA, app, secret)
	second := w.service(w.db, 1) // another process
	ask := func(s *oauth.Service, tenant protocol.Tenant, token string, proofs ...string) (*token.Principal, error) {
		return s.Tokens.VerifyBound(ctx, tenant, token, dpop.Request{Proofs: proofs, Method: "GET", URL: resourceURL})
	}
	refused := func(what string, err error, want any) {
		t.Helper()
		var token *token.Error
		var proof *dpop.Error
		switch {
		case errors.As(err, &token) && token.Reason == want:
		case errors.As(err, &proof) && proof.Reason == want:
		default:
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}

	// A bound token is refused without a proof, also from the cache, and one that is not bound
	// with a proof.
	for range 2 {
		_, err := w.Tokens.Verify(ctx, tenantA, bound)
		refused("as a bearer token", err, token.Bound)
		if p, err := w.Tokens.Verify(ctx, tenantA, unbound); err != nil || p.Thumbprint != "" {
			t.Errorf("unbound: %+v, %v", p, err)
		}
		_, err = ask(w.Service, tenantA, unbound, w.proof(key, "GET", resourceURL, unbound, nil))
		refused("not bound", err, token.NotBound)
		_, err = ask(w.Service, tenantA, bound)
		refused("without proof", err, dpop.Missing)
		_, err = ask(w.Service, tenantA, bound, w.proof(other, "GET", resourceURL, bound, nil))
		refused("another key", err, token.WrongKey)
		_, err = ask(w.Service, tenantA, bound, w.proof(key, "GET", resourceURL, unbound, nil))
		refused("for another token", err, dpop.WrongToken)
		_, err = ask(w.Service, tenantB, bound, w.proof(key, "GET", resourceURL, bound, nil))
		refused("another tenant", err, token.BadSignature)
		if p, err := ask(w.Service, tenantA, bound, w.proof(key, "GET", resourceURL, bound, nil)); err != nil || p.Thumbprint != key.Thumbprint {
			t.Errorf("with a proof: %+v, %v", p, err)
		}
	}

	// A refused proof is not consumed. An accepted one is, on every process, and with it every
	// proof of the same id.
	id := map[string]any{"jti": "id-1"}
	good := w.proof(key, "GET", resourceURL, bound, id)
	_, err := ask(w.Service, tenantA, bound, w.proof(other, "GET", resourceURL, bound, id))
	refused("another key", err, token.WrongKey)
	_, err = ask(w.Service, tenantA, bound, w.proof(key, "POST", resourceURL, bound, id))
	refused("another method", err, dpop.WrongMethod)
	if _, err := ask(w.Service, tenantA, bound, good); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*oauth.Service{w.Service, second} {
		_, err = ask(s, tenantA, bound, good)
		refused("again", err, dpop.Replayed)
		_, err = ask(s, tenantA, bound, w.proof(key, "GET", resourceURL, bound, id))
		refused("the same jti", err, dpop.Replayed)
	}
	r := request(app, secret)
	r.Proofs = []string{w.proof(key, "POST", tokenURL, "", id)}
	if _, err := w.Grants.Token(ctx, tenantA, r); err == nil || err.Error() != "invalid_dpop_proof: the DPoP proof is not valid: replayed" {
		t.Errorf("the same jti elsewhere: %v", err)
	}

	// It is forgotten when it is too old on the slowest clock, and not before.
	remembered := func() (n int) {
		t.Helper()
		if err := w.Tidy(ctx); err != nil {
			t.Fatal(err)
		}
		if err := w.db.QueryRow(ctx, `SELECT count(*) FROM dpop_proofs`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	w.clock.now = w.clock.now.Add(dpop.Window)
	_, err = ask(w.Service, tenantA, bound, good)
	refused("at the end", err, dpop.Replayed)
	w.clock.now = w.clock.now.Add(time.Second)
	_, err = ask(w.Service, tenantA, bound, good)
	refused("behind the end", err, dpop.WrongTime)
	if remembered() == 0 {
		t.Error("proofs are forgotten that slow clocks would accept")
	}
	w.clock.now = w.clock.now.Add(time.Minute)
	if n := remembered(); n != 0 {
		t.Errorf("%d proofs are remembered for nothing", n)
	}
}

func BenchmarkVerifyBound(b *testing.B) {
	w := newWorld(b)
	app, secret := w.application(tenantA, client.Application{AllowedScopes: scope.Builtin})
	key := dpoptest.NewKey(b)
	token := w.boundToken(app, secret, key)
	for b.Loop() {
		b.StopTimer()
		proof := w.proof(key, "GET", resourceURL, token, nil)
		b.StartTimer()
		if _, err := w.Tokens.VerifyBound(b.Context(), tenantA, token, dpop.Request{Proofs: []string{proof}, Method: "GET", URL: resourceURL}); err != nil {
			b.Fatal(err)
		}
	}
}
