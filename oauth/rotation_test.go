package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lestrrat-go/jwx/v3/jwa"

	"stonetown/internal/eventlog"
	"stonetown/internal/lease"
	"stonetown/oauth"
	"stonetown/oauth/client"
	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// The times of a key's life: until it signs, while it signs, and while it is retired.
const (
	publishedFor = 24*time.Hour + time.Minute
	signsFor     = 90 * 24 * time.Hour
	retiredFor   = protocol.MaxAccessTokenTTL + time.Hour
)

// pass looks after the keys once, after some time.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.clock.add(d)
	if err := w.Keys.RotateDue(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// states counts the keys of a tenant by algorithm and state.
func (w *world) states(tenant protocol.Tenant) map[string]int {
	w.t.Helper()
	keys, err := w.Keys.List(w.t.Context(), tenant.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	states := map[string]int{}
	for _, k := range keys {
		states[fmt.Sprintf("%s %s", k.State, k.Alg)]++
	}
	return states
}

// published are the ids in the tenant's key set, which holds no private member.
func published(t *testing.T, s *oauth.Service, tenant protocol.Tenant) (kids []string) {
	t.Helper()
	data, err := s.Keys.JWKS(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	for _, key := range set.Keys {
		for name := range key {
			if !slices.Contains([]string{"kty", "crv", "x", "y", "n", "e", "kid", "alg", "use"}, name) {
				t.Errorf("the key set has a member %s", name)
			}
		}
		kids = append(kids, key["kid"])
	}
	return kids
}

func refused(t *testing.T, s *oauth.Service, raw string, want token.Reason) {
	t.Helper()
	_, err := s.Tokens.Verify(t.Context(), tenantA, raw)
	if refusal, ok := errors.AsType[*token.Error](err); !ok || refusal.Reason != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func accepted(t *testing.T, s *oauth.Service, token string) {
	t.Helper()
	if _, err := s.Tokens.Verify(t.Context(), tenantA, token); err != nil {
		t.Error(err)
	}
}

// every returns one key in each of some states, of every algorithm.
func every(states ...string) map[string]int {
	all := map[string]int{}
	for _, state := range states {
		for _, alg := range keys.Algs {
			all[state+" "+string(alg)] = 1
		}
	}
	return all
}

// Tokens are valid until their key is removed.
func TestTokensAndTheirKeys(t *testing.T) {
	w := newWorld(t)
	app, secret := w.application(tenantA, client.Application{AccessTokenTTL: 24 * time.Hour})
	raw := func() string { return w.token(tenantA, app, secret) }
	kid := func(token string) string { return decode(t, token, 0)["kid"].(string) }
	states := func(want map[string]int) {
		t.Helper()
		if diff := cmp.Diff(want, w.states(tenantA)); diff != "" {
			t.Error(diff)
		}
	}
	first := raw()
	old := kid(first)
	stolen := w.steal(tenantA)[keys.ES256].private
	copied := func() string { // a token of an intruder who has the key
		members := with(with(decode(t, first, 1), "exp", w.clock.Now().Add(24*time.Hour).Unix()), "jti", fmt.Sprint(w.clock.Now()))
		return forge(t, jwa.ES256(), stolen, map[string]any{"typ": "at+jwt", "kid": old}, members)
	}

	w.pass(89*24*time.Hour - 2*time.Minute)
	states(every("active"))
	w.pass(time.Minute)
	states(every("active", "next"))
	kids := published(t, w.Service, tenantA)
	if len(kids) != 2*len(keys.Algs) || kid(raw()) != old {
		t.Errorf("a successor is published as %v, and tokens are signed by %s", kids, kid(raw()))
	}
	w.pass(24 * time.Hour)
	before := raw()
	accepted(t, w.Service, before)
	w.pass(time.Minute)
	states(every("active", "retired"))
	after := raw()
	if kid(after) == old || !slices.Contains(kids, kid(after)) {
		t.Errorf("signed by %s, of %v", kid(after), kids)
	}
	accepted(t, w.Service, after)
	accepted(t, w.Service, before)
	accepted(t, w.service(w.db, 1), before) // which remembers nothing
	if got := published(t, w.Service, tenantA); !slices.Contains(got, old) || len(got) != 2*len(keys.Algs) {
		t.Errorf("with a retired key: %v", got)
	}

	w.pass(24*time.Hour - 2*time.Minute)
	accepted(t, w.Service, before)
	w.pass(time.Hour + time.Minute)
	forged := copied()
	accepted(t, w.Service, forged) // still
	w.pass(time.Minute)
	states(every("active", "removed"))
	time.Sleep(lease.Term)
	refused(t, w.Service, forged, token.Revoked)
	refused(t, w.Service, copied(), token.BadSignature)
	refused(t, w.service(w.db, 1), forged, token.BadSignature)
	accepted(t, w.Service, raw())
	if got := published(t, w.Service, tenantA); slices.Contains(got, old) || len(got) != len(keys.Algs) {
		t.Errorf("with a removed key: %v", got)
	}
	var private int
	if err := w.db.QueryRow(t.Context(), `SELECT count(*) FROM signing_keys WHERE state = 'removed' AND length(private_sealed) > 0`).Scan(&private); err != nil || private != 0 {
		t.Errorf("%d private halves of removed keys are left, %v", private, err)
	}
	// Once the removal is forgotten nothing is left that it would have to keep out.
	w.pass(27 * time.Hour)
	if err := w.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused(t, w.Service, forged, token.Expired)
	refused(t, w.Service, copied(), token.BadSignature)

	w.clock.add(keys.RecordedFor)
	if err := w.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	states(every("active"))
}

// In an emergency the other processes refuse old tokens, sign with new keys and publish
// those alone, when the answer comes.
func TestEmergency(t *testing.T) {
	w := newWorld(t)
	w.allKeys(tenantA)
	other := w.service(w.db, 1)
	app, secret := w.application(tenantA, client.Application{})
	first := published(t, w.Service, tenantA)
	if _, err := w.Keys.Rotate(t.Context(), tenantA.ID, false); err != nil {
		t.Fatal(err)
	}
	remembered, unseen := w.token(tenantA, app, secret), w.token(tenantA, app, secret)
	old := published(t, other, tenantA)
	foreign, err := other.Keys.JWKS(t.Context(), tenantB)
	if err != nil || len(first) != len(keys.Algs) || len(old) != 2*len(keys.Algs) || !slices.Equal(published(t, w.Service, tenantA), old) {
		t.Fatalf("%v, then %v, %v", first, old, err)
	}
	for _, s := range []*oauth.Service{w.Service, other} {
		accepted(t, s, remembered)
	}
	rotated, err := w.Keys.Rotate(t.Context(), tenantA.ID, true)
	if err != nil || len(rotated) != 3*len(keys.Algs) {
		t.Fatalf("%v, %v", rotated, err)
	}
	for _, s := range []*oauth.Service{w.Service, other, w.service(w.db, 1)} {
		now := published(t, s, tenantA)
		if len(now) != len(keys.Algs) || slices.ContainsFunc(now, func(kid string) bool { return slices.Contains(old, kid) }) {
			t.Errorf("%v are published, old are %v", now, old)
		}
		got, err := s.Grants.Token(t.Context(), tenantA, request(app, secret))
		if err != nil || !slices.Contains(now, decode(t, got.AccessToken, 0)["kid"].(string)) {
			t.Fatalf("a token: %v", err)
		}
		accepted(t, w.Service, got.AccessToken)
		accepted(t, other, got.AccessToken)
	}
	for _, s := range []*oauth.Service{w.Service, other} {
		refused(t, s, remembered, token.Revoked)
		refused(t, s, unseen, token.BadSignature)
	}
	if same, err := other.Keys.JWKS(t.Context(), tenantB); err != nil || string(same) != string(foreign) {
		t.Errorf("another tenant's keys have changed, or: %v", err)
	}
}

// Tokens that name unknown keys cause no reads.
func TestUnknownKeys(t *testing.T) {
	w := newWorld(t)
	app, secret := w.application(tenantA, client.Application{})
	good := w.token(tenantA, app, secret)
	key, members := w.steal(tenantA)[keys.ES256].private, decode(t, good, 1)
	for _, tenant := range []protocol.Tenant{tenantA, tenantB} { // B has no keys yet
		if _, err := w.Tokens.Verify(t.Context(), tenant, forge(t, jwa.ES256(), key, map[string]any{"typ": "at+jwt", "kid": "x"}, members)); err == nil {
			t.Error("an unknown key was accepted")
		}
		before, began := w.db.Stats().Statements, time.Now()
		for i := range 200 {
			token := forge(t, jwa.ES256(), key, map[string]any{"typ": "at+jwt", "kid": fmt.Sprint(i)}, members)
			if _, err := w.Tokens.Verify(t.Context(), tenant, token); err == nil {
				t.Error("an unknown key was accepted")
			}
		}
		if n, most := w.db.Stats().Statements-before, 2+int64(time.Since(began)/(lease.Term/2)); n > most {
			t.Errorf("200 tokens of unknown keys have caused %d statements, at most %d", n, most)
		}
	}
}

// However many rotate at once, one key of each algorithm signs.
func TestParallelRotation(t *testing.T) {
	w := newWorld(t)
	processes := []*oauth.Service{w.Service, w.service(w.db, 1)}
	w.allKeys(tenantA)
	w.allKeys(tenantB)
	together := func(do func(*oauth.Service) error) {
		t.Helper()
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				if err := do(processes[i%2]); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	want := func(tenant protocol.Tenant, retired, removed int) {
		t.Helper()
		states := w.states(tenant)
		for _, alg := range keys.Algs {
			alg := " " + string(alg)
			if states["active"+alg] != 1 || states["retired"+alg] != retired || removed >= 0 && states["removed"+alg] != removed {
				t.Errorf("%s: %v", tenant.ID, states)
			}
		}
	}
	ask := func(tenant protocol.Tenant, emergency bool) func(*oauth.Service) error {
		return func(s *oauth.Service) error {
			_, err := s.Keys.Rotate(t.Context(), tenant.ID, emergency)
			return err
		}
	}
	for _, tenant := range []protocol.Tenant{tenantA, tenantB} {
		together(ask(tenant, false))
		together(ask(tenant, false))
		want(tenant, 0, 0)
	}
	w.clock.add(publishedFor)
	together(func(s *oauth.Service) error { return s.Keys.RotateDue(t.Context()) })
	want(tenantB, 1, 0)
	w.clock.add(retiredFor)
	together(func(s *oauth.Service) error { return s.Keys.RotateDue(t.Context()) })
	want(tenantB, 0, 1)
	together(ask(tenantA, true))
	want(tenantA, 0, -1)
	if states := w.states(tenantA); len(states) != 2*len(keys.Algs) { // active and removed
		t.Errorf("after emergencies: %v", states)
	}
	if got, want := published(t, processes[0], tenantA), published(t, processes[1], tenantA); !slices.Equal(got, want) {
		t.Errorf("two processes publish %v and %v", got, want)
	}
}

// Every step is recorded, with its actor.
func TestRotationEvents(t *testing.T) {
	w := newWorld(t)
	log, err := eventlog.Open(eventlog.Config{DB: w.db})
	if err != nil {
		t.Fatal(err)
	}
	w.allKeys(tenantA) // the first are no rotation
	ann := eventlog.Origin{Actor: eventlog.Actor{Type: "user", ID: "usr_ann"}, RequestID: "req_1"}
	byAnn := eventlog.WithOrigin(t.Context(), func() eventlog.Origin { return ann })
	for range 2 {
		if _, err := w.Keys.Rotate(byAnn, tenantA.ID, false); err != nil {
			t.Fatal(err)
		}
	}
	w.pass(publishedFor)
	w.pass(retiredFor)
	w.pass(time.Hour)
	if _, err := w.Keys.Rotate(byAnn, tenantA.ID, true); err != nil {
		t.Fatal(err)
	}
	events, err := log.Read(t.Context(), tenantA.ID, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		var data struct {
			Emergency   bool `json:"emergency"`
			SigningKeys []struct {
				KID, Alg string
				State    keys.State
			} `json:"signing_keys"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil || e.Type != eventlog.TenantSigningKeyRotated {
			t.Fatalf("%s: %s, %v", e.Type, e.Data, err)
		}
		text := fmt.Sprintf("%s %v:", e.Origin.Actor.ID, data.Emergency)
		for _, k := range data.SigningKeys {
			if len(k.KID) != 43 {
				t.Errorf("kid %q", k.KID)
			}
			text += fmt.Sprintf(" %s %s", k.Alg, k.State)
		}
		got = append(got, text)
	}
	want := []string{
		"usr_ann false: ES256 next RS256 next PS256 next EdDSA next",
		" false: ES256 retired ES256 active EdDSA retired EdDSA active PS256 retired PS256 active RS256 retired RS256 active",
		" false: ES256 removed EdDSA removed PS256 removed RS256 removed",
		"usr_ann true: ES256 removed EdDSA removed PS256 removed RS256 removed ES256 active RS256 active PS256 active EdDSA active",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The periodic rotation reads the keys that are due, however many tenants there are, and also those
// whose time an older version of the product has not stored.
func TestRotateDueOfManyTenants(t *testing.T) {
	w := newWorld(t)
	const tenants = 230 // more than are read at once
	for i := range tenants {
		published(t, w.Service, protocol.Tenant{ID: fmt.Sprint("tnt_", i)})
	}
	count := func(where string) (n int) {
		t.Helper()
		if err := w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM signing_keys WHERE `+where).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	idle := func(after string) {
		t.Helper()
		least := int64(math.MaxInt64) // other statements may be counted beside those of a pass
		for range 3 {
			before := w.db.Stats().Statements
			w.pass(0)
			least = min(least, w.db.Stats().Statements-before)
		}
		if least != 1 {
			t.Errorf("%s: %d statements while nothing is due, want 1", after, least)
		}
	}
	idle("new keys")
	if _, err := w.db.Exec(t.Context(), `UPDATE signing_keys SET due_at = 0`); err != nil {
		t.Fatal(err)
	}
	w.pass(0)
	if n := count(`due_at = 0`); n != 0 {
		t.Errorf("%d keys have no time", n)
	}
	idle("keys of an older version")
	for _, step := range []struct {
		after time.Duration
		state string
	}{{signsFor - publishedFor, "next"}, {publishedFor, "retired"}, {retiredFor, "removed"}} {
		w.pass(step.after)
		if n := count(`state = '` + step.state + `'`); n != tenants {
			t.Errorf("%d keys are %s, want %d", n, step.state, tenants)
		}
		idle(step.state)
	}
}

// Run rotates keys by itself.
func TestRunRotates(t *testing.T) {
	w := newWorld(t)
	w.allKeys(tenantA)
	w.clock.add(signsFor)
	var loop sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer func() { stop(); loop.Wait() }()
	loop.Go(func() { w.Run(ctx, slog.New(slog.NewTextHandler(noErrors{t}, nil))) })
	for end := time.Now().Add(20 * time.Second); w.states(tenantA)["next RS256"] == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nothing is rotated: %v", w.states(tenantA))
		}
	}
}

// noErrors fails a test when something is logged.
type noErrors struct{ *testing.T }

func (f noErrors) Write(line []byte) (int, error) {
	f.Errorf("logged: %s", line)
	return len(line), nil
}
