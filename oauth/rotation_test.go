package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lestrrat-go/jwx/v3/jwa"

	"stonetown/internal/eventlog"
)

// A key's life, told by the plans alone.
func TestPlans(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	next := func(kid string, alg Alg, created time.Duration) SigningKey {
		return SigningKey{KID: kid, Alg: alg, State: KeyNext, CreatedAt: ago(created)}
	}
	active := func(kid string, alg Alg, since time.Duration) SigningKey {
		return SigningKey{KID: kid, Alg: alg, State: KeyActive, CreatedAt: ago(since + day), ActivatedAt: ago(since)}
	}
	retired := func(kid string, since time.Duration) SigningKey {
		return SigningKey{KID: kid, Alg: ES256, State: KeyRetired, CreatedAt: ago(since + 91*day), ActivatedAt: ago(since + 90*day), RetiredAt: ago(since)}
	}
	removed := SigningKey{KID: "gone", Alg: ES256, State: KeyRemoved, CreatedAt: ago(300 * day), RemovedAt: ago(200 * day)}
	rs := active("rs", RS256, time.Hour) // of which nothing is due

	const publishing, retiring = day + time.Minute, day + time.Hour
	for name, tc := range map[string]struct {
		by   plan
		keys []SigningKey
		want []step
	}{
		"the first":                {due, nil, []step{{"", ES256, KeyActive}, {"", RS256, KeyActive}}},
		"one is missing":           {due, []SigningKey{rs, removed}, []step{{"", ES256, KeyActive}}},
		"new":                      {due, []SigningKey{active("a", ES256, 0), rs}, nil},
		"before a successor":       {due, []SigningKey{active("a", ES256, 90*day-publishing-1), rs}, nil},
		"a successor":              {due, []SigningKey{active("a", ES256, 90*day-publishing), rs}, []step{{"", ES256, KeyNext}}},
		"a late successor":         {due, []SigningKey{active("a", ES256, 500*day), rs}, []step{{"", ES256, KeyNext}}},
		"too early to sign":        {due, []SigningKey{active("a", ES256, 500*day), next("n", ES256, publishing-1), rs}, nil},
		"to sign":                  {due, []SigningKey{active("a", ES256, 90*day), next("n", ES256, publishing), rs}, []step{{"a", ES256, KeyRetired}, {"n", ES256, KeyActive}}},
		"to sign, asked for":       {due, []SigningKey{active("a", ES256, 2*day), next("n", ES256, publishing), rs}, []step{{"a", ES256, KeyRetired}, {"n", ES256, KeyActive}}},
		"both algorithms":          {due, []SigningKey{active("a", ES256, 89*day), active("b", RS256, 89*day)}, []step{{"", ES256, KeyNext}, {"", RS256, KeyNext}}},
		"published while retired":  {due, []SigningKey{active("a", ES256, day), rs, retired("r", retiring-1)}, nil},
		"to remove":                {due, []SigningKey{active("a", ES256, day), rs, retired("r", retiring), retired("s", time.Hour)}, []step{{"r", ES256, KeyRemoved}}},
		"removed for good":         {due, []SigningKey{active("a", ES256, day), rs, removed}, nil},
		"asked for":                {succeed, []SigningKey{active("a", ES256, 0), rs}, []step{{"", ES256, KeyNext}, {"", RS256, KeyNext}}},
		"asked for again":          {succeed, []SigningKey{active("a", ES256, 0), next("n", ES256, 0), rs, next("m", RS256, 2*day)}, nil},
		"asked for, one has it":    {succeed, []SigningKey{active("a", ES256, 0), rs, next("m", RS256, day), retired("r", 9*day)}, []step{{"", ES256, KeyNext}}},
		"asked for without any":    {succeed, nil, []step{{"", ES256, KeyActive}, {"", RS256, KeyActive}}},
		"an emergency without any": {replace, nil, []step{{"", ES256, KeyActive}, {"", RS256, KeyActive}}},
		"an emergency": {
			replace,
			[]SigningKey{active("a", ES256, 0), next("n", ES256, 0), removed, retired("r", 0), rs},
			[]step{{"a", ES256, KeyRemoved}, {"n", ES256, KeyRemoved}, {"r", ES256, KeyRemoved}, {"rs", RS256, KeyRemoved}, {"", ES256, KeyActive}, {"", RS256, KeyActive}},
		},
	} {
		if diff := cmp.Diff(tc.want, tc.by(tc.keys, now), cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What has to hold at any time, whenever somebody looks after the keys and whatever they
// ask for.
func TestLivesOfKeys(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var keys []SigningKey
	asked := false
	for made := 0; made < 2000; {
		by := plan(due)
		if rand.IntN(50) == 0 {
			by, asked = succeed, true
		}
		for _, s := range by(keys, now) {
			if s.kid == "" {
				made++
				key := SigningKey{KID: fmt.Sprint(made), Alg: s.alg, CreatedAt: now}
				keys = append(keys, key.enter(s.to, now))
				continue
			}
			i := slices.IndexFunc(keys, func(k SigningKey) bool { return k.KID == s.kid })
			keys[i] = keys[i].enter(s.to, now)
		}
		count := map[step]int{}
		for _, k := range keys {
			count[step{"", k.Alg, k.State}]++
			first := k.KID == "1" || k.KID == "2"
			switch {
			case k.State != KeyNext && !first && k.ActivatedAt.Sub(k.CreatedAt) < 24*time.Hour:
				t.Fatalf("published for %v before it signed: %+v", k.ActivatedAt.Sub(k.CreatedAt), k)
			case k.State == KeyRemoved && k.RemovedAt.Sub(k.RetiredAt) < maxAccessTokenTTL+time.Hour:
				t.Fatalf("removed too early: %+v", k)
			case k.State == KeyActive && now.Sub(k.ActivatedAt) > signsFor+upkeepEvery+publishedFor:
				t.Fatalf("signs for too long: %+v", k)
			case k.State == KeyRetired && !asked && !first && k.RetiredAt.Sub(k.ActivatedAt) < signsFor:
				t.Fatalf("signed too shortly: %+v", k)
			}
		}
		for _, alg := range algs {
			if count[step{"", alg, KeyActive}] != 1 || count[step{"", alg, KeyNext}] > 1 {
				t.Fatalf("%s: %v", alg, count)
			}
		}
		keys = slices.DeleteFunc(keys, func(k SigningKey) bool { return k.State == KeyRemoved })
		now = now.Add(rand.N(2 * upkeepEvery))
	}
}

// pass looks after the keys once, after some time.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.clock.add(d)
	if err := w.rotate(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// states counts the keys of a tenant by algorithm and state.
func (w *world) states(tenant Tenant) map[string]int {
	w.t.Helper()
	keys, err := w.SigningKeys(w.t.Context(), tenant.ID)
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
func published(t *testing.T, s *Service, tenant Tenant) (kids []string) {
	t.Helper()
	data, err := s.JWKS(t.Context(), tenant)
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

func refused(t *testing.T, s *Service, token string, want Reason) {
	t.Helper()
	_, err := s.Verify(t.Context(), tenantA, token)
	if refusal, ok := errors.AsType[*TokenError](err); !ok || refusal.Reason != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func accepted(t *testing.T, s *Service, token string) {
	t.Helper()
	if _, err := s.Verify(t.Context(), tenantA, token); err != nil {
		t.Error(err)
	}
}

// What a key has signed is good until the key is removed, and then no more.
func TestTokensAndTheirKeys(t *testing.T) {
	w := newWorld(t)
	app, secret := w.application(tenantA, Application{AccessTokenTTL: 24 * time.Hour})
	token := func() string { return w.token(tenantA, app, secret) }
	kid := func(token string) string { return decode(t, token, 0)["kid"].(string) }
	states := func(want map[string]int) {
		t.Helper()
		if diff := cmp.Diff(want, w.states(tenantA)); diff != "" {
			t.Error(diff)
		}
	}
	first := token()
	old := kid(first)
	ring, err := w.keys.ring(t.Context(), tenantA.ID)
	if err != nil {
		t.Fatal(err)
	}
	stolen := ring.sign[ES256].private
	copied := func() string { // what somebody signs who has got at the key
		members := with(with(decode(t, first, 1), "exp", w.clock.Now().Add(24*time.Hour).Unix()), "jti", fmt.Sprint(w.clock.Now()))
		return forge(t, jwa.ES256(), stolen, map[string]any{"typ": "at+jwt", "kid": old}, members)
	}

	w.pass(89*24*time.Hour - 2*time.Minute)
	states(map[string]int{"active ES256": 1, "active RS256": 1})
	w.pass(time.Minute)
	states(map[string]int{"active ES256": 1, "active RS256": 1, "next ES256": 1, "next RS256": 1})
	kids := published(t, w.Service, tenantA)
	if len(kids) != 4 || kid(token()) != old {
		t.Errorf("a successor is published as %v, and tokens are signed by %s", kids, kid(token()))
	}
	w.pass(24 * time.Hour)
	before := token()
	accepted(t, w.Service, before)
	w.pass(time.Minute)
	states(map[string]int{"active ES256": 1, "active RS256": 1, "retired ES256": 1, "retired RS256": 1})
	after := token()
	if kid(after) == old || !slices.Contains(kids, kid(after)) {
		t.Errorf("signed by %s, of %v", kid(after), kids)
	}
	accepted(t, w.Service, after)
	accepted(t, w.Service, before)
	accepted(t, w.service(w.db, 1), before) // which remembers nothing
	if got := published(t, w.Service, tenantA); !slices.Contains(got, old) || len(got) != 4 {
		t.Errorf("with a retired key: %v", got)
	}

	w.pass(24*time.Hour - 2*time.Minute)
	accepted(t, w.Service, before)
	w.pass(time.Hour + time.Minute)
	forged := copied()
	accepted(t, w.Service, forged) // still
	w.pass(time.Minute)
	states(map[string]int{"active ES256": 1, "active RS256": 1, "removed ES256": 1, "removed RS256": 1})
	time.Sleep(revocationLease)
	refused(t, w.Service, forged, Revoked)
	refused(t, w.Service, copied(), BadSignature)
	refused(t, w.service(w.db, 1), forged, BadSignature)
	accepted(t, w.Service, token())
	if got := published(t, w.Service, tenantA); slices.Contains(got, old) || len(got) != 2 {
		t.Errorf("with a removed key: %v", got)
	}
	var private int
	if err := w.db.QueryRow(t.Context(), `SELECT count(*) FROM signing_keys WHERE state = 'removed' AND length(private_sealed) > 0`).Scan(&private); err != nil || private != 0 {
		t.Errorf("%d private halves of removed keys are left, %v", private, err)
	}
	// Once the removal is forgotten nothing is left that it would have to keep out.
	w.pass(27 * time.Hour)
	if err := w.tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused(t, w.Service, forged, Expired)
	refused(t, w.Service, copied(), BadSignature)

	w.clock.add(recordedFor)
	if err := w.tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	states(map[string]int{"active ES256": 1, "active RS256": 1})
}

// In an emergency the other processes refuse old tokens, sign with new keys and publish
// those alone, when the answer comes.
func TestEmergency(t *testing.T) {
	w := newWorld(t)
	other := w.service(w.db, 1)
	app, secret := w.application(tenantA, Application{})
	first := published(t, w.Service, tenantA)
	if _, err := w.RotateSigningKeys(t.Context(), tenantA.ID, false); err != nil {
		t.Fatal(err)
	}
	remembered, unseen := w.token(tenantA, app, secret), w.token(tenantA, app, secret)
	old := published(t, other, tenantA)
	foreign, err := other.JWKS(t.Context(), tenantB)
	if err != nil || len(first) != 2 || len(old) != 4 || !slices.Equal(published(t, w.Service, tenantA), old) {
		t.Fatalf("%v, then %v, %v", first, old, err)
	}
	for _, s := range []*Service{w.Service, other} {
		accepted(t, s, remembered)
	}
	keys, err := w.RotateSigningKeys(t.Context(), tenantA.ID, true)
	if err != nil || len(keys) != 6 {
		t.Fatalf("%v, %v", keys, err)
	}
	for _, s := range []*Service{w.Service, other, w.service(w.db, 1)} {
		now := published(t, s, tenantA)
		if len(now) != 2 || slices.ContainsFunc(now, func(kid string) bool { return slices.Contains(old, kid) }) {
			t.Errorf("%v are published, old are %v", now, old)
		}
		got, err := s.Token(t.Context(), tenantA, request(app, secret))
		if err != nil || !slices.Contains(now, decode(t, got.AccessToken, 0)["kid"].(string)) {
			t.Fatalf("a token: %v", err)
		}
		accepted(t, w.Service, got.AccessToken)
		accepted(t, other, got.AccessToken)
	}
	for _, s := range []*Service{w.Service, other} {
		refused(t, s, remembered, Revoked)
		refused(t, s, unseen, BadSignature)
	}
	if same, err := other.JWKS(t.Context(), tenantB); err != nil || string(same) != string(foreign) {
		t.Errorf("another tenant's keys have changed, or: %v", err)
	}
}

// Strangers who name keys that do not exist cause no reading.
func TestUnknownKeys(t *testing.T) {
	w := newWorld(t)
	app, secret := w.application(tenantA, Application{})
	good := w.token(tenantA, app, secret)
	ring, err := w.keys.ring(t.Context(), tenantA.ID)
	if err != nil {
		t.Fatal(err)
	}
	key, members := ring.sign[ES256].private, decode(t, good, 1)
	for _, tenant := range []Tenant{tenantA, tenantB} { // B has no keys yet
		if _, err := w.Verify(t.Context(), tenant, forge(t, jwa.ES256(), key, map[string]any{"typ": "at+jwt", "kid": "x"}, members)); err == nil {
			t.Error("an unknown key was accepted")
		}
		before, began := w.db.Stats().Statements, time.Now()
		for i := range 200 {
			token := forge(t, jwa.ES256(), key, map[string]any{"typ": "at+jwt", "kid": fmt.Sprint(i)}, members)
			if _, err := w.Verify(t.Context(), tenant, token); err == nil {
				t.Error("an unknown key was accepted")
			}
		}
		if n, most := w.db.Stats().Statements-before, 2+int64(time.Since(began)/(revocationLease/2)); n > most {
			t.Errorf("200 tokens of unknown keys have caused %d statements, at most %d", n, most)
		}
	}
}

// However many rotate at once, one key of each algorithm signs.
func TestParallelRotation(t *testing.T) {
	w := newWorld(t)
	processes := []*Service{w.Service, w.service(w.db, 1)}
	if _, err := w.JWKS(t.Context(), tenantB); err != nil { // tenant A has none
		t.Fatal(err)
	}
	together := func(do func(*Service) error) {
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
	want := func(tenant Tenant, retired, removed int) {
		t.Helper()
		states := w.states(tenant)
		for _, alg := range []string{" ES256", " RS256"} {
			if states["active"+alg] != 1 || states["retired"+alg] != retired || removed >= 0 && states["removed"+alg] != removed {
				t.Errorf("%s: %v", tenant.ID, states)
			}
		}
	}
	ask := func(tenant Tenant, emergency bool) func(*Service) error {
		return func(s *Service) error {
			_, err := s.RotateSigningKeys(t.Context(), tenant.ID, emergency)
			return err
		}
	}
	for _, tenant := range []Tenant{tenantA, tenantB} {
		together(ask(tenant, false))
		together(ask(tenant, false))
		want(tenant, 0, 0)
	}
	w.clock.add(publishedFor)
	together(func(s *Service) error { return s.rotate(t.Context()) })
	want(tenantB, 1, 0)
	w.clock.add(retiredFor)
	together(func(s *Service) error { return s.rotate(t.Context()) })
	want(tenantB, 0, 1)
	together(ask(tenantA, true))
	want(tenantA, 0, -1)
	if states := w.states(tenantA); states["next ES256"]+states["next RS256"] != 0 {
		t.Errorf("after emergencies: %v", states)
	}
	if got, want := published(t, processes[0], tenantA), published(t, processes[1], tenantA); !slices.Equal(got, want) {
		t.Errorf("two processes publish %v and %v", got, want)
	}
}

// Every step is on record, whoever has asked for it.
func TestRotationEvents(t *testing.T) {
	w := newWorld(t)
	log, err := eventlog.Open(eventlog.Config{DB: w.db})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.JWKS(t.Context(), tenantA); err != nil { // the first are no rotation
		t.Fatal(err)
	}
	ann := eventlog.Origin{Actor: eventlog.Actor{Type: "user", ID: "usr_ann"}, RequestID: "req_1"}
	byAnn := eventlog.WithOrigin(t.Context(), func() eventlog.Origin { return ann })
	for range 2 {
		if _, err := w.RotateSigningKeys(byAnn, tenantA.ID, false); err != nil {
			t.Fatal(err)
		}
	}
	w.pass(publishedFor)
	w.pass(retiredFor)
	w.pass(time.Hour)
	if _, err := w.RotateSigningKeys(byAnn, tenantA.ID, true); err != nil {
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
				State    KeyState
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
		"usr_ann false: ES256 next RS256 next",
		" false: ES256 retired ES256 active RS256 retired RS256 active",
		" false: ES256 removed RS256 removed",
		"usr_ann true: ES256 removed RS256 removed ES256 active RS256 active",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The loop of the program needs nobody to ask it.
func TestRunRotates(t *testing.T) {
	w := newWorld(t)
	if _, err := w.JWKS(t.Context(), tenantA); err != nil {
		t.Fatal(err)
	}
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
