package oauth_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"

	"stonetown/internal/seal"
	"stonetown/oauth"
	"stonetown/oauth/client"
)

func TestJWKS(t *testing.T) {
	w := newWorld(t)
	data, err := w.Keys.JWKS(t.Context(), tenantA)
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	public := map[string][]string{
		"ES256": {"alg", "crv", "kid", "kty", "use", "x", "y"},
		"RS256": {"alg", "e", "kid", "kty", "n", "use"},
	}
	if len(set.Keys) != len(public) {
		t.Fatalf("the set has %d keys", len(set.Keys))
	}
	for _, key := range set.Keys {
		var names []string
		for name := range key {
			names = append(names, name)
		}
		slices.Sort(names)
		if !slices.Equal(names, public[key["alg"]]) || key["use"] != "sig" {
			t.Errorf("key %v has members %v", key["alg"], names)
		}
	}

	// Whoever knows only the set can verify a token.
	keys, err := jwk.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	app, secret := w.application(tenantA, client.Application{})
	if _, err := jws.Verify([]byte(w.token(tenantA, app, secret)), jws.WithKeySet(keys)); err != nil {
		t.Errorf("the published keys do not verify a token: %v", err)
	}

	other, err := w.Keys.JWKS(t.Context(), tenantB)
	if err != nil || bytes.Equal(data, other) {
		t.Errorf("tenants share keys, or: %v", err)
	}
}

// kid must be the thumbprint: here computed from the specification, not by the
// library that assigns it. The key is the example of RFC 7638 §3.1.
func TestThumbprint(t *testing.T) {
	key, err := jwk.ParseKey([]byte(`{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := jwk.AssignKeyID(key); err != nil {
		t.Fatal(err)
	}
	if kid, _ := key.KeyID(); kid != "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs" {
		t.Errorf("kid is %s", kid)
	}
}

// A second process, and many callers at once, use the keys of the first.
func TestKeysAreCreatedOnce(t *testing.T) {
	w := newWorld(t)
	processes := []*oauth.Service{w.service(w.db, 1), w.service(w.db, 1)}
	sets := make([][]byte, 16)
	var wg sync.WaitGroup
	for i := range sets {
		wg.Go(func() {
			var err error
			if sets[i], err = processes[i%2].Keys.JWKS(t.Context(), tenantA); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, set := range sets {
		if !bytes.Equal(set, sets[0]) {
			t.Fatal("key sets differ")
		}
	}
}

func TestKeysAreSealed(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Keys.JWKS(t.Context(), tenantA); err != nil {
		t.Fatal(err)
	}
	_, err := w.service(w.db, 2).Keys.JWKS(t.Context(), tenantA)
	if !errors.Is(err, seal.ErrWrongKey) {
		t.Errorf("with another master key: %v, want ErrWrongKey", err)
	}

	// A key that is copied to another tenant does not open there.
	if _, err := w.db.Exec(t.Context(), `UPDATE signing_keys SET tenant_id = $1`, tenantB.ID); err != nil {
		t.Fatal(err)
	}
	_, err = w.service(w.db, 1).Keys.JWKS(t.Context(), tenantB)
	if !errors.Is(err, seal.ErrCorrupt) || strings.Contains(err.Error(), "PRIVATE") {
		t.Errorf("key of another tenant: %v, want ErrCorrupt", err)
	}
}
