package oauth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"

	"stonetown/internal/jobs"
	"stonetown/internal/seal"
	"stonetown/oauth"
	"stonetown/oauth/client"
	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
)

func TestJWKS(t *testing.T) {
	w := newWorld(t)
	w.allKeys(tenantA)
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
		"PS256": {"alg", "e", "kid", "kty", "n", "use"},
		"EdDSA": {"alg", "crv", "kid", "kty", "use", "x"},
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

// The key of an algorithm that no application uses is not made.
func TestKeysThatAreNotUsed(t *testing.T) {
	w := newWorld(t)
	app, secret := w.application(tenantA, client.Application{})
	w.token(tenantA, app, secret)
	for range 2 {
		for _, emergency := range []bool{false, true} {
			if _, err := w.Keys.Rotate(t.Context(), tenantA.ID, emergency); err != nil {
				t.Fatal(err)
			}
			w.pass(publishedFor)
		}
	}
	for state := range w.states(tenantA) {
		if strings.HasSuffix(state, "RS256") {
			t.Errorf("there is a key that no application uses: %s", state)
		}
	}
}

// An application whose tokens are signed with RS256 gets the key from a job, and other processes
// accept its tokens at once, although they have the keys of the tenant in memory.
func TestFirstKeyOfAnAlgorithm(t *testing.T) {
	var queue *jobs.Queue
	w := newWorld(t, func(c *oauth.Config) {
		var err error
		if queue, err = jobs.New(jobs.Config{DB: c.DB, Seal: c.Seal}); err != nil {
			t.Fatal(err)
		}
		c.Jobs = queue
	})
	other := w.service(w.db, 1)
	waiting := func() (n int) {
		t.Helper()
		if err := w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM jobs WHERE kind = 'signing_key'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	spa := client.Application{Type: client.SPA, RedirectURIs: []string{"https://app.example.com/"}}
	app := func(tenant protocol.Tenant, change func(*client.Application)) client.Application {
		t.Helper()
		a := spa
		a.Options = spa.Type.DefaultOptions()
		a.Name, a.TokenExchange = "app", spa.Type.DefaultTokenExchange()
		change(&a)
		created, _, err := w.Clients.Create(t.Context(), tenant.ID, a)
		if err != nil {
			t.Fatal(err)
		}
		return created
	}
	published(t, w.Service, tenantA)
	published(t, other, tenantA)

	elliptic := app(tenantA, func(*client.Application) {})
	app(tenantA, func(a *client.Application) { a.Type, a.RedirectURIs, a.Options = client.Machine, nil, client.Options{} })
	if n := waiting(); n != 0 {
		t.Fatalf("%d keys are to be made for applications that use the default", n)
	}
	if _, err := w.Clients.Update(t.Context(), tenantA.ID, elliptic.ID, "ann", func(a *client.Application) { a.IDTokenAlg = keys.RS256 }); err != nil {
		t.Fatal(err)
	}
	if n := waiting(); n != 1 {
		t.Fatalf("%d keys are to be made for an application that was changed, want 1", n)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { queue.Run(ctx) })
	defer func() { stop(); running.Wait() }()
	for end := time.Now().Add(20 * time.Second); waiting() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the key is not made")
		}
	}
	want := map[string]int{"active ES256": 1, "active RS256": 1}
	if diff := cmp.Diff(want, w.states(tenantA)); diff != "" {
		t.Fatal(diff)
	}
	for _, s := range []*oauth.Service{w.Service, other} {
		if kids := published(t, s, tenantA); len(kids) != 2 {
			t.Errorf("published: %v", kids)
		}
	}
	app(tenantA, func(a *client.Application) { a.IDTokenAlg = keys.RS256 })
	if n := waiting(); n != 0 {
		t.Error("a key that exists is to be made")
	}
}

// A token that is requested before the key exists waits for it. Both processes make it at once,
// and one key remains.
func TestFirstSignature(t *testing.T) {
	w := newWorld(t)
	processes := []*oauth.Service{w.Service, w.service(w.db, 1)}
	app, secret := w.application(tenantA, client.Application{SigningAlg: keys.RS256})
	for _, s := range processes {
		published(t, s, tenantA)
	}
	tokens := make([]string, 6)
	var all sync.WaitGroup
	for i := range tokens {
		all.Go(func() {
			got, err := processes[i%2].Grants.Token(t.Context(), tenantA, request(app, secret))
			if err != nil {
				t.Error(err)
			}
			tokens[i] = got.AccessToken
		})
	}
	all.Wait()
	for _, s := range processes {
		for _, token := range tokens {
			accepted(t, s, token)
		}
	}
	want := map[string]int{"active ES256": 1, "active RS256": 1}
	if diff := cmp.Diff(want, w.states(tenantA)); diff != "" {
		t.Error(diff)
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
