package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/identity"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/outbound"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const tenantA = "tnt_a"

// settings are the settings of tenants.
type settings struct {
	mu     sync.Mutex
	active map[string]int
}

func (s *settings) Settings(_ context.Context, tenantID string) (identity.Settings, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return identity.Settings{SignInFlow: s.active[tenantID]}, nil
}

func (s *settings) UpdateSettings(_ context.Context, _ *sqldb.Tx, tenantID string, change func(*identity.Settings)) (before, after identity.Settings, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before.SignInFlow = s.active[tenantID]
	after = before
	change(&after)
	s.active[tenantID] = after.SignInFlow
	return before, after, nil
}

type anyone struct{}

func (anyone) MayGive(context.Context, string, []string) error { return nil }

type signer struct{}

func (signer) NewSecret() string { return "secret" }

func (signer) Sign(h http.Header, id string, _ time.Time, _ []byte, current, _ string) error {
	h.Set("Signed", id+" "+current)
	return nil
}

// newRegistry returns a registry on a database of its own.
func newRegistry(t testing.TB, client *outbound.Client) *Registry {
	t.Helper()
	return newRegistryOn(t, "sqlite://"+filepath.Join(t.TempDir(), "test.db"), client)
}

func newRegistryOn(t testing.TB, url string, client *outbound.Client) *Registry {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), Migrations(), eventlog.Migrations(), jobs.Migrations(), sqlstore.Migrations()); err != nil {
		t.Fatal(err)
	}
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(Config{
		DB: db, Seal: key, Users: &settings{active: map[string]int{}}, Authority: anyone{}, Outbound: client, Signer: signer{},
		MayClaim: func(name string) bool { return name != "sub" }, CallTime: 200 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// publish publishes a document of a tenant whose actions are at a URL.
func (r *Registry) mustPublish(t testing.TB, tenantID, to string, onError OnError) Version {
	t.Helper()
	d := Document{
		SignIn:  []Step{{Name: "Risk", Kind: CallAction, Action: "risk"}},
		Actions: []Action{{Name: "risk", URL: to, Effects: []Effect{EffectDeny, EffectAddClaims}, OnError: onError}},
	}
	if _, err := r.SaveDraft(t.Context(), tenantID, d, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.RotateSecret(t.Context(), tenantID, "risk", 0); err != nil {
		t.Fatal(err)
	}
	v, err := r.Publish(t.Context(), tenantID, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func isDenied(err error) bool {
	_, ok := errors.AsType[*DeniedError](err)
	return ok
}

// TestAddressesOfServices: a flow cannot name an address that only this machine reaches.
func TestAddressesOfServices(t *testing.T) {
	r := newRegistry(t, outbound.New(outbound.Config{}))
	for _, to := range []string{
		"http://example.com", "https://127.0.0.1/", "https://[::1]/", "https://10.0.0.1/", "https://169.254.169.254/latest", "https://localhost/", "https://metadata.internal/",
		"https://2130706433/", "https://user:secret@example.com/", "https://example.com:6379/", "https://example.com/#x", "javascript:alert(1)", "",
	} {
		_, err := r.SaveDraft(t.Context(), tenantA, Document{Actions: []Action{{Name: "a", URL: to, Effects: []Effect{EffectDeny}}}}, nil)
		invalid, ok := errors.AsType[*ValidationError](err)
		if !ok || invalid.Faults[0].Field != "actions/0/url" {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// TestSlowServices: a service has a time for its whole answer, and the failure has the consequence that
// the action declares.
func TestSlowServices(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	hang := func(write string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if write != "" {
				_, _ = io.WriteString(w, write)
				_ = http.NewResponseController(w).Flush()
			}
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}))
		t.Cleanup(s.Close)
		return s
	}
	client := outbound.New(outbound.Config{AllowInsecure: true})
	for name, write := range map[string]string{"no answer": "", "half an answer": `{"add_claims":`} {
		r, service := newRegistry(t, client), hang(write)
		for _, onError := range []OnError{DenyOnError, ContinueOnError} {
			v := r.mustPublish(t, tenantA, service.URL, onError)
			began := time.Now()
			o, err := r.Run(t.Context(), tenantA, v.Number, SignIn, Input{At: time.Now()}, nil)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%s: %v", name, took)
			}
			if onError == DenyOnError && !isDenied(err) || onError == ContinueOnError && (err != nil || o.Steps[0].Reason != "timeout") {
				t.Errorf("%s, %s: %+v, %v", name, onError, o.Steps, err)
			}
		}
	}
}

// TestPlaces: the slow service of a tenant takes no place of another. A sign-in of that tenant waits, and
// its action fails when it has waited too long.
func TestPlaces(t *testing.T) {
	release, started := make(chan struct{}), make(chan struct{}, 100)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		started <- struct{}{}
		<-release
		w.WriteHeader(http.StatusNoContent)
	}))
	defer slow.Close()
	fast := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer fast.Close()
	r := newRegistry(t, outbound.New(outbound.Config{AllowInsecure: true}))
	r.callTime = 20 * time.Second
	r.mustPublish(t, "tnt_slow", slow.URL, DenyOnError)
	r.mustPublish(t, "tnt_slow", slow.URL, ContinueOnError)
	r.mustPublish(t, "tnt_fast", fast.URL, DenyOnError)
	run := func(tenantID string, version int) (Outcome, error) {
		return r.Run(t.Context(), tenantID, version, SignIn, Input{At: time.Now()}, nil)
	}
	var running sync.WaitGroup
	for range 16 {
		running.Go(func() {
			if _, err := run("tnt_slow", 1); err != nil {
				t.Error(err)
			}
		})
	}
	for range 16 {
		<-started
	}
	if _, err := run("tnt_fast", 1); err != nil {
		t.Error(err)
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if _, err := run("tnt_slow", 1); !isDenied(err) {
			t.Errorf("without a place: %v", err)
		}
	})
	waiting.Go(func() {
		if o, err := run("tnt_slow", 2); err != nil || o.Steps[0].Reason != Overloaded {
			t.Errorf("without a place, continued: %+v, %v", o.Steps, err)
		}
	})
	waiting.Wait()
	if len(started) > 0 {
		t.Error("there were more requests than places")
	}
	close(release)
	running.Wait()
}

// TestConditionsFailClosed: a step whose condition cannot be evaluated runs.
func TestConditionsFailClosed(t *testing.T) {
	for when, want := range map[string]bool{
		"": true, "true": true, "false": false,
		`attributes.contract == "ended"`:                                    true, // there is no such attribute
		`has(attributes.contract) && attributes.contract == "ended"`:        false,
		`ip.in_cidr("10.0.0.0/8")`:                                          true, // the address is unknown
		`email == "ann@example.com" && email_verified && attributes.n == 3`: true,
		`time < created_at || "mfa" in amr || second_factor`:                false,
		`[1, 2].all(x, [1, 2].all(y, email.contains("x") || x / 0 == y))`:   true,
	} {
		c, err := compile(Document{SignIn: []Step{{Name: "x", Kind: Deny, When: when}}})
		if err != nil {
			t.Errorf("%s: %v", when, err)
			continue
		}
		in := Input{
			User:    identity.User{Email: "Ann@example.com", EmailVerified: true, Profile: identity.Profile{Attributes: []byte(`{"n":3}`)}},
			Methods: []string{"pwd"}, At: time.Now(),
		}
		o, err := c.run(t.Context(), SignIn, 1, in, nil, nil)
		if denied, _ := o.Denied(); err != nil || denied != want {
			t.Errorf("%s: denied %v, %v, %q", when, denied, err, o.Steps[0].Fault)
		}
		if strings.Contains(strings.ToLower(o.Steps[0].Fault), "ann@") {
			t.Errorf("%s: the fault has a value: %s", when, o.Steps[0].Fault)
		}
	}
}

// TestRandomFlows: over random documents and answers of services, no demand of a step that ran is lost,
// a step after the end of a run does nothing, and each action is called once over the runs of a sign-in.
func TestRandomFlows(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 1))
	pick := func(n int) int { return rnd.IntN(n) }
	for range 500 {
		d := Document{Actions: []Action{{Name: "a", OnError: []OnError{DenyOnError, ContinueOnError}[pick(2)]}}}
		for n := range pick(6) {
			kind := []Kind{Deny, RequireFactor, RequireVerifiedEmail, CallAction, CallAction}[pick(5)]
			d.SignIn = append(d.SignIn, Step{Name: fmt.Sprint(n), Kind: kind, When: []string{"", "true", "false", "second_factor", "!second_factor"}[pick(5)], Action: "a"})
		}
		c, err := compile(d)
		if err != nil {
			t.Fatal(err)
		}
		calls := map[string]int{}
		call := func(_ context.Context, s Step, _ Action) (Result, error) {
			calls[s.Name]++
			switch pick(5) {
			case 0:
				return Result{denied: true}, nil
			case 1:
				return Result{RequireFactor: true}, nil
			case 2:
				return Result{}, &failure{Reason: "timeout"}
			}
			return Result{Claims: map[string]json.RawMessage{"c" + s.Name: json.RawMessage(`1`)}}, nil
		}
		in := Input{HasFactors: pick(2) == 0, At: time.Now(), User: identity.User{EmailVerified: pick(2) == 0}}
		var kept *State
		for range 3 {
			o, err := c.run(t.Context(), SignIn, 1, in, kept, call)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			check(t, seed, in, o)
			if o.denied || !o.Factor || !in.HasFactors {
				break
			}
			in.SecondFactor = true // the user has proved it
			text, _ := json.Marshal(o.State)
			if kept = nil; o.State != nil {
				kept = new(State)
				if err := json.Unmarshal(text, kept); err != nil {
					t.Fatal(err)
				}
			}
		}
		for name, n := range calls {
			if n > 1 {
				t.Fatalf("seed %d: the action of step %s was called %d times", seed, name, n)
			}
		}
	}
}

// TestStateOfAnotherVersion: the results of the actions of a version are not those of the next one.
func TestStateOfAnotherVersion(t *testing.T) {
	c, err := compile(Document{SignIn: []Step{{Name: "x", Kind: CallAction, Action: "a"}}, Actions: []Action{{Name: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	call := func(context.Context, Step, Action) (Result, error) {
		calls++
		return Result{}, nil
	}
	for n, kept := range []*State{nil, {Version: 2, Results: map[int]Result{0: {}}}, {Version: 1, Results: map[int]Result{0: {RequireFactor: true}}}} {
		if o, err := c.run(t.Context(), SignIn, 2, Input{At: time.Now()}, kept, call); err != nil || o.Factor || calls != []int{1, 1, 2}[n] {
			t.Errorf("state %+v: %d calls, %+v, %v", kept, calls, o.Demands, err)
		}
	}
}

// TestClaimsOfAllActions: the claims of a session are bounded together, and the action that exceeds the
// bound fails.
func TestClaimsOfAllActions(t *testing.T) {
	c, err := compile(Document{
		SignIn:  []Step{{Name: "1", Kind: CallAction, Action: "a"}, {Name: "2", Kind: CallAction, Action: "a"}},
		Actions: []Action{{Name: "a", OnError: ContinueOnError}},
	})
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.run(t.Context(), SignIn, 1, Input{At: time.Now()}, nil, func(_ context.Context, s Step, _ Action) (Result, error) {
		return Result{Claims: map[string]json.RawMessage{s.Name: json.RawMessage(`"` + strings.Repeat("x", MaxClaimsBytes/2) + `"`)}}, nil
	})
	if err != nil || len(o.Claims) != 1 || o.Claims["1"] == nil || o.Steps[1].Reason != ClaimRefused {
		t.Errorf("%d claims, %+v, %v", len(o.Claims), o.Steps, err)
	}
}

// TestPreviousSecret: the previous secret of an action signs until its time has passed, and no longer than
// until the next rotation.
func TestPreviousSecret(t *testing.T) {
	now := time.Now()
	r := newRegistry(t, outbound.New(outbound.Config{AllowInsecure: true}))
	r.clock = func() time.Time { return now }
	r.signer = &numbered{}
	r.mustPublish(t, tenantA, "http://127.0.0.1:65533/", DenyOnError)
	want := func(current, previous string) {
		t.Helper()
		if c, p, err := r.secrets(t.Context(), tenantA, "risk"); err != nil || c != current || p != previous {
			t.Errorf("%q and %q, %v; want %q and %q", c, p, err, current, previous)
		}
	}
	rotate := func(ttl time.Duration) {
		t.Helper()
		_, ends, err := r.RotateSecret(t.Context(), tenantA, "risk", ttl)
		if err != nil || ends.IsZero() != (ttl == 0) {
			t.Fatalf("%v, %v", ends, err)
		}
	}
	want("1", "")
	rotate(time.Hour)
	want("2", "1")
	now = now.Add(time.Hour - time.Second)
	want("2", "1")
	now = now.Add(time.Second)
	want("2", "")
	rotate(time.Hour)
	rotate(time.Hour)
	want("4", "3")
	rotate(0)
	want("5", "")
}

// numbered makes the secrets 1, 2 and so on.
type numbered struct {
	signer
	made int
}

func (s *numbered) NewSecret() string {
	s.made++
	return fmt.Sprint(s.made)
}

// check fails if an outcome does not follow from its steps.
func check(t *testing.T, seed uint64, in Input, o Outcome) {
	t.Helper()
	ended := false
	for _, s := range o.Steps {
		if ended != (s.Result == NotReached) {
			t.Fatalf("seed %d: step %d is %s after the end: %v", seed, s.Position, s.Result, o.Steps)
		}
		switch {
		case s.Result == Denied:
			ended = true
			if !o.denied {
				t.Fatalf("seed %d: a denial is lost", seed)
			}
		case s.Result == Demanded && s.Kind == RequireVerifiedEmail:
			ended = true
			if !o.VerifiedEmail || in.User.EmailVerified {
				t.Fatalf("seed %d: the demand of an address is lost", seed)
			}
		case s.Result == Demanded:
			ended = in.HasFactors
			if !o.Factor || in.SecondFactor {
				t.Fatalf("seed %d: the demand of a factor is lost", seed)
			}
		}
		for name := range s.Claims {
			if o.Claims[name] == nil {
				t.Fatalf("seed %d: the claim %s is lost", seed, name)
			}
		}
	}
}

// TestVersionsAreKept: the newest versions are kept, with the secrets of their actions.
func TestVersionsAreKept(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { versionsAreKept(t, "sqlite://"+filepath.Join(t.TempDir(), "test.db")) })
	t.Run("PostgreSQL", func(t *testing.T) { versionsAreKept(t, pgtest.URL(t)) })
}

func versionsAreKept(t *testing.T, url string) {
	r := newRegistryOn(t, url, outbound.New(outbound.Config{AllowInsecure: true}))
	first := r.mustPublish(t, tenantA, "http://127.0.0.1:65533/", DenyOnError)
	for range MaxVersions {
		if _, err := r.SaveDraft(t.Context(), tenantA, Document{}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Publish(t.Context(), tenantA, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	all, err := r.Versions(t.Context(), tenantA, 0, 2*MaxVersions)
	if err != nil || len(all) != MaxVersions || all[0].Number != MaxVersions+1 || all[len(all)-1].Number != 2 {
		t.Errorf("%d versions, %v", len(all), err)
	}
	if _, err := r.RollBack(t.Context(), tenantA, first.Number, ""); !errors.Is(err, ErrVersionNotFound) {
		t.Errorf("the first version: %v", err)
	}
	var secrets int64
	if err := r.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM sign_in_flow_secrets`).Scan(&secrets); err != nil || secrets != 0 {
		t.Errorf("%d secrets, %v", secrets, err)
	}
}

// TestSecretsOfDrafts: publishing an earlier version leaves the secret of an action that only the draft has.
func TestSecretsOfDrafts(t *testing.T) {
	r := newRegistry(t, outbound.New(outbound.Config{AllowInsecure: true}))
	r.mustPublish(t, tenantA, "http://127.0.0.1:65533/", DenyOnError)
	next := Document{
		SignIn:  []Step{{Name: "Next", Kind: CallAction, Action: "next"}},
		Actions: []Action{{Name: "next", URL: "http://127.0.0.1:65533/", Effects: []Effect{EffectDeny}}},
	}
	if _, err := r.SaveDraft(t.Context(), tenantA, next, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.RotateSecret(t.Context(), tenantA, "next", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := r.RollBack(t.Context(), tenantA, 1, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Publish(t.Context(), tenantA, "", nil); err != nil {
		t.Errorf("the draft: %v", err)
	}
}
